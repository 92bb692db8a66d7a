"""Answers why one task is where it is: rule by rule, node by node, and what would move it; pure."""

from __future__ import annotations

from collections.abc import Sequence

from .answers import CHANGE, ESCALATE, WAIT, Check, History, Step, Way, WhyTask
from .changes import Situation
from .domains import powers_of
from .explain import Steal
from .node_rules import busy_rules, first_objection, fresh_report, work_succeeds
from .objections import Objection
from .rules import SWIFT_TASK_RULES, TASK_RULES
from .sifting import others_of, steps_of
from .view import FleetView, NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen
from .ways import ways_for
from .why_node import why_node
from .why_states import LIVES

__all__ = ("why_node", "why_task")


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
    ways = () if steal else tuple(ways_for(task, node, situation))
    names = {change.node for way in ways for change in way.changes}
    steps = steps_of(task, situation, node.name, names)
    place, reach_s = _reach(task, node, situation)
    result, verdict = _result(steal, kept, ways, reach_s, steps)
    by_hand = _by_hand(task, node, situation.view)
    return WhyTask(
        task, node.name, verdict, result, _checks(task, node, situation),
        len(others_of(situation.view, node.name)), steps, ways, by_hand,
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


