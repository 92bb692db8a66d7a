"""Answers why one task is where it is: rule by rule, node by node, and what would move it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .changes import Change, Situation, apply, of_giver, of_pair, of_receiver, of_task, room_for
from .domains import Belonging, belongs_to, powers_of
from .explain import Steal
from .node_rules import (
    busy_rules,
    first_objection,
    fresh_report,
    idle_rules,
    work_succeeds,
)
from .objections import Objection
from .rules import PAIR_RULES, SWIFT_TASK_RULES, TASK_RULES, Move
from .view import FleetView, NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen
from .why_states import LIVES, Life

WAIT, CHANGE, ESCALATE = "WAIT", "CHANGE", "ESCALATE"
TRIED_MAX = 12  # receivers for which a way is looked for; each costs up to four plans
SHOWN_MAX = 4  # ways that are told


@dataclass(frozen=True)
class Check:
    """One rule about the task itself, or about the node that has it; `said` where it is not met."""

    rule: str
    met: bool
    said: str = ""


@dataclass(frozen=True)
class Dropped:
    """A node that drops out at a step, and why. `changeable`: one of the ways answers it."""

    node: str
    because: str
    changeable: bool = False


@dataclass(frozen=True)
class Step:
    """One condition on a receiver: how many meet it alone, and how many are left after it.

    The dropped of all steps and the left of the last one add up to the receivers.
    """

    rule: str
    alone: int
    left: int
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True)
class Way:
    """Changes with which the next plan would move the task: tried on the planner, not guessed."""

    changes: tuple[Change, ...]
    to: str


@dataclass(frozen=True)
class History:
    """What the journal knows of this task: what earlier cycles made of it."""

    cycles: int = 0  # in which it was not moved
    since: str | None = None
    could_not_look: int = 0  # of them, in which its queue could not be read


@dataclass(frozen=True)
class WhyTask:
    """Why a task is where it is. One of four answers, by which of the fields are set.

    `moves`: it is in the plan. `steps`: it is not, because. `life`: it is not waiting at all.
    `could_not_look`: nobody knows, because (and that is never "nothing to move").
    """

    task: QueuedTask
    node: str
    verdict: str  # WAIT | CHANGE | ESCALATE
    result: str  # one sentence
    checks: tuple[Check, ...] = ()
    receivers: int = 0
    steps: tuple[Step, ...] = ()
    ways: tuple[Way, ...] = ()
    by_hand: tuple[str, ...] = ()  # commands that no rule forbids
    moves: Steal | None = None
    kept: Objection | None = None  # what the plan itself says
    life: Life | None = None
    could_not_look: QueueUnseen | None = None
    place: int | None = None  # in its node's queue, from 1; None: not known
    reach_s: float | None = None  # until its own node would start it; None: it would not
    history: History = field(default_factory=History)


def why_task(
    task: QueuedTask, where: str, situation: Situation, *, history: History | None = None
) -> WhyTask:
    """Why this task is on this node and not on another, and what would change that.

    The situation's queue of that node should be whole (see `Situation`). Every node of the view
    but the task's own is a receiver, so the steps account for each of them.
    """
    past = history or History()
    life = LIVES.get(task.state)
    if life is not None:
        return WhyTask(task, where, life.verdict, life.says, life=life, history=past,
                       by_hand=life.commands(task.uid))  # fmt: skip
    node, queue = situation.view.node(where), situation.queues.get(where)
    if not isinstance(node, NodeSeen):
        return _unknown(task, _unseen(where, node), past)
    if isinstance(queue, QueueUnseen):
        return _unknown(task, queue, past)
    return _waiting(task, node, _known_there(task, where, situation), past)


def _unknown(task: QueuedTask, unseen: QueueUnseen, past: History) -> WhyTask:
    result = f"could not look: {unseen.node}: {unseen.because}"
    return WhyTask(task, unseen.node, ESCALATE, result, could_not_look=unseen, history=past)


def _unseen(where: str, node: NodeUnseen | None) -> QueueUnseen:
    if node is None:
        return QueueUnseen(where, "node_answers", "the fleet has no such node")
    return QueueUnseen(where, node.rule, node.because, node.code)


def _known_there(task: QueuedTask, where: str, situation: Situation) -> Situation:
    """With the task in its queue: a page that ends before it must not hide it."""
    queue = situation.queues.get(where)
    if isinstance(queue, Queue) and any(one.uid == task.uid for one in queue.tasks):
        return situation
    node = situation.view.node(where)
    waiting = node.report.pending_count if isinstance(node, NodeSeen) else 1
    known = queue if isinstance(queue, Queue) else Queue(where, total=max(waiting, 1))
    whole = Queue(where, (*known.tasks, task), known.kept, known.eligible + 1, known.total)
    return Situation(
        situation.view, {**situation.queues, where: whole}, situation.domains,
        situation.limits, situation.memory,
    )  # fmt: skip


def _waiting(
    task: QueuedTask, node: NodeSeen, situation: Situation, past: History
) -> WhyTask:
    plan = situation.plan()
    steal = next((one for one in plan.steals if one.task.uid == task.uid), None)
    kept = next((one.objection for one in plan.kept if one.task.uid == task.uid), None)
    ways = () if steal else tuple(_ways(task, node, situation))
    names = {change.node for way in ways for change in way.changes}
    steps = _steps(task, situation, node.name, names)
    place, reach_s = _reach(task, node, situation)
    result, verdict = _result(steal, kept, ways, reach_s, steps)
    return WhyTask(
        task, node.name, verdict, result, _checks(task, node, situation),
        len(_others(situation.view, node.name)), steps, ways, _by_hand(task, node, situation.view),
        steal, kept, place=place, reach_s=reach_s, history=past,
    )  # fmt: skip


def _result(
    steal: Steal | None,
    kept: Objection | None,
    ways: Sequence[Way],
    reach_s: float | None,
    steps: Sequence[Step],
) -> tuple[str, str]:
    """What comes of it in a sentence, and what a person has to do: wait, change, or worry."""
    if steal is not None:
        return f"the next cycle moves it to {steal.idle}", WAIT
    receivers = steps[0].alone if steps else 0
    left = steps[-1].left if steps else 0
    because = f"{kept.rule}: {kept.because}" if kept else "no plan is made without an idle node"
    result = f"{left} of {receivers} nodes could take it now; {because}"
    by_itself = any(all(change.kind == "wait" for change in way.changes) for way in ways)
    if reach_s is not None or by_itself:
        return result, WAIT
    return result, CHANGE if ways else ESCALATE


def _checks(task: QueuedTask, node: NodeSeen, situation: Situation) -> tuple[Check, ...]:
    """Every rule about the task itself, and about its node as one that is taken from."""
    limits = situation.limits
    rules = SWIFT_TASK_RULES if limits.swift else TASK_RULES
    of_task_itself = [(rule.__name__, rule(task, limits)) for rule in rules]
    of_node = [
        (rule.__name__, rule(node, limits, situation.memory)) for rule in busy_rules(limits)
    ]
    return tuple(Check(rule, said is None, said or "") for rule, said in of_task_itself + of_node)


def _steps(
    task: QueuedTask, situation: Situation, where: str, changeable: set[str]
) -> tuple[Step, ...]:
    """The receivers, sifted by one condition after the other; the first step is all of them."""
    others = _others(situation.view, where)
    said = {node.name: _all_said(task, node, situation) for node in others}
    rules = [*dict.fromkeys(rule for verdicts in said.values() for rule in verdicts)]
    steps = [Step("another_node", len(others), len(others))]
    left = [node.name for node in others]
    for rule in rules:
        alone = sum(said[node.name].get(rule, "not known") is None for node in others)
        out = [name for name in left if said[name].get(rule) is not None]
        left = [name for name in left if name not in out]
        dropped = tuple(Dropped(name, said[name][rule] or "", name in changeable) for name in out)
        steps.append(Step(rule, alone, len(left), dropped))
    return tuple(steps)


def _all_said(
    task: QueuedTask, node: NodeSeen | NodeUnseen, situation: Situation
) -> dict[str, str | None]:
    """What each condition on a receiver says of this node; of one that was not seen only that."""
    if isinstance(node, NodeUnseen):
        return {"node_answers": node.because}
    limits, memory = situation.limits, situation.memory
    found: dict[str, str | None] = {"node_answers": None}
    for rule in idle_rules(limits):
        found[rule.__name__] = rule(node, limits, memory)
    move = _move(task, node, situation)
    for pair in PAIR_RULES:
        found[pair.__name__] = pair(move, limits)
    return found


def _move(task: QueuedTask, node: NodeSeen, situation: Situation) -> Move:
    belongs = belongs_to(task, situation.domains)
    refused = situation.memory.refused_s.get((task.uid, node.name))
    return Move(task, belongs, "", 0, node, powers_of(node), refused_s=refused)


def _ways(task: QueuedTask, giver: NodeSeen, situation: Situation) -> Iterator[Way]:
    """Ways by which the planner itself says that the task would move, the shortest first."""
    sets = _change_sets(task, giver, situation)
    told: set[frozenset[Change]] = set()
    for changes in sorted(sets, key=len)[:TRIED_MAX]:
        way = _tried(task, giver.name, changes, situation)
        if way is not None and frozenset(way.changes) not in told:
            told.add(frozenset(way.changes))
            yield way
        if len(told) == SHOWN_MAX:
            return


def _tried(
    task: QueuedTask, where: str, changes: tuple[Change, ...], situation: Situation
) -> Way | None:
    """These changes, with room made in the caps where that is what is missing; None: no way."""
    changed = apply(changes, situation)
    to = _goes_to(task, changed)
    if to is not None:
        return Way(changes, to) if changes else None
    room = room_for(task, where, changed)
    if not room:
        return None
    wider = {(change.key, change.node): change for change in (*changes, *room)}
    whole = tuple(wider.values())
    to = _goes_to(task, apply(whole, situation))
    return Way(whole, to) if to is not None else None


def _goes_to(task: QueuedTask, situation: Situation) -> str | None:
    steals = situation.plan().steals
    return next((steal.idle for steal in steals if steal.task.uid == task.uid), None)


def _change_sets(
    task: QueuedTask, giver: NodeSeen, situation: Situation
) -> list[tuple[Change, ...]]:
    """For each receiver everything that would have to be different; none where something cannot."""
    mine = _answers_of_giver(task, giver, situation)
    if mine is None:
        return []
    found = []
    for node in situation.view.seen:
        theirs = _answers_of(task, node, situation) if node.name != giver.name else None
        if theirs is not None:
            found.append(tuple(dict.fromkeys((*mine, *theirs))))
    return found


def _answers_of_giver(
    task: QueuedTask, giver: NodeSeen, situation: Situation
) -> list[Change] | None:
    limits, memory = situation.limits, situation.memory
    rules = SWIFT_TASK_RULES if limits.swift else TASK_RULES
    queue = situation.queues.get(giver.name)
    left = queue.total if isinstance(queue, Queue) else giver.report.pending_count
    said = [(rule.__name__, rule(task, limits)) for rule in rules]
    answers = [of_task(task, Objection(rule, why), limits) for rule, why in said if why]
    for rule in busy_rules(limits):
        why = rule(giver, limits, memory)
        if why is not None:
            answers.append(of_giver(giver, Objection(rule.__name__, why), left))
    return _all_or_none(answers)


def _answers_of(task: QueuedTask, node: NodeSeen, situation: Situation) -> list[Change] | None:
    belongs = belongs_to(task, situation.domains)
    answers = [
        _answer(task, belongs, node, Objection(rule, why), situation)
        for rule, why in _all_said(task, node, situation).items()
        if why is not None
    ]
    return _all_or_none(answers)


def _answer(
    task: QueuedTask, belongs: Belonging, node: NodeSeen, said: Objection, situation: Situation
) -> Change | None:
    if said.rule in {rule.__name__ for rule in PAIR_RULES}:
        return of_pair(task, belongs, node, said)
    return of_receiver(node, said, situation.limits)


def _all_or_none(answers: Sequence[Change | None]) -> list[Change] | None:
    some = [answer for answer in answers if answer is not None]
    return some if len(some) == len(answers) else None


def _reach(
    task: QueuedTask, node: NodeSeen, situation: Situation
) -> tuple[int | None, float | None]:
    """Where it stands in its own node's queue, and when that would start it, roughly."""
    queue = situation.queues.get(node.name)
    if not isinstance(queue, Queue) or len(queue.tasks) < queue.total:
        place = None
    else:
        urgent = sorted(queue.tasks, key=lambda one: (one.priority, one.uid))
        place = [one.uid for one in urgent].index(task.uid) + 1
    report = node.report
    works = report.dispatcher == "running" and report.state in {"active", "draining"}
    stuck = first_objection((fresh_report, work_succeeds), node, situation.limits, situation.memory)
    if not works or stuck is not None or _lacks_here(task, node):
        return place, None
    usual_s = situation.memory.typical_s.get("", situation.limits.default_task_s)
    ahead = (place or report.pending_count) - 1 + report.running_count / 2
    return place, max(ahead, 0.0) * usual_s / max(report.slots, 1)


def _lacks_here(task: QueuedTask, node: NodeSeen) -> bool:
    return bool(task.needs) and not any(
        power.issuperset(task.needs) for power in powers_of(node)
    )


def _by_hand(task: QueuedTask, giver: NodeSeen, view: FleetView) -> tuple[str, ...]:
    """Sending it by hand skips thresholds and caps; pinned work takes a `--yes` too."""
    to = next((node.name for node in sorted(view.seen, key=lambda one: -one.report.free_slots)
               if node.name != giver.name and node.report.state == "active"), None)  # fmt: skip
    yes = " --yes" if task.pinned else ""
    return (f"arc tasks move {task.uid} --to {to}{yes} --reason '…'",) if to else ()


def _others(view: FleetView, where: str) -> list[NodeSeen | NodeUnseen]:
    both: tuple[NodeSeen | NodeUnseen, ...] = (*view.seen, *view.unseen)
    return sorted((node for node in both if node.name != where), key=lambda node: node.name)
