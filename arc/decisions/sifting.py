"""Sifts the nodes that might receive one task, one condition after the other; pure."""

from __future__ import annotations

from collections.abc import Collection

from .answers import Dropped, Step
from .changes import Situation
from .domains import belongs_to, powers_of
from .node_rules import idle_rules
from .rules import PAIR_RULES, Move
from .view import FleetView, NodeSeen, NodeUnseen, QueuedTask


def steps_of(
    task: QueuedTask, situation: Situation, where: str, changeable: Collection[str]
) -> tuple[Step, ...]:
    """The receivers, sifted by one condition after the other; the first step is all of them."""
    others = others_of(situation.view, where)
    said = {node.name: all_said(task, node, situation) for node in others}
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


def all_said(
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


def others_of(view: FleetView, where: str) -> list[NodeSeen | NodeUnseen]:
    """Every node of the view but this one, by name."""
    both: tuple[NodeSeen | NodeUnseen, ...] = (*view.seen, *view.unseen)
    return sorted((node for node in both if node.name != where), key=lambda node: node.name)
