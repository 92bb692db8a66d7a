"""Says which nodes may be given a piece of work, and what keeps each of the others; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .domains import (
    Belonging,
    Domain,
    Role,
    belongs_to,
    lacks,
    nobody_has,
    powers_of,
    touches_never,
    untagged,
)
from .explain import NodeVerdict, Objection
from .failing import NodeFactsSeen, attracts_no_work
from .limits import HealthLimits, StealLimits
from .memory import Memory
from .node_rules import (
    believable_times,
    dispatcher_runs,
    first_objection,
    fresh_report,
    missing_there,
    some_agent_takes_work,
    startable,
    takes_new_work,
)
from .view import FleetView, NodeSeen, NodeUnseen, QueuedTask

OWNS, ALSO, FALLBACK = 0, 1, 2


@dataclass(frozen=True)
class Work:
    """What the rules look at in a task; many tasks share one, and are judged once.

    `fallback` is the node that takes what nobody wanted for so many cycles; None: not yet.
    """

    domains: tuple[str, ...]
    how: str  # how the domains were found, for people
    anyone: bool  # neither skills nor a domain of its own
    needs: tuple[str, ...]
    skills: tuple[str, ...] = ()
    fallback: str | None = None


@dataclass(frozen=True)
class Receiver:
    """A node as a possible receiver. `out` holds against every task alike; None: nothing does."""

    name: str
    node: NodeSeen | NodeUnseen
    out: Objection | None
    powers: tuple[frozenset[str], ...] = ()  # of each agent there that takes work
    slots_free: int = 0
    waiting: int = 0  # READY, as far as some agent there can run it, and HELD
    load: int = 0  # all that waits and what runs
    on_trial: bool = False  # it may be given one task and no second one


@dataclass(frozen=True)
class Offer:
    """A node that may be given the work, and why it may: it owns it, also takes it, or must."""

    receiver: Receiver
    tier: int
    because: str


def work_of(
    task: QueuedTask, domains: Sequence[Domain], *, fallback: str | None = None
) -> Work:
    """What matters of a task. A guessed domain sends it where such work is done, like a named one.

    Only where not even a guess is possible may untagged work go to anyone.
    """
    found = belongs_to(task, domains)
    return Work(
        tuple(found.names), found.how, untagged(task) and not found.names, task.needs,
        task.skills, fallback,
    )  # fmt: skip


def receivers(
    view: FleetView,
    *,
    facts: Mapping[str, NodeFactsSeen],
    health: HealthLimits,
    stale_after_s: float,
) -> tuple[Receiver, ...]:
    """Every node of the view, those that could not be seen too: a reason has to be theirs."""
    seen = [_of_seen(node, facts.get(node.name), health, stale_after_s) for node in view.seen]
    unseen = [
        Receiver(node.name, node, Objection("node_answers", named(node.name, node.because)))
        for node in view.unseen
    ]
    return tuple(sorted((*seen, *unseen), key=lambda receiver: receiver.name))


def named(node: str, because: str) -> str:
    """The reason with its node in front, once: what a link says has the name already."""
    return f"{node}: {because.removeprefix(f'{node}: ')}"


def _of_seen(
    node: NodeSeen, facts: NodeFactsSeen | None, health: HealthLimits, stale_after_s: float
) -> Receiver:
    report = node.report
    held = report.counts.get("HELD", 0)
    return Receiver(
        node.name, node, node_is_out(node, facts, health, stale_after_s=stale_after_s),
        powers_of(node),
        slots_free=report.free_slots, waiting=startable(node) + held,
        load=report.pending_count + held + report.running_count,
        on_trial=facts is not None and facts.on_trial,
    )  # fmt: skip


def node_is_out(
    node: NodeSeen, facts: NodeFactsSeen | None, health: HealthLimits, *, stale_after_s: float
) -> Objection | None:
    """The first reason why this node must be given nothing at all; None: it may be given work."""
    fresh_for = StealLimits(stale_after_s=stale_after_s)
    found = (
        first_objection(NODE_RULES, node, fresh_for, Memory())
        or has_an_agent(node)
        or attracts_no_work(node, facts, health)
    )
    return found and Objection(found.rule, f"{node.name}: {found.because}")


NODE_RULES = (believable_times, fresh_report, takes_new_work, dispatcher_runs)


def has_an_agent(node: NodeSeen) -> Objection | None:
    """Where every agent is paused, or none has a slot, work would only wait."""
    if some_agent_takes_work(node):
        return None
    why = missing_there(node)
    return Objection("has_an_agent", f"no agent there takes work{f': {why}' if why else ''}")


def verdicts(known: Sequence[Receiver]) -> tuple[NodeVerdict, ...]:
    """What each node was: `takes` work or `out`, with how much waits there as it said."""
    return tuple(
        NodeVerdict(
            one.name, "takes" if one.out is None else "out", one.out,
            one.node.report.pending_count if isinstance(one.node, NodeSeen) else None,
        )
        for one in known
    )  # fmt: skip


def offers(work: Work, known: Sequence[Receiver]) -> tuple[Offer, ...]:
    """The nodes that may be given this work, whatever they have to do already."""
    return tuple(
        Offer(one, tier, _because(work, one, tier))
        for one in known
        if (tier := tier_of(work, one)) is not None and _objection(work, one) is None
    )


def tier_of(work: Work, receiver: Receiver) -> int | None:
    """How close a node stands to the work: the owner first; None: it is not its work."""
    tier = tier_by_role(work, receiver.node.role)
    return FALLBACK if tier is None and receiver.name == work.fallback else tier


def tier_by_role(work: Work, role: Role) -> int | None:
    """The same by the role alone, whoever the fallback is."""
    if not set(work.domains).isdisjoint(role.owns) or work.anyone:
        return OWNS
    return None if set(work.domains).isdisjoint(role.also) else ALSO


def nobody(work: Work, known: Sequence[Receiver]) -> Objection:
    """Why nobody may be given this work: the reason of the node that came nearest to it."""
    said = [found for one in known if (found := _objection(work, one)) is not None]
    if not said:
        return Objection("may_do_this_work", "the fleet has no other node")
    place, _, furthest = max(said, key=lambda found: (found[0], -found[1]))
    if place == 0:
        return whose_work(work)
    return (furthest.rule == "needs_are_met" and _in_nobodys_power(work, known)) or furthest


def _in_nobodys_power(work: Work, known: Sequence[Receiver]) -> Objection | None:
    """Of what no node at all has, one of them is no reason; None: some node has it."""
    seen = [one.node for one in known if isinstance(one.node, NodeSeen)]
    unseen = [one.name for one in known if not isinstance(one.node, NodeSeen)]
    because = nobody_has(work.needs, seen, unseen)
    return None if because is None else Objection("needs_are_met", because)


def _objection(work: Work, receiver: Receiver) -> tuple[int, int, Objection] | None:
    """How far this node came through the table, how close it stands, and what stopped it."""
    tier = tier_of(work, receiver)
    for place, rule in enumerate(WORK_RULES):
        because = rule(work, receiver)
        if because is not None:
            return place, FALLBACK + 1 if tier is None else tier, because
    return None


# --- The rules: None means no objection ---------------------------------------------------------


def may_do_this_work(work: Work, receiver: Receiver) -> Objection | None:
    """Work goes to whoever owns its domain, or has it in `also`; untagged work to anyone."""
    if tier_of(work, receiver) is not None:
        return None
    return Objection("may_do_this_work", f"{receiver.name}: not its work")


def never_this_domain(work: Work, receiver: Receiver) -> Objection | None:
    """A machine that must not touch a domain is not asked, whatever else speaks for it."""
    never = touches_never(Belonging(work.domains, work.how), receiver.node.role)
    return None if never is None else Objection("never_this_domain", f"{receiver.name}: {never}")


def may_be_given_work(work: Work, receiver: Receiver) -> Objection | None:
    """Unseen, stale, stopped, paused, draining, quarantined, failing: each is its own reason."""
    return receiver.out


def needs_are_met(work: Work, receiver: Receiver) -> Objection | None:
    """A task lands only where one agent meets all its needs; elsewhere it would wait for ever."""
    missing = lacks(work.needs, receiver.powers)
    return None if missing is None else Objection("needs_are_met", f"{receiver.name}: {missing}")


WorkRule = Callable[[Work, Receiver], "Objection | None"]
WORK_RULES: tuple[WorkRule, ...] = (
    may_do_this_work, never_this_domain, may_be_given_work, needs_are_met,
)  # fmt: skip


def whose_work(work: Work) -> Objection:
    """Why no role of fleet.yaml has this work."""
    if work.domains:
        names = " or ".join(work.domains)
        return Objection("may_do_this_work", f"no node owns {names}, and none has it in also")
    skills = ", ".join(work.skills)
    return Objection("may_do_this_work", f"no domain of fleet.yaml has one of its skills: {skills}")


def _because(work: Work, receiver: Receiver, tier: int) -> str:
    name, role = receiver.name, receiver.node.role
    if tier == FALLBACK:
        return f"nobody wanted it; {name} is the fallback"
    if work.anyone:
        return f"untagged: anyone may do it, and nobody has less to do than {name}"
    verb, names = ("owns", role.owns) if tier == OWNS else ("also does", role.also)
    return f"{name} {verb} {', '.join(one for one in work.domains if one in names)} ({work.how})"
