"""Keeps what is known of the nodes between two looks: met, alerts, what ended, stranded time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

from .decisions.alerts import Alert, Edge
from .decisions.tallying import Labels, tally_stranded
from .history_seen import TAKEN
from .journal_ahead import ahead_of
from .links import Met

if TYPE_CHECKING:
    from .journal import Row, Rows
    from .journal_tallies import TallyBook

ALERTS_A_DAY = 3  # told of one node; more are written down and not told
ENDED_MAX = 2000  # attempts of one node that a window looks at
TRIALS_MAX = 100  # the last of them, however old, that say whether it is on trial


@dataclass(frozen=True)
class LastMet:
    """What a node answered when it was last met."""

    node: str
    incarnation: str
    generation: int
    state: str
    version: str
    clock_off_s: float | None
    at: datetime  # by the hub's clock


@dataclass(frozen=True)
class Ended:
    """One attempt that ended on a node. Interruptions are none: they are nobody's failure."""

    seq: int
    at: datetime  # when the hub heard of it, by the hub's clock
    uid: str
    well: bool
    domain: str | None = None  # None: its task had none, or was gone when the node was heard


@dataclass(frozen=True)
class AlertLine:
    """One alert as it was written down; `ended_at` None: it still stands."""

    alert: Alert
    at: datetime
    ended_at: datetime | None
    told: bool


