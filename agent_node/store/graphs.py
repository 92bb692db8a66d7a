"""Takes graphs in whole, lets tasks join them, and ends them at a person's word."""

from __future__ import annotations

from ..commands import Because
from ..graph_words import (
    Birth,
    CancelGraph,
    GraphCancelled,
    GraphState,
    Join,
    Noted,
    Submit,
    Submitted,
)
from ..readiness import Came
from ..task import UNDERWAY, State
from .edges import known_ends
from .ends import settle, spread
from .newcomers import no_disk_for
from .planting import known_graph, objection, plant
from .reserving import reserve_for_birth
from .reviving import add_member
from .senders import check_not_quarantined, check_sender, check_term
from .spawning import ask_to_wait
from .spending import settle as settle_money
from .spending import settle_elsewhere
from .transaction import Transaction, may_change


def submit(tx: Transaction, command: Submit) -> Submitted:
    """The whole graph in this transaction, or nothing of it."""
    graph, sender = command.graph, command.sender
    check_sender(tx, incarnation=sender.incarnation, term=None)
    known = known_graph(tx, graph)
    if known is not None:
        return _as_known(tx, command, _compare(command, *known))
    check_term(tx, sender.term)
    check_not_quarantined(tx)
    parent = None if command.parent is None else command.parent.uid
    because = no_disk_for(tx, parent) or objection(tx, graph)
    if because is not None:
        return Submitted(graph.id, "refused", because=because)
    born = plant(tx, graph, by=sender.by, parent=command.parent)
    if command.parent is not None and command.parent.waits:
        ask_to_wait(tx, command.parent, [*graph.leaves])
    if born:
        spread(tx, settle(tx, born, State.PENDING))
    return Submitted(graph.id, "added", len(graph.members))


_LAST = """
SELECT uid FROM member m WHERE dag = :dag AND NOT EXISTS (
  SELECT 1 FROM edge e JOIN member d ON d.uid = e.uid WHERE e.needs = m.uid AND d.dag = :dag)
 ORDER BY place
"""


def _as_known(tx: Transaction, command: Submit, found: Submitted) -> Submitted:
    """An attempt whose forerunner made the graph and was cut off waits for it all the same."""
    parent = command.parent
    if found.outcome == "exists" and parent is not None and parent.waits:
        ask_to_wait(tx, parent, [uid for (uid,) in tx.db.execute(_LAST, {"dag": found.dag})])
    return found


def _compare(command: Submit, dag: str, content: str) -> Submitted:
    graph = command.graph
    if content == graph.content:
        return Submitted(dag, "exists", len(graph.members))
    rule = "graph_conflict" if dag == graph.id else "key_conflict"
    text = f"{dag} is here with other content"
    if dag != graph.id:
        text = f"the key belongs to {text.replace(' is here with', ', which has')}"
    return Submitted(graph.id, "refused", because=Because(rule, text))


def join(tx: Transaction, command: Join) -> tuple[Noted, ...]:
    """Tasks that were born elsewhere become members; their ends are awaited from now on."""
    sender = command.sender
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    return tuple(_join_one(tx, birth) for birth in command.births)


def _join_one(tx: Transaction, birth: Birth) -> Noted:
    if tx.db.execute("SELECT 1 FROM member WHERE uid = ?", (birth.uid,)).fetchone():
        return Noted(birth.uid, "known")
    row = tx.db.execute("SELECT state FROM graph WHERE id = ?", (birth.dag,)).fetchone()
    if row is None:
        because = Because("unknown_graph", f"{tx.node.name} has no graph {birth.dag}")
        return Noted(birth.uid, "refused", because)
    if row[0] == "cancelled":
        because = Because("graph_cancelled", f"{birth.dag} was cancelled; cancel this task, too")
        return Noted(birth.uid, "refused", because)
    if birth.parent is not None and not tx.db.execute(
        "SELECT 1 FROM member WHERE uid = ? AND dag = ?", (birth.parent, birth.dag)
    ).fetchone():
        because = Because("unknown_task", f"its parent {birth.parent} is not in {birth.dag}")
        return Noted(birth.uid, "refused", because)
    add_member(tx, birth.uid, birth.dag, birth.name)
    end = known_ends(tx, [birth.uid])[birth.uid]
    if end.came is not None:
        _count_cost(tx, birth.uid)
        spread(tx, {birth.uid: end.came})
    elif not end.lives_here:
        tx.db.execute("INSERT OR IGNORE INTO awaited (uid) VALUES (?)", (birth.uid,))
        reserve_for_birth(tx, birth.uid, birth.dag, birth.max_cost_usd)
    return Noted(birth.uid, "joined")


