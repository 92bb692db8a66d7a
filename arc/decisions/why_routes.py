"""Answers why the router keeps a task, with changes by which the router itself would send it; pure.

A way is tried with the task alone in the hub's queue: what stands before it costs it a turn, and
is no reason to change anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_node.fields import is_name

from .answers import Way
from .changes import Change, Situation, apply, of_pair, of_receiver, of_task
from .domains import Domain, belongs_to, nobody_has
from .explain import RoutePlan
from .failing import NodeFactsSeen
from .limits import HealthLimits, RouteLimits
from .objections import Objection
from .routing import plan_routes
from .view import FleetView, NodeSeen, Queue, QueuedTask
from .ways import SHOWN_MAX, TRIED_MAX, shortest

INBOX = "inbox"
NAME_MAX = 32
NO_NAMES = frozenset({"version", "true", "false", "null"})  # of domains; YAML reads three otherwise
_no_name = re.compile(r"[^a-z0-9]+")
CHANGES_MAX = 5  # for one node; who needs more than that is not the node for it
# By these rules a task waits for its turn, and time alone brings it.
TURNS = frozenset("batch_has_room load_below_hard late_binding still_ready".split())


@dataclass(frozen=True)
class RouteSituation:
    """All that the router looks at, so that it can be asked again with something changed."""

    situation: Situation  # its queues do not matter
    limits: RouteLimits = field(default_factory=RouteLimits)
    facts: Mapping[str, NodeFactsSeen] = field(default_factory=dict)
    health: HealthLimits = field(default_factory=HealthLimits)

    def plan(
        self, task: QueuedTask, changes: Sequence[Change] = (), *, only: str | None = None
    ) -> RoutePlan:
        """The router's plan for this task alone, with these changes; `only` one node to send to."""
        before = replace(self.situation, queues={INBOX: Queue(INBOX, (task,), {}, 1, 1)})
        after = apply(changes, before)
        queue = after.queues[INBOX]
        routers = {change.key: change.value for change in changes if change.kind == "router"}
        keep = tuple(one for one in self.limits.keep if one != routers.get("keep"))
        cycles = int(routers.get("unclaimed", 0))
        view = after.view if only is None else _only(after.view, only)
        return plan_routes(
            view, queue, domains=after.domains, limits=replace(self.limits, keep=keep),
            mint=lambda: "", unclaimed={task.uid: cycles}, facts=self.facts, health=self.health,
        )  # fmt: skip

    def goes_to(self, task: QueuedTask, changes: Sequence[Change] = ()) -> str | None:
        """To whom the router would send it then; None: to nobody."""
        return next((route.idle for route in self.plan(task, changes).routes), None)


def _only(view: FleetView, name: str) -> FleetView:
    return replace(view, seen=tuple(node for node in view.seen if node.name == name), unseen=())


def route_ways(task: QueuedTask, routing: RouteSituation) -> tuple[Way, ...]:
    """For each node what would have to be different, tried on the router, the shortest first."""
    found = _to_the_fallback(task, routing)
    for node in routing.situation.view.seen[:TRIED_MAX]:
        changes = _changes_for(task, node, routing)
        to = routing.goes_to(task, changes) if changes else None
        if changes and to is not None:
            found.append(Way(changes, to))
    return shortest(sorted(found, key=_hardness))[:SHOWN_MAX]


def _to_the_fallback(task: QueuedTask, routing: RouteSituation) -> list[Way]:
    """What nobody wants for long enough goes there by itself."""
    limits = routing.limits
    if limits.fallback is None:
        return []
    patience = Change(
        "router", "unclaimed", limits.fallback_after, "nobody has wanted it for "
        f"{limits.fallback_after} cycles", node=limits.fallback,
    )  # fmt: skip
    to = routing.goes_to(task, (patience,))
    return [Way((patience,), to)] if to else []


def comes_by_itself(ways: Sequence[Way]) -> bool:
    """Whether time alone sends it."""
    return any(
        all(one.kind == "wait" or one.key == "unclaimed" for one in way.changes) for way in ways
    )


def _hardness(way: Way) -> tuple[bool, int]:
    return any(change.key == "never" for change in way.changes), len(way.changes)


