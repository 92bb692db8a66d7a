"""Answers questions about the queue; asking changes nothing."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..lines import encode
from ..queries import (
    AgentFacts,
    Due,
    Events,
    Facts,
    Listed,
    ListTasks,
    NextDue,
    NodeFacts,
    OpenAttempt,
    OpenAttempts,
    Shown,
    ShowTask,
)
from ..strict import JsonObject, JsonValue
from ..task import State, Task
from .artifact_inputs import missing_count
from .beats import as_beaten, last_beat
from .care import retried_count
from .dead import care_of, cares_of
from .elsewhere import awaiting_count
from .graph_reading import graph_count
from .history import ATTEMPTS, LAST_COMPLETED, LAST_FILED, UNPROVED
from .keeping import kept_task
from .oldest import oldest_ready_at
from .purses import remaining_usd
from .rows import WHOLE, WITHOUT_BODY, attempts_of, task_of, with_history
from .transaction import Transaction
from .turns import orders_of
from .unaffordable import unaffordable_count
from .waking import next_at, next_lease

FAILING_STREAK = 5
SHOWN_MAX = 1024 * 1024  # bytes of the events of one task that are told with it


def facts(tx: Transaction, query: Facts) -> NodeFacts:
    """The node in numbers; the counts are kept, the rest is read from indexes."""
    node = tx.node
    return NodeFacts(
        name=node.name, incarnation=node.incarnation, generation=node.generation,
        state=node.state, reason=node.reason, term=node.term, hub=node.hub, fleet=node.fleet,
        xfer_floor=node.xfer_floor,
        waits_for_hub=_waits_for_hub(tx),
        counts={state: number for state in State if (number := tx.count(state))},
        movable=tx.count(State.READY) - _one(tx, _PINNED),
        oldest_ready_at=oldest_ready_at(tx),
        oldest_held_at=_text(tx, _OLDEST_HELD) if tx.count(State.HELD) else None,
        idle_since=tx.live.idle_since, agents=_agents(tx), domains=json.loads(node.domains),
        stalled=tuple(sorted(tx.live.stalled.items())),
        unmet=_unmet(tx), last_task=_last_task(tx.db),
        next_at=next_at(tx), next_lease=next_lease(tx),
        drain_until=node.drain_until, drain_then=node.drain_then,
        event_seq=_one(tx, "SELECT coalesce(max(seq), 0) FROM event"),
        awaiting=awaiting_count(tx), budget_remaining_usd=remaining_usd(tx),
        retried=retried_count(tx), artifacts_missing=missing_count(tx), graphs=graph_count(tx),
        unaffordable=unaffordable_count(tx),
    )  # fmt: skip


_PINNED = "SELECT count(*) FROM task WHERE state = 'READY' AND pinned = 1"
_OLDEST_HELD = "SELECT min(at) FROM transfer WHERE outcome = 'held' AND settled_at IS NULL"


def _unmet(tx: Transaction) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Only sets of needs that no agent meets are counted; most nodes have none."""
    if not tx.count(State.READY):
        return ()
    return tuple((tuple(json.loads(needs)), number) for needs, number in tx.db.execute(_UNMET))


_UNMET = """
SELECT s.needs, (SELECT count(*) FROM (
         SELECT 1 FROM task t WHERE t.need_set = s.id AND t.state = 'READY' LIMIT 1000)) AS n
  FROM need_set s
 WHERE s.needs <> '[]' AND s.id NOT IN (SELECT need_set FROM agent_can) AND n > 0 LIMIT 20
"""


def _waits_for_hub(tx: Transaction) -> bool:
    node = tx.node
    unheard = bool(node.term) and node.hello_boot != tx.clock.boot_id()
    return unheard and _shared_ready(tx)


def _shared_ready(tx: Transaction) -> bool:
    query = (
        "SELECT EXISTS (SELECT 1 FROM need_set s JOIN task t ON t.need_set = s.id"
        " AND t.shared = 1 AND t.state = 'READY')"
    )
    return bool(_one(tx, query))


def _one(tx: Transaction, query: str) -> int:
    (value,) = tx.db.execute(query).fetchone()
    return int(value)


