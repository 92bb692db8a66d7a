"""Says of a task that a list shows why it waits, or stands where it is, in a sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .budget import URGENT, is_spent
from .clock import iso
from .commands import Because
from .queries import Query
from .strict import JsonObject, JsonValue
from .task import UNDERWAY, State, Task
from .text import size

NO_AGENT, NO_DAEMON = "no_agent", "no_daemon"
KEPT_FOR_MOVE = "kept_for_move"
BY_NO_RULE = ""  # it is where it is because of what happened to it
TEXT_MAX = 300  # characters of a reason; what was said at length stands in `show`
SECONDS = slice(11, 19)  # of a moment as it is written: HH:MM:SS


@dataclass(frozen=True)
class Standing:
    """What is known of a task where it lies, and does not stand in the task itself."""

    agents: tuple[str, ...] = ()  # who may run it as far as its needs go, free or not
    kept_until: str | None = None  # so long for who has not failed it; for nobody: to be moved
    unheard: bool = False  # another node may own it by now, until a hub was heard since the boot
    stopping: str | None = None  # why its program was told to end
    peer: str | None = None  # the other node, while it is on its way and when it has left
    word: str | None = None  # of what ended or was set aside: what was last said of it


@dataclass(frozen=True)
class Standings(Query[dict[str, Standing]]):
    """By uid, for those tasks of a page of which there is something to say."""

    uids: tuple[str, ...]


@dataclass(frozen=True)
class NodeNow:
    """What holds everything on a node, or everything of one agent, at this moment."""

    stops: Because | None = None
    no_money: Because | None = None
    overdraft: bool = False  # whether P1 to P4 start without any
    agents: Mapping[str, Because] = field(default_factory=dict)  # who takes nothing now, and why


def node_now(report: JsonObject, *, disk_needed: int, overdraft: bool = False) -> NodeNow:
    """The same out of the report of how the node stands, and of what node.toml says of money."""
    return NodeNow(_stops(report, disk_needed), _no_money(report), overdraft, _agents(report))


def _stops(report: JsonObject, disk_needed: int) -> Because | None:
    name, state, free = report["node"], str(report["state"]), report["disk_free_bytes"]
    if state != "active":
        said = f" ({report['reason']})" if report.get("reason") else ""
        return Because(state, f"{name} is {state}{said}")
    if not report["agents"]:
        return Because(NO_AGENT, f"node.toml of {name} names no agent: agent-node doctor")
    if report["dispatcher"] != "running":
        return Because(NO_DAEMON, f"no daemon runs on {name}: agent-node run")
    if isinstance(free, int) and free < disk_needed:
        text = f"{size(free)} of disk are free, less than {size(disk_needed)}"
        return Because("disk_floor", text)
    return None


def _no_money(report: JsonObject) -> Because | None:
    left = report.get("budget_remaining_usd")
    if left is None or not is_spent(str(left)):
        return None
    return Because("over_budget", "nothing of today's money is left; more from midnight UTC on")


def _agents(report: JsonObject) -> dict[str, Because]:
    agents, found = report["agents"], {}
    for one in agents if isinstance(agents, list) else ():
        if not isinstance(one, dict):
            continue
        name, slots = str(one["name"]), one["slots"]
        if one["held"]:
            why = f": {one['reason']}" if one.get("reason") else ""
            found[name] = Because(str(one["held"]), f"agent {name} is {one['held']}{why}")
        elif _is_full(one):
            found[name] = Because("full", f"agent {name} runs as many as it has slots: {slots}")
    return found


def _is_full(agent: JsonObject) -> bool:
    """Whether it has no free slot; of one that fails its state does not say that."""
    running, slots = agent["running"], agent["slots"]
    return isinstance(running, int) and isinstance(slots, int) and running >= slots


def reason_of(task: Task, standing: Standing, node: NodeNow, *, now: datetime) -> Because | None:
    """Why it does not run, or how it came to where it is; the rule is empty where no rule holds it.

    None: nothing holds it, or it is done.
    """
    said = _SAID.get(State(task.state), _word)(task, standing, node, now)
    if said is None or (len(said.text) <= TEXT_MAX and said.text.isprintable()):
        return said
    line = " ".join(said.text.split())
    return Because(said.rule, line if len(line) <= TEXT_MAX else f"{line[: TEXT_MAX - 1]}…")


def _ready(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    stops = node.stops
    if not standing.agents and (stops is None or stops.rule not in (NO_DAEMON, NO_AGENT)):
        if until := _at(standing.kept_until, now):
            text = f"until {until} no agent here takes it: it is to run on another node"
            return Because(KEPT_FOR_MOVE, text)
        return Because("needs_unmet", f"no agent here has: {', '.join(task.needs)}")
    if stops is not None:  # without a daemon nobody knows whom node.toml names by now
        return stops
    if standing.unheard:
        return Because("waits_for_hub", "another node may own it; no hub was heard since the boot")
    if node.no_money is not None and not (node.overdraft and task.priority <= URGENT):
        return node.no_money
    taken = [node.agents.get(name) for name in standing.agents]
    if None in taken or taken[0] is None:
        return None
    until = _at(standing.kept_until, now)
    kept = f"; until {until} only for who has not failed it" if until else ""
    more = f", and so on for {len(taken)} agents" if len(taken) > 1 else ""
    return Because(taken[0].rule, f"{taken[0].text}{more}{kept}")


def _pending(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    held = [one for one in task.blocked_by if isinstance(one, dict) and one.get("rule")]
    if held:
        texts = "; ".join(str(one.get("text") or "") for one in held)
        return Because(str(held[0]["rule"]), texts)
    if task.not_before is None:
        return None
    return Because("not_before", f"it waits for its time, {_at(task.not_before, now)}")


def _retrying(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    held = f"; {node.stops.text}" if node.stops else ""  # which may last until then and longer
    return Because(BY_NO_RULE, next_try(task, now) + held + _failure(task.attempts))


def next_try(task: Task, now: datetime) -> str:
    """When a failed task is tried again, in UTC as all times; with the day, if that is another."""
    tries = f"attempt {task.failures + 1} of {task.max_attempts}"
    at = _at(task.retry_at, now)
    return f"again at {at}, {tries}" if at else f"again soon, {tries}"


def _at(moment: str | None, now: datetime) -> str:
    """The hour alone of a moment today; nothing where there is none."""
    if moment is None:
        return ""
    day, clock = moment[:10], moment[SECONDS]
    return clock if day == iso(now)[:10] else f"{day} {clock}"


def _failure(attempts: list[JsonValue]) -> str:
    last = attempts[-1] if attempts else None
    if not isinstance(last, dict) or not last.get("error_kind"):
        return ""
    told = f": {last['message']}" if last.get("message") else ""
    return f"; {last['error_kind']}{told}"


def _underway(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    if standing.stopping is not None:
        return Because("stopping", f"it was told to end: {standing.stopping}")
    told = f": {task.progress}" if task.progress else ""
    if node.stops is not None and node.stops.rule == NO_DAEMON:
        told += "; no daemon runs, the next one hears how it ended"
    agent = (task.claim or {}).get("agent")
    return Because(BY_NO_RULE, f"on agent {agent}{told}") if agent else None


def _moving(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    peer = standing.peer or "another node"
    way = {State.ESCROW: f"on its way to {peer}", State.HELD: f"on its way here from {peer}",
           State.MOVED: f"now on {peer}"}  # fmt: skip
    return Because(BY_NO_RULE, way[State(task.state)])


def _word(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    """Of what ended otherwise than well, or waits for a person: what was said of it then."""
    said = task.failure_reason or standing.stopping or standing.word
    return Because(BY_NO_RULE, said) if said else None


def _nothing(task: Task, standing: Standing, node: NodeNow, now: datetime) -> Because | None:
    return None


_SAID = {
    State.READY: _ready, State.PENDING: _pending, State.CREATED: _pending,
    State.RETRYING: _retrying, State.COMPLETED: _nothing,
    **dict.fromkeys(UNDERWAY, _underway),
    **dict.fromkeys((State.ESCROW, State.HELD, State.MOVED), _moving),
}  # fmt: skip
