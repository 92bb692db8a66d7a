"""Says why a task is where it is, and why a node gets or gives nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.deadlines import late_s
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import Task, to_wire
from arc.asking import queued, read_listed
from arc.custody import settled_elsewhere
from arc.decisions.answers import CHANGE, ESCALATE, WAIT
from arc.decisions.changes import Situation
from arc.decisions.draining import drains as drained
from arc.decisions.explain import Objection, Steal, lasting
from arc.decisions.failing import proved_by
from arc.decisions.retrying import retries as retried
from arc.decisions.view import NodeSeen, QueuedTask
from arc.decisions.why import why_node as judge_node
from arc.decisions.why import why_task as judge_task
from arc.decisions.why_routes import TURNS, RouteSituation, comes_by_itself, route_ways, who_has
from arc.decisions.why_standing import by_hand
from arc.decisions.why_states import NO_HUB, PAUSED
from arc.errors import ArcError
from arc.looking import INBOX, Look, look
from arc.planning import drains_now, retries_now, routes_now, with_ends

from . import Told
from .everybody import check_node
from .finding import Found
from .fleet_word import by_the_fleet
from .going_on import PINNED_HERE, at_its_time, why_again
from .graph_finding import find_task_not_graph
from .queues import whole_queues
from .sensing import router_turn
from .why_cancelled import cancelled_by
from .why_data import node_answer, of_the_router, task_answer, ways_of
from .why_evidence import evidence_of, history_of
from .why_files import files_of
from .why_gone import gone_with
from .why_kept import kept_for_its_move
from .why_typed import typed_in_one_line
from .why_waiting import has_gone_on, waiting_of

if TYPE_CHECKING:
    from arc.hub import Hub

RUNNING_MAX = 1000
# Refusals of a node that it repeats however often it is asked.
STAYS = frozenset({"already_here", "newer_known", "key_taken", "hash_mismatch"})
_ENDED_BADLY = frozenset({"FAILED", "RETRYING", "DEAD_LETTERED", "CANCELLED", "PARKED"})


async def why_task(hub: Hub, args: JsonObject) -> Told:
    """The task rule by rule, every node that might take it, and what would change the answer."""
    found = await find_task_not_graph(hub, Fields(args).text("task", 64))
    data, seen = await _answer(hub, found)
    gone_on = await has_gone_on(hub, found, data)
    if gone_on is not None:
        found = gone_on
        data, seen = await _answer(hub, found)
    return _told(data, seen, found)


async def _answer(hub: Hub, found: Found) -> tuple[JsonObject, Look]:
    task = queued(found.task)
    async with hub.moving:  # a move half way would look like a change of mind
        seen = await look(hub)
        if found.node == INBOX and task.state == "READY":
            data = await _at_the_hub(hub, seen, task)
        else:
            data = await _on_a_node(hub, seen, found, task)
    data |= await waiting_of(hub, found) | await files_of(hub, found)
    data |= _without_a_hub(hub, data) | await gone_with(hub, found)
    data |= by_the_fleet(hub, data)
    data |= why_again(hub, found.task) | at_its_time(found.task) | await cancelled_by(hub, found)
    data |= await kept_for_its_move(hub, found)
    data |= {**_about(hub, found, seen), **evidence_of(hub, seen, found.node)}
    return data, seen


def _told(data: JsonObject, seen: Look, found: Found) -> Told:
    failed = found.answers.failed if found.elsewhere else {}
    unseen = {node.name: (node.code, node.because) for node in seen.view.silent}
    unseen |= {name: (error.code, str(error)) for name, error in failed.items()}
    partial: tuple[JsonObject, ...] = tuple(
        {"node": name, "error": {"code": code, "message": because}}
        for name, (code, because) in sorted(unseen.items())
    )
    left = found.not_asked if found.elsewhere else ()
    nowhere = found.task.state == "MOVED" and data["verdict"] == ESCALATE
    blind = data["could_not_look"] or failed or left or nowhere
    return Told(data, exit=3 if blind else 0, partial=partial, warnings=left)


async def _on_a_node(hub: Hub, seen: Look, found: Found, task: QueuedTask) -> JsonObject:
    situation = await _situation(hub, seen, found)
    drains, retries = None, None
    if found.node in drained(seen.view, situation.limits):
        drains = await drains_now(seen)
    elif found.node in retried(seen.view, situation.limits):
        retries = await retries_now(seen)
    left_s = await _left_s(seen, found)
    history = history_of(hub, task.uid, found.node)
    answer = judge_task(task, found.node, situation, history=history,
                        drains=drains or retries, left_s=left_s)  # fmt: skip
    return task_answer(replace(answer, ways=typed_in_one_line(answer.ways, hub.settings.file)))


async def _left_s(seen: Look, found: Found) -> float | None:
    """How long what the node runs goes on, summed; None: not every task there says how long."""
    node = seen.view.node(found.node)
    if found.task.state != "READY" or not isinstance(node, NodeSeen):
        return None
    if not node.report.running_count:
        return 0.0
    asked: JsonObject = {"states": ["CLAIMED", "RUNNING", "VALIDATING"], "limit": RUNNING_MAX}
    try:
        page = read_listed(node.name, await seen.links[node.name].ask("list", asked))
    except ArcError:  # an estimate alone is missing then, and says so
        return None
    if page.next is not None or any(one.expected_s is None for one in page.tasks):
        return None
    now = node.report.written_at  # by the clock that stamped the tasks
    return sum(max((one.expected_s or 0.0) - _ran_s(one, now), 0.0) for one in page.tasks)


def _ran_s(task: Task, now: str) -> float:
    began = task.started_at
    return (parse_iso(now) - parse_iso(began)).total_seconds() if began else 0.0


def _without_a_hub(hub: Hub, data: JsonObject) -> JsonObject:
    """Whether a hub runs; where none does, or the fleet is paused, no other cycle comes."""
    running: JsonObject = {"hub_running": hub.schedule is not None}
    life, paused = data["life"], hub.journal.words.fleet_paused()
    if isinstance(life, dict) and life.get("state") not in {"ESCROW", "HELD"}:
        return running  # nothing that a hub does would change it
    if hub.schedule is not None and paused is None:
        return running
    says = NO_HUB if hub.schedule is None else PAUSED
    waits = data["verdict"] == WAIT and data["ahead"] is None
    result = data["result"]
    said = f"{result}; {says}" if data["could_not_look"] else f"{says}; {result}"
    return running | {
        "result": said, "verdict": CHANGE if waits else data["verdict"],
    }  # fmt: skip


async def _situation(hub: Hub, seen: Look, found: Found) -> Situation:
    """With the whole queues where the task waits; where it does not, nothing more is asked."""
    waits = found.task.state == "READY"
    queues = await whole_queues(seen, first=found.node) if waits else {}
    settings = hub.settings
    return Situation(seen.view, queues, settings.domains, settings.steal, seen.memory)


async def _at_the_hub(hub: Hub, seen: Look, task: QueuedTask) -> JsonObject:
    """A task of the hub's own queue is the router's: where it would send it, or why to nobody."""
    plan, settings = await routes_now(seen), hub.settings
    (task,) = with_ends(hub, [task])
    situation = Situation(seen.view, {}, settings.domains, settings.steal, seen.memory)
    routing = RouteSituation(situation, settings.route, seen.facts, settings.health)
    goes = next((one for one in plan.routes if one.task.uid == task.uid), None)
    kept = next((one.objection for one in plan.kept if one.task.uid == task.uid), None)
    if goes is None and kept is None and task.pinned:  # of those the router is not even told
        kept = Objection("not_pinned", PINNED_HERE)
    no = _refused_for_good(hub, goes)
    by_hand_now = _by_hand(hub, task, situation, refused=goes.idle if goes and no else "")
    if no is not None:
        goes, kept = None, no
    turn = kept is None or kept.rule in TURNS
    ways = () if turn or no else route_ways(task, routing)
    return {
        "verdict": WAIT if turn or comes_by_itself(ways) else CHANGE,
        "result": of_the_router(goes, kept, who_has(task, routing)) + (_turn(hub) if goes else ""),
        "checks": [], "receivers": None, "steps": [], "ways": ways_of(ways), "life": None,
        "could_not_look": None, "place": None, "ahead": None, "reach_s": None, "history": None,
        "own_node": None, "receivers_say": "",
        "moves": None if goes is None else {"to": goes.idle, "because": goes.because},
        "kept": None if kept is None else {"rule": kept.rule, "because": kept.because},
        "by_hand": list[JsonValue](by_hand_now),
        "nodes": [{"name": one.name, "part": one.part, "pending": one.pending,
                   "rule": one.objection.rule if one.objection else "",
                   "because": one.objection.because if one.objection else ""}
                  for one in plan.nodes],
    }  # fmt: skip


def _refused_for_good(hub: Hub, goes: Steal | None) -> Objection | None:
    """Why this node refused this task the last time, for a reason that time does not take away."""
    last = next(iter(hub.journal.runs.moves(uid=goes.task.uid, limit=1)), None) if goes else None
    if goes is None or last is None or last.move.outcome != "kept":
        return None
    if last.move.idle != goes.idle or last.move.rule not in STAYS:
        return None
    because = f"{goes.idle} refused it at {iso(last.at)}: {last.move.because}"
    return Objection(last.move.rule, because)


def _by_hand(
    hub: Hub, task: QueuedTask, situation: Situation, *, refused: str
) -> tuple[str, ...]:
    """Of a task that has ended elsewhere: its end counts; or another node than that one runs it."""
    end = settled_elsewhere(hub, [task.uid]).get(task.uid)
    no = {refused, end.node if end else ""}
    others = tuple(node for node in situation.view.seen if node.name not in no)
    elsewhere = replace(situation, view=replace(situation.view, seen=others))
    cancel = f"arc tasks cancel {task.uid} --reason 'it has ended'"
    counts = (cancel,) if end else ()
    return (*counts, *by_hand(task, INBOX, elsewhere))


def _turn(hub: Hub) -> str:
    """In how long it does: half an hour is a long time for who only reads "the next run"."""
    in_s = router_turn(hub)["in_s"]
    if not isinstance(in_s, float) or not in_s:
        return ""
    return f"; it looks in {lasting(in_s)}; not to wait: arc sensors run fleet-router"


def _about(hub: Hub, found: Found, seen: Look) -> JsonObject:
    """What is asked about: the task itself, where it lies, and what the last cycles said of it."""
    task, node = found.task, seen.view.node(found.node)
    waits_s: float | None = None
    if task.ready_at and task.state == "READY":
        written = parse_iso(node.report.written_at) if isinstance(node, NodeSeen) else None
        waits_s = ((written or hub.clock.now()) - parse_iso(task.ready_at)).total_seconds()
    return {
        "uid": found.uid, "node": found.node, "state": str(task.state), "subject": task.subject,
        "priority": task.priority, "skills": list[JsonValue](task.skills), "domain": task.domain,
        "needs": list[JsonValue](task.needs), "copies": dict(found.copies),
        "ended_at": task.completed_at, "deadline": task.deadline,
        "late_s": late_s(to_wire(task), hub.clock.now()),
        "failure_reason": task.failure_reason if task.state in _ENDED_BADLY else None,
        "waits_s": None if waits_s is None else round(max(waits_s, 0.0), 1),
        "waiting_there": node.report.pending_count if isinstance(node, NodeSeen) else None,
        "said": [{"run": run, "node": one.node, "rule": one.rule, "because": one.because}
                 for run, one in hub.journal.runs.decisions_about(found.uid, 5)],
        "moved": [{"at": iso(line.at), "from": line.move.busy, "to": line.move.idle,
                   "outcome": line.move.outcome, "because": line.move.because}
                  for line in hub.journal.runs.moves(uid=found.uid, limit=5)],
    }  # fmt: skip


async def why_node(hub: Hub, args: JsonObject) -> Told:
    """What the node is in the next plan, each condition, and what keeps other nodes' work away."""
    name = Fields(args).node("node")
    check_node(hub, name)
    async with hub.moving:
        seen = await look(hub)
        queues = await whole_queues(seen, first=name)
        drains = (await drains_now(seen)).steals
    settings = hub.settings
    situation = Situation(seen.view, queues, settings.domains, settings.steal, seen.memory)
    answer = judge_node(name, situation, drains=drains)
    data = {**node_answer(answer), **evidence_of(hub, seen, name)}
    entry = settings.node(name)
    assert entry is not None, "check_node found it"
    data |= {"hub_running": hub.schedule is not None,
             "fleet_paused": hub.journal.words.fleet_paused() is not None,
             "proof": proved_by(name, seen.facts.get(name))}
    data |= {"owns": list(entry.owns), "also": list(entry.also), "never": list(entry.never)}
    node = seen.view.node(name)
    blind = not isinstance(node, NodeSeen)
    if blind and node is not None:
        data |= {"verdict": ESCALATE, "code": getattr(node, "code", "")}
    partial: tuple[JsonObject, ...] = tuple(
        {"node": one.name, "error": {"code": one.code, "message": one.because}}
        for one in seen.view.silent
    )  # fmt: skip
    suspended = blind and getattr(node, "rule", "") == "suspended"
    return Told(data, exit=3 if blind and not suspended else 0, partial=partial)
