"""Answers questions about the queue; asking changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from ..queries import (
    MISSING,
    UNMET_COUNTED,
    UNMET_MAX,
    AgentFacts,
    Due,
    Facts,
    NextDue,
    NodeFacts,
    OpenAttempt,
    OpenAttempts,
    Shown,
    ShowTask,
)
from ..strict import JsonObject, JsonValue
from ..task import UNDERWAY, State, Task
from .artifact_inputs import missing_count
from .beats import as_beaten, last_beat
from .by_state import by_state
from .care import KEPT, retried_count
from .chronicle import events_of, moves_of
from .completing import output_hash
from .dead import care_of
from .elsewhere import awaiting_count
from .graph_reading import graph_count
from .history import LAST_COMPLETED, LAST_FILED, UNPROVED
from .keeping import kept_task
from .oldest import oldest_ready_at
from .past_attempts import attempts_of
from .purses import held_as_of_now, remaining_usd
from .rows import WHOLE, task_of
from .transaction import Transaction
from .transfers import HELD_HERE
from .turns import orders_of
from .unaffordable import unaffordable_counts
from .waking import next_at, next_lease

FAILING_STREAK = 5


def facts(tx: Transaction, query: Facts) -> NodeFacts:
    """The node in numbers; the counts are kept, the rest is read from indexes."""
    node, agents = tx.node, _agents(tx)
    kinds = _KINDS if agents else UNMET_MAX
    unmet = _unmet(tx, kinds)
    unaffordable, never = unaffordable_counts(tx)
    return NodeFacts(
        name=node.name, incarnation=node.incarnation, generation=tx.live.generation,
        state=node.state, reason=node.reason, term=node.term, hub=node.hub, fleet=node.fleet,
        xfer_floor=node.xfer_floor,
        waits_for_hub=_waits_for_hub(tx),
        counts={state: number for state in State if (number := tx.count(state))},
        movable=tx.count(State.READY) - _one(tx, _PINNED),
        oldest_ready_at=oldest_ready_at(tx),
        oldest_held_at=_text(tx, _OLDEST_HELD) if tx.count(State.HELD) else None,
        idle_since=tx.live.idle_since, agents=agents, domains=json.loads(node.domains),
        stalled=tuple(sorted(tx.live.stalled.items())),
        unmet=unmet, unmet_more=_unmet_more(tx, unmet, kinds), last_task=_last_task(tx),
        next_at=next_at(tx), next_lease=next_lease(tx),
        drain_until=node.drain_until, drain_then=node.drain_then,
        event_seq=tx.newest_event,
        awaiting=awaiting_count(tx), budget_remaining_usd=remaining_usd(tx),
        retried=retried_count(tx), artifacts_missing=missing_count(tx), graphs=graph_count(tx),
        unaffordable=unaffordable, never_affordable=never,
        clock_doubt=tx.live.clock_doubt,
    )  # fmt: skip


_PINNED = "SELECT count(*) FROM task WHERE state = 'READY' AND pinned = 1"
_OLDEST_HELD = f"SELECT min(x.at) FROM {HELD_HERE}"


def _unmet(tx: Transaction, kinds: int) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Only sets of needs that no agent meets are counted; most nodes have none. Where no agent is
    known, as in a hub's own queue, they are all sets: others know who meets them, so more are told.
    """
    if not tx.count(State.READY):
        return ()
    found = tx.db.execute(_UNMET, (kinds,))
    return tuple((tuple(json.loads(needs)), number) for needs, number in found)


def _unmet_more(
    tx: Transaction, unmet: Sequence[tuple[tuple[str, ...], int]], kinds: int
) -> int:
    """How many there are besides, where `unmet` was cut: all that wait, less what can be done.

    0 also where so much can be done that nobody is short of work for want of the true number.
    """
    if len(unmet) < kinds and all(number < _OF_A_KIND for _, number in unmet):
        return 0
    met = _one(tx, _MET)
    return tx.count(State.READY) - met - sum(n for _, n in unmet) if met < _OF_A_KIND else 0


