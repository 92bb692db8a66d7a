"""Says which of the idle nodes may be given which kind of task, asking every rule once; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .crowds import Crowd, Likeness, Stock
from .domains import powers_of
from .limits import StealLimits
from .memory import Memory
from .objections import Objection
from .rules import NO_GAIN, PAIR_RULES, Gain, Move, Rule, first_of
from .view import NodeSeen, QueuedTask


@dataclass(eq=False, slots=True)
class Receiver:
    """An idle node while a plan is made."""

    node: NodeSeen
    powers: tuple[frozenset[str], ...]
    kind: int  # nodes of one kind may do the same work
    refused_s: Mapping[str, float] = field(default_factory=dict)  # by uid
    taken: int = 0  # planned for it, and what it got in the sliding interval
    load_s: float = 0.0  # swift: how long what is planned for it will run
    planned: int = 0  # by this plan alone
    on_trial: bool = False  # it failed, and is given one task to show that it works

    @property
    def tried(self) -> bool:
        """Whether it is on trial and has its one task by this plan."""
        return self.on_trial and self.planned > 0


def receivers_of(nodes: Sequence[NodeSeen], memory: Memory) -> tuple[Receiver, ...]:
    """These nodes as receivers, each with the number of its kind."""
    kinds: dict[tuple[object, ...], int] = {}
    found = []
    for node in nodes:
        powers, role = powers_of(node), node.role
        key = (*map(frozenset, (role.owns, role.also, role.never)), frozenset(powers))
        refused = {uid: ago for (uid, name), ago in memory.refused_s.items() if name == node.name}
        found.append(
            Receiver(
                node, powers, kinds.setdefault(key, len(kinds)), refused,
                taken=memory.taken.get(node.name, 0), on_trial=node.name in memory.trials,
            )
        )  # fmt: skip
    return tuple(found)


class Pairs:
    """Who may do what among these receivers: each rule is asked once for a kind of both."""

    def __init__(self, receivers: Sequence[Receiver], limits: StealLimits) -> None:
        self.receivers, self.limits = receivers, limits
        self.by_kind: dict[int, list[Receiver]] = {}
        for receiver in receivers:
            self.by_kind.setdefault(receiver.kind, []).append(receiver)
        self._fits: dict[tuple[Likeness, int], bool] = {}
        self._doers: dict[Likeness, tuple[Receiver, ...] | Objection] = {}

    def fits(self, crowd: Crowd, receiver: Receiver) -> bool:
        """Whether this receiver may be given the next of these tasks, room aside."""
        if crowd.alone:
            return self._objection(crowd, receiver) is None
        key = (crowd.like, receiver.kind)
        known = self._fits.get(key)
        if known is None:
            known = self._fits[key] = self._objection(crowd, receiver) is None
        return known

    def doers(self, crowd: Crowd) -> tuple[Receiver, ...] | Objection:
        """One of each kind that may do it; where nobody may, the rule that left nobody."""
        if crowd.alone:
            return self._sift(crowd, self.receivers)
        known = self._doers.get(crowd.like)
        if known is None:
            firsts = [some[0] for some in self.by_kind.values()]
            known = self._sift(crowd, firsts)
            self._doers[crowd.like] = known
        return known

    def _sift(
        self, crowd: Crowd, receivers: Sequence[Receiver]
    ) -> tuple[Receiver, ...] | Objection:
        """One rule after the other, over all of them: what `arc why` shows as a table."""
        left = tuple(receivers)
        for rule in PAIR_RULES:
            said = [(receiver, self._asked(rule, crowd, receiver)) for receiver in left]
            dropped = [because for _, because in said if because is not None]
            left = tuple(receiver for receiver, because in said if because is None)
            if not left:
                return Objection(rule.__name__, _nobody(dropped))
        return left

    def _asked(self, rule: Rule, crowd: Crowd, receiver: Receiver) -> str | None:
        return rule(self._move(crowd, receiver), self.limits)

    def _objection(self, crowd: Crowd, receiver: Receiver) -> Objection | None:
        return first_of(PAIR_RULES, self._move(crowd, receiver), self.limits)

    def _move(self, crowd: Crowd, receiver: Receiver) -> Move:
        head = crowd.head or crowd.tasks[-1]
        return move_of(head, crowd, None, receiver)


def move_of(
    task: QueuedTask,
    crowd: Crowd,
    stock: Stock | None,
    receiver: Receiver,
    *,
    gain: Gain = NO_GAIN,
) -> Move:
    """The move as the rules look at it, with the counts as they are now."""
    return Move(
        task, crowd.like.belongs, stock.node if stock else "", stock.left if stock else 0,
        receiver.node, receiver.powers, receiver.taken, 0, receiver.refused_s.get(task.uid),
        stock.slots if stock else 0, stock.spare if stock else 0, gain,
    )  # fmt: skip


def whose_work(crowd: Crowd, idle: NodeSeen) -> str:
    """Why the idle node may do this, in a few words."""
    role, names = idle.role, crowd.like.belongs.names
    owned = [name for name in names if name in role.owns]
    if owned:
        return f"{idle.name} owns {owned[0]}"
    shared = [name for name in names if name in role.also]
    return f"{idle.name} also does {shared[0]}" if shared else "untagged: anyone may do it"


def _nobody(dropped: Sequence[str]) -> str:
    """The first reason, and how many nodes have one of their own."""
    return dropped[0] if len(dropped) == 1 else f"{dropped[0]}; so with {len(dropped) - 1} more"