def _changes_for(
    task: QueuedTask, node: NodeSeen, routing: RouteSituation
) -> tuple[Change, ...] | None:
    """One objection of the router answered after the other, until it has none; None: it has."""
    changes: tuple[Change, ...] = ()
    for _ in range(CHANGES_MAX + 1):
        plan = routing.plan(task, changes, only=node.name)
        if not plan.kept:
            return changes
        so_far = apply(changes, routing.situation)
        now = so_far.view.node(node.name)
        assert isinstance(now, NodeSeen), "no change makes a node unseen"
        answer = _answer(task, now, plan.kept[0].objection, so_far, routing.situation.domains)
        if answer is None or answer in changes:
            return None
        changes = (*changes, answer)
    return None


def _answer(
    task: QueuedTask, node: NodeSeen, said: Objection, situation: Situation,
    before: Sequence[Domain],
) -> Change | None:  # fmt: skip
    if said.rule == "not_pinned":
        return of_task(task, said, situation.limits)
    if said.rule == "not_kept_at_the_hub":
        shown = f"P{task.priority}"
        return Change("router", "keep", task.priority, f"router.keep had no {shown}",
                      command=f"fleet.yaml: router: keep without {shown}")  # fmt: skip
    if said.rule == "may_do_this_work":
        return _made_its_work(task, node, said, situation, before)
    if said.rule in {"never_this_domain", "needs_are_met"}:
        return of_pair(task, belongs_to(task, situation.domains), node, said)
    return of_receiver(node, said, situation.limits)


def _made_its_work(
    task: QueuedTask, node: NodeSeen, said: Objection, situation: Situation,
    before: Sequence[Domain],
) -> Change | None:  # fmt: skip
    """The node takes on the task's domain; where fleet.yaml knows none, one of the node's gets the
    skill, and a node without any gets a new one. `before` are the domains without the changes.
    """
    known = [domain.name for domain in situation.domains]
    belongs, role = belongs_to(task, situation.domains), node.role
    first = belongs.names[0] if belongs.names else None
    if first in known:
        if first not in {domain.name for domain in before}:
            return _owned(node, str(first))
        return of_pair(task, belongs, node, said)
    does = next((one for one in (*role.owns, *role.also)
                 if one in known and one not in role.never), None)  # fmt: skip
    if does is None:
        return None if role.owns or role.also else _new_domain(first, task.skills, known)
    if first is not None:
        return Change("task", "domain", does, f"its domain were {does}, not {first}",
                      uid=task.uid, command=f"arc tasks set {task.uid} domain={does}")  # fmt: skip
    return _skill_of(does, task.skills[0])


def _skill_of(domain: str, skill: str) -> Change:
    return Change("domain", domain, skill, f"{skill} were a skill of {domain}",
                  command=f"fleet.yaml: add {skill} to domains.{domain}.skills")  # fmt: skip


def _new_domain(named: str | None, skills: Sequence[str], known: Sequence[str]) -> Change | None:
    """A domain called as the task names it, or like its skill; None: nothing may be called so."""
    skill = named or skills[0]
    name = named or _no_name.sub("-", skill.lower()).strip("-")[:NAME_MAX]
    if name in known:
        return _skill_of(name, skill)
    if not is_name(name) or name in NO_NAMES:
        return None
    plain = is_name(skill) and skill not in NO_NAMES
    written = skill if plain else json.dumps(skill, ensure_ascii=False)
    says = f"fleet.yaml had a domain {name} with the skill {skill}"
    entry = f"{name}: {{skills: [{written}]}}"  # `domains:` stands in the file once
    typed = f"fleet.yaml: add below domains: {entry}" if known else (
        f"fleet.yaml: domains: {{{entry}}}")  # fmt: skip
    return Change("domain", name, skill, says, command=typed)


def _owned(node: NodeSeen, domain: str) -> Change:
    done = ",".join((*node.role.owns, domain))
    return Change("role", "owns", domain, f"{node.name} owned {domain}", node.name,
                  command=f"arc nodes edit {node.name} --owns {done}")  # fmt: skip


def who_has(task: QueuedTask, routing: RouteSituation) -> str:
    """Which of its needs no node of the fleet has, and what to do; empty: each is somewhere."""
    view = routing.situation.view
    nobody = nobody_has(task.needs, view.seen, view.unheard)
    if nobody is None:
        return ""
    where = " or ".join(node.name for node in view.seen[:SHOWN_MAX])
    return f"{nobody}; give it to an agent's skills on {where}"
