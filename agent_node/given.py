"""Gives an attempt what other tasks left, and knows whether there is anything to judge."""

from __future__ import annotations

from .commands import Claimed
from .graph_words import Inputs, WaitAsked
from .runs import Run
from .store.sqlite import SqliteStore


def with_inputs(store: SqliteStore, claimed: Claimed) -> Claimed:
    """The same with its context and its kept folder; `InputDamaged` where a value was changed."""
    given = store.read(Inputs(claimed.task.uid)) if store.live.graphs else None
    if given is None:
        return claimed
    return claimed._replace(context=given.context, workspace=given.workspace)


def is_to_judge(store: SqliteStore, run: Run) -> bool:
    """Whether its output is judged when it ends well; of a task that is put back it is none yet."""
    return bool(run.judged) and not (
        store.live.graphs and store.read(WaitAsked(run.uid, run.n))
    )
