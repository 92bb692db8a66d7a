"""Hears what happened on the nodes since the last time: what ended, and what runs for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import parse_iso
from agent_node.fields import is_money
from agent_node.graph_names import NAME_MAX
from agent_node.lines import encode
from agent_node.output_hash import OUTPUT_SHA256
from agent_node.strict import JsonObject
from agent_node.task import Task
from agent_node.ulid import is_ulid
from arc.asking import read_events, read_listed
from arc.decisions.lives import lives_of
from arc.decisions.notices import NOT_FOLLOWED, of_events
from arc.decisions.outbox import JoinHeard
from arc.decisions.tallying import CUT_SHORT, Tally, tally_events
from arc.decisions.view import NodeSeen
from arc.errors import ArcError
from arc.journal_ends import FINAL, AttemptCost, TaskEnd
from arc.journal_nodes import Ended
from arc.looking import INBOX, Look

from .bad_ends import log_bad_ends

if TYPE_CHECKING:
    from arc.hub import Hub

PAGE = 1000
PAGES_MAX = 20  # of one node and run; a long history is heard over several runs
UNCUT = 20  # with fewer events than these, no page was cut for its size
RUNNING_MAX = 100
ENDS = {"task_completed": True, "task_failed": False}
RUNNING = ("CLAIMED", "RUNNING", "VALIDATING")
ELSEWHERE = "task_ended_elsewhere"  # a giver's note, and no end of its own
OVER = (FINAL, "CANCELLED", "DEAD_LETTERED")
_NO_LIFE = (*OVER, "FAILED")  # what is said of one that is so ends nothing anew
COSTING = CUT_SHORT.union(ENDS)
RELEASED = ("PENDING", "READY")
BORN, _BIRTH = "task_added", ("uid", "dag", "parent", "name")
WORD_MAX = 128
NEWS, NEWS_ANEW = timedelta(days=7), timedelta(hours=1)  # older events are told to nobody


@dataclass(eq=False)
class Heard:
    """Of nodes that could not be heard why, by name; and the tasks that ended well since."""

    unheard: dict[str, str]
    ends: list[TaskEnd] = field(default_factory=list)
    behind: set[str] = field(default_factory=set)  # nodes with more to tell than one run hears
    released: set[str] = field(default_factory=set)  # where something that waited may start now


async def hear_all(hub: Hub, seen: Look) -> Heard:
    """Hear every node that was seen, and write down what ended there, and what runs how long."""
    nodes = [node for node in seen.view.seen if node.name in seen.links]
    inbox = [seen.inbox] if isinstance(seen.inbox, NodeSeen) and INBOX in seen.links else []
    heard = await hear_events(hub, seen, [*nodes, *inbox])
    well = [node for node in nodes if node.name not in heard.unheard]
    said = await asyncio.gather(*(_hear_running(hub, seen, node) for node in well))
    heard.unheard |= {node.name: why for node, why in zip(well, said, strict=True) if why}
    return heard


async def hear_events(hub: Hub, seen: Look, nodes: Sequence[NodeSeen]) -> Heard:
    """The same without what runs now. A node is heard by one at a time: of two who read the same
    page, the later one would take back what the earlier has read beyond it.
    """
    heard = Heard({})
    said = await asyncio.gather(*(_hear(hub, seen, node, heard) for node in nodes))
    heard.unheard |= {node.name: why for node, why in zip(nodes, said, strict=True) if why}
    return heard


async def _hear(hub: Hub, seen: Look, node: NodeSeen, heard: Heard) -> str:
    try:
        async with hub.hearing[node.name]:
            if not await _hear_pages(hub, seen, node, heard):
                heard.behind.add(node.name)
    except ArcError as error:
        heard.behind.add(node.name)
        return str(error)
    return ""


async def _hear_pages(hub: Hub, seen: Look, node: NodeSeen, heard: Heard) -> bool:
    """Read on from where the last run ended; a node that came back anew is read from its start.
    Whether everything that had happened there is heard now.
    """
    life = node.report.incarnation
    after = hub.journal.nodes.heard_up_to(node.name, life)
    known = None if after else hub.journal.nodes.heard_at(node.name)
    anew = not after
    if anew:
        hub.journal.history.came_back(node.name, life, known)
    for _ in range(PAGES_MAX):
        asked: JsonObject = {"after_seq": after, "limit": PAGE, "domains": True, "traits": True}
        events = read_events(node.name, await seen.links[node.name].ask("events", asked))
        after = max([after, *(int(str(event["seq"])) for event in events)])
        heard.ends += _note_ends(hub, node, events)  # before it counts as heard
        hub.journal.outbox.note_births(_births(node, events))
        heard.released |= {node.name for event in events
                           if (event.get("was"), event.get("state")) == RELEASED}
        lately = _lately(hub, node, events, anew=anew)
        _note_news(hub, node, lately)
        ended = [_ended(hub, node, event) for event in events if event["event"] in ENDS]
        with hub.journal.together():
            _note_history(hub, node, events)
            log_bad_ends(hub, node.name, lately)
            hub.journal.nodes.hear(node.name, life, after, ended if node.name != INBOX else (),
                                   _tally(hub, node, events, known))
        if len(events) < UNCUT:
            return True
    return False


def _note_history(hub: Hub, node: NodeSeen, events: Sequence[JsonObject]) -> None:
    """What came, and what was tried; now and then, that a node tells what cannot be."""
    now, off_s = hub.clock.now(), node.clock_off_s or 0.0
    lives = lives_of([(event, _moment(event, now, off_s)) for event in events], now=now)
    wrong = hub.journal.history.hear(node.name, node.report.incarnation, lives)
    if wrong:
        hub.journal.runs.log("history_not_believed", node=node.name, fields={**wrong})


def _tally(
    hub: Hub, node: NodeSeen, events: Sequence[JsonObject], known: datetime | None
) -> Tally:
    """What these events add to the counts; of a node that came back anew, which is heard from its
    start once more, only what is younger than the last time.
    """
    fresh = [event for event in events if known is None or _at(hub, node, event) > known]
    return tally_events(node.name, fresh, hub.ready_since[node.name], hub.words[node.name],
                        hub.waited)


def _lately(
    hub: Hub, node: NodeSeen, events: Sequence[JsonObject], *, anew: bool
) -> list[tuple[JsonObject, datetime]]:
    """Those that are news, and when. A history that is heard from its start is none."""
    since = hub.clock.now() - (NEWS_ANEW if anew else NEWS)
    return [(event, at) for event in events if (at := _at(hub, node, event)) >= since]


def _note_news(hub: Hub, node: NodeSeen, some: Sequence[tuple[JsonObject, datetime]]) -> None:
    """What people are to be told of. Where nobody is told of anything, what `arc status` shows out
    of it is noted all the same.
    """
    news, told = of_events(node.name, node.report.incarnation, some), hub.settings.notify
    things = [one for one in news if told or one.kind == NOT_FOLLOWED]
    if things and not told:
        hub.journal.notices.receivers(())  # one that comes back later is not told of these
    hub.journal.notices.note(things)


def _births(node: NodeSeen, events: Sequence[JsonObject]) -> list[JoinHeard]:
    """Tasks that running ones made here, in the graphs that those belong to."""
    found: list[JoinHeard] = []
    for event in events:
        data = event.get("data")
        if event["event"] != BORN or not isinstance(data, dict):
            continue
        uid, dag, parent, name = (data_or(data, event, key) for key in _BIRTH)
        if uid and dag and parent and all(map(is_ulid, (uid, dag, parent))):
            fit = name if name and len(name) <= NAME_MAX and name.isprintable() else None
            cost = data.get("max_cost_usd")
            found.append(JoinHeard(
                uid, dag, node.name, int(str(event["seq"])), parent, fit,
                waits=data.get("waits") is True,
                max_cost_usd=cost if isinstance(cost, str) and is_money(cost) else None,
            ))  # fmt: skip
    return found


def _why(event: JsonObject) -> str:
    """Why it ended so, for those that wait for it; that an attempt ended well needs no reason."""
    if event["event"] == "task_completed" and _of_attempt(event):
        return ""
    return str(event.get("because") or "")


def _of_attempt(event: JsonObject) -> bool:
    """Whether an attempt ended so, and nobody said it."""
    return event.get("n") is not None


def data_or(data: JsonObject, event: JsonObject, key: str) -> str | None:
    """A text of the event itself, or of what it carries; None: neither says it."""
    said = event.get(key) or data.get(key)
    return said[:WORD_MAX] if isinstance(said, str) else None


def _note_ends(hub: Hub, node: NodeSeen, events: Sequence[JsonObject]) -> list[TaskEnd]:
    """The last word on each task counts: one that was cancelled may have been retried since. It is
    numbered by the event that ended the task, whatever a person said of it afterwards.
    """
    said = [event for event in events
            if event.get("uid") and event.get("state") and event["event"] != ELSEWHERE]
    last = {str(event["uid"]): event for event in said}
    lived = {str(event["uid"]): int(str(event["seq"])) for event in said
             if _is_end(event) and (_of_attempt(event) or event.get("was") not in _NO_LIFE)}
    ends = [TaskEnd(node.name, uid, str(event["state"]), _at(hub, node, event),
                    because=_why(event), seq=lived.get(uid, int(str(event["seq"]))),
                    result=_left(event) if uid in hub.awaited else "", lived=uid in lived)
            for uid, event in last.items() if _is_end(event)]  # fmt: skip
    hub.journal.ends.note(ends)
    hub.journal.ends.note_costs(_costs(node, events), hub.clock.now())
    hub.journal.ends.take_back(node.name, last.keys() - {one.uid for one in ends})
    return [one for one in ends if one.state == FINAL and node.name != INBOX]


def _left(event: JsonObject) -> str:
    """What a task left, as its event tells it: its node may be away when somebody is told."""
    data = event.get("data")
    if event["event"] != "task_completed" or not isinstance(data, dict):
        return ""
    left: JsonObject = {name: data.get(name) for name in ("output", "cost_usd", OUTPUT_SHA256)}
    return encode({**left, "artifacts": data.get("artifacts") or []})


def _costs(node: NodeSeen, events: Sequence[JsonObject]) -> list[AttemptCost]:
    """What attempts say that they cost, whichever of them was the last."""
    found: list[AttemptCost] = []
    for event in events:
        data, uid, n = event.get("data"), event.get("uid"), event.get("n")
        if not isinstance(data, dict) or not isinstance(uid, str) or not isinstance(n, int):
            continue
        cost = data.get("cost_usd")
        if event["event"] in COSTING and is_ulid(uid) and isinstance(cost, str) and is_money(cost):
            found.append(AttemptCost(uid, node.name, n, cost))
    return found


def _is_end(event: JsonObject) -> bool:
    """An attempt that failed may be tried again; a person's word that a parked task failed is an
    end.
    """
    state = event["state"]
    return state in OVER or (state == "FAILED" and event.get("was") == "PARKED")


def _at(hub: Hub, node: NodeSeen, event: JsonObject) -> datetime:
    """When it was by the hub's clock: the node's stamp, less what its clock is off."""
    now = hub.clock.now()
    return min(_moment(event, now, node.clock_off_s or 0.0), now)


def _ended(hub: Hub, node: NodeSeen, event: JsonObject) -> Ended:
    return Ended(
        seq=int(str(event["seq"])), at=_at(hub, node, event),
        uid=str(event.get("uid", "")), well=ENDS[str(event["event"])],
        domain=domain if isinstance(domain := event.get("domain"), str) else None,
    )  # fmt: skip


def _moment(event: JsonObject, now: datetime, off_s: float) -> datetime:
    try:
        return parse_iso(str(event.get("at"))) - timedelta(seconds=off_s)
    except (ValueError, OverflowError):
        return now  # a stamp that is none: when we heard of it is the best that is known


async def _hear_running(hub: Hub, seen: Look, node: NodeSeen) -> str:
    """What runs longest there; why not, where it could not be asked."""
    hub.longest.pop(node.name, None)
    if not node.report.running_count:
        return ""
    asked: JsonObject = {"states": list(RUNNING), "limit": RUNNING_MAX}
    try:
        listed = read_listed(node.name, await seen.links[node.name].ask("list", asked))
    except ArcError as error:
        return str(error)
    written = parse_iso(node.report.written_at)
    ages = [(_age_s(task, written), task.uid) for task in listed.tasks if task.started_at]
    if ages:
        seconds, uid = max(ages)
        hub.longest[node.name] = (uid, seconds)
    return ""


def _age_s(task: Task, written: datetime) -> float:
    """By the node's own clock at both ends."""
    return max((written - parse_iso(str(task.started_at))).total_seconds(), 0.0)
