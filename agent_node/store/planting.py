"""Puts a whole graph into the tables: its tasks, its edges, and who belongs to it."""

from __future__ import annotations

import json

from ..budget import DAG
from ..commands import Because
from ..errors import BadInput
from ..graph_document import following
from ..graph_words import Parent
from ..graphs import Derived, Graph, Member
from ..priority import WEIGHT_MAX
from ..spec import spec_of
from ..task import State, Task, built_task
from .edges import Ties, edges_with_inputs, is_tied, tie
from .newcomers import NewTask, circle, insert_tasks, unknown
from .purses import set_limit
from .rows import new_row
from .transaction import Transaction, to_json

_GRAPH = """
INSERT INTO graph (id, title, key, state, by, created_at, total, open, budget_usd, content,
                   critical_path, then_document, after_id)
VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_TOLD_MAX = 500  # characters of what is wrong with a document
_MEMBER = (
    "INSERT INTO member (uid, dag, place, name, weight, critical) VALUES (?, ?, ?, ?, ?, ?)"
)


def plant(
    tx: Transaction,
    graph: Graph,
    *,
    by: str,
    parent: Parent | None = None,
    after: str | None = None,
) -> list[str]:
    """Every row of the graph. Those of its tasks that can never run are named, to be ended."""
    tasks = [_born(tx, member.task, parent) for member in graph.members]
    tied = [task for task in tasks if is_tied(task)]
    ties = tie(tx, tied) if tied else Ties()
    tx.live.graphs = True
    tx.db.execute(
        _GRAPH,
        (graph.id, graph.title, graph.key, by, tx.stamp, len(tasks), len(tasks),
         graph.budget_usd, graph.content, json.dumps(graph.critical_path),
         None if graph.then is None else to_json(graph.then), after),
    )  # fmt: skip
    if graph.budget_usd is not None:
        set_limit(tx, f"{DAG}{graph.id}", graph.budget_usd,
                  urgent_overdraft=graph.urgent_overdraft)  # fmt: skip
    tx.db.executemany(
        _MEMBER,
        [(member.task.uid, graph.id, place, member.name, member.weight, int(member.critical))
         for place, member in enumerate(graph.members)],
    )  # fmt: skip
    rows = [_row(tx, *pair, ties) for pair in zip(tasks, graph.members, strict=True)]
    insert_tasks(tx, rows, by=by)
    tx.event("dag_submitted", graph.id, by=by, data={"tasks": len(tasks), "title": graph.title})
    return [uid for uid, verdict in ties.verdicts.items() if verdict.kind in ("fails", "skips")]


def _born(tx: Transaction, task: Task, parent: Parent | None) -> Task:
    if task.created_at is not None and parent is None:
        return task
    own = {"created_at": task.created_at or tx.stamp}
    return built_task(task.__dict__ | own | ({"parent": parent.uid} if parent else {}))


def _row(tx: Transaction, task: Task, member: Member, ties: Ties) -> NewTask:
    state, wake_at, blocked_by = ties.start(tx, task)
    weight = member.weight * WEIGHT_MAX
    row = new_row(tx, task, spec_of(task), state=state, wake_at=wake_at, weight=weight)
    return NewTask(row, blocked_by, task, member.name)


def plant_following(tx: Transaction, dag: str) -> list[str]:
    """The graph that follows this one; where it is here already, it is not put in twice."""
    document, by = tx.db.execute(
        "SELECT then_document, by FROM graph WHERE id = ?", (dag,)
    ).fetchone()
    try:
        graph = following(dag, json.loads(document))
    except BadInput as error:  # read more strictly than by the version that took it in
        return _not_followed(tx, dag, Derived(dag)(), str(error)[:_TOLD_MAX])
    if known_graph(tx, graph) is not None:
        return []
    because = _taken(tx, graph)
    if because is not None:
        return _not_followed(tx, dag, graph.id, because.text)
    tx.db.execute("UPDATE graph SET then_id = ? WHERE id = ?", (graph.id, dag))
    return plant(tx, graph, by=by, after=dag)


def _not_followed(tx: Transaction, dag: str, missed: str, because: str) -> list[str]:
    """No end may fail for what was to come after it: it is told, and nothing is put in."""
    tx.event("dag_not_followed", dag, because=because, data={"dag": missed})
    return []


def known_graph(tx: Transaction, graph: Graph) -> tuple[str, str] | None:
    """The id and the content of the graph that has this id, or this key; None: it is a new one."""
    found: tuple[str, str] | None = tx.db.execute(
        "SELECT id, content FROM graph WHERE id = ?1 UNION ALL"
        " SELECT id, content FROM graph WHERE key = ?2 LIMIT 1", (graph.id, graph.key),
    ).fetchone()  # fmt: skip
    return found


_TAKEN = """
SELECT j.value FROM json_each(?) j
 WHERE EXISTS (SELECT 1 FROM task t WHERE t.{column} = j.value)
    OR EXISTS (SELECT 1 FROM tombstone x WHERE x.{column} = j.value) LIMIT 1
"""
_UID_TAKEN = _TAKEN.format(column="uid").replace(
    "LIMIT", "OR EXISTS (SELECT 1 FROM member m WHERE m.uid = j.value) LIMIT"
)


def objection(tx: Transaction, graph: Graph) -> Because | None:
    """Why this new graph cannot be taken in; None: it can."""
    tasks = [member.task for member in graph.members]
    uids = {task.uid for task in tasks}
    needs = {edge.needs for task in tasks for edge in edges_with_inputs(task)} - uids
    return (_taken(tx, graph) or _no_room(tx, graph) or circle(tx, uids, needs)
            or unknown(tx, needs))  # fmt: skip


def _taken(tx: Transaction, graph: Graph) -> Because | None:
    tasks = [member.task for member in graph.members]
    for column, rule in (("uid", "uid_conflict"), ("key", "key_conflict")):
        wanted = [getattr(task, column) for task in tasks if getattr(task, column)]
        if len(set(wanted)) != len(wanted):
            return Because(rule, f"two tasks of the graph have one {column}")
        query = _TAKEN.format(column=column) if column == "key" else _UID_TAKEN
        row = tx.db.execute(query, (json.dumps(wanted),)).fetchone()
        if row is not None:
            return Because(rule, f"a task of this {column} is here already: {row[0]}")
    return None


def _no_room(tx: Transaction, graph: Graph) -> Because | None:
    room = tx.live.queue_max - tx.count(State.READY) - tx.count(State.HELD)
    if len(graph.roots) <= room:
        return None
    text = f"{len(graph.roots)} tasks would be READY; queue_max allows {max(room, 0)} more"
    return Because("no_room", text)
