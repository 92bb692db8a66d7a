"""Says which function carries out each command, and which answers each question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import commands, moves, queries
from ..commands import Command
from ..queries import Query
from . import (
    attempts,
    candidates,
    claims,
    giving,
    intake,
    quarantining,
    reading,
    reowning,
    settling,
    taking,
    waking,
    words,
)
from .transaction import Transaction


def carry_out(tx: Transaction, command: Command[Any]) -> object:
    """The outcome of one command, with everything that it wrote."""
    sender = getattr(command, "sender", commands.OWNER)
    tx.instance = sender.instance
    outcome = _COMMANDS[type(command)](tx, command)
    tx.flush()
    return outcome


def answer(tx: Transaction, query: Query[Any]) -> object:
    """The answer to one question."""
    return _QUERIES[type(query)](tx, query)


def _raise(tx: Transaction, command: commands.Raise) -> int:
    tx.changed = tx.generation_due = True
    return tx.node.generation + 1


_COMMANDS: dict[type, Callable[..., object]] = {
    commands.Add: intake.add,
    commands.SetAgents: claims.set_agents,
    commands.Claim: claims.claim,
    commands.Started: attempts.start,
    commands.Finish: attempts.finish,
    commands.Beat: attempts.beat,
    commands.Wake: waking.wake,
    commands.Forget: waking.forget,
    commands.Raise: _raise,
    commands.SetNode: words.set_node,
    commands.SetFields: words.set_fields,
    commands.Cancel: words.cancel,
    commands.RetryNow: words.retry,
    commands.Resolve: words.resolve,
    moves.Escrow: giving.escrow,
    moves.Commit: settling.commit,
    moves.Abort: settling.abort,
    moves.Settled: settling.settled,
    moves.Hold: taking.hold,
    moves.Activate: taking.activate,
    moves.Drop: taking.drop,
    moves.Bar: reowning.bar,
    moves.Reown: reowning.reown,
    moves.Quarantine: quarantining.quarantine,
    moves.Release: quarantining.release,
    moves.Hello: quarantining.hello,
}
_QUERIES: dict[type, Callable[..., object]] = {
    queries.Facts: reading.facts,
    queries.ListTasks: reading.list_tasks,
    queries.ShowTask: reading.show_task,
    queries.Events: reading.events,
    queries.Doubts: reading.doubts,
    queries.Moved: reading.moved,
    queries.OpenAttempts: reading.open_attempts,
    queries.NextDue: reading.next_due,
    queries.Candidates: candidates.candidates,
}
