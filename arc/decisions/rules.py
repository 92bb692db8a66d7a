"""The rules of stealing: each says what must be true of a move, and why not where it is not; pure.

`rule.__name__` is the rule's id in plans, logs, `arc why` and `arc explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import node_rules
from .domains import Belonging, is_foreign, lacks, touches_never
from .explain import lasting
from .limits import StealLimits
from .objections import Objection
from .view import NodeSeen, QueuedTask


@dataclass(frozen=True, slots=True)
class Gain:
    """Swift: how much sooner a task starts there, and how much sooner it has to."""

    here_s: float = 0.0
    there_s: float = 0.0
    worth_s: float = 0.0


NO_GAIN = Gain()


@dataclass(frozen=True, slots=True)
class Move:
    """One move as the rules look at it: a task, whose it is, who would get it, and the counts."""

    task: QueuedTask
    belongs: Belonging
    busy: str
    busy_left: int  # what waits there, less what was planned away already
    idle: NodeSeen
    powers: tuple[frozenset[str], ...] = ()  # of each agent there
    taken: int = 0  # by the idle node in this cycle
    planned: int = 0  # in this cycle by all
    refused_s: float | None = None  # since the idle node refused this very task; None: never
    busy_slots: int = 0  # swift: what the busy node could start at once by itself
    spare: int = 0  # swift: how many the busy node may still give to wait elsewhere
    gain: Gain = NO_GAIN


TaskRule = Callable[[QueuedTask, StealLimits], str | None]
Rule = Callable[[Move, StealLimits], str | None]
AnyRule = Callable[..., str | None]


def still_ready(task: QueuedTask, limits: StealLimits) -> str | None:
    """Only waiting work moves. What runs is never taken from under a program."""
    return None if task.state == "READY" else f"it is {task.state}"


def not_pinned(task: QueuedTask, limits: StealLimits) -> str | None:
    """A person, or the task's own data, binds it to this node; only a person moves it."""
    return "it is pinned" if task.pinned else None


def low_enough_priority(task: QueuedTask, limits: StealLimits) -> str | None:
    """Urgent work is not moved in the middle of a queue."""
    if task.priority >= limits.steal_from:
        return None
    return f"P{task.priority}; we steal P{limits.steal_from} and less urgent"


def not_stolen_before(task: QueuedTask, limits: StealLimits) -> str | None:
    """A stolen task stays where it landed, so it cannot bounce between nodes."""
    if stolen_times(task) <= limits.hops_allowed:
        return None
    return f"already stolen once, from {task.stolen_from}" if task.stolen_from else "already stolen"


def few_enough_hops(task: QueuedTask, limits: StealLimits) -> str | None:
    """Each theft costs; a task that nobody keeps is a finding, not work for a third node."""
    times = stolen_times(task)
    if times <= limits.hops_allowed:
        return None
    return f"already stolen {times} times; a task moves on up to {limits.hops_allowed}"


def busy_node_is_busy(move: Move, limits: StealLimits) -> str | None:
    """We count what is left after the steals already planned, not what the report said."""
    return too_few_left(move.busy, move.busy_left, limits)


def has_surplus(move: Move, limits: StealLimits) -> str | None:
    """What a node can start at once itself stays there."""
    if move.busy_left > move.busy_slots:
        return None
    return f"{move.busy} has {move.busy_left} left and {move.busy_slots} free slots for them"


def never_this_domain(move: Move, limits: StealLimits) -> str | None:
    """What a node must never do wins over everything that speaks for it."""
    because = touches_never(move.belongs, move.idle.role)
    return None if because is None else f"{move.idle.name}: {because}"


def may_do_this_work(move: Move, limits: StealLimits) -> str | None:
    """Work goes to those whose work it is, or who may also do it; simple work to anyone."""
    because = is_foreign(
        move.task, move.belongs, move.idle.role, anyone_from=limits.untagged_from
    )
    return None if because is None else f"{move.idle.name}: {because}"


def needs_are_met(move: Move, limits: StealLimits) -> str | None:
    """A task that no agent there can run would only wait there instead of here."""
    because = lacks(move.task.needs, move.powers)
    return None if because is None else f"{move.idle.name}: {because}"


def not_refused_lately(move: Move, limits: StealLimits) -> str | None:
    """A node has the last word; asking again at once would only fill the cycle."""
    if move.refused_s is None or move.refused_s >= limits.ask_again_s:
        return None
    again = lasting(limits.ask_again_s - move.refused_s)
    return f"{move.idle.name} refused it {lasting(move.refused_s)} ago; we ask again in {again}"


def receiver_has_room(move: Move, limits: StealLimits) -> str | None:
    """No idle node is flooded: so many a cycle, and the next cycle looks again."""
    return no_room(move.idle.name, move.taken, limits)


def cycle_has_room(move: Move, limits: StealLimits) -> str | None:
    """A bound on what one cycle can do wrong."""
    return cycle_is_full(move.planned, limits)


