"""Answers what graphs are here, and how their members stand wherever they are."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from ..budget import DAG, text_of
from ..graph_words import (
    EdgeSeen,
    GraphFacts,
    GraphPage,
    GraphShown,
    GraphState,
    ListGraphs,
    MemberSeen,
    ShowGraph,
)
from ..graphs import Derived
from ..readiness import came_of
from ..task import State
from .purses import totals
from .transaction import Transaction

_FACTS = (
    "seq, id, title, key, state, reason, by, created_at, ended_at, total, open, bad, budget_usd,"
    " then_document IS NOT NULL, after_id"
)
_LIST = f"""
SELECT {_FACTS} FROM graph
 WHERE (:after IS NULL OR seq < (SELECT g.seq FROM graph g WHERE g.id = :after))
   AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states)))
 ORDER BY seq DESC LIMIT :limit
"""
# How a member stands: as its row says, else as was told of its end, else it is somewhere.
_STATE = """
coalesce(t.state, o.state, CASE m.ended WHEN 'well' THEN 'COMPLETED' WHEN 'skipped'
         THEN 'CANCELLED' WHEN 'badly' THEN 'FAILED' END, 'MOVED')
"""
_JOINS = """
  FROM member m LEFT JOIN task t ON t.uid = m.uid LEFT JOIN told o ON o.uid = m.uid
"""
_COUNTS = f"SELECT {_STATE}, count(*) {_JOINS} WHERE m.dag = ? GROUP BY 1 ORDER BY 1"
_COSTS = f"""
SELECT coalesce(t.cost_usd, o.cost_usd) {_JOINS}
 WHERE m.dag = ? AND coalesce(t.cost_usd, o.cost_usd) IS NOT NULL
"""
_MEMBERS = f"""
SELECT m.uid, m.name, m.place, {_STATE}, t.subject,
       CASE WHEN t.uid IS NULL THEN coalesce(o.node, x.peer) END,
       coalesce(t.failure_reason, o.because), m.weight, m.critical
{_JOINS} LEFT JOIN tombstone x ON x.uid = m.uid
 WHERE m.dag = ? AND m.place > ? ORDER BY m.place LIMIT ?
"""
_EDGES = """
SELECT e.uid, e.needs, e.on_failure, e.came
  FROM json_each(?) j CROSS JOIN edge e ON e.uid = j.value ORDER BY e.uid, e.needs
"""


def graph_count(tx: Transaction) -> int:
    """How many graphs are here, ended ones too, counted no further than anybody needs to know."""
    if not tx.live.graphs:
        return 0
    (number,) = tx.db.execute("SELECT count(*) FROM (SELECT 1 FROM graph LIMIT 1000)").fetchone()
    return int(number)


def list_graphs(tx: Transaction, query: ListGraphs) -> GraphPage:
    """One page of graphs, newest first."""
    values = {"after": query.after, "states": json.dumps(query.states), "limit": query.limit + 1}
    rows = tx.db.execute(_LIST, values).fetchall()
    graphs = tuple(_facts(tx, row) for row in rows[: query.limit])
    return GraphPage(graphs, graphs[-1].id if len(rows) > query.limit else None)


_Row = tuple[
    int, str, str, str | None, GraphState, str, str, str, str | None, int, int, int, str | None,
    int, str | None,
]  # fmt: skip


def _facts(tx: Transaction, row: _Row) -> GraphFacts:
    (_, dag, title, key, state, reason, by, created_at, ended_at, total, still, bad, budget,
     goes_on, after) = row  # fmt: skip
    costs = [Decimal(cost) for (cost,) in tx.db.execute(_COSTS, (dag,))]
    return GraphFacts(
        id=dag, title=title, key=key, state=state, reason=reason, by=by, created_at=created_at,
        ended_at=ended_at, total=total, open=still, bad=bad,
        counts=dict(tx.db.execute(_COUNTS, (dag,)).fetchall()), budget_usd=budget,
        spent_usd=format(sum(costs, Decimal()), "f") if costs else None,
        reserved_usd=None if budget is None else text_of(totals(tx, f"{DAG}{dag}", "")[1]),
        then=Derived(dag)() if goes_on else None, after=after,
    )  # fmt: skip


_ONE_GRAPH = f"""
SELECT {_FACTS} FROM graph
 WHERE id = coalesce((SELECT m.dag FROM member m WHERE m.uid = :id), :id)
"""


def show_graph(tx: Transaction, query: ShowGraph) -> GraphShown | None:
    """A graph, by its id or by a task of it, with a page of its members; a task that is in none
    is a graph of one.
    """
    row = tx.db.execute(_ONE_GRAPH, {"id": query.id}).fetchone()
    if row is None:
        return _graph_of_one(tx, query.id)
    dag = row[1]
    values = (dag, query.after, query.limit + 1)
    found = tx.db.execute(_MEMBERS, values).fetchall()
    page = found[: query.limit]
    edges = edges_seen(tx, (uid for uid, *_ in page))
    members = tuple(
        MemberSeen(uid, name, place, state, subject, node, because, weight, bool(critical),
                   edges.get(uid, ()))
        for uid, name, place, state, subject, node, because, weight, critical in page
    )  # fmt: skip
    (path,) = tx.db.execute("SELECT critical_path FROM graph WHERE id = ?", (dag,)).fetchone()
    more = len(found) > query.limit
    return GraphShown(_facts(tx, row), members, tuple(json.loads(path)),
                      members[-1].place if more else None)  # fmt: skip


def edges_seen(tx: Transaction, uids: Iterable[str]) -> dict[str, tuple[EdgeSeen, ...]]:
    """By uid what these tasks wait for, or waited for; nothing for those that never did."""
    found: defaultdict[str, tuple[EdgeSeen, ...]] = defaultdict(tuple)
    for uid, needs, on_failure, came in tx.db.execute(_EDGES, (json.dumps([*uids]),)):
        found[uid] += (EdgeSeen(needs, on_failure, came),)
    return found


_ONE = """
SELECT uid, subject, state, source, coalesce(json_extract(spec, '$.created_at'), ''), completed_at,
       cost_usd, failure_reason, EXISTS (SELECT 1 FROM fell f WHERE f.uid = task.uid),
       json_extract(spec, '$.dag')
  FROM task WHERE uid = ?
"""


def _graph_of_one(tx: Transaction, uid: str) -> GraphShown | None:
    row = tx.db.execute(_ONE, (uid,)).fetchone()
    if row is None or row[-1] is not None:
        return None
    _, subject, state, by, created_at, ended_at, cost, because, fell, _ = row
    came = came_of(state, because)
    as_graph: GraphState = "running"
    if state == State.CANCELLED and not fell:
        as_graph = "cancelled"  # by a person, and by no edge
    elif came is not None:
        as_graph = "failed" if came == "badly" else "completed"
    facts = GraphFacts(
        id=uid, title=subject, key=None, state=as_graph, reason="", by=by, created_at=created_at,
        ended_at=ended_at, total=1, open=int(came is None), bad=int(came == "badly"),
        counts={state: 1}, budget_usd=None, spent_usd=cost, reserved_usd=None, then=None,
        after=None,
    )  # fmt: skip
    edges = edges_seen(tx, [uid]).get(uid, ())
    member = MemberSeen(
        uid=uid, name=None, place=0, state=state, subject=subject, node=None, because=because,
        weight=0.0, critical=True, edges=edges,
    )  # fmt: skip
    return GraphShown(facts, (member,), (uid,), None)
