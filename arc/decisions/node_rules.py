"""Judges what each node is to a rebalance: idle, busy, neither, or out of it, and why; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from .explain import NodeVerdict, lasting
from .limits import StealLimits
from .memory import Memory
from .objections import Objection
from .view import FleetView, NodeSeen, NodeUnseen

NodeRule = Callable[[NodeSeen, StealLimits, Memory], str | None]
IDLE_MAX_S = 5 * 365 * 86_400.0  # longer: its clock was set in between, from 1970 as a rule


def believable_times(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """A stamp from the future, or an idleness of years, is a broken clock or a lie, and no fact."""
    idle_s = idle_seconds(node)
    if idle_s is not None and idle_s - node.age_s < 0:
        return "it is idle only after it wrote its report"
    if idle_s is not None and idle_s > IDLE_MAX_S:
        return f"it says that it has been idle for {lasting(idle_s)}"
    return "its report has an age below zero" if node.age_s < 0 else None


def fresh_report(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """What a node said long ago says nothing of now: a dead node would look idle for ever."""
    if node.age_s <= limits.stale_after_s:
        return None
    usable = lasting(limits.stale_after_s)
    return f"its report is {lasting(node.age_s)} old; we use one for {usable}"


def takes_new_work(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """A node that is paused, draining, drained or quarantined is given nothing."""
    report = node.report
    if report.state == "active":
        return None
    return f"{report.state}: {report.reason}" if report.reason else report.state


def dispatcher_runs(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """Where nothing is started, work only piles up: 110 tasks once waited on such machines."""
    return None if node.report.dispatcher == "running" else "its daemon does not run"


def work_succeeds(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """A node that fails fast is always empty: it would draw in, and spoil, the fleet's work."""
    known = memory.no_work.get(node.name)
    if known is not None:
        return known.because
    agents = node.report.agents if node.name not in memory.trials else ()
    if agents and all(agent.state == "failing" for agent in agents):
        return "every agent there fails again and again"
    return None


