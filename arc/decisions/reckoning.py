"""Adds a plan up: what stays of each node's waiting work, by which rule, to the last task; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .crowds import Crowd, Stock
from .explain import KeptCount, KeptGroup, KeptTasks, NodeVerdict, Objection, Steal, StealPlan
from .limits import StealLimits
from .memory import Memory
from .node_rules import busy_rules, first_objection
from .rules import name_of_node_rule
from .view import FleetView, NodeSeen, Queue, Queues

Reason = Callable[[Stock, "Crowd | None"], "Objection | None"]
# What a plan says where no rule spoke: nobody could be asked, or nobody had to be.
RULES = {
    "node_answers": "Nothing is done with a node that does not answer, and nothing is assumed.",
    "queue_was_read": "A queue that could not be looked into is not an empty one.",
    "somebody_is_idle": "Without an idle node no queue is asked.",
    "not_looked_at": "It lies beyond the page that was read, and nothing else is known of it.",
}
NOT_LOOKED_AT = Objection("not_looked_at", "beyond the page that was read; nothing else is known")
NO_IDLE = Objection("somebody_is_idle", "no node is idle")
NOBODY_ELSE = Objection("somebody_is_idle", "no other node is idle")


@dataclass(frozen=True)
class Reckoning:
    """What a plan stands on, for adding it up."""

    view: FleetView
    verdicts: tuple[NodeVerdict, ...]
    limits: StealLimits
    memory: Memory

    @cached_property
    def _seen(self) -> dict[str, NodeSeen]:
        return {node.name: node for node in self.view.seen}

    def skipped(self, because: str) -> StealPlan:
        """The plan of a cycle in which no queue was asked, with what waits all the same."""
        counts = [
            count
            for one in self.verdicts
            if (count := self._unasked(one, _nobody_for(one))) is not None
        ]
        return StealPlan(
            self.limits.policy, counts=tuple(counts), nodes=self.verdicts, skipped=because
        )

    def plan(
        self, queues: Queues, stocks: Sequence[Stock], steals: Sequence[Steal], reason: Reason
    ) -> StealPlan:
        """The whole plan. The counts of each node that was looked into add up to its READY."""
        groups: list[KeptGroup] = []
        counts: list[KeptCount] = []
        for stock in stocks:
            mine = [group for crowd in stock.crowds if (group := _group(stock, crowd, reason))]
            groups += mine
            counts += _counts(stock, mine, reason, self.limits)
        verdicts = tuple(self._checked(one, queues) for one in self.verdicts)
        looked = {stock.node for stock in stocks}
        counts += [
            count
            for one in verdicts
            if one.name not in looked
            and (count := self._unasked(one, _unread(one) or _nobody_for(one))) is not None
        ]
        return StealPlan(
            self.limits.policy, tuple(steals), KeptTasks(tuple(groups)),
            tuple(sorted(counts, key=lambda count: (count.node, -count.count, count.rule))),
            verdicts, None, _caps_hit(groups),
        )  # fmt: skip

    def _checked(self, verdict: NodeVerdict, queues: Queues) -> NodeVerdict:
        """A busy node into whose queue nobody could look is out, with the reason.

        One that is both is asked only where another one is idle; what it may be given is no
        matter of its queue.
        """
        queue = queues.get(verdict.name)
        if not verdict.gives or isinstance(queue, Queue):
            return verdict
        both = verdict.part == "both"
        if both and queue is None:
            return verdict
        because = "its queue was not asked for" if queue is None else queue.because
        part = "idle" if both else "out"
        return replace(verdict, part=part, objection=Objection("queue_was_read", because))

    def _unasked(self, verdict: NodeVerdict, because: Objection | None) -> KeptCount | None:
        """All that waits on a node that was not looked into, by one rule; None: nothing known."""
        node = self._seen.get(verdict.name)
        if node is None or not verdict.pending:
            return None
        said = because or first_objection(
            busy_rules(self.limits), node, self.limits, self.memory
        )
        found = said or NOT_LOOKED_AT
        return KeptCount(verdict.name, found.rule, verdict.pending, found.because)


def _nobody_for(verdict: NodeVerdict) -> Objection | None:
    """Why a queue that may be taken from was not asked; None: it may not."""
    return {"busy": NO_IDLE, "both": NOBODY_ELSE}.get(verdict.part)


def _unread(verdict: NodeVerdict) -> Objection | None:
    said = verdict.objection
    return said if said is not None and said.rule == "queue_was_read" else None


def _group(stock: Stock, crowd: Crowd, reason: Reason) -> KeptGroup | None:
    """What stays of one crowd; None: nothing does."""
    left = crowd.left
    if not left:
        return None
    said = crowd.like.objection or reason(stock, crowd) or NOT_LOOKED_AT
    return KeptGroup(stock.node, left, said)


def _counts(
    stock: Stock, groups: Sequence[KeptGroup], reason: Reason, limits: StealLimits
) -> list[KeptCount]:
    """The node's own counts, those of the page, and what lies beyond it: together its READY."""
    found: dict[str, tuple[int, str]] = {}

    def add(rule: str, count: int, because: str) -> None:
        known = found.get(rule, (0, because))
        found[rule] = (known[0] + count, known[1])

    for group in groups:
        add(group.objection.rule, len(group.tasks), group.objection.because)
    beyond = stock.queue.eligible - len(stock.queue.tasks)
    if beyond > 0:
        said = reason(stock, None) or NOT_LOOKED_AT
        add(said.rule, beyond, said.because)
    for rule, count in stock.queue.kept.items():
        add(name_of_node_rule(rule, limits), count, f"{stock.node} says so of its own tasks")
    return [KeptCount(stock.node, rule, *said) for rule, said in found.items()]


def _caps_hit(groups: Sequence[KeptGroup]) -> tuple[str, ...]:
    """Which of the caps kept anything: `per_node`, `per_cycle`."""
    rules = {group.objection.rule for group in groups}
    caps = {"receiver_has_room": "per_node", "cycle_has_room": "per_cycle"}
    return tuple(cap for rule, cap in caps.items() if rule in rules)
