"""Keeps a retry for who has not failed the task, or for a move, a while; then it is anybody's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from ..clock import iso, parse_iso
from ..retries import Tried
from ..task import State
from .history import ATTEMPTS
from .transaction import Transaction

GRACE_S = 30.0  # for an agent that has not failed the task; then whoever has room may have it
FOREVER = "9999"  # later than every moment
# No word of a task can hold a control character, so nobody can need or offer this by chance.
_NOT_BY, _NOT_HERE = "\x1fnot by ", "\x1fnot here"
_FOR_MOVE = 2  # in `elsewhere`: nobody here has it until then, whoever runs here by then
# Of a set of needs `s`: it says of whom it is kept from, and is no need that anybody lacks.
KEPT = "EXISTS (SELECT 1 FROM json_each(s.needs) w WHERE w.value LIKE char(31) || '%')"
_TRIES = f"SELECT node, agent, error_kind, counted, blamed, n FROM {ATTEMPTS} ORDER BY n"
_EXCUSE = """
UPDATE attempt SET blamed = 0 WHERE uid = ? AND n >= ? AND node = (SELECT name FROM node)
   AND agent IN (SELECT value FROM json_each(?))
"""
_CAN = """
SELECT a.name FROM agent a JOIN agent_can c ON c.agent = a.name
 WHERE c.need_set = ? AND a.state = 'active' ORDER BY a.name
"""
_KEEP_FOR = """
INSERT INTO care (uid, until, elsewhere) VALUES (:uid, :until, :elsewhere)
ON CONFLICT (uid) DO UPDATE SET until = :until, elsewhere = :elsewhere
"""
_FREE = """
UPDATE task SET need_set = coalesce(
       (SELECT s.id FROM need_set s WHERE s.needs = task.needs), need_set)
"""
_OVER = f"until <= :until AND (elsewhere <> {_FOR_MOVE} OR until <= :now)"
_FREE_DUE = f"{_FREE} WHERE uid IN (SELECT uid FROM care WHERE {_OVER})"
_LET_GO = "UPDATE care SET until = NULL, elsewhere = 0 WHERE uid"
_LET_GO_ONE, _LET_GO_ALL = f"{_LET_GO} = ?", f"{_LET_GO} IN (SELECT value FROM json_each(?))"
_FREE_ONE = f"{_FREE} WHERE uid = ?"
_FORGET_GONE = """
DELETE FROM care WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = care.uid)
   AND NOT EXISTS (SELECT 1 FROM tombstone m WHERE m.uid = care.uid)
"""
_COUNTED_MAX = 1000
_WAITING = f"""
SELECT count(*) FROM (SELECT 1 FROM care c CROSS JOIN task t ON t.uid = c.uid
 WHERE c.elsewhere = 1 AND t.state = 'READY' AND t.pinned = 0 LIMIT {_COUNTED_MAX})
"""
_FORGET_OVER = """
UPDATE care SET elsewhere = 0 WHERE elsewhere = 1 AND EXISTS (
  SELECT 1 FROM task t WHERE t.uid = care.uid AND t.completed_at IS NOT NULL)
