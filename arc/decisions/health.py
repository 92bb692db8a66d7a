"""Judges how each node is doing: one word for it, and everything that is wrong; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent_node.reports import DAEMON_STOPPED

from .explain import lasting
from .failing import NodeFactsSeen, attracts_no_work
from .limits import HealthLimits
from .node_rules import some_agent_takes_work
from .view import FleetView, NodeSeen, NodeUnseen

TAKE_OVER = "arc up --take-over"
# What no patience heals: the machine answers, but not as the one we know, or not to us.
_NEVER_PASSES = frozenset({"host_key", "login", "wrong_node", "unreadable"})


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a node: the rule by its name, the reason, and whether to tell anybody.

    One missed answer is a trouble and no alarm: most of them are over at the next look.
    """

    rule: str
    because: str
    alarm: bool = True


@dataclass(frozen=True)
class Judgement:
    """How one node is: one word, everything that is wrong with it, and what it says of itself.

    `state` is suspended, unseen, stale, quarantined, other_hub, stopped, failing or stalled;
    without such a trouble no_agent, idle, or what the node itself says: active, paused, draining,
    drained.
    """

    node: str
    state: str
    troubles: tuple[Trouble, ...] = ()
    needs_you: tuple[str, ...] = ()  # the node's own sentences for a person
    idle: bool | None = None  # None: not known
    idle_since: str | None = None  # by the node's clock
    pending: int | None = None
    running: int | None = None

    @property
    def known(self) -> bool:
        """Whether the rules could look at all: of a silent node nothing is known to be well."""
        return self.state not in {"unseen", "stale", "suspended"}


@dataclass(frozen=True)
class _Case:
    """One node as the rules look at it."""

    node: NodeSeen
    facts: NodeFactsSeen
    limits: HealthLimits
    version: str


def judge_health(
    view: FleetView,
    facts: Mapping[str, NodeFactsSeen],
    limits: HealthLimits,
    *,
    version: str = "",
) -> tuple[Judgement, ...]:
    """One judgement for every node of the view, by name. `version` is the hub's own; "": unknown.

    A node that nothing waits on and nothing runs on is healthy, however long it has been so.
    """
    silent = [_of_unseen(node, facts.get(node.name), limits) for node in view.unseen]
    seen = [
        _of_seen(_Case(node, facts.get(node.name, NodeFactsSeen()), limits, version))
        for node in view.seen
    ]
    return tuple(sorted((*silent, *seen), key=lambda judged: judged.node))


def _of_unseen(
    node: NodeUnseen, facts: NodeFactsSeen | None, limits: HealthLimits
) -> Judgement:
    if node.rule == "suspended":
        return Judgement(node.name, "suspended")
    since = facts.unseen_s if facts else None
    last = "never seen by this hub" if since is None else f"last seen {lasting(since)} ago"
    alarm = since is None or since >= limits.stale_after_s or node.rule in _NEVER_PASSES
    trouble = Trouble("node_answers", f"{node.because}; {last}", alarm=alarm)
    return Judgement(node.name, "unseen", (trouble,))


def _of_seen(case: _Case) -> Judgement:
    report = case.node.report
    troubles = _troubles(case)
    worst = next((STATE_OF[found.rule] for found in troubles if found.rule in STATE_OF), None)
    well = "idle" if report.idle else report.state
    idles = report.state == "active" and not report.running_count
    if idles and not some_agent_takes_work(case.node):
        well = "no_agent"
    fresh = worst != "stale"
    return Judgement(
        case.node.name, worst or well, troubles, report.needs_you,
        idle=report.idle if fresh else None, idle_since=report.idle_since if fresh else None,
        pending=report.pending_count if fresh else None,
        running=report.running_count if fresh else None,
    )  # fmt: skip


def _troubles(case: _Case) -> tuple[Trouble, ...]:
    """Every rule that is broken, in table order; of a stale report only that it is stale."""
    stale = fresh_report(case)
    if stale is not None:
        return (Trouble("fresh_report", stale),)
    said = ((rule.__name__, rule(case)) for rule in HEALTH_RULES)
    return tuple(Trouble(name, because) for name, because in said if because is not None)


# --- The rules: None means that all is well ---------------------------------------------------


def fresh_report(case: _Case) -> str | None:
    """What an old report says is history; nobody is called idle, full or healthy by it."""
    if case.node.age_s <= case.limits.stale_after_s:
        return None
    limit = lasting(case.limits.stale_after_s)
    return f"the report came {lasting(case.node.age_s)} ago; we believe one for {limit}"


