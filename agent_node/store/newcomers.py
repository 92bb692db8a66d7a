"""Writes new tasks into the table with their events, and says why one may not wait for another."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ..commands import Because
from ..strict import JsonObject
from ..task import State, Task
from .rows import INSERT_NEW
from .transaction import Transaction, to_json

NewRow = tuple[object, ...]
# The same with what holds the task, which most new tasks have nothing of.
_INSERT_HELD = INSERT_NEW.replace("(uid,", "(blocked_by, uid,").replace("VALUES (", "VALUES (?, ")
_ADDED = (
    "INSERT INTO event (seq, at, uid, event, state, by, because)"
    " VALUES (?, ?, ?, 'task_added', ?, ?, ?)"
)
_BORN = (
    "INSERT INTO event (seq, at, uid, event, state, by, because, data)"
    " VALUES (?, ?, ?, 'task_added', ?, ?, ?, ?)"
)
_FREE = "nothing holds it: an agent here may claim it"
_HELD = "it waits for other tasks, or for what they leave"
_LATER = "it waits for its time"
SHOWN_MAX = 20  # uids of a cycle that are told


class NewTask(NamedTuple):
    """A row to be written, what holds it, and which task it is where it belongs to a graph."""

    row: NewRow
    blocked_by: str = "[]"
    member: Task | None = None
    name: str | None = None
    waits: bool = False  # its parent waits for it


def insert_tasks(tx: Transaction, new: Sequence[NewTask], *, by: str) -> None:
    """All of them, in this order, each with its event."""
    if not new:
        return
    if tx.events_due:
        tx.flush()  # events are numbered in the order in which they happened
    if any(one.blocked_by != "[]" for one in new):
        tx.db.executemany(_INSERT_HELD, [(one.blocked_by, *one.row) for one in new])
    else:
        tx.db.executemany(INSERT_NEW, [one.row for one in new])
    if any(one.member is not None for one in new):
        events = [(tx.stamp, one.row[0], one.row[2], by, _why(one), _born(one)) for one in new]
        tx.write_events(_BORN, events)
    else:
        tx.write_events(
            _ADDED, [(tx.stamp, one.row[0], one.row[2], by, _why(one)) for one in new]
        )
    for state, number in Counter(str(one.row[2]) for one in new).items():
        tx.moves(None, state, number)
    if tx.live.graphs:
        here = [(one.row[0],) for one in new]
        tx.db.executemany("DELETE FROM awaited WHERE uid = ?", here)


def _why(new: NewTask) -> str:
    """Why it is READY at once, or is not: the same few words however many tasks there are."""
    if new.blocked_by != "[]":
        return _HELD
    return _FREE if new.row[2] == State.READY else _LATER


def _born(new: NewTask) -> str | None:
    """What whoever keeps the graph has to know of a task that was born into it."""
    task = new.member
    if task is None or task.dag is None:
        return None
    said: JsonObject = {"dag": task.dag}
    if task.parent is not None:
        said["parent"] = task.parent
    if new.name is not None:
        said["name"] = new.name
    if new.waits:
        said["waits"] = True
    if task.max_cost_usd is not None:
        said["max_cost_usd"] = task.max_cost_usd
    return to_json(said)


_IN_NEED = "SELECT 1 FROM edge WHERE needs IN (SELECT value FROM json_each(?)) AND came IS NULL"


def circle(tx: Transaction, uids: Collection[str], needs: Iterable[str]) -> Because | None:
    """Why these new tasks may not wait for those: one of those waits for one of these already."""
    if not tx.live.graphs or not tx.db.execute(_IN_NEED, (json.dumps([*uids]),)).fetchone():
        return None
    came_from: dict[str, str | None] = dict.fromkeys(needs)
    ahead = deque(came_from)
    while ahead:
        here = ahead.popleft()
        if here in uids:
            path = [here]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return _named([here, *reversed(path)])
        rows = tx.db.execute("SELECT needs FROM edge WHERE uid = ? AND came IS NULL", (here,))
        for (needed,) in rows.fetchall():
            if needed not in came_from:
                came_from[needed] = here
                ahead.append(needed)
    return None


def _named(path: Sequence[str]) -> Because:
    more = f" -> … ({len(path) - 1} tasks)" if len(path) > SHOWN_MAX else ""
    return Because("cycle", f"a cycle: {' -> '.join(path[:SHOWN_MAX])}{more}")


def no_disk_for(tx: Transaction, parent: str | None) -> Because | None:
    """Why a task that runs makes no more work now. People still may: they see that it waits."""
    if parent is None or not tx.live.disk_low:
        return None
    text = f"{tx.node.name} has too little free disk (disk_floor): what runs makes no more work"
    return Because("disk_floor", text)


_NOWHERE = """
SELECT j.value FROM json_each(?) j
 WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = j.value)
   AND NOT EXISTS (SELECT 1 FROM tombstone x WHERE x.uid = j.value)
   AND NOT EXISTS (SELECT 1 FROM told o WHERE o.uid = j.value)
   AND NOT EXISTS (SELECT 1 FROM member m WHERE m.uid = j.value)
 ORDER BY j.value LIMIT 1
"""


def unknown(tx: Transaction, needs: Iterable[str]) -> Because | None:
    """Why a node that no hub speaks to cannot wait for these: nobody could ever tell it of one."""
    if tx.node.hub is not None:
        return None
    row = tx.db.execute(_NOWHERE, (json.dumps(sorted(needs)),)).fetchone()
    if row is None:
        return None
    text = f"{tx.node.name} has no task {row[0]} to wait for, and no hub that could know of it"
    return Because("unknown_task", text)
