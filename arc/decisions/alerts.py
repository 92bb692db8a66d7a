"""Tells what is new about the nodes' health since the last look, each thing once; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .health import Judgement


@dataclass(frozen=True)
class Alert:
    """One trouble of one node, as it is told when it begins and when it ends."""

    node: str
    rule: str
    because: str


@dataclass(frozen=True)
class Edge:
    """What is new since the last judgement, and what to remember until the next one."""

    began: tuple[Alert, ...] = ()
    ended: tuple[Alert, ...] = ()
    standing: tuple[Alert, ...] = ()


def edge(previous: Sequence[Alert], now: Sequence[Judgement]) -> Edge:
    """What began and what ended since `previous`, the `standing` of the last edge.

    A trouble of a node that cannot be seen now has not ended: it stands until the node itself
    shows otherwise. A node that left the fleet takes its troubles with it, as ended.
    """
    before = {(alert.node, alert.rule) for alert in previous}
    raised = [
        Alert(judged.node, found.rule, found.because)
        for judged in now for found in judged.troubles if found.alarm
    ]  # fmt: skip
    raised_now = {(alert.node, alert.rule) for alert in raised}
    out_of_sight = {judged.node for judged in now if not judged.known}
    over = [alert for alert in previous if (alert.node, alert.rule) not in raised_now]
    return Edge(
        began=tuple(alert for alert in raised if (alert.node, alert.rule) not in before),
        ended=tuple(alert for alert in over if alert.node not in out_of_sight),
        standing=(*raised, *(alert for alert in over if alert.node in out_of_sight)),
    )