def not_quarantined(case: _Case) -> str | None:
    """A quarantined node runs and moves nothing until a person has spoken."""
    report = case.node.report
    return f"quarantined: {report.reason}" if report.state == "quarantined" else None


def obeys_this_hub(case: _Case) -> str | None:
    """A hub whose place another one has taken sees everything, and moves nothing for ever."""
    because = case.facts.other_hub
    return f"it obeys another hub: {because}; {TAKE_OVER}, or stop this one" if because else None


def dispatcher_runs(case: _Case) -> str | None:
    """A machine that answers while its daemon does not run is where work is left lying."""
    report = case.node.report
    if report.dispatcher == "running":
        return None
    return f"its daemon does not run; {report.pending_count} tasks wait there"


def work_succeeds(case: _Case) -> str | None:
    """A node that fails fast is always free, and would draw all the work there is."""
    objection = attracts_no_work(case.node, case.facts, case.limits)
    if objection is None and case.facts.on_trial:
        return "it failed, and has not shown since that it works; one task will be its trial"
    return None if objection is None else objection.because


def waiting_work_is_started(case: _Case) -> str | None:
    """Stalled means that work waits beside a free slot; an empty queue is no stall."""
    report, limits = case.node.report, case.limits
    waits = report.oldest_ready_s or 0.0
    quiet = waits if case.facts.quiet_s is None else min(waits, case.facts.quiet_s)
    able = report.state == "active" and report.dispatcher == "running" and report.free_slots > 0
    if not able or not report.pending_count or quiet <= limits.stalled_after_s:
        return None
    return (
        f"{report.pending_count} tasks wait, {report.free_slots} slots are free,"
        f" and nothing was started for {lasting(quiet)}"
    )


def no_task_runs_too_long(case: _Case) -> str | None:
    """One endless task holds a slot for ever, and everybody sees only a busy node."""
    longest, limit = case.facts.longest_running_s, case.limits.running_over_s
    if longest is None or longest <= limit:
        return None
    return f"{case.facts.longest_running} runs for {lasting(longest)}; we look at {lasting(limit)}"


def disk_has_room(case: _Case) -> str | None:
    """A full disk ends a queue. A node that does not say how large its disk is, is not judged."""
    report = case.node.report
    free, total = report.disk_free_bytes, report.disk_total_bytes
    if free is None or not total or 1 - free / total <= case.limits.disk_over:
        return None
    return f"the disk is {1 - free / total:.0%} full; we look at {case.limits.disk_over:.0%}"


def clock_is_right(case: _Case) -> str | None:
    """No decision compares two machines' clocks, but tasks with a time of day start by them."""
    off = case.node.clock_off_s
    if off is None or abs(off) <= case.limits.clock_off_s:
        return None
    way = "ahead of" if off > 0 else "behind"
    return f"its clock is {lasting(abs(off))} {way} the hub's"


def version_is_current(case: _Case) -> str | None:
    """A node behind the hub lacks what the hub may ask for. A newer one is no trouble."""
    ours, theirs = _numbers(case.version), _numbers(case.node.report.version)
    if not ours or not theirs or theirs >= ours:
        return None
    return f"it runs {case.node.report.version}, the hub {case.version}"


def nobody_is_waited_for(case: _Case) -> str | None:
    """What only a person can decide is passed on in the node's own words."""
    needs = case.node.report.needs_you
    said = [one for one in needs if DAEMON_STOPPED not in one]  # `dispatcher_runs` says that
    return "; ".join(said) if said else None


HealthRule = Callable[[_Case], "str | None"]
HEALTH_RULES: tuple[HealthRule, ...] = (
    not_quarantined, obeys_this_hub, dispatcher_runs, work_succeeds, waiting_work_is_started,
    no_task_runs_too_long, disk_has_room, clock_is_right, version_is_current,
    nobody_is_waited_for,
)  # fmt: skip

RULES = {rule.__name__: rule for rule in (fresh_report, *HEALTH_RULES)}

# The word for a node on which the rule is broken, worst first as in the table; the other rules
# change nothing about what a node may do, and leave it its own word.
STATE_OF: Mapping[str, str] = {
    "fresh_report": "stale",
    "not_quarantined": "quarantined",
    "obeys_this_hub": "other_hub",
    "dispatcher_runs": "stopped",
    "work_succeeds": "failing",
    "waiting_work_is_started": "stalled",
}


def _numbers(version: str) -> tuple[int, ...]:
    """0.10.2 as numbers that compare; empty where the text is no such version."""
    parts = version.split("+", maxsplit=1)[0].split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