def _text(tx: Transaction, query: str) -> str | None:
    (value,) = tx.db.execute(query).fetchone()
    return None if value is None else str(value)


def _agents(tx: Transaction) -> tuple[AgentFacts, ...]:
    db = tx.db
    running = Counter(
        agent
        for (agent,) in db.execute(
            "SELECT agent FROM task WHERE state <> 'READY'"
            " AND state IN ('CLAIMED', 'RUNNING', 'VALIDATING')"
        )
    )
    rows = db.execute(
        "SELECT name, state, slots, streak, last_heartbeat, reason FROM agent ORDER BY name"
    )
    return tuple(
        AgentFacts(
            name=name,
            state="failing" if state == "active" and streak >= FAILING_STREAK else state,
            slots=slots,
            running=running[name],
            last_heartbeat=last_beat(tx, name, beat),
            reason=reason,
        )
        for name, state, slots, streak, beat, reason in rows
    )


def _last_task(db: sqlite3.Connection) -> JsonObject | None:
    names = ("uid", "n", "agent", "outcome", "ended_at", "duration_s")
    filed = db.execute(LAST_FILED).fetchone()
    since = filed[names.index("ended_at")] if filed else ""
    last = db.execute(LAST_COMPLETED, (since,)).fetchone() or filed
    return None if last is None else dict(zip(names, last, strict=True))


def list_tasks(tx: Transaction, query: ListTasks) -> Listed:
    """One page without bodies, by seq."""
    where, values = ["seq > ?"], [query.after]
    rest: list[object] = []
    if query.states:
        where.append(f"state IN ({', '.join('?' * len(query.states))})")
        rest += query.states
    if query.match is not None:
        where.append("(uid GLOB ? OR uid GLOB ?)")
        rest += [f"{query.match}*", f"*{query.match}"]
    rows = tx.db.execute(
        f"SELECT {WITHOUT_BODY} FROM task WHERE {' AND '.join(where)} ORDER BY seq LIMIT ?",
        (*values, *rest, query.limit + 1),
    ).fetchall()
    tasks = tuple(
        as_beaten(tx, with_history(tx, task_of(row))) for row in rows[: query.limit]
    )
    uids = [task.uid for task in tasks]
    care, order = cares_of(tx, uids), orders_of(tx, uids)
    if len(rows) > query.limit:
        return Listed(tasks, tasks[-1].seq, care, order)
    moved = _moved(tx, query, query.limit - len(tasks))
    return Listed((*tasks, *moved), None, care, order)


_KEPT = """
SELECT uid FROM tombstone m
 WHERE spec IS NOT NULL AND NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = m.uid)
   AND (:match IS NULL OR uid GLOB :match || '*' OR uid GLOB '*' || :match) ORDER BY uid LIMIT :room
"""


def _moved(tx: Transaction, query: ListTasks, room: int) -> tuple[Task, ...]:
    """Tasks that left, from the copies that were kept: where they are asked for, or looked for."""
    wanted = State.MOVED in query.states or (query.match is not None and not query.states)
    if not wanted or room <= 0:
        return ()
    uids = tx.db.execute(_KEPT, {"match": query.match, "room": room}).fetchall()
    return tuple(replace(_kept(tx, uid), body="") for (uid,) in uids)


def _kept(tx: Transaction, uid: str) -> Task:
    (epoch,) = tx.db.execute("SELECT epoch FROM tombstone WHERE uid = ?", (uid,)).fetchone()
    return replace(kept_task(tx, uid), state=State.MOVED, epoch=epoch)


# An attempt names its own events: one when it was claimed, one when it started, and up to two in
# one transaction at its end (it failed, and what follows from that).
_EVENTS_OF = f"""
SELECT * FROM event WHERE uid = :uid AND n IS NULL
UNION
SELECT e.* FROM {ATTEMPTS} a JOIN event e
    ON e.seq IN (a.claim_event, a.start_event, a.end_event - 1, a.end_event)
   AND e.uid = a.uid AND e.n = a.n
 ORDER BY 1
"""