class NodeBook:
    """What outlives a look at the nodes."""

    def __init__(self, rows: Rows, clock: Clock, tallies: TallyBook) -> None:
        self._rows, self._clock, self._tallies = rows, clock, tallies

    def meet(self, met: Iterable[Met]) -> None:
        """These nodes were met just now."""
        now = iso(self._clock.now())
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT OR REPLACE INTO met (node, incarnation, generation, state, version,"
                " clock_off_s, at) VALUES (?,?,?,?,?,?,?)",
                [(one.node, one.incarnation, one.generation, one.state, one.version,
                  one.clock_off_s, now) for one in met],
            )  # fmt: skip

    def met(self) -> dict[str, LastMet]:
        """Every node that was ever met, by name."""
        rows = self._rows.read("SELECT * FROM met")
        return {str(row["node"]): _met(row) for row in rows}

    def count_open(self, open_tasks: Mapping[str, int]) -> None:
        """So many tasks are not over on these nodes, as they say just now."""
        now = iso(self._clock.now())
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT OR REPLACE INTO open_work (node, open, at) VALUES (?,?,?)",
                [(node, count, now) for node, count in open_tasks.items()],
            )

    def last_open(self, node: str) -> tuple[int, datetime] | None:
        """How many tasks were not over there when it answered last, and when; None: never."""
        rows = self._rows.read("SELECT open, at FROM open_work WHERE node = ?", [node])
        return (cast("int", rows[0]["open"]), parse_iso(str(rows[0]["at"]))) if rows else None

    def note(self, edge: Edge) -> tuple[Alert, ...]:
        """Write down which troubles began and ended; those that a person is to be told of now.

        Each once, and at most three of a node in 24 hours: more would teach people to look away.
        """
        now = self._clock.now()
        with self._rows.transaction():
            for alert in edge.ended:
                self._rows.write(
                    "UPDATE alert SET ended_at = ? WHERE node = ? AND rule = ?"
                    " AND ended_at IS NULL", [iso(now), alert.node, alert.rule])  # fmt: skip
            return tuple(alert for alert in edge.began if self._opened(alert, now))

    def _opened(self, alert: Alert, now: datetime) -> bool:
        told = self._rows.read(
            "SELECT count(*) AS many FROM alert WHERE node = ? AND told = 1 AND at BETWEEN ? AND ?",
            [alert.node, iso(now - timedelta(days=1)), ahead_of(now)],
        )
        tell = cast("int", told[0]["many"]) < ALERTS_A_DAY
        self._rows.write(
            "INSERT OR IGNORE INTO alert (node, rule, because, at, told) VALUES (?,?,?,?,?)",
            [alert.node, alert.rule, alert.because, iso(now), int(tell)],
        )
        return tell

    def standing(self) -> tuple[Alert, ...]:
        """The troubles that stand, as the next edge needs them."""
        rows = self._rows.read("SELECT * FROM alert WHERE ended_at IS NULL ORDER BY node, rule")
        return tuple(_alert(row).alert for row in rows)

    def troubles(self) -> tuple[AlertLine, ...]:
        """The same, each with when it began, oldest first."""
        rows = self._rows.read("SELECT * FROM alert WHERE ended_at IS NULL ORDER BY id")
        return tuple(map(_alert, rows))

    def alerts(self, limit: int = 100) -> tuple[AlertLine, ...]:
        """Alerts, newest first."""
        rows = self._rows.read("SELECT * FROM alert ORDER BY id DESC LIMIT ?", [limit])
        return tuple(map(_alert, rows))

    def heard_up_to(self, node: str, incarnation: str) -> int:
        """The number of the last event heard of this life of the node; 0: none yet."""
        rows = self._rows.read("SELECT * FROM heard WHERE node = ?", [node])
        known = bool(rows) and rows[0]["incarnation"] == incarnation
        return cast("int", rows[0]["seq"]) if known else 0

    def heard_at(self, node: str) -> datetime | None:
        """When everything that had happened there was heard last; None: never, or not known."""
        rows = self._rows.read("SELECT at FROM heard WHERE node = ?", [node])
        at = rows[0]["at"] if rows else None
        return parse_iso(str(at)) if at else None

    def hear(
        self, node: str, incarnation: str, seq: int, ended: Sequence[Ended],
        tally: Mapping[tuple[str, Labels], int] = MappingProxyType({}),
    ) -> None:
        """Everything up to this number was heard, and in it these attempts ended. What it adds to
        the counts is added with it or not at all: nothing is counted twice.
        """
        with self._rows.transaction():
            self._rows.write(
                "INSERT OR REPLACE INTO heard (node, incarnation, seq, at) VALUES (?,?,?,?)",
                [node, incarnation, seq, iso(self._clock.now())],
            )
            self._rows.write_many(
                "INSERT OR REPLACE INTO ended (node, seq, at, uid, well, domain)"
                " VALUES (?,?,?,?,?,?)",
                [(node, one.seq, iso(one.at), one.uid, int(one.well), one.domain)
                 for one in ended],
            )  # fmt: skip
            self._tallies.add(tally)

    def with_ends(self, names: Iterable[str]) -> frozenset[str]:
        """Those of these nodes of which any end is still known, however long ago it was."""
        rows = self._rows.read(
            "SELECT value FROM json_each(?)"
            " WHERE EXISTS (SELECT 1 FROM ended WHERE ended.node = value)", [json.dumps([*names])],
        )  # fmt: skip
        return frozenset(str(row["value"]) for row in rows)

    def ended(self, node: str, *, within_s: float) -> tuple[Ended, ...]:
        """What ended on a node within the last seconds, oldest first."""
        since = self._clock.now() - timedelta(seconds=within_s)
        rows = self._rows.read(
            "SELECT * FROM ended WHERE node = ? AND at >= ? ORDER BY seq DESC LIMIT ?",
            [node, iso(since), ENDED_MAX],
        )
        return tuple(map(_ended, reversed(rows)))

    def ends_of(self, node: str) -> tuple[Ended, ...]:
        """The last ends on a node however long ago, oldest first; no more than TRIALS_MAX."""
        rows = self._rows.read(
            "SELECT * FROM ended WHERE node = ? ORDER BY at DESC, rowid DESC LIMIT ?",
            [node, TRIALS_MAX],
        )
        return tuple(map(_ended, reversed(rows)))

    def given_since(self, node: str, since: datetime) -> datetime | None:
        """When a task was moved there last, since that moment; None: none was."""
        rows = self._rows.read(
            "SELECT max(at) AS at FROM move WHERE at BETWEEN ? AND ? AND idle = ?"
            " AND outcome <> 'kept'", [iso(since), ahead_of(self._clock.now()), node],
        )
        at = rows[0]["at"]
        return parse_iso(str(at)) if at else None

    def taken(self, since: datetime, whys: Sequence[str]) -> dict[str, int]:
        """How many tasks each node was given for these reasons since a moment, however many other
        moves there were. What is in doubt counts until its giver has it back.
        """
        rows = self._rows.read(
            "SELECT idle, count(DISTINCT xfer) AS many FROM move m"  # noqa: S608
            " WHERE at BETWEEN ? AND ?"
            " AND why IN (SELECT value FROM json_each(?))"
            " AND (outcome = 'moved' OR (outcome = 'in_doubt' AND NOT EXISTS (SELECT 1 FROM move s"
            " WHERE s.uid = m.uid AND s.xfer = m.xfer AND s.outcome = 'settled'"
            f" AND s.rule <> '{TAKEN}'))) GROUP BY idle",
            [iso(since), ahead_of(self._clock.now()), json.dumps([*whys])],
        )
        return {str(row["idle"]): cast("int", row["many"]) for row in rows}

    def strand(self, seconds: Mapping[tuple[str, str], float]) -> None:
        """Add stranded time, by (node, cause), to today's."""
        day = iso(self._clock.now())[:10]
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT INTO stranded (day, node, cause, seconds) VALUES (?,?,?,?)"
                " ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds",
                [(day, node, cause, more) for (node, cause), more in seconds.items()],
            )
            self._tallies.add(tally_stranded((cause, s) for (_, cause), s in seconds.items()))

    def stranded(self, *, days: int = 1) -> dict[tuple[str, str], float]:
        """Stranded seconds by (node, cause), of today and so many days before."""
        since = iso(self._clock.now() - timedelta(days=days))[:10]
        rows = self._rows.read(
            "SELECT node, cause, sum(seconds) AS seconds FROM stranded WHERE day >= ?"
            " GROUP BY node, cause ORDER BY node, cause", [since])  # fmt: skip
        return {(str(row["node"]), str(row["cause"])): float(cast("float", row["seconds"]))
                for row in rows}  # fmt: skip

    def unclaimed(self) -> dict[str, int]:
        """For how many cycles nobody wanted a task of the inbox, by its uid."""
        rows = self._rows.read("SELECT uid, cycles FROM unclaimed")
        return {str(row["uid"]): cast("int", row["cycles"]) for row in rows}

    def count_unclaimed(self, cycles: Mapping[str, int]) -> None:
        """These tasks nobody wanted, for so many cycles now; all others are claimed or gone."""
        with self._rows.transaction():
            self._rows.write("DELETE FROM unclaimed")
            self._rows.write_many("INSERT INTO unclaimed (uid, cycles) VALUES (?,?)",
                                  list(cycles.items()))  # fmt: skip

    def refuse(self, refusals: Iterable[tuple[str, str, str]]) -> None:
        """A node said no just now: (uid, node, rule); it is not asked for that again so soon."""
        now = iso(self._clock.now())
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT OR REPLACE INTO refusal (uid, node, rule, at) VALUES (?,?,?,?)",
                [(*refusal, now) for refusal in refusals],
            )

    def refused(self, *, within_s: float) -> dict[tuple[str, str], float]:
        """How many seconds ago a node said no to a task, by (uid, node)."""
        now = self._clock.now()
        rows = self._rows.read("SELECT * FROM refusal WHERE at >= ?",
                               [iso(now - timedelta(seconds=within_s))])  # fmt: skip
        return {(str(row["uid"]), str(row["node"])):
                max((now - parse_iso(str(row["at"]))).total_seconds(), 0.0)
                for row in rows}  # fmt: skip


def _met(row: Row) -> LastMet:
    return LastMet(
        node=str(row["node"]), incarnation=str(row["incarnation"]),
        generation=cast("int", row["generation"]), state=str(row["state"]),
        version=str(row["version"]), clock_off_s=cast("float | None", row["clock_off_s"]),
        at=parse_iso(str(row["at"])),
    )  # fmt: skip


def _ended(row: Row) -> Ended:
    return Ended(
        seq=cast("int", row["seq"]), at=parse_iso(str(row["at"])), uid=str(row["uid"]),
        well=bool(row["well"]),
    )  # fmt: skip


def _alert(row: Row) -> AlertLine:
    ended = cast("str | None", row["ended_at"])
    return AlertLine(
        Alert(str(row["node"]), str(row["rule"]), str(row["because"])),
        at=parse_iso(str(row["at"])), ended_at=parse_iso(ended) if ended else None,
        told=bool(row["told"]),
    )  # fmt: skip