_OF_A_KIND, _KINDS = UNMET_COUNTED, 20  # as many are counted, of as many sets of needs
_UNMET = f"""
SELECT s.needs, (SELECT count(*) FROM (
         SELECT 1 FROM task t
          WHERE t.need_set = s.id AND t.state = 'READY' LIMIT {_OF_A_KIND})) AS n
  FROM need_set s
 WHERE s.needs <> '[]' AND s.id NOT IN (SELECT need_set FROM agent_can) AND n > 0
   AND NOT {KEPT} LIMIT ?
"""
_MET = f"""
SELECT count(*) FROM (
  SELECT 1 FROM need_set s CROSS JOIN task t ON t.need_set = s.id AND t.state = 'READY'
   WHERE s.needs = '[]' OR s.id IN (SELECT need_set FROM agent_can) OR {KEPT}
   LIMIT {_OF_A_KIND})
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


_RUNNING = f"SELECT agent FROM task WHERE {by_state(*UNDERWAY)}"


def _agents(tx: Transaction) -> tuple[AgentFacts, ...]:
    db = tx.db
    running = Counter(
        agent
        for (agent,) in db.execute(_RUNNING)
    )
    rows = db.execute(
        "SELECT name, state, slots, streak, last_heartbeat, reason FROM agent ORDER BY name"
    )
    return tuple(
        AgentFacts(
            name=name,
            slots=slots,
            running=running[name],
            last_heartbeat=last_beat(tx, name, beat),
            **_stands(tx.live.missing.get(name, ""), state, streak=streak, reason=reason),
        )
        for name, state, slots, streak, beat, reason in rows
    )


def _stands(missing: str, state: str, *, streak: int, reason: str) -> dict[str, str]:
    """A person's word goes first; an agent without its program is not one that fails."""
    if state != "active":
        return {"state": state, "reason": reason}
    if missing:
        return {"state": MISSING, "reason": missing}
    return {"state": "failing" if streak >= FAILING_STREAK else state, "reason": reason}


def _last_task(tx: Transaction) -> JsonObject | None:
    names = ("uid", "n", "agent", "outcome", "ended_at", "duration_s")
    filed = tx.db.execute(LAST_FILED).fetchone()
    last = max(filter(None, (_last_completed(tx), filed)), key=itemgetter(names.index("ended_at")),
               default=None)  # fmt: skip
    return None if last is None else dict(zip(names, last, strict=True))


def _last_completed(tx: Transaction) -> tuple[JsonValue, ...] | None:
    """Of the tasks that completed here; only events that are new since the last look are read."""
    known, last = tx.live.last_completed
    found = tx.db.execute(LAST_COMPLETED, (known,)).fetchone() or last
    tx.live.last_completed = tx.newest_event, found
    return found


def kept_whole(tx: Transaction, uid: str) -> Task:
    """A task that left, from the copy that was kept."""
    (epoch,) = tx.db.execute("SELECT epoch FROM tombstone WHERE uid = ?", (uid,)).fetchone()
    return replace(kept_task(tx, uid), state=State.MOVED, epoch=epoch)


def show_task(tx: Transaction, query: ShowTask) -> Shown | None:
    """The task with its attempts, moves and events; from the kept copy when it moved away."""
    uid = query.uid
    attempts = attempts_of(tx.db, uid)
    row = tx.db.execute(f"SELECT {WHOLE} FROM task WHERE uid = ?", (uid,)).fetchone()
    if row is not None:
        task = held_as_of_now(tx, as_beaten(tx, task_of(row, attempts)))
    elif tx.db.execute(
        "SELECT 1 FROM tombstone WHERE uid = ? AND spec IS NOT NULL", (uid,)
    ).fetchone():
        task = kept_whole(tx, uid)
    else:
        return None
    said = tuple(one for one in attempts if isinstance(one, dict))
    order = orders_of(tx, [uid]).get(uid, {})
    return Shown(
        task, said, moves_of(tx, uid), events_of(tx, uid), care_of(tx, uid), order,
        output_sha256=output_hash(tx, uid),
    )  # fmt: skip


def next_due(tx: Transaction, query: NextDue) -> Due:
    """When to wake next, from two indexes."""
    return Due(next_at(tx), next_lease(tx))


_OPEN = f"""
SELECT t.uid, t.attempt, t.agent, t.token, t.state, t.pid, t.start_ticks, l.boot_id, t.max_s,
       t.interruptions, t.stopping
  FROM task t CROSS JOIN life l ON l.id = t.life
 WHERE {by_state(*UNDERWAY, of='t')}
   AND l.incarnation = (SELECT incarnation FROM node)
 ORDER BY t.claimed_at
"""


def open_attempts(tx: Transaction, query: OpenAttempts) -> tuple[OpenAttempt, ...]:
    """The attempts that the database believes to be under way on this node."""
    rows = [*tx.db.execute(_OPEN), *(tx.db.execute(UNPROVED) if query.parked else ())]
    return tuple(OpenAttempt(*row) for row in rows)
