"""Asks every node at once and lays the answers, and the failures, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from agent_node.clock import Clock, parse_iso
from agent_node.reports import StatusReport
from agent_node.strict import JsonObject

from .asking import read_queue, read_report
from .decisions.domains import Role
from .decisions.view import FleetView, NodeSeen, NodeUnseen, Queue, Queues, QueueUnseen
from .errors import (
    AnswerUnreadable,
    ArcError,
    HostKeyChanged,
    HostKeyType,
    HostKeyUnknown,
    LoginRefused,
    NodeRefused,
    NodeSilent,
    NodeUnreachable,
    NoNodeProgram,
    OtherHub,
    OutcomeUnknown,
    WrongNode,
)
from .links import Link

DEADLINE_S = 10.0

# The first class that fits names the rule; a class stands before those it is a kind of.
_RULES: tuple[tuple[type[ArcError], str], ...] = (
    (OtherHub, "other_hub"),
    (HostKeyChanged, "host_key"), (HostKeyUnknown, "host_key"), (HostKeyType, "host_key"),
    (LoginRefused, "login"), (NoNodeProgram, "no_node"), (WrongNode, "wrong_node"),
    (NodeSilent, "silent"), (NodeUnreachable, "unreachable"), (OutcomeUnknown, "silent"),
    (AnswerUnreadable, "unreadable"), (NodeRefused, "refused"),
)  # fmt: skip


async def survey(
    links: Mapping[str, Link],
    *,
    roles: Mapping[str, Role],
    clock: Clock,
    deadline_s: float = DEADLINE_S,
) -> FleetView:
    """Every node of `links`, by name: seen with its report, or unseen and why.

    It returns when all have answered or run out of their own `deadline_s`; one silent node delays
    the survey by that much at most, and no other node's answer. Ages count from the receipt, by
    the hub's own seconds since boot.
    """
    at = clock.now()
    names = sorted(links)
    found = await asyncio.gather(*(
        _look(links[name], roles.get(name, Role()), clock, deadline_s) for name in names
    ))  # fmt: skip
    over = clock.boottime()
    seen = tuple(
        NodeSeen(one.name, one.report, one.role, over - received, one.took_s, one.clock_off_s)
        for one, received in found
        if isinstance(one, NodeSeen)
    )
    return FleetView(at, seen, tuple(one for one, _ in found if isinstance(one, NodeUnseen)))


async def _look(
    link: Link, role: Role, clock: Clock, deadline_s: float
) -> tuple[NodeSeen | NodeUnseen, float]:
    """One node, and when it had answered by the hub's seconds since boot."""
    asked, asked_at = clock.boottime(), clock.now()
    try:
        async with asyncio.timeout(deadline_s):
            report = await _report(link, deadline_s)
        received = clock.boottime()
        took_s = received - asked
        # The node wrote at some moment of the round trip; half of it is the fairest guess.
        off_s = (parse_iso(report.written_at) - asked_at).total_seconds() - took_s / 2
    except ArcError as error:
        return _unseen(link.name, role, error), clock.boottime()
    except TimeoutError:
        return _unseen(link.name, role, _silent(link.name, deadline_s)), clock.boottime()
    return NodeSeen(link.name, report, role, 0.0, took_s, round(off_s, 3)), received


async def _report(link: Link, deadline_s: float) -> StatusReport:
    """A node that came back as another one while the session stood is met anew, once."""
    met = await link.meet()
    result = await link.ask("status", timeout_s=deadline_s)
    try:
        return read_report(link.name, met.incarnation, result)
    except AnswerUnreadable:
        if result.get("incarnation") == met.incarnation:
            raise
    met = await link.meet(anew=True)
    result = await link.ask("status", timeout_s=deadline_s)
    return read_report(link.name, met.incarnation, result)


def _silent(node: str, deadline_s: float) -> NodeSilent:
    return NodeSilent(node, f"no answer within {deadline_s:g}s; nothing changed there")


def _unseen(node: str, role: Role, error: ArcError) -> NodeUnseen:
    return NodeUnseen(node, rule_of(error), str(error), error.code, role)


def rule_of(error: ArcError) -> str:
    """The rule by which a node counts as unseen: unreachable, host_key, login, silent, …"""
    return next((rule for kind, rule in _RULES if isinstance(error, kind)), "unreachable")


async def look_into(
    links: Mapping[str, Link],
    names: Iterable[str],
    request: JsonObject,
    *,
    deadline_s: float = DEADLINE_S,
) -> Queues:
    """The candidates of these queues, all asked at once with the same `candidates` request.

    A queue that could not be looked into is `QueueUnseen` and never an empty queue. Each node has
    `deadline_s` of its own.
    """
    wanted = sorted(set(names))
    found = await asyncio.gather(*(
        _queue(links[name], name, request, deadline_s) for name in wanted
    ))  # fmt: skip
    return {queue.node: queue for queue in found}


async def _queue(
    link: Link, name: str, request: JsonObject, deadline_s: float
) -> Queue | QueueUnseen:
    try:
        async with asyncio.timeout(deadline_s):
            result = await link.ask("candidates", request, timeout_s=deadline_s)
        return read_queue(name, result)
    except ArcError as error:
        return QueueUnseen(name, rule_of(error), str(error), error.code)
    except TimeoutError:
        silent = _silent(name, deadline_s)
        return QueueUnseen(name, "silent", str(silent), silent.code)
