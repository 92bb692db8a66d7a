"""Changes that would make a task move: each as data, and tried on what was seen; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from .domains import Belonging, Domain, untagged
from .explain import StealPlan, lasting
from .limits import StealLimits
from .memory import Memory
from .objections import Objection
from .rules import stolen_times
from .stealing import plan_steals
from .view import FleetView, NodeSeen, Queue, QueuedTask, Queues, QueueUnseen

Value = int | float | str | bool


@dataclass(frozen=True)
class Situation:
    """All that a plan is made of, so that it can be made again with something changed.

    For `arc why` the queue of the task's node should be whole: every READY task of it, not only
    those that the node found movable. Then what is said of the plan is true of the plan.
    """

    view: FleetView
    queues: Queues
    domains: tuple[Domain, ...] = ()
    limits: StealLimits = field(default_factory=StealLimits)
    memory: Memory = field(default_factory=Memory)

    def plan(self) -> StealPlan:
        """The plan for this situation; its transfer ids are no ids."""
        return plan_steals(
            self.view, self.queues, domains=self.domains, limits=self.limits,
            mint=lambda: "", memory=self.memory,
        )  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One thing that could be different. `wait` needs nobody: time alone brings it.

    `kind` limit: `key` of fleet.yaml becomes `value`. role: the node has `value` under `key`
    (`owns`, `also`) or no longer under `never`. state: something about the node that a person sets
    right. task: a field of the task. domain: the domain `key`, which may be new, has the skill
    `value` too. router: about the router alone, which is no part of a `Situation` (see
    `RouteSituation`).
    """

    kind: str  # limit | role | state | task | wait
    key: str
    value: Value
    says: str
    node: str = ""  # whom it is about; empty: the whole fleet, or the task
    uid: str = ""
    command: str = ""  # what a person may type; empty: nothing
    setting: tuple[str, str] = ("", "")  # of a limit: its key and value, as fleet.yaml has them


def apply(changes: Iterable[Change], situation: Situation) -> Situation:
    """The situation as it would be with these changes."""
    for change in changes:
        situation = APPLIED[change.kind](change, situation)
    return situation


def _limit(change: Change, situation: Situation) -> Situation:
    limits = replace(situation.limits, **{change.key: change.value})  # type: ignore[arg-type]
    return replace(situation, limits=limits)


def _role(change: Change, situation: Situation) -> Situation:
    name = str(change.value)

    def changed(node: NodeSeen) -> NodeSeen:
        role = node.role
        if change.key == "never":
            left = tuple(one for one in role.never if one != name)
            return replace(node, role=replace(role, never=left))
        if change.key == "owns":
            return replace(node, role=replace(role, owns=(*role.owns, name)))
        return replace(node, role=replace(role, also=(*role.also, name)))

    return _with_node(situation, change.node, changed)


def _state(change: Change, situation: Situation) -> Situation:
    if change.key == "work_succeeds":
        no_work = {name: why for name, why in situation.memory.no_work.items()
                   if name != change.node}  # fmt: skip
        situation = replace(situation, memory=replace(
            situation.memory, no_work=no_work, trials=situation.memory.trials - {change.node}))
    return _with_node(situation, change.node, lambda node: _set_right(node, change))


def _set_right(node: NodeSeen, change: Change) -> NodeSeen:
    report = node.report
    if change.key == "state":
        return replace(node, report=report._replace(state="active", reason=""))
    if change.key == "dispatcher":
        return replace(node, report=report._replace(dispatcher="running"))
    if change.key == "work_succeeds":
        agents = tuple(agent._replace(state="available") for agent in report.agents)
        return replace(node, report=report._replace(agents=agents))
    if change.key == "capabilities":
        more = (*report.capabilities, *str(change.value).split())
        return replace(node, report=report._replace(capabilities=more))
    return replace(node, age_s=0.0)


def _wait(change: Change, situation: Situation) -> Situation:
    if change.key == "refused":
        kept = {pair: ago for pair, ago in situation.memory.refused_s.items()
                if pair != (change.uid, change.node)}  # fmt: skip
        return replace(situation, memory=replace(situation.memory, refused_s=kept))

    def idle(node: NodeSeen) -> NodeSeen:
        report = node.report
        since = datetime.fromisoformat(report.written_at) - timedelta(
            seconds=situation.limits.idle_min_s
        )
        return replace(node, report=report._replace(
            idle=True, idle_since=since.isoformat(), pending_count=0, running_count=0,
            free_slots=max(report.slots, 1), counts={},
        ))  # fmt: skip

    return _with_node(situation, change.node, idle)


def _task(change: Change, situation: Situation) -> Situation:
    queues: dict[str, Queue | QueueUnseen] = dict(situation.queues)
    for name, queue in situation.queues.items():
        if isinstance(queue, Queue):
            tasks = tuple(
                replace(task, **{change.key: change.value})  # type: ignore[arg-type]
                if task.uid == change.uid else task
                for task in queue.tasks
            )  # fmt: skip
            queues[name] = replace(queue, tasks=tasks)
    return replace(situation, queues=queues)


def _domain(change: Change, situation: Situation) -> Situation:
    skill = str(change.value)
    if all(one.name != change.key for one in situation.domains):
        new = Domain(change.key, skills=(skill,))
        return replace(situation, domains=(*situation.domains, new))
    return replace(situation, domains=tuple(
        replace(one, skills=(*one.skills, skill)) if one.name == change.key else one
        for one in situation.domains
    ))  # fmt: skip


def _router(change: Change, situation: Situation) -> Situation:
    return situation


APPLIED: dict[str, Callable[[Change, Situation], Situation]] = {
    "limit": _limit, "role": _role, "state": _state, "wait": _wait, "task": _task,
    "domain": _domain, "router": _router,
}  # fmt: skip