"""
_FORGET_FREED = f"UPDATE care SET until = NULL, elsewhere = elsewhere % {_FOR_MOVE} WHERE {_OVER}"


def tries_of(tx: Transaction, uid: str) -> list[Tried]:
    """Every attempt of the task in order, those made on other nodes too."""
    rows = tx.db.execute(_TRIES, {"uid": uid}).fetchall()
    return [
        Tried(node, agent, kind or "", bool(counted), bool(blamed), n)
        for node, agent, kind, counted, blamed, n in rows
    ]


def excused(
    tx: Transaction, uid: str, failed: Sequence[Tried], *, tries: Sequence[Tried]
) -> list[Tried]:
    """The same tries, where those of agents here that fail other tasks as well are not blamed.

    `tries` are all of this task, also those that a person has forgiven. What is found is written
    down and travels with the task: another node cannot know how this one fared.
    """
    here, unreliable = tx.node.name, _unreliable_agents(tx, tries)
    if not unreliable:
        return list(failed)
    tx.db.execute(_EXCUSE, (uid, failed[0].n, json.dumps(sorted(unreliable))))
    return [
        replace(tried, blamed=False) if tried.node == here and tried.agent in unreliable else tried
        for tried in failed
    ]


def _unreliable_agents(tx: Transaction, tries: Sequence[Tried]) -> set[str]:
    """Agents here whose failures in a row are more than all of this task's: they fail others too.

    A person's `retry` forgives a task, and ends no agent's row. Asked before the streak of the
    agent that failed just now was counted on.
    """
    own = [tried.agent for tried in tries if tried.counted and tried.node == tx.node.name]
    last = tries[-1].agent
    streaks = tx.db.execute("SELECT name, streak FROM agent WHERE streak > 0").fetchall()
    return {name for name, streak in streaks if streak + (name == last) > own.count(name)}


def words_against_others(name: str, names: Sequence[str]) -> list[str]:
    """What this agent can do that no task asks for by itself: it is none of the other ones."""
    return [f"{_NOT_BY}{other}" for other in names if other != name]


def keep_from(tx: Transaction, uid: str, failed: Sequence[Tried], *, ready_at: str) -> None:
    """For a while after `ready_at` the retry is for agents that have not failed this task.

    Where nobody else here can run it, it is marked: it may be moved once, to be tried elsewhere.
    """
    forgive(tx, uid)
    here = tx.node.name
    culprits = {tried.agent for tried in failed if tried.node == here}
    needs, pinned = tx.db.execute(
        "SELECT needs, pinned FROM task WHERE uid = ?", (uid,)
    ).fetchone()
    words: list[str] = json.loads(needs)
    able = [name for (name,) in tx.db.execute(_CAN, (tx.need_set(words),))]
    if not culprits.isdisjoint(able) and culprits.issuperset(able):
        if not pinned and all(tried.node == here for tried in failed):
            tx.db.execute(_KEEP_FOR, {"uid": uid, "until": None, "elsewhere": 1})
        return
    against = [f"{_NOT_BY}{name}" for name in sorted(culprits.intersection(able))]
    if not against:
        return
    until = iso(max(tx.now, parse_iso(ready_at)) + timedelta(seconds=GRACE_S))
    kept = tx.need_set([*words, *against])
    tx.db.execute("UPDATE task SET need_set = ? WHERE uid = ?", (kept, uid))
    tx.db.execute(_KEEP_FOR, {"uid": uid, "until": until, "elsewhere": 0})


def marked_elsewhere(tx: Transaction) -> list[str]:
    """The tasks that everybody here who can run them has failed; some are not READY any more."""
    return [uid for (uid,) in tx.db.execute("SELECT uid FROM care WHERE elsewhere = 1")]


def retried_count(tx: Transaction) -> int:
    """How many of them wait and may leave, counted up to 1000: whether the hub has to ask."""
    if not tx.count(State.READY):
        return 0
    (count,) = tx.db.execute(_WAITING).fetchone()
    return int(count)


def let_go_of_care(tx: Transaction, *uids: str) -> None:
    """These tasks are another node's now. If one comes back, it has been tried elsewhere."""
    if len(uids) == 1:
        tx.write_later(_LET_GO_ONE, uids)
    else:
        tx.write_later(_LET_GO_ALL, (json.dumps(uids),))


def let_anyone(tx: Transaction, until: str) -> None:
    """Those whose time of grace ended by then are for every agent again that can run them."""
    values = {"until": until, "now": tx.stamp}
    if tx.db.execute(_FREE_DUE, values).rowcount:
        tx.changed = True
    if tx.db.execute(_FORGET_FREED, values).rowcount:
        tx.changed = True


def forgive(tx: Transaction, uid: str) -> None:
    """A person tries the task again: for everybody at once, and here."""
    known = "SELECT 1 FROM care WHERE uid = ? AND (until IS NOT NULL OR elsewhere <> 0)"
    if tx.db.execute(known, (uid,)).fetchone():
        tx.db.execute(_FREE_ONE, (uid,))
        tx.db.execute(_LET_GO_ONE, (uid,))


def keep_for_move(tx: Transaction, uid: str, *, seconds: float) -> None:
    """So long no agent here takes this READY task, so that a move finds it; a move may take it."""
    (needs,) = tx.db.execute("SELECT needs FROM task WHERE uid = ?", (uid,)).fetchone()
    nobodys = tx.need_set([*json.loads(needs), _NOT_HERE])
    tx.db.execute("UPDATE task SET need_set = ? WHERE uid = ?", (nobodys, uid))
    until = iso(tx.now + timedelta(seconds=seconds))
    tx.db.execute(_KEEP_FOR, {"uid": uid, "until": until, "elsewhere": _FOR_MOVE})


def kept_for_move(tx: Transaction, uid: str) -> str | None:
    """Until when; None: it is not."""
    query = "SELECT until FROM care WHERE uid = ? AND elsewhere = ?"
    row = tx.db.execute(query, (uid, _FOR_MOVE)).fetchone()
    return None if row is None else str(row[0])


def let_start(tx: Transaction, uid: str) -> None:
    """A person does not want to wait for a move."""
    if kept_for_move(tx, uid) is not None:
        forgive(tx, uid)
        tx.changed = True


def forget_marks(tx: Transaction) -> None:
    """What has ended is tried nowhere else, and every look would have to pass its mark."""
    if tx.db.execute(_FORGET_OVER).rowcount:
        tx.changed = True


def forget_cares(tx: Transaction) -> None:
    """Let go of what is known of tasks that are gone themselves."""
    tx.db.execute(_FORGET_GONE)
