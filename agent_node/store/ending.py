"""Holds one attempt at its end: its row, the state it leads to, and what is written of it."""

from __future__ import annotations

from functools import cache

from ..commands import Finish
from ..strict import JsonObject
from ..task import State
from .transaction import Transaction, may_change, to_json

# seq, state, agent, failures, interruptions, max_attempts, stopping, spec, streak of the agent
Row = tuple[int, str, str | None, int, int, int, str | None, str, int | None]


_CLOSE = """
UPDATE attempt SET ended_at = ?, outcome = ?, counted = ?, error_kind = ?, message = ?,
       exit_code = ?, duration_s = ?, cost_usd = ?, tokens = ?, end_event = ?
 WHERE uid = ? AND n = ?
"""


class New:
    """The state that an ending led to, and whether the attempt used up a try."""

    def __init__(self, state: State, *, counted: bool = False) -> None:
        self.state, self.counted = state, counted


class Ending:
    """One attempt at its end, with the row it belongs to."""

    def __init__(self, tx: Transaction, command: Finish, row: Row) -> None:
        self.tx, self.command, self.result = tx, command, command.result
        self.seq, was, self.agent, self.failures, self.interruptions = row[:5]
        self.max_attempts, self.stopping, self.spec, self.streak = row[5:]
        self.was = State(was)

    def change(
        self,
        new: State,
        event: str,
        because: str | None,
        data: JsonObject | None = None,
        **columns: object,
    ) -> None:
        """Write the new state where the table allows it, fenced by the attempt's number."""
        values = (*columns.values(), self.command.uid, self.command.n)
        done = self.tx.db.execute(_becomes(new, *columns), values)
        assert done.rowcount == 1, f"{self.was} did not become {new}"
        self.tx.moves(self.was, new)
        self.tx.event(
            event, self.command.uid, n=self.command.n, was=self.was, state=new, by=self.agent,
            because=because, data=data,
        )  # fmt: skip
        self.was = new

    def close_attempt(self, *, counted: bool) -> None:
        """The attempt's own row, closed once."""
        result = self.result
        self.tx.db.execute(
            _CLOSE,
            (
                self.tx.stamp, result.kind, int(counted), result.error_kind, result.message,
                result.exit_code, result.duration_s, result.cost_usd,
                None if result.tokens is None else to_json(result.tokens), self.tx.next_event - 1,
                self.command.uid, self.command.n,
            ),
        )  # fmt: skip

    def note_streak(self, *, counted: bool) -> None:
        """How many of the agent's attempts failed one after another."""
        if self.result.kind in ("completed", "failed"):
            streak = (self.streak or 0) + 1 if counted else 0
            if streak:
                self.tx.live.failing.add(self.agent)
            if streak != self.streak:
                query = "UPDATE agent SET streak = ? WHERE name = ?"
                self.tx.db.execute(query, (streak, self.agent))


@cache
def _becomes(new: State, *columns: str) -> str:
    sets = "".join(f", {name} = ?" for name in columns)
    return (
        f"UPDATE task SET state = '{new}', stopping = NULL{sets}"
        f" WHERE uid = ? AND attempt = ? AND {may_change(new)}"
    )
