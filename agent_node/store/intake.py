"""Takes new tasks in: each added, there already, or refused with the reason."""

from __future__ import annotations

import json

from ..commands import Add, Added, Because
from ..spec import content_of, spec_of
from ..strict import JsonObject
from ..task import State, Task, built_task
from .rows import INSERT_NEW, new_row
from .transaction import Transaction, check_sender, check_term

_KNOWN = """
SELECT t.uid, t.spec, t.key FROM json_each(:wanted) w JOIN task t ON t.{column} = w.value
UNION ALL
SELECT m.uid, m.spec, m.key
  FROM json_each(:wanted) w JOIN tombstone m ON m.{column} = w.value
"""


def add(tx: Transaction, command: Add) -> tuple[Added, ...]:
    """One answer a task, in order; a repeat of what is here already changes nothing."""
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    uids = _known(tx, "uid", [task.uid for task in command.tasks])
    keys = _known(tx, "key", [task.key for task in command.tasks if task.key])
    room = tx.live.queue_max - tx.count(State.READY) - tx.count(State.HELD)
    answers: list[Added] = []
    rows: list[tuple[object, ...]] = []
    for given in command.tasks:
        task = _stamped(tx, given)
        found = uids.get(task.uid) or (keys.get(task.key) if task.key else None)
        if found is not None:
            answers.append(_compare(task, *found))
            continue
        check_term(tx, command.sender.term)
        because = _refusal(tx, task, room=room - len(rows))
        if because is not None:
            answers.append(Added(task.uid, "refused", because))
            continue
        row = _row(tx, task)
        rows.append(row)
        uids[task.uid] = (task.uid, str(row[-1]))
        if task.key:
            keys[task.key] = uids[task.uid]
        answers.append(Added(task.uid, "added"))
    _insert(tx, rows, by=command.sender.by)
    return tuple(answers)


def _known(tx: Transaction, column: str, wanted: list[str]) -> dict[str, tuple[str, str | None]]:
    if not wanted:
        return {}
    query = _KNOWN.format(column=column)
    rows = tx.db.execute(query, {"wanted": json.dumps(wanted)}).fetchall()
    place = 0 if column == "uid" else 2
    return {row[place]: (row[0], row[1]) for row in rows}


def _stamped(tx: Transaction, task: Task) -> Task:
    """The life of a task begins here: what only a node may write starts from nothing."""
    if task.created_at is not None and task.epoch == 1 and not task.hops and not task.attempts:
        return task
    born: JsonObject = {
        "created_at": task.created_at or tx.stamp, "epoch": 1, "hops": 0, "attempts": [],
        "stolen_from": None,
    }  # fmt: skip
    return built_task(task.__dict__ | born)


def _compare(task: Task, uid: str, spec: str | None) -> Added:
    if spec is not None and content_of(spec) == content_of(spec_of(task)):
        return Added(uid, "exists")
    if uid == task.uid:
        return Added(uid, "refused", Because("uid_conflict", f"{uid} is here with other content"))
    return Added(
        task.uid,
        "refused",
        Because("key_conflict", f"the key belongs to {uid}, which has other content"),
    )


def _refusal(tx: Transaction, task: Task, *, room: int) -> Because | None:
    if tx.node.state == "quarantined":
        return Because("quarantined", f"{tx.node.name} is quarantined: {tx.node.reason}")
    if room <= 0:
        return Because("no_room", f"{tx.live.queue_max} tasks wait here; queue_max allows no more")
    for name in ("depends_on", "dag", "validate"):
        if getattr(task, name) not in (None, [], {}):
            return Because("not_supported", f"{name}: this version of agent-node cannot honour it")
    return None


def _row(tx: Transaction, task: Task) -> tuple[object, ...]:
    if task.not_before is not None and task.not_before > tx.stamp:
        return new_row(tx, task, spec_of(task), state=State.PENDING, wake_at=task.not_before)
    return new_row(tx, task, spec_of(task), state=State.READY, wake_at=None)


def _insert(tx: Transaction, rows: list[tuple[object, ...]], *, by: str) -> None:
    if not rows:
        return
    tx.db.executemany(INSERT_NEW, rows)
    tx.db.executemany(
        "INSERT INTO event (at, uid, event, state, by) VALUES (?, ?, 'task_added', ?, ?)",
        [(tx.stamp, row[0], row[2], by) for row in rows],
    )
    for row in rows:
        tx.moves(None, str(row[2]))
