"""Says which function carries out each command, and which answers each question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import artifact_words, budget_words, commands, graph_words, moves, queries, standing
from ..commands import Command
from ..queries import Query
from ..takeover import TakenOver
from . import (
    artifact_inputs,
    artifact_moves,
    attempts,
    beats,
    candidates,
    chronicle,
    claims,
    database,
    dead,
    doubting,
    elsewhere,
    giving,
    graph_reading,
    graphs,
    inputs,
    intake,
    listing,
    past_attempts,
    purses,
    quarantining,
    reading,
    reowning,
    settling,
    spawning,
    standings,
    steering,
    taking,
    tiers,
    waiting,
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


def _raise(tx: Transaction, command: commands.Raise) -> None:
    tx.changed = tx.generation_due = True


_COMMANDS: dict[type, Callable[..., object]] = {
    commands.Add: intake.add,
    commands.SetAgents: claims.set_agents,
    commands.Claim: claims.claim,
    commands.Started: attempts.start,
    commands.Validate: attempts.validate,
    commands.Finish: attempts.finish,
    commands.Beat: beats.beat,
    commands.Stalled: beats.stalled,
    TakenOver: beats.taken_over,
    commands.Wake: waking.wake,
    commands.Forget: waking.forget,
    commands.Raise: _raise,
    commands.SetNode: steering.set_node,
    commands.SetFields: words.set_fields,
    commands.Cancel: words.cancel,
    commands.RetryNow: words.retry,
    commands.Resolve: words.resolve,
    budget_words.SetBudget: purses.set_budget,
    commands.Review: dead.review,
    graph_words.Submit: graphs.submit,
    graph_words.CancelGraph: graphs.cancel,
    graph_words.Join: graphs.join,
    graph_words.Spawn: spawning.spawn,
    graph_words.NoteEnds: elsewhere.note_ends,
    graph_words.TakeBack: elsewhere.take_back,
    artifact_words.ArtifactCame: artifact_moves.came,
    artifact_words.ArtifactGone: artifact_moves.gone,
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
    queries.InForce: database.in_force,
    queries.FoldersKept: waking.folders_kept,
    queries.ReadyByTier: tiers.ready_by_tier,
    queries.ListTasks: listing.list_tasks,
    queries.ShowTask: reading.show_task,
    standing.Standings: standings.standings,
    queries.AttemptsPage: past_attempts.attempts_page,
    queries.Events: chronicle.events,
    queries.DeadLetters: dead.dead_letters,
    queries.Doubts: doubting.doubts,
    queries.Moved: doubting.moved,
    queries.OpenAttempts: reading.open_attempts,
    queries.NextDue: reading.next_due,
    queries.Candidates: candidates.candidates,
    budget_words.Budgets: purses.budgets,
    graph_words.ListGraphs: graph_reading.list_graphs,
    graph_words.ShowGraph: graph_reading.show_graph,
    graph_words.Awaits: elsewhere.awaits,
    graph_words.Inputs: inputs.inputs,
    graph_words.WaitAsked: waiting.wait_asked,
    artifact_words.ArtifactsMissing: artifact_inputs.missing,
    artifact_words.ArtifactsNeeded: artifact_inputs.needed,
    artifact_words.KeptPlace: artifact_inputs.kept_place,
}