def _count_cost(tx: Transaction, uid: str) -> None:
    """Its end was told before its birth: what it cost was nobody's until now."""
    row = tx.db.execute("SELECT cost_usd FROM told WHERE uid = ?", (uid,)).fetchone()
    if row is not None:
        settle_elsewhere(tx, uid, row[0])


_MEMBERS = """
SELECT m.uid, t.state, t.stopping IS NOT NULL
  FROM member m LEFT JOIN task t ON t.uid = m.uid WHERE m.dag = ? AND m.ended IS NULL
 ORDER BY m.place
"""
_ON_ITS_WAY = (State.ESCROW, State.HELD)


def cancel(tx: Transaction, command: CancelGraph) -> GraphCancelled | None:
    """What waits ends now; what runs is asked to; what is on its way ends if it comes back."""
    sender = command.sender
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    row = tx.db.execute("SELECT state FROM graph WHERE id = ?", (command.id,)).fetchone()
    if row is None:
        return None
    state: GraphState = row[0]
    if state in ("completed", "failed"):
        return GraphCancelled(command.id, state, 0, (), ())
    why = command.reason or f"cancelled with its graph by {sender.by}"
    if state == "running":
        tx.db.execute(
            "UPDATE graph SET state = 'cancelled', reason = ?, ended_at = ? WHERE id = ?",
            (why, tx.stamp, command.id),
        )
        tx.event("dag_cancelled", command.id, by=sender.by, because=why)
    members = tx.db.execute(_MEMBERS, (command.id,)).fetchall()
    waiting = [uid for uid, at, _ in members
               if at is not None and at not in (*UNDERWAY, *_ON_ITS_WAY)]  # fmt: skip
    running = [uid for uid, at, _ in members if at in UNDERWAY]
    _stop(tx, [uid for uid, at, asked in members if at in UNDERWAY and not asked], why, sender.by)
    _end_all(tx, waiting, why, sender.by)
    elsewhere = tuple(uid for uid, at, _ in members if at is None or at in _ON_ITS_WAY)
    return GraphCancelled(command.id, "cancelled", len(waiting), tuple(running), elsewhere)


def _stop(tx: Transaction, uids: list[str], why: str, by: str) -> None:
    tx.db.executemany("UPDATE task SET stopping = ? WHERE uid = ?", [(why, uid) for uid in uids])
    for uid in uids:
        tx.event("task_stopping", uid, by=by, because=why)


_END = (
    "UPDATE task SET state = 'CANCELLED', completed_at = ?, wake_at = NULL, blocked_by = '[]',"
    f" quarantined = 0 WHERE uid = ? AND {may_change(State.CANCELLED)} RETURNING uid"
)


def _end_all(tx: Transaction, uids: list[str], why: str, by: str) -> None:
    """By a person's word, each for itself: no edge ended them, so no retry brings them back."""
    ended: dict[str, Came] = {}
    for uid in uids:
        (was,) = tx.db.execute("SELECT state FROM task WHERE uid = ?", (uid,)).fetchone()
        if tx.db.execute(_END, (tx.stamp, uid)).fetchone() is None:
            continue
        tx.moves(was, State.CANCELLED)
        tx.event("task_cancelled", uid, was=was, state=State.CANCELLED, by=by, because=why)
        ended[uid] = "badly"
    for uid in ended:  # of all only now: what they give back releases none of them
        settle_money(tx, uid, None)
    spread(tx, ended)