def slot_or_half(move: Move, limits: StealLimits) -> str | None:
    """Free slots are filled; one more may follow, from half of what waits at the busy node."""
    free = move.idle.report.free_slots
    if move.taken < free:
        return None
    if move.taken > free:
        return f"{move.idle.name} gets {move.taken} already, one more than its free slots"
    if move.spare > 0:
        return None
    return f"{move.idle.name} has its {free} free slots filled; {move.busy} keeps half of the rest"


def gain_worth_it(move: Move, limits: StealLimits) -> str | None:
    """A move has to bring more than it costs, else tasks wander for nothing."""
    gain = move.gain
    saved = gain.here_s - gain.there_s
    if saved > gain.worth_s:
        return None
    return (f"starts in {lasting(gain.here_s)} on {move.busy}, in {lasting(gain.there_s)} on "
            f"{move.idle.name}; it has to be {lasting(gain.worth_s)} sooner")  # fmt: skip


# What a rule looks at decides how often it is asked: the task alone once, a pair once for each
# kind of task and node, counts after every planned move. The order is the order of reasons.
TASK_RULES: tuple[TaskRule, ...] = (
    still_ready, not_pinned, low_enough_priority, not_stolen_before,
)  # fmt: skip
SWIFT_TASK_RULES: tuple[TaskRule, ...] = (still_ready, not_pinned, few_enough_hops)
PAIR_RULES: tuple[Rule, ...] = (
    never_this_domain, may_do_this_work, needs_are_met, not_refused_lately,
)  # fmt: skip
MOVE_RULES: tuple[Rule, ...] = (
    busy_node_is_busy, *PAIR_RULES, receiver_has_room, cycle_has_room,
)  # fmt: skip
SWIFT_MOVE_RULES: tuple[Rule, ...] = (has_surplus, *PAIR_RULES, slot_or_half, gain_worth_it)
STEAL_RULES: tuple[AnyRule, ...] = (*TASK_RULES, *MOVE_RULES)  # policy arc0
SWIFT_RULES: tuple[AnyRule, ...] = (*SWIFT_TASK_RULES, *SWIFT_MOVE_RULES)

_EVERY: tuple[AnyRule, ...] = (
    *node_rules.IDLE_RULES, *node_rules.THIEF_RULES, *node_rules.BUSY_RULES,
    *node_rules.VICTIM_RULES, *STEAL_RULES, *SWIFT_RULES,
)  # fmt: skip
RULES: dict[str, AnyRule] = {rule.__name__: rule for rule in _EVERY}

# How the node's own rules (docs/wire.md, `candidates`) are called here.
OF_THE_NODE = {"pinned": "not_pinned"}


def too_few_left(busy: str, left: int, limits: StealLimits) -> str | None:
    """Why a node with so many left gives none; None: it does."""
    if left > limits.busy_over:
        return None
    return f"{busy} has {left} left; we steal above {limits.busy_over}"


def no_room(idle: str, taken: int, limits: StealLimits) -> str | None:
    """Why a node that gets so many gets no more; None: it does."""
    if taken < limits.per_node:
        return None
    return f"{idle} gets {taken} already; {limits.per_node} a node and cycle"


def cycle_is_full(planned: int, limits: StealLimits) -> str | None:
    """Why a cycle of so many moves gets no more; None: it does."""
    if planned < limits.per_cycle:
        return None
    return f"{planned} are planned already; {limits.per_cycle} a cycle"


def task_objections(task: QueuedTask, limits: StealLimits) -> tuple[Objection, ...]:
    """Everything that speaks against moving this task at all, in table order."""
    rules = SWIFT_TASK_RULES if limits.swift else TASK_RULES
    said = ((rule.__name__, rule(task, limits)) for rule in rules)
    return tuple(Objection(name, why) for name, why in said if why is not None)


def objections(move: Move, limits: StealLimits) -> tuple[Objection, ...]:
    """Everything the rules hold against this move, in table order; empty means it may go."""
    rules = SWIFT_MOVE_RULES if limits.swift else MOVE_RULES
    said = ((rule.__name__, rule(move, limits)) for rule in rules)
    of_the_move = (Objection(name, why) for name, why in said if why is not None)
    return (*task_objections(move.task, limits), *of_the_move)


def first_of(rules: Sequence[Rule], move: Move, limits: StealLimits) -> Objection | None:
    """The first rule of these that is not met; None: all are."""
    for rule in rules:
        because = rule(move, limits)
        if because is not None:
            return Objection(rule.__name__, because)
    return None


def stolen_times(task: QueuedTask) -> int:
    """How often a task was stolen; a mark of it without a count is once."""
    return max(task.hops, int(task.stolen_from is not None))


def name_of_node_rule(rule: str, limits: StealLimits) -> str:
    """What a rule that a node counted by is called in our tables."""
    if rule == "few_enough_hops" and not limits.swift:
        return "not_stolen_before"
    return OF_THE_NODE.get(rule, rule)
