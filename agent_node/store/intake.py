"""Takes new tasks in: each added, there already, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..commands import Add, Added, Because
from ..errors import BadInput
from ..spec import content_of, spec_of
from ..strict import JsonObject
from ..task import State, Task, with_fields
from .edges import edges_with_inputs, is_tied, tie
from .ends import settle, spread
from .newcomers import NewTask, circle, insert_tasks, unknown
from .reviving import add_member
from .rows import new_row
from .senders import check_sender, check_term
from .transaction import Transaction

_KNOWN = """
SELECT t.uid, t.spec, t.key FROM json_each(:wanted) w JOIN task t ON t.{column} = w.value
UNION ALL
SELECT m.uid, m.spec, m.key
  FROM json_each(:wanted) w JOIN tombstone m ON m.{column} = w.value
"""
# The same for one alone, as most tasks come: a table made of JSON costs three times as much.
_ONE_KNOWN = """
SELECT uid, spec, key FROM task WHERE {column} = :wanted
UNION ALL SELECT uid, spec, key FROM tombstone WHERE {column} = :wanted
"""


def add(tx: Transaction, command: Add, *, waits: bool = False) -> tuple[Added, ...]:
    """One answer a task, in order; a repeat of what is here already changes nothing.

    `waits`: a running task made them and waits for their ends.
    """
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    uids = _known(tx, "uid", [task.uid for task in command.tasks])
    keys = _known(tx, "key", [task.key for task in command.tasks if task.key])
    room = tx.live.queue_max - tx.count(State.READY) - tx.count(State.HELD)
    answers: list[Added] = []
    rows: list[NewTask] = []
    for given in command.tasks:
        task = _stamped(tx, given)
        found = uids.get(task.uid) or (keys.get(task.key) if task.key else None)
        if found is not None:
            answers.append(_compare(task, *found))
            continue
        if not rows:  # nothing is added before it, and nothing in one transaction changes it
            check_term(tx, command.sender.term)
        because = _refusal(tx, task, room=room - len(rows))
        if because is None and (task.dag is not None or is_tied(task)):
            because = _no_graph_for_it(tx, task, command.tasks)
        if because is not None:
            answers.append(Added(task.uid, "refused", because))
            continue
        new = _new(tx, task, waits=waits)
        rows.append(new)
        uids[task.uid] = (task.uid, str(new.row[-1]))
        if task.key:
            keys[task.key] = uids[task.uid]
        answers.append(Added(task.uid, "added"))
    insert_tasks(tx, rows, by=command.sender.by)
    if any(new.blocked_by != "[]" for new in rows):
        return _with_what_fell(tx, answers, rows)
    return tuple(answers)


_FELL = """
SELECT t.uid, t.failure_reason, f.because_of
  FROM json_each(?) j JOIN task t ON t.uid = j.value JOIN fell f ON f.uid = t.uid
 WHERE t.state = 'CANCELLED'
"""


def _with_what_fell(
    tx: Transaction, answers: Sequence[Added], rows: Sequence[NewTask]
) -> tuple[Added, ...]:
    """The same, where those that end at once, for what they wait for has, say so and what now."""
    fallen = settle(tx, [str(new.row[0]) for new in rows], State.PENDING)
    spread(tx, fallen)
    if not fallen:
        return tuple(answers)
    new = json.dumps([one.uid for one in answers if one.outcome == "added"])
    why = {uid: _cancelled(*said) for uid, *said in tx.db.execute(_FELL, (new,))}
    return tuple(one._replace(because=why.get(one.uid, one.because)) for one in answers)


def _cancelled(reason: str, needed: str) -> Because:
    rule, _, text = reason.partition(": ")
    now = f"retry {needed} and both run, or add it anew with --after {needed}:run"
    return Because(rule, f"{text}, so it was cancelled at once; {now}")


def _known(tx: Transaction, column: str, wanted: list[str]) -> dict[str, tuple[str, str | None]]:
    if not wanted:
        return {}
    alone = len(wanted) == 1
    query = (_ONE_KNOWN if alone else _KNOWN).format(column=column)
    said = wanted[0] if alone else json.dumps(wanted)
    rows = tx.db.execute(query, {"wanted": said}).fetchall()
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
    return with_fields(task, born)


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
    return None


def _no_graph_for_it(tx: Transaction, task: Task, batch: Sequence[Task]) -> Because | None:
    """Why it may not wait for what it names, or belong where it says."""
    try:
        needs = {edge.needs for edge in edges_with_inputs(task)}
    except BadInput as error:
        return Because("bad_task", str(error)[:500])
    others = needs - {one.uid for one in batch}
    return unknown(tx, others) or circle(tx, [task.uid], needs) or _no_such_graph(tx, task)


def _no_such_graph(tx: Transaction, task: Task) -> Because | None:
    """A graph whose home is elsewhere hears of a child by its parent; nobody else can tell it."""
    if task.dag is None:
        return None
    row = tx.db.execute("SELECT state FROM graph WHERE id = ?", (task.dag,)).fetchone()
    if row is None and task.parent is None:
        return Because("unknown_graph", f"{tx.node.name} has no graph {task.dag}")
    if row is not None and row[0] != "running":
        return Because("graph_ended", f"{task.dag} is {row[0]}; retry a task of it, or begin anew")
    return None


def _new(tx: Transaction, task: Task, *, waits: bool) -> NewTask:
    state, wake_at, blocked_by = State.READY, None, "[]"
    if is_tied(task):
        state, wake_at, blocked_by = tie(tx, [task]).start(tx, task)
    elif task.not_before is not None and task.not_before > tx.stamp:
        state, wake_at = State.PENDING, task.not_before
    row = new_row(tx, task, spec_of(task), state=state, wake_at=wake_at)
    if task.dag is None:
        return NewTask(row, blocked_by)
    if tx.db.execute("SELECT 1 FROM graph WHERE id = ?", (task.dag,)).fetchone():
        add_member(tx, task.uid, task.dag, None)
    return NewTask(row, blocked_by, task, waits=waits)
