"""Asks every node at once and lays the answers, and the failures, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from agent_node.clock import Clock
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
_NOBODYS = Role()

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
    found = await _Round(links, roles, clock, deadline_s).take()
    over = clock.boottime()
    told = [found[name] for name in sorted(links)]
    seen = tuple(one.aged(over) for one in told if isinstance(one, _Answered))
    return FleetView(at, seen, tuple(one for one in told if isinstance(one, NodeUnseen)))


@dataclass(slots=True)
class _Asked:
    """One node, and when it was asked, by the hub's seconds since boot."""

    link: Link
    role: Role
    incarnation: str
    asked: float

    def answered(self, report: StatusReport, received: float, since: datetime) -> _Answered:
        """Seen; `since` is when the hub booted, by its wall clock as it is now."""
        # The node wrote at some moment of the round trip; its middle is the fairest guess.
        wrote = (datetime.fromisoformat(report.written_at) - since).total_seconds()
        off_s = round(wrote - (self.asked + received) / 2, 3)
        return _Answered(
            self.link.name, report, self.role, received, received - self.asked, off_s
        )


@dataclass(slots=True)
class _Answered:
    """A node that was seen, and when it had answered, by the hub's seconds since boot."""

    name: str
    report: StatusReport
    role: Role
    received: float
    took_s: float
    clock_off_s: float

    def aged(self, now: float) -> NodeSeen:
        age_s = now - self.received
        return NodeSeen(self.name, self.report, self.role, age_s, self.took_s, self.clock_off_s)


class _Round:
    """One round of questions. A node whose session is open costs neither a task nor a timer: it is
    asked at once, and read as it answers. All others are looked at meanwhile, one by one.
    """

    def __init__(
        self, links: Mapping[str, Link], roles: Mapping[str, Role], clock: Clock, deadline_s: float
    ) -> None:
        self._links, self._roles = links, roles
        self._clock, self._deadline_s = clock, deadline_s
        self._since = clock.now() - timedelta(seconds=clock.boottime())
        self._came: list[tuple[_Asked, JsonObject | ArcError, float]] = []
        self._rings = asyncio.Event()
        self._looks: list[asyncio.Task[None]] = []
        self._found: dict[str, _Answered | NodeUnseen] = {}

    async def take(self) -> Mapping[str, _Answered | NodeUnseen]:
        """What became of each node."""
        missing = sum(map(self._put, self._links.values()))
        try:
            while missing:
                await self._rings.wait()  # not for ever: each has the limit that `put` was given
                self._rings.clear()
                came, self._came = self._came, []
                missing -= len(came)
                for one in came:
                    self._read(*one)
            await asyncio.gather(*self._looks)
        finally:
            for look in self._looks:
                look.cancel()
        return self._found

    def _put(self, link: Link) -> bool:
        """Whether its answer comes by itself; a node that has to be met first is looked at."""
        role, met = self._roles.get(link.name, _NOBODYS), link.met
        if met is not None:
            asked = _Asked(link, role, met.incarnation, self._clock.boottime())
            if link.put("status", partial(self._tell, asked), timeout_s=self._deadline_s):
                return True
        self._look_at(link, role)
        return False

    def _tell(self, asked: _Asked, said: JsonObject | ArcError) -> None:
        self._came.append((asked, said, self._clock.boottime()))
        self._rings.set()

    def _read(self, asked: _Asked, said: JsonObject | ArcError, received: float) -> None:
        name = asked.link.name
        if isinstance(said, ArcError):
            self._found[name] = _unseen(name, asked.role, said)
            return
        try:
            report = read_report(name, asked.incarnation, said)
            self._found[name] = asked.answered(report, received, self._since)
        except AnswerUnreadable as error:
            if said.get("incarnation") != asked.incarnation:
                self._look_at(asked.link, asked.role)  # it has to be met anew
            else:
                self._found[name] = _unseen(name, asked.role, error)

    def _look_at(self, link: Link, role: Role) -> None:
        self._looks.append(asyncio.create_task(self._look(link, role)))

    async def _look(self, link: Link, role: Role) -> None:
        asked = self._clock.boottime()
        try:
            async with asyncio.timeout(self._deadline_s):
                report = await _report(link, self._deadline_s)
            one, received = _Asked(link, role, "", asked), self._clock.boottime()
            self._found[link.name] = one.answered(report, received, self._since)
        except ArcError as error:
            self._found[link.name] = _unseen(link.name, role, error)
        except TimeoutError:
            self._found[link.name] = _unseen(link.name, role, _silent(link.name, self._deadline_s))


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
