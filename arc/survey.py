"""Asks every node at once and lays the answers, and the failures, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType

from agent_node.clock import Clock
from agent_node.reports import StatusReport
from agent_node.strict import JsonObject

from .asking import read_report
from .decisions.domains import Role
from .decisions.view import FleetView, NodeSeen, NodeUnseen
from .errors import AnswerUnreadable, ArcError, NodeSilent
from .lateness import Lateness
from .links import Link
from .tally import NOT_OVER_A_WIRE
from .unseen import broken, silent_after, unseen

DEADLINE_S = 10.0
APART_S = 0.25  # after its cycle began; the others' answers and their plan are over by then
_NOBODYS = Role()


async def survey(
    links: Mapping[str, Link],
    *,
    roles: Mapping[str, Role],
    clock: Clock,
    deadline_s: float = DEADLINE_S,
    late: Lateness | None = None,
    known: Lateness | None = None,
    prompt: Mapping[str, float] = MappingProxyType({}),
) -> FleetView:
    """Every node of `links`, by name: seen with its report, or unseen and why.

    It returns when all have answered or run out of their own `deadline_s`; one silent node delays
    the survey by that much at most, and no other node's answer. With `late` it does not wait for
    those that are much later than the others: their answers are heard in the background. With
    `known` it does wait, and meets apart who failed the last time, as with `late`. `prompt` are
    others that answered a moment ago, and how long each took: they count when it is said who is
    late. Ages count from the receipt, by the hub's own seconds since boot.
    """
    at = clock.now()
    found = await _Round(links, roles, clock, deadline_s, late, known or late, prompt).take()
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
        return _Answered(self.link.name, report, self.role, received, received - self.asked, off_s)


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
        self, links: Mapping[str, Link], roles: Mapping[str, Role], clock: Clock,
        deadline_s: float, late: Lateness | None, known: Lateness | None,
        prompt: Mapping[str, float],
    ) -> None:  # fmt: skip
        self._links, self._roles = links, roles
        self._clock, self._deadline_s, self._late = clock, deadline_s, late
        self._known = known
        self._since = clock.now() - timedelta(seconds=clock.boottime())
        self._began = clock.boottime()
        self._came: list[tuple[_Asked, JsonObject | StatusReport | ArcError, float]] = []
        self._rings = asyncio.Event()
        self._looks: set[asyncio.Task[None]] = set()
        self._waiting = set(links)
        self._answered = dict(prompt)  # how long each took, over a wire
        self._found: dict[str, _Answered | NodeUnseen] = {}
        self._broke: BaseException | None = None  # a look ended as none should
        self._over = False  # what comes now is heard for the next round alone

    async def take(self) -> Mapping[str, _Answered | NodeUnseen]:
        """What became of each node."""
        began = asyncio.get_running_loop().time()
        for link in self._links.values():
            self._ask(link)
        try:
            while self._waiting and await self._rung(began):
                self._read_all()
            self._read_all()
            self._give_up()
        finally:
            if not self._over:
                for look in [*self._looks]:
                    look.cancel()
        return self._found

    async def _rung(self, began: float) -> bool:
        """Whether there is something to read; False: who has not answered is late."""
        limit_s = None
        if self._late is not None:
            limit_s = self._late.wait_s(self._waiting, self._answered, self._began)
        try:
            async with asyncio.timeout_at(None if limit_s is None else began + limit_s):
                await self._rings.wait()  # not for ever: every question has its own limit
        except TimeoutError:
            return False
        self._rings.clear()
        if self._broke is not None:
            raise self._broke
        return True

    def _read_all(self) -> None:
        came, self._came = self._came, []
        for one in came:
            self._read(*one)

    def _give_up(self) -> None:
        """The round is over; of those that are late, each is heard once more."""
        self._over = True
        if self._late is None:
            return
        for name in self._waiting:
            self._found[name] = self._still_unseen(name, self._how_late())
            self._late.gave_up(name, self._began)
        for look in self._looks:
            self._late.background.add(look)
            look.add_done_callback(self._late.background.discard)
        self._late.over(self._clock.boottime())

    def _how_late(self) -> str:
        ms = 1000 * (self._clock.boottime() - self._began)
        others = 1000 * max(self._answered.values(), default=0.0)
        return f" ({ms:.0f} ms; the others took {others:.0f} ms at most)"

    def _still_unseen(self, name: str, how_late: str) -> NodeUnseen:
        """What was wrong the last time says more than that it does not answer yet."""
        known = self._late.failure_of(name) if self._late is not None else None
        if known is not None:
            return replace(known, role=self._role(name))
        silent = NodeSilent(name, f"no answer yet{how_late}; nothing changed there")
        return unseen(name, self._role(name), silent)

    def _role(self, name: str) -> Role:
        return self._roles.get(name, _NOBODYS)

    def _ask(self, link: Link) -> None:
        """Its answer comes by itself; a node that has to be met first is looked at."""
        name, met = link.name, link.met
        asked_at = self._late.open.get(name) if self._late is not None else None
        if asked_at is not None:
            how_late = f", {self._began - asked_at:.1f} s after it was asked"
            self._found[name] = self._still_unseen(name, how_late)
            self._waiting.discard(name)
            return
        if met is not None:
            asked = _Asked(link, self._role(name), met.incarnation, self._clock.boottime())
            if link.put("status", partial(self._tell, asked), timeout_s=self._deadline_s):
                return
        self._look_at(link)

    def _tell(self, asked: _Asked, said: JsonObject | StatusReport | ArcError) -> None:
        self._came.append((asked, said, self._clock.boottime()))
        self._rings.set()
        if self._over:
            self._read_all()

    def _read(
        self, asked: _Asked, said: JsonObject | StatusReport | ArcError, received: float
    ) -> None:
        name = asked.link.name
        if isinstance(said, ArcError):
            self._settle(unseen(name, asked.role, said), name)
            return
        try:
            report = read_report(name, asked.incarnation, said)
            self._settle(asked.answered(report, received, self._since), name)
        except AnswerUnreadable as error:
            says = said.incarnation if isinstance(said, StatusReport) else said.get("incarnation")
            if says != asked.incarnation and not self._over:
                self._look_at(asked.link)  # it has to be met anew
            else:
                self._settle(unseen(name, asked.role, error), name)

    def _settle(self, found: _Answered | NodeUnseen, name: str) -> None:
        """What became of this node; after the round it is only told on."""
        failed = found if isinstance(found, NodeUnseen) else None
        if self._over:
            if self._late is not None:
                self._late.came(name, self._clock.boottime(), failed)
            return
        self._found[name] = found
        self._waiting.discard(name)
        if isinstance(found, _Answered) and name != NOT_OVER_A_WIRE:
            self._answered[name] = found.took_s
        if self._late is None:
            return
        if isinstance(found, NodeUnseen):
            self._late.failed(name, found)
        else:
            self._late.answered(name, found.took_s)

    def _look_at(self, link: Link) -> None:
        look = asyncio.create_task(self._look(link, self._role(link.name), self._apart_s(link)))
        self._looks.add(look)
        look.add_done_callback(partial(self._looked, link.name))

    def _apart_s(self, link: Link) -> float:
        """Who failed the last time is met apart from the cycle, which does not wait for it: keys
        and a flood of bytes take the loop from those that answer. Alone it holds nobody up.
        """
        known = self._known
        if known is None or link.met is not None or known.failure_of(link.name) is None:
            return 0.0
        others = self._links.keys() - {NOT_OVER_A_WIRE}
        return APART_S if any(known.failure_of(name) is None for name in others) else 0.0

    def _looked(self, name: str, look: asyncio.Task[None]) -> None:
        self._looks.discard(look)
        error = None if look.cancelled() else look.exception()
        if error is not None and self._over:  # a question is never left open
            self._settle(unseen(name, self._role(name), broken(name, error)), name)
        self._broke = self._broke or error
        self._rings.set()

    async def _look(self, link: Link, role: Role, apart_s: float) -> None:
        if apart_s:
            await asyncio.sleep(apart_s)
        asked = self._clock.boottime()
        found: _Answered | NodeUnseen
        try:
            async with asyncio.timeout(self._deadline_s):
                report = await _report(link, self._deadline_s)
            one, received = _Asked(link, role, "", asked), self._clock.boottime()
            found = one.answered(report, received, self._since)
        except ArcError as error:
            found = unseen(link.name, role, error)
        except TimeoutError:
            found = unseen(link.name, role, silent_after(link.name, self._deadline_s))
        self._settle(found, link.name)


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
