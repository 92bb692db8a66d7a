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
    wait_for(tx, parent.uid, parent.n, fresh)
