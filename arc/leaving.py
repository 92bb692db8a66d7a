"""Collects what ended tasks left, for one store that is to be told of their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_node.clock import parse_iso
from agent_node.readiness import AWAY, UNHEARD
from agent_node.strict import JsonObject

from .asking import read_shown
from .custody import NOT_FOUND, kept_of, left_by, whose_else, with_costs, with_hash
from .decisions.outbox import COMPLETED, EndHeard
from .decisions.view import NodeSeen
from .doubted import doubt
from .entitling import bare, may_be_told
from .errors import AnswerUnreadable, ArcError, NodeRefused
from .looking import Look

if TYPE_CHECKING:
    from .hub import Hub

SHOWN_AT_ONCE = 8
DAMAGED = "its output has another hash than when the task ended"
GONE = "it is no node of the fleet any more"  # so nobody waits for it
PATIENCE_S = 1800.0  # for which a node that is away keeps a good end from being told unexplained


async def with_results(
    seen: Look, store: str, ends: Sequence[EndHeard]
) -> list[tuple[EndHeard, JsonObject]]:
    """Each end as it is told, with what the task left; without those that are none any more."""
    gate = asyncio.Semaphore(SHOWN_AT_ONCE)
    found = await asyncio.gather(*(_with_result(seen, store, end, gate) for end in ends))
    return [(end, task) for end, task in zip(ends, found, strict=True) if task is not None]


async def _with_result(
    seen: Look, store: str, end: EndHeard, gate: asyncio.Semaphore
) -> JsonObject | None:
    """None: it lives again or cannot be asked at this moment, so it is told in another run. Of a
    node that is away, has let go of the task, or tells another output than the task had left, what
    its event told is passed on; where that was not kept, its node is waited for a while, and then
    the end is told without what it left. Of an output that was damaged it has the hash. Of both it
    has the reason.
    """
    other = await whose_else(seen, end.uid, end.node)
    if other:
        doubt(seen.hub, end, other)
        return None
    told: JsonObject = {"uid": end.uid, "state": end.state, "node": end.node, "at": end.at}
    told |= {"because": end.because} if end.because else {}
    kept = kept_of(end)
    away = {**told, **with_costs(seen.hub, end, kept)}
    node = seen.whole.node(end.node)
    if not isinstance(node, NodeSeen) or end.node not in seen.links:
        known = bool(kept) and may_be_told(seen.hub, store, end.uid)  # what it cost is no output
        late = _unheard(away, end, kept, AWAY if node is not None else GONE)
        return _for_store(seen.hub, store, late) if known or _is_late(seen, end) else None
    link = seen.links[end.node]
    try:
        async with gate:
            shown = read_shown(link.name, end.uid, await link.ask("show", {"uid": end.uid}))
    except (NodeRefused, AnswerUnreadable) as error:
        # An answer may stay unreadable, such as what an older program let a task leave.
        gone = isinstance(error, NodeRefused) and error.rule == NOT_FOUND
        late = _unheard(away, end, kept, "it let go of it" if gone else "it could not tell")
        return _for_store(seen.hub, store, late) if gone or _is_late(seen, end) else None
    except ArcError:
        return None
    if shown.task.state != end.state:
        return None
    left = with_hash(left_by(shown.task), shown.output_sha256)
    if not left:
        _note_damage(seen, end)
        if not kept and not _is_late(seen, end):
            return None
        damaged: JsonObject = {"sha256": shown.output_sha256, "because": f"{end.node}: {DAMAGED}"}
        return _for_store(seen.hub, store, away if kept else {**away, **damaged})
    return _for_store(seen.hub, store, {**told, **left}, dag=shown.task.dag)


def _unheard(told: JsonObject, end: EndHeard, kept: JsonObject, why: str) -> JsonObject:
    """The same, with the reason why nobody says what it left: it may have left something. No word
    of a node's own is in it, for whoever is told may not know any.
    """
    if kept or end.state != COMPLETED:
        return told
    lost = UNHEARD.format(node=end.node, why=why)
    return {**told, "because": f"{end.because}; {lost}" if end.because else lost}


def _note_damage(seen: Look, end: EndHeard) -> None:
    """Once of each task: it is looked at in every run until somebody could be told of its end."""
    if seen.hub.journal.outbox.is_damage_known(end.uid, end.node):
        return
    fields: JsonObject = {"because": DAMAGED}
    seen.hub.journal.runs.log("output_damaged", node=end.node, task=end.uid, fields=fields)


def _for_store(
    hub: Hub, store: str, told: JsonObject, *, dag: str | None = None
) -> JsonObject:
    """The whole of it only for who may know what this task left; that it ended, for everybody."""
    uid = str(told["uid"])
    left = told.get("output") is not None or told.get("artifacts") or told.get("sha256")
    if not left or may_be_told(hub, store, uid, dag=dag):
        return told
    fields: JsonObject = {"because": "nothing that it was given refers to the task"}
    hub.journal.runs.log("output_withheld", node=store, task=uid, fields=fields)
    return bare(told, store)


def _is_late(seen: Look, end: EndHeard) -> bool:
    """A bad end leaves nothing that is worth waiting for; nor does a node that nobody knows. One
    that lies in the future was written down by a clock that was wrong, however long ago.
    """
    if end.state != COMPLETED or seen.whole.node(end.node) is None:
        return True
    return abs((seen.hub.clock.now() - parse_iso(end.at)).total_seconds()) >= PATIENCE_S
