"""Answers why a node gets nothing, or gives nothing: its own conditions, then what waits; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_node.text import counted

from .answers import Check, WhyNode
from .changes import Situation
from .domains import belongs_to, powers_of
from .draining import DRAINING, pinned_there
from .explain import Steal, StealPlan
from .node_rules import NodeRule, busy_rules, idle_rules
from .objections import Objection
from .rules import PAIR_RULES, Move, first_of, task_objections
from .stranded import NOBODY_LOOKED, Stranded, stranded_now
from .view import NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen

MAY_BE_GIVEN = "may_be_given"  # no rule about the task or its domain speaks against it


def why_node(name: str, situation: Situation, *, drains: Sequence[Steal] = ()) -> WhyNode:
    """What this node is in the next plan, what it gets and loses, and what keeps the rest away.

    `elsewhere` counts every task that was seen on other nodes by the first rule that keeps it
    from this one, caps and counts aside; `may_be_given` are those that no such rule keeps. `drains`
    is what the same run moves off draining nodes, before it steals anything.
    """
    node = situation.view.node(name)
    unread = tuple(one for one in situation.queues.values() if isinstance(one, QueueUnseen))
    if not isinstance(node, NodeSeen):
        because = node.because if isinstance(node, NodeUnseen) else "the fleet has no such node"
        answers = (Check("node_answers", met=False, said=because),)
        return WhyNode(name, "out", answers, answers, could_not_look=unread)
    plan = situation.plan()
    part = {one.name: one.part for one in plan.nodes}[name]
    stranded = stranded_now(
        situation.view, situation.queues, domains=situation.domains, limits=situation.limits,
        memory=situation.memory,
    )  # fmt: skip
    return WhyNode(
        name, part,
        _checks(idle_rules(situation.limits), node, situation),
        _checks(busy_rules(situation.limits), node, situation),
        tuple(steal for steal in (*drains, *plan.steals) if steal.idle == name),
        tuple(steal for steal in (*drains, *plan.steals) if steal.busy == name),
        _elsewhere(node, situation),
        _by_the_plan(next((one for one in stranded if one.node == name), None), plan),
        unread,
        _drains(node),
    )  # fmt: skip


def _by_the_plan(stranded: Stranded | None, plan: StealPlan) -> Stranded | None:
    """The rule by which the plan keeps that task, for counts are rules too; a node that gets
    another one was only not looked at.
    """
    if stranded is None or stranded.cause != NOBODY_LOOKED or not stranded.uid:
        return stranded
    goes = next((one for one in plan.steals if one.idle == stranded.node), None)
    if goes is not None:
        return replace(stranded, uid=goes.task.uid, beside=goes.busy)
    kept = next((one.objection for one in plan.kept if one.task.uid == stranded.uid), None)
    if kept is None:
        return stranded
    return replace(stranded, cause="rule", rule=kept.rule, because=kept.because)


def _drains(node: NodeSeen) -> str:
    """What a node that is to be empty is: nothing is stolen from it, and yet its work leaves."""
    state, pinned = node.report.state, pinned_there(node)
    if state not in DRAINING:
        return ""
    leaves = node.report.pending_count > pinned
    parts = [f"{state}: it is given nothing"]
    parts += ["its drain moves what waits there to others"] if leaves else []
    stay = f"{counted(pinned, 'pinned task')} stay{'s' * (pinned == 1)}"
    parts += [f"{stay}, for no drain moves what is pinned"] if pinned else []
    return ", and ".join(parts if len(parts) > 1 else [*parts, "nothing waits there"])


def _checks(
    rules: Iterable[NodeRule], node: NodeSeen, situation: Situation
) -> tuple[Check, ...]:
    said = [(rule.__name__, rule(node, situation.limits, situation.memory)) for rule in rules]
    return tuple(Check(rule, why is None, why or "") for rule, why in said)


def _elsewhere(node: NodeSeen, situation: Situation) -> tuple[tuple[str, int, str], ...]:
    counts: dict[str, tuple[int, str]] = {}
    for name, queue in situation.queues.items():
        if name == node.name or not isinstance(queue, Queue):
            continue
        for task in queue.tasks:
            said = _objection(task, node, situation) or Objection(MAY_BE_GIVEN, "")
            known = counts.get(said.rule, (0, said.because))
            counts[said.rule] = (known[0] + 1, known[1])
    return tuple(sorted(((rule, *said) for rule, said in counts.items()),
                        key=lambda one: (-one[1], one[0])))  # fmt: skip


def _objection(task: QueuedTask, node: NodeSeen, situation: Situation) -> Objection | None:
    limits = situation.limits
    said = task_objections(task, limits)
    if said:
        return said[0]
    refused = situation.memory.refused_s.get((task.uid, node.name))
    move = Move(task, belongs_to(task, situation.domains), "", 0, node, powers_of(node),
                refused_s=refused)  # fmt: skip
    return first_of(PAIR_RULES, move, limits)
