"""Takes in what running tasks make, in the graphs that they belong to."""

from __future__ import annotations

from ..commands import Add
from ..errors import Refused
from ..graph_words import Parent, Spawn, Spawned
from ..task import built_task
from .edges import wait_for
from .intake import add
from .newcomers import circle, no_disk_for
from .transaction import Transaction

_KNOWN = "SELECT 1 FROM task WHERE uid = ? OR key = ?"
# What an earlier attempt waited for, and has ended for good: this one was given it as it began.
_GIVEN = (
    "SELECT e.needs FROM edge e JOIN input i ON i.uid = e.uid AND i.source = e.needs AND i.here = 1"
    " WHERE e.uid = ? AND e.n < ? AND e.came IS NOT NULL AND i.kind = 'outcome'"
)
# A person's `retry` lets a task wait anew. An attempt that was brought along has no number here.
_PUT_BACK = """
SELECT count(*) FROM attempt WHERE uid = :uid AND outcome = 'waiting'
   AND coalesce(end_event, 0) > coalesce(
       (SELECT max(seq) FROM event WHERE uid = :uid AND n IS NULL AND event = 'task_retried'), -1)
"""
PUT_BACK_MAX = 100  # times that one task is put back to wait for what it made, at no cost of tries
_DAG = "SELECT json_extract(spec, '$.dag') FROM task WHERE uid = ?"


def spawn(tx: Transaction, command: Spawn) -> Spawned:
    """A child of a running task, in its graph; its parent may ask to be put back until it ends."""
    parent = command.parent
    row = tx.db.execute(_DAG, (parent.uid,)).fetchone()
    child = built_task(
        command.child.__dict__ | {"dag": row[0] if row else None, "parent": parent.uid}
    )
    full = no_disk_for(tx, parent.uid)
    if full is not None and not tx.db.execute(_KNOWN, (child.uid, child.key)).fetchone():
        return Spawned(child.uid, "refused", full)
    (added,) = add(tx, Add((child,), command.sender), waits=parent.waits)
    if parent.waits and added.outcome != "refused":
        ask_to_wait(tx, parent, [added.uid])
    return Spawned(added.uid, added.outcome, added.because)


def ask_to_wait(tx: Transaction, parent: Parent, uids: list[str]) -> None:
    """The parent waits for these; `Refused`, with nothing done, where one of them waits for it.

    It does not wait once more for what it was given already: put back at no cost, a program that
    spawns under the same key whenever it begins would begin again for ever.
    """
    given = {uid for (uid,) in tx.db.execute(_GIVEN, (parent.uid, parent.n))}
    fresh = [uid for uid in uids if uid not in given]
    if not fresh:
        return
    round_about = circle(tx, [parent.uid], fresh)
    if round_about is not None:
        raise Refused("refused", round_about.text, round_about.rule)
    _check_how_often(tx, parent.uid)
    wait_for(tx, parent.uid, parent.n, fresh)


def _check_how_often(tx: Transaction, uid: str) -> None:
    """A program that makes a new child whenever it begins would be put back for ever."""
    (times,) = tx.db.execute(_PUT_BACK, {"uid": uid}).fetchone()
    if times >= PUT_BACK_MAX:
        text = (
            f"{uid} was put back to wait {times} times already, the most there is: a program that"
            " begins anew each time and spawns without --key makes a new child at every start;"
            " give the child a key (--key NAME; of a graph, its key)"
        )
        raise Refused("refused", text, "put_back_too_often")