def show_task(tx: Transaction, query: ShowTask) -> Shown | None:
    """The task with its attempts, moves and events; from the kept copy when it moved away."""
    uid = query.uid
    attempts = attempts_of(tx.db, uid)
    row = tx.db.execute(f"SELECT {WHOLE} FROM task WHERE uid = ?", (uid,)).fetchone()
    if row is not None:
        task = as_beaten(tx, task_of(row, attempts))
    elif tx.db.execute(
        "SELECT 1 FROM tombstone WHERE uid = ? AND spec IS NOT NULL", (uid,)
    ).fetchone():
        task = _kept(tx, uid)
    else:
        return None
    moves = _dicts(tx.db, "SELECT * FROM transfer WHERE uid = ? ORDER BY xfer", (uid,))
    events = _newest(_dicts(tx.db, _EVENTS_OF, {"uid": uid}))
    said = tuple(one for one in attempts if isinstance(one, dict))
    order = orders_of(tx, [uid]).get(uid, {})
    return Shown(task, said, moves, events, care_of(tx, uid), order)


def _newest(events: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """As many as an answer holds beside all else; a task may have been tried for weeks."""
    left, kept = SHOWN_MAX, list[JsonObject]()
    for event in reversed(events):
        left -= len(encode(event).encode())
        if left < 0:
            break
        kept.append(event)
    return tuple(reversed(kept))


def _dicts(
    db: sqlite3.Connection, query: str, values: tuple[object, ...] | dict[str, object]
) -> tuple[JsonObject, ...]:
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    return tuple(_dict(names, row) for row in cursor)


def _dict(names: list[str], row: tuple[JsonValue, ...]) -> JsonObject:
    said: JsonObject = {
        name: value for name, value in zip(names, row, strict=True) if value is not None
    }
    for name in ("data", "traits"):
        if isinstance(said.get(name), str):
            said[name] = json.loads(str(said[name]))
    return said


_DOMAIN = """,
  CASE WHEN e.event IN ('task_completed', 'task_failed') THEN t.domain END AS domain,
  CASE WHEN e.event IN ('task_completed', 'task_failed')
       THEN json_extract(t.spec, '$.type') END AS type"""
# Who made it is told by its kind alone; what a task is about is nobody's business here.
_TRAITS = """,
  CASE WHEN t.uid IS NOT NULL
        AND e.event IN ('task_added', 'task_held', 'task_arrived', 'task_claimed') THEN
    json_object('priority', t.priority, 'domain', t.domain, 'skills', json(t.skills),
                'needs', json(t.needs), 'pinned', json(iif(t.pinned, 'true', 'false')),
                'expected_s', t.expected_s,
                'source', substr(t.source, 1, instr(t.source || ':', ':') - 1))
  END AS traits"""
_EVENTS = "SELECT e.*{also} FROM event e {tasks} WHERE e.seq > ? ORDER BY e.seq LIMIT ?"
_OF_TASKS = "LEFT JOIN task t ON t.uid = e.uid"


def events(tx: Transaction, query: Events) -> tuple[JsonObject, ...]:
    """Numbered events after a number, oldest first."""
    also = (_DOMAIN if query.domains else "") + (_TRAITS if query.traits else "")
    asked = (query.after_seq, query.limit)
    return _dicts(tx.db, _EVENTS.format(also=also, tasks=_OF_TASKS if also else ""), asked)


def next_due(tx: Transaction, query: NextDue) -> Due:
    """When to wake next, from two indexes."""
    return Due(next_at(tx), next_lease(tx))


_OPEN = """
SELECT t.uid, t.attempt, t.agent, t.token, t.state, t.pid, t.start_ticks, l.boot_id, t.max_s,
       t.interruptions, t.stopping
  FROM task t CROSS JOIN life l ON l.id = t.life
 WHERE t.state <> 'READY' AND t.state IN ('CLAIMED', 'RUNNING', 'VALIDATING')
   AND l.incarnation = (SELECT incarnation FROM node)
 ORDER BY t.claimed_at
"""


def open_attempts(tx: Transaction, query: OpenAttempts) -> tuple[OpenAttempt, ...]:
    """The attempts that the database believes to be under way on this node."""
    rows = [*tx.db.execute(_OPEN), *(tx.db.execute(UNPROVED) if query.parked else ())]
    return tuple(OpenAttempt(*row) for row in rows)
