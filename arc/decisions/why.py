"""Answers why one task is where it is: rule by rule, node by node, and what would move it; pure."""

from __future__ import annotations

from collections.abc import Sequence

from .answers import CHANGE, ESCALATE, WAIT, Check, History, Reach, Standing, Step, Way, WhyTask
from .changes import Situation
from .explain import Kept, Steal, StealPlan
from .node_rules import busy_rules, first_objection
from .retrying import RULE as RETRY_ELSEWHERE
from .rules import SWIFT_TASK_RULES, TASK_RULES
from .sifting import others_of, steps_of
from .view import NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen
from .ways import of_the_fleet, ways_for
from .why_node import why_node
from .why_standing import (
    a_word_starts,
    by_hand,
    never_starts,
    reach_of,
    standing_of,
    unattended,
)
from .why_states import LIVES

__all__ = ("why_node", "why_task")


def why_task(
    task: QueuedTask,
    where: str,
    situation: Situation,
    *,
    history: History | None = None,
    drains: StealPlan | None = None,
    left_s: float | None = None,
) -> WhyTask:
    """Why this task is on this node and not on another, and what would change that.

    The situation's queue of that node should be whole (see `Situation`). Every node of the view
    but the task's own is a receiver, so the steps account for each of them. `drains` is the plan
    for draining nodes or of retries, which goes before a steal; `left_s` is how long what the node
    runs goes on, summed over its slots.
    """
    past = history or History()
    life = LIVES.get(task.state)
    node, queue = situation.view.node(where), situation.queues.get(where)
    if life is not None:
        alone = unattended(task.state, node)
        verdict, says = (alone.verdict, alone.says) if alone else (life.verdict, life.says)
        return WhyTask(task, where, verdict, says, life=life, history=past,
                       by_hand=life.commands(task.uid), own_node=alone)  # fmt: skip
    if not isinstance(node, NodeSeen):
        return _unknown(task, _unseen(where, node), past)
    if isinstance(queue, QueueUnseen):
        return _unknown(task, queue, past)
    return _waiting(task, node, _known_there(task, where, situation), past,
                    drains=drains or StealPlan(""), left_s=left_s)  # fmt: skip


def _unknown(task: QueuedTask, unseen: QueueUnseen, past: History) -> WhyTask:
    said = unseen.because.removeprefix(f"{unseen.node}: ")
    result = f"could not look: {unseen.node}: {said}"
    if unseen.rule == "suspended":
        result += f"; nothing is moved from there. arc nodes resume {unseen.node}"
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
    task: QueuedTask,
    node: NodeSeen,
    situation: Situation,
    past: History,
    *,
    drains: StealPlan,
    left_s: float | None,
) -> WhyTask:
    plan = situation.plan()
    steal = _found(task, drains.steals, plan.steals)
    kept = _kept(task, drains.kept, plan.kept)
    standing = standing_of(node, situation) or never_starts(task, node, situation.view)
    ways = () if steal else ways_for(task, node, situation)
    if a_word_starts(task, node, situation):
        ways = tuple(way for way in ways if not of_the_fleet(way))
    names = {change.node for way in ways for change in way.changes}
    steps = steps_of(task, situation, node.name, names)
    reach = reach_of(task, node, situation, left_s=left_s)
    because = f"{kept.objection.rule}: {kept.objection.because}" if kept else _skipped(
        plan, node, situation)  # fmt: skip
    result = _result(steal, because, steps)
    return WhyTask(
        task, node.name, _verdict(steal, ways, reach, standing),
        standing.says if standing and steal is None else result,
        _checks(task, node, situation), len(others_of(situation.view, node.name)), steps, ways,
        by_hand(task, node.name, situation), steal, kept.objection if kept else None,
        reach=reach, history=past, own_node=standing,
        receivers_say=result if standing and steal is None else "",
    )  # fmt: skip


def _found(task: QueuedTask, *plans: Sequence[Steal]) -> Steal | None:
    return next((one for plan in plans for one in plan if one.task.uid == task.uid), None)


def _kept(task: QueuedTask, *plans: Sequence[Kept]) -> Kept | None:
    return next((one for plan in plans for one in plan if one.task.uid == task.uid), None)


def _skipped(plan: StealPlan, node: NodeSeen, situation: Situation) -> str:
    """Why no plan was made, or why this node's queue had no part in it."""
    said = first_objection(busy_rules(situation.limits), node, situation.limits, situation.memory)
    own = f"{said.rule}: {node.name}: {said.because}" if said else ""
    if plan.skipped == "no idle":
        return "the rebalance is skipped: no node is idle"
    if plan.skipped and not own:  # it is short of work itself, and the only one
        return "the rebalance is skipped: no other node is idle"
    if plan.skipped:
        nobody = "the rebalance is skipped: no node has enough waiting to be taken from"
        return f"{nobody}; {own}"
    return own or f"{node.name}: nobody looked into its queue"


def _result(steal: Steal | None, because: str, steps: Sequence[Step]) -> str:
    """What comes of it, in a sentence."""
    if steal is not None:
        verb = "drains" if steal.why == "drained" else "moves"
        says = f"the next cycle {verb} it to {_place(steal.idle)}"
        return f"{says}: {RETRY_ELSEWHERE}: {steal.because}" if steal.why == "retried" else says
    receivers = steps[0].alone if steps else 0
    left = steps[-1].left if steps else 0
    if left:  # then what keeps it is no node that could take it
        able = f"{left} of {receivers} nodes could take it"
        return f"{able}, but the next cycle does not give it away; {because}"
    return f"0 of {receivers} nodes could take it now; {because}"


def _place(node: str) -> str:
    return "the hub's queue" if node == "inbox" else node


def _verdict(
    steal: Steal | None, ways: Sequence[Way], reach: Reach, standing: Standing | None
) -> str:
    """What a person has to do: wait, change something, or find out what is wrong."""
    if steal is not None:
        return WAIT
    if standing is not None:
        return CHANGE if ways else standing.verdict
    by_itself = any(all(change.kind == "wait" for change in way.changes) for way in ways)
    if reach.ahead is not None or by_itself:
        return WAIT
    return CHANGE if ways else ESCALATE


def _checks(task: QueuedTask, node: NodeSeen, situation: Situation) -> tuple[Check, ...]:
    """Every rule about the task itself, and about its node as one that is taken from."""
    limits = situation.limits
    rules = SWIFT_TASK_RULES if limits.swift else TASK_RULES
    of_task_itself = [(rule.__name__, rule(task, limits)) for rule in rules]
    of_node = [
        (rule.__name__, rule(node, limits, situation.memory)) for rule in busy_rules(limits)
    ]
    return tuple(Check(rule, said is None, said or "") for rule, said in of_task_itself + of_node)
