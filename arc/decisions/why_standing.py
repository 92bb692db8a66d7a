"""Says whether a node starts what waits there at all, when, and who else would take it; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent_node.reports import AgentReport
from agent_node.task import UNDERWAY

from .answers import CHANGE, ESCALATE, Reach, Standing
from .changes import Situation
from .domains import lacks, nobody_has, powers_of
from .node_rules import (
    believable_times,
    first_objection,
    fresh_report,
    missing_there,
    starts_nothing,
    work_succeeds,
)
from .receiving import has_an_agent
from .sifting import all_said
from .view import FleetView, NodeSeen, NodeUnseen, Queue, QueuedTask

# What a person's word does not pass over: the node would refuse the task, or never start it.
_HARD = frozenset({
    "node_answers", "believable_times", "fresh_report", "takes_new_work", "dispatcher_runs",
    "work_succeeds", "never_this_domain", "needs_are_met",
})  # fmt: skip
_SET_DOWN = ("paused", "draining", "drained")


def standing_of(node: NodeSeen, situation: Situation) -> Standing | None:
    """Why this node starts nothing of what waits there; None: it does."""
    name, report = node.name, node.report
    doubt = first_objection(
        (believable_times, fresh_report), node, situation.limits, situation.memory
    )
    if doubt is not None:
        return Standing(doubt.rule, f"{name}: {doubt.because}; whether anything starts there is "
                        f"not known. arc doctor --node {name}", ESCALATE)  # fmt: skip
    if report.dispatcher != "running":
        return Standing("dispatcher_runs", f"{name}'s daemon does not run; nothing starts there. "
                        f"O{node.role.how_to_start(name)[1:]}", ESCALATE)  # fmt: skip
    because = f": {report.reason}" if report.reason else ""
    if report.state in _SET_DOWN:
        return Standing("takes_new_work", f"{name} is {report.state}{because}; nothing starts "
                        f"there. arc nodes resume {name}", CHANGE)  # fmt: skip
    if report.state != "active":
        return Standing("takes_new_work", f"{name} is {report.state}{because}; nothing starts "
                        f"there. On {name}: {node.role.typed('release')}", ESCALATE)  # fmt: skip
    gone = missing_there(node)
    if has_an_agent(node) is not None and gone:
        return Standing("has_an_agent", f"{name}, {gone}; nothing starts there until it is "
                        f"installed, or node.toml names another. arc doctor --node {name}",
                        ESCALATE)  # fmt: skip
    if has_an_agent(node) is not None:
        return Standing("has_an_agent", f"no agent on {name} takes work; nothing starts there. "
                        f"arc nodes show {name}", CHANGE)  # fmt: skip
    if starts_nothing(node):
        said = "".join(f": {one}" for one in report.needs_you[:1])
        return Standing("has_free_slot", f"{name} has no free slot although nothing runs there"
                        f"{said}. arc nodes show {name}", ESCALATE)  # fmt: skip
    return None


def a_word_starts(task: QueuedTask, node: NodeSeen, situation: Situation) -> bool:
    """Whether this node, which is paused, would start the task where it is once it is resumed."""
    paused = standing_of(node, situation)
    if paused is None or paused.rule != "takes_new_work" or node.report.state != "paused":
        return False
    resumed = replace(node, report=node.report._replace(state="active", reason=""))
    return all(no is None for no in (
        standing_of(resumed, situation), never_starts(task, resumed, situation.view),
        work_succeeds(resumed, situation.limits, situation.memory),
    ))  # fmt: skip


def unattended(state: str, node: NodeSeen | NodeUnseen | None) -> Standing | None:
    """That nobody takes in how this task ends, which runs; None: somebody does, or who knows."""
    if state not in UNDERWAY or not isinstance(node, NodeSeen):
        return None
    if node.report.dispatcher == "running":
        return None
    name = node.name
    return Standing("dispatcher_runs", f"{name} had started it, and {name}'s daemon does not run: "
                    "what runs goes on by itself, and how it ends is taken in once a daemon runs "
                    f"again. O{node.role.how_to_start(name)[1:]}", ESCALATE)  # fmt: skip


def never_starts(task: QueuedTask, node: NodeSeen, view: FleetView) -> Standing | None:
    """Why this node starts other work and never this; None: it starts this too."""
    missing = lacks(task.needs, powers_of(node))
    if missing is None:
        return None
    name = node.name
    if gone := [one for one in node.report.agents if one.missing and _able(one, node, task)]:
        why = f"agent {gone[0].name}: {gone[0].missing}"
        return Standing("has_an_agent", f"{name}, {why}; no other agent there can run it, and it "
                        f"waits until that is installed. arc doctor --node {name}",
                        ESCALATE)  # fmt: skip
    learn = f"node.toml: [[agent]] skills: add {' '.join(task.needs)}"
    nobody = nobody_has(task.needs, view.seen, view.unheard)
    says = f"{name}: {missing}; it is never started there. On {name}: {learn}"
    if nobody is not None:
        says = f"{nobody}; it waits until one has. On {name}, or on another: {learn}"
    return Standing("needs_are_met", says, CHANGE)


def _able(agent: AgentReport, node: NodeSeen, task: QueuedTask) -> bool:
    return {*agent.skills, *node.report.capabilities}.issuperset(task.needs)


def reach_of(
    task: QueuedTask, node: NodeSeen, situation: Situation, *, left_s: float | None = None
) -> Reach:
    """Where it stands in its own node's queue, and when that would start it.

    `left_s` is how long what runs there goes on, summed over its slots; None: not known.
    """
    before = _before(task, situation.queues.get(node.name))
    place = None if before is None else len(before) + 1
    stands = standing_of(node, situation) or never_starts(task, node, situation.view)
    if stands is not None or _fails(node, situation):
        return Reach(place)
    report = node.report
    running = report.running_count if not report.free_slots else 0
    waiting = max(report.pending_count - 1, 0) if before is None else len(before)
    if before is None:
        return Reach(place, waiting + running)
    known_s = situation.memory.running_left_s.get(node.name, left_s) if running else 0.0
    queue_s = _summed(before, situation) if waiting >= report.free_slots else 0.0
    if known_s is None or queue_s is None:
        return Reach(place, waiting + running)
    return Reach(place, waiting + running, (known_s + queue_s) / max(report.slots, 1))


def _before(task: QueuedTask, queue: object) -> list[QueuedTask] | None:
    """What its node starts first; None: the queue was not seen whole."""
    if not isinstance(queue, Queue) or len(queue.tasks) < queue.total:
        return None
    came = reversed(queue.tasks) if queue.last_first else queue.tasks
    urgent = sorted(came, key=lambda one: one.priority)  # stable: who came first is first
    return urgent[: [one.uid for one in urgent].index(task.uid)]


def _summed(tasks: Iterable[QueuedTask], situation: Situation) -> float | None:
    """How long all of these take; None: one of them does not say, and nobody else knows."""
    usual = situation.memory.typical_s
    each = [
        usual.get(one.domain or "") if one.expected_s is None else one.expected_s for one in tasks
    ]
    known = [seconds for seconds in each if seconds is not None]
    return sum(known) if len(known) == len(each) else None


def _fails(node: NodeSeen, situation: Situation) -> bool:
    return work_succeeds(node, situation.limits, situation.memory) is not None


def by_hand(task: QueuedTask, where: str, situation: Situation) -> tuple[str, ...]:
    """How a person may send it elsewhere, past thresholds and caps; empty: nobody would take it.

    Of those that take and run it, whoever comes furthest through the conditions on a receiver.
    Pinned work takes a `--yes` too; a quarantined node gives nothing away.
    """
    giver = situation.view.node(where)
    if isinstance(giver, NodeSeen) and giver.report.state == "quarantined":
        return ()
    fit = [
        (_furthest(said), node)
        for node in situation.view.seen
        if node.name != where and has_an_agent(node) is None
        for said in [all_said(task, node, situation)]
        if not any(why for rule, why in said.items() if rule in _HARD)
    ]
    if not fit:
        return ()
    _, best = min(fit, key=lambda one: (-one[0], -one[1].report.free_slots, one[1].name))
    yes = " --yes" if task.pinned else ""
    return (f"arc tasks move {task.uid} --to {best.name}{yes} --reason '…'",)


def _furthest(said: dict[str, str | None]) -> int:
    """At which condition the node drops out."""
    return next((at for at, why in enumerate(said.values()) if why is not None), len(said))