def has_free_slot(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """Work goes where it can start."""
    report = node.report
    if report.free_slots > 0:
        return None
    now = ", and it starts nothing now" if starts_nothing(node) else ""
    if now and not some_agent_takes_work(node) and (gone := missing_there(node)):
        now += f": {gone}"
    return f"{report.running_count} running, no free slot of {report.slots}{now}"


def nothing_waits(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """A node with work of its own, that some agent there can run, is not short of work."""
    report, own = node.report, startable(node)
    if own:
        return f"{own} waiting there already"
    held = report.counts.get("HELD", 0) + report.counts.get("ESCROW", 0)
    return f"{held} on the way there already" if held else None


def nothing_to_do(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """Idle is the node's own word: nothing waits, runs or is on its way there."""
    report = node.report
    if report.idle:
        return None
    if report.running_count + report.pending_count:
        return f"{report.running_count} running, {report.pending_count} waiting"
    return _never_idle(node) or "a transfer is under way there"


def _never_idle(node: NodeSeen) -> str | None:
    """Why the node calls itself idle at no time now, however little it has to do; None: it may."""
    if node.report.dispatcher != "running":
        return "its daemon does not run"
    return None if node.report.state == "active" else f"it is {node.report.state}"


def idle_long_enough(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """Between two tasks a node looks idle for a moment; two minutes is a real signal."""
    idle_s = idle_seconds(node)
    if idle_s is None:
        return _not_idle(node)
    if idle_s >= limits.idle_min_s:
        return None
    return f"idle for {lasting(idle_s)}; we count it from {lasting(limits.idle_min_s)} on"


def _not_idle(node: NodeSeen) -> str:
    report = node.report
    if report.idle:
        return "it does not say since when"
    work = f"{report.running_count} runs, {report.pending_count} wait"
    some = report.running_count + report.pending_count
    return f"it is not idle: {work if some else _never_idle(node) or 'a transfer is under way'}"


def gives_work_away(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """A paused node keeps its queue, a draining one has its drain, a quarantined one stands still.

    A node whose dispatcher is stopped may be relieved: nobody else will do what waits there.
    """
    report = node.report
    if report.state == "active":
        return None
    return f"{report.state}: {report.reason}" if report.reason else report.state


def busy_node_is_busy(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """Not overloaded enough to warrant a theft. Planning counts again after every move."""
    return not_busy(node.report.pending_count, limits)


def has_surplus(node: NodeSeen, limits: StealLimits, memory: Memory) -> str | None:
    """Only what the node cannot start at once itself is worth moving."""
    return no_surplus(node.report.pending_count, free_slots_of(node))


IDLE_RULES: tuple[NodeRule, ...] = (
    believable_times, fresh_report, takes_new_work, dispatcher_runs, work_succeeds,
    nothing_to_do, has_free_slot, idle_long_enough,
)  # fmt: skip
THIEF_RULES: tuple[NodeRule, ...] = (  # swift: no minimum, for a race costs nothing but a refusal
    believable_times, fresh_report, takes_new_work, dispatcher_runs, work_succeeds,
    has_free_slot, nothing_waits,
)  # fmt: skip
BUSY_RULES: tuple[NodeRule, ...] = (
    believable_times, fresh_report, gives_work_away, busy_node_is_busy,
)  # fmt: skip
VICTIM_RULES: tuple[NodeRule, ...] = (
    believable_times, fresh_report, gives_work_away, has_surplus,
)  # fmt: skip


def idle_rules(limits: StealLimits) -> tuple[NodeRule, ...]:
    """What must be true of a node that is given work, by policy."""
    return THIEF_RULES if limits.swift else IDLE_RULES


def busy_rules(limits: StealLimits) -> tuple[NodeRule, ...]:
    """What must be true of a node that work is taken from, by policy."""
    return VICTIM_RULES if limits.swift else BUSY_RULES


def not_busy(pending: int, limits: StealLimits) -> str | None:
    """Why so much waiting work makes no busy node; None: it does."""
    if pending > limits.busy_over:
        return None
    return f"{pending} waiting; we steal above {limits.busy_over}"


def no_surplus(pending: int, free_slots: int) -> str | None:
    """Why so much waiting work leaves nothing to give; None: something is left."""
    if pending > free_slots:
        return None
    return f"{pending} waiting; it can start {free_slots} at once by itself"


def free_slots_of(node: NodeSeen) -> int:
    """The slots in which the node itself would start what waits there."""
    report = node.report
    if report.dispatcher != "running":
        return 0
    return min(report.free_slots, startable(node)) if report.unmet_count else report.free_slots


def starts_nothing(node: NodeSeen) -> bool:
    """Whether no slot there is free although nothing runs, as below the node's floor of disk."""
    report = node.report
    return report.slots > 0 and report.free_slots == 0 and report.running_count == 0


def some_agent_takes_work(node: NodeSeen) -> bool:
    """Whether work that is given to it could start there at all: an agent without its program is
    held, and counts as paused.
    """
    return any(agent.slots and not agent.paused for agent in node.report.agents)


def missing_there(node: NodeSeen) -> str:
    """Which agent there has no program to run, and why; empty: none is without."""
    gone = [agent for agent in node.report.agents if agent.missing]
    return f"agent {gone[0].name}: {gone[0].missing}" if gone else ""


def startable(node: NodeSeen) -> int:
    """How many of those that wait there some agent there can run; the others never start there."""
    return max(node.report.pending_count - node.report.unmet_count, 0)


def idle_seconds(node: NodeSeen) -> float | None:
    """How long the node has been idle: up to its report by its own clock, then by the hub's.

    The two clocks are never compared. None: it is not idle, or does not say since when.
    """
    report = node.report
    if not report.idle or report.idle_since is None:
        return None
    since, written = map(datetime.fromisoformat, (report.idle_since, report.written_at))
    return (written - since).total_seconds() + node.age_s


def first_objection(
    rules: Iterable[NodeRule], node: NodeSeen | NodeUnseen, limits: StealLimits, memory: Memory
) -> Objection | None:
    """The first rule of the table that is not met; a node that was not seen meets none."""
    if isinstance(node, NodeUnseen):
        return Objection("node_answers", node.because)
    for rule in rules:
        because = rule(node, limits, memory)
        if because is not None:
            return Objection(rule.__name__, because)
    return None


def judge_nodes(
    view: FleetView, limits: StealLimits, memory: Memory | None = None
) -> tuple[NodeVerdict, ...]:
    """What every node of the view is, by name: each has one part; `neither` and `out` have a why.

    `out` may neither give nor take; `neither` could, but has nothing to give and no room. `both`
    is short of work, and all that waits there is what none of its agents can run (swift: for
    `arc0` idle is the node's own word, and no node says it beside waiting work).
    """
    known = memory or Memory()
    both: tuple[NodeSeen | NodeUnseen, ...] = (*view.seen, *view.unseen)
    nodes = sorted(both, key=lambda node: node.name)
    return tuple(_verdict(node, limits, known) for node in nodes)


def _verdict(node: NodeSeen | NodeUnseen, limits: StealLimits, memory: Memory) -> NodeVerdict:
    not_idle = first_objection(idle_rules(limits), node, limits, memory)
    if isinstance(node, NodeUnseen):
        return NodeVerdict(node.name, "out", not_idle, None)
    gives = first_objection(busy_rules(limits), node, limits, memory) is None
    if not_idle is None:
        part = "both" if gives and limits.swift else "idle"
        return NodeVerdict(node.name, part, None, node.report.pending_count)
    doubtful = not_idle.rule in {"believable_times", "fresh_report"}
    pending = None if doubtful else node.report.pending_count
    if gives:
        return NodeVerdict(node.name, "busy", None, pending)
    part = "out" if not_idle.rule in OUT else "neither"
    return NodeVerdict(node.name, part, not_idle, pending)


# Whoever fails one of these is not to be used at all, however much room it has.
OUT = frozenset(rule.__name__ for rule in IDLE_RULES[:5]) | {"node_answers"}