def _with_node(
    situation: Situation, name: str, changed: Callable[[NodeSeen], NodeSeen]
) -> Situation:
    seen = tuple(changed(node) if node.name == name else node for node in situation.view.seen)
    return replace(situation, view=replace(situation.view, seen=seen))


def of_task(task: QueuedTask, objection: Objection, limits: StealLimits) -> Change | None:
    """What would answer this objection to moving the task at all; None: nothing could."""
    if objection.rule == "low_enough_priority":
        return _setting("steal_from", task.priority, f"P{task.priority}")
    if objection.rule == "not_pinned":
        return Change("task", "pinned", value=False, says="it were not pinned", uid=task.uid,
                      command=f"arc tasks set {task.uid} pinned=false")  # fmt: skip
    if objection.rule == "few_enough_hops":
        times = stolen_times(task)
        return _setting("hops_max", times, str(times), name="hops")
    return None


def of_giver(node: NodeSeen, objection: Objection, left: int) -> Change | None:
    """What would answer this objection to taking anything from the node; None: nothing could."""
    if objection.rule == "busy_node_is_busy" and left > 0:
        return _setting("busy_over", left - 1, str(left - 1))
    if objection.rule == "gives_work_away" and node.report.state == "paused":
        return _resumed(node)
    return _fresh(node) if objection.rule == "fresh_report" else None


def of_receiver(node: NodeSeen, objection: Objection, limits: StealLimits) -> Change | None:
    """What would answer this objection to giving the node anything; None: nothing could."""
    rule, name = objection.rule, node.name
    if rule in {"nothing_to_do", "idle_long_enough", "has_free_slot", "nothing_waits"}:
        least = "" if limits.swift else f" for {lasting(limits.idle_min_s)}"
        return Change("wait", "idle", value=True, says=f"{name} were idle{least}", node=name)
    if rule == "takes_new_work":
        return None if node.report.state == "quarantined" else _resumed(node)
    if rule == "dispatcher_runs":
        return Change("state", "dispatcher", "running", f"the dispatcher of {name} ran", name,
                      command=node.role.how_to_start(name))  # fmt: skip
    if rule == "work_succeeds":
        return Change("state", rule, value=True, says=f"what {name} runs succeeded", node=name)
    return _fresh(node) if rule == "fresh_report" else None


def of_pair(
    task: QueuedTask, belongs: Belonging, node: NodeSeen, objection: Objection
) -> Change | None:
    """What would answer this objection to giving the task to this node; None: nothing could."""
    rule, name = objection.rule, node.name
    if rule == "never_this_domain":
        barred = next(one for one in belongs.names if one in node.role.never)
        rest = ",".join(one for one in node.role.never if one != barred)
        return Change("role", "never", barred, f"{name} were allowed {barred}", name,
                      command=f"arc nodes edit {name} --never '{rest}'")  # fmt: skip
    if rule == "may_do_this_work" and belongs.names:
        domain = belongs.names[0]
        done = ",".join((*node.role.also, domain))
        return Change("role", "also", domain, f"{name} also did {domain}", name,
                      command=f"arc nodes edit {name} --also {done}")  # fmt: skip
    if rule == "may_do_this_work" and untagged(task):
        return _setting("anyone_from", task.priority, f"P{task.priority}")
    if rule == "needs_are_met":
        needs = " ".join(task.needs)
        return Change("state", "capabilities", needs, f"an agent on {name} had {needs}", name,
                      command=f"on {name}: node.toml: [[agent]] skills: add {needs}")  # fmt: skip
    if rule == "not_refused_lately":
        return Change("wait", "refused", value=True, says=f"{name} may be asked again", node=name,
                      uid=task.uid)  # fmt: skip
    return None


def room_for(task: QueuedTask, where: str, situation: Situation) -> Sequence[Change] | None:
    """Which caps would have to give way for the task to be in the plan; None: caps are not it."""
    limits = situation.limits
    if limits.swift:
        return None
    without = replace(limits, per_node=10**6, per_cycle=10**6, busy_over=0)
    steals = replace(situation, limits=without).plan().steals
    at = next((n for n, steal in enumerate(steals) if steal.task.uid == task.uid), None)
    if at is None:
        return None
    idle = steals[at].idle
    taken = situation.memory.taken
    to_it = sum(steal.idle == idle for steal in steals[: at + 1]) + taken.get(idle, 0)
    of_it = sum(steal.busy == where for steal in steals[:at])
    queue = situation.queues.get(where)
    left = (queue.total if isinstance(queue, Queue) else 0) - of_it
    wanted = {
        "per_node": max(limits.per_node, to_it),
        "per_cycle": max(limits.per_cycle, at + 1 + sum(taken.values())),
        "busy_over": min(limits.busy_over, left - 1),
    }
    return [
        _setting(key, value, str(value))
        for key, value in wanted.items() if value != getattr(limits, key)
    ]  # fmt: skip


def _setting(key: str, value: int, shown: str, *, name: str = "") -> Change:
    where = name or key
    return Change("limit", key, value, f"rebalance.{where} were {shown}",
                  command=f"fleet.yaml: rebalance: {{{where}: {shown}}}", setting=(where, shown))


def _resumed(node: NodeSeen) -> Change:
    says = f"{node.name} were active, not {node.report.state}"
    return Change("state", "state", "active", says, node.name,
                  command=f"arc nodes resume {node.name}")  # fmt: skip


def _fresh(node: NodeSeen) -> Change:
    says = f"{node.name} reported again"
    return Change("state", "report", "fresh", says, node.name,
                  command=f"arc nodes show {node.name}")  # fmt: skip
