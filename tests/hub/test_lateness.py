"""A cycle waits for no node much longer than for the others, and hears it nevertheless."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_node.strict import JsonObject
from arc.decisions.view import FleetView
from arc.errors import ArcError, LoginRefused, NodeSilent, NodeUnreachable
from arc.lateness import LEAST_S, SHARE, Lateness
from arc.links import Link, Told
from arc.survey import APART_S, survey
from tests.builders import FakeClock
from tests.hub.links.test_familiar import a_status
from tests.hub_nodes import ALink
from tests.virtual_time import LoopClock, VirtualLoop, in_virtual_time

LIFE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
NEVER = 1e9


class OpenLink(ALink):
    """One whose session is open: what is put is told when it comes, or when its time is over."""

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        async def tell() -> None:
            try:
                async with asyncio.timeout(timeout_s):
                    said: JsonObject | ArcError = await self.ask(do)
            except TimeoutError:
                said = NodeSilent(self.name, "not answered")
            told(said)

        self.told = asyncio.create_task(tell())
        return True


@dataclass
class Fleet:
    """Nodes that answer after so many seconds each, and the cycles that look at them."""

    takes: dict[str, float]
    late: Lateness = field(default_factory=Lateness)
    asked: dict[str, int] = field(default_factory=dict)
    kind: type[ALink] = ALink
    links: dict[str, Link] = field(default_factory=dict)

    def link(self, name: str) -> Link:
        async def say(do: str, fields: JsonObject) -> JsonObject:
            self.asked[name] = self.asked.get(name, 0) + 1
            await asyncio.sleep(self.takes[name])
            return a_status(node=name)

        return self.links.setdefault(name, self.kind(name, say, incarnation=LIFE))

    async def cycle(self, *, pause_s: float = 300.0) -> tuple[FleetView, float]:
        """One look after so long a pause, and how long it took."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(pause_s)
        links: Mapping[str, Link] = {name: self.link(name) for name in self.takes}
        began = loop.time()
        view = await survey(links, roles={}, clock=LoopClock(loop), late=self.late)
        return view, loop.time() - began


async def whole(story: Coroutine[Any, Any, None]) -> None:
    """And until every question that was left open has run out of its time."""
    await story
    await asyncio.sleep(20)


def names(view: FleetView) -> list[str]:
    return [node.name for node in view.seen]


@pytest.mark.parametrize("kind", [ALink, OpenLink])
@pytest.mark.parametrize("pause_s", [0.2, 2.0, 300.0])
def test_a_node_that_went_silent_costs_the_others_a_twentieth_at_most_at_any_pace(
    pause_s: float, kind: type[ALink]
) -> None:
    """Seen to fail (10 s in each cycle) without `late`, and with `_late` never filled."""

    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.001}, kind=kind)
        await fleet.cycle(pause_s=pause_s)
        fleet.takes["loom"] = NEVER
        view, took_s = await fleet.cycle(pause_s=pause_s)
        assert took_s == pytest.approx(LEAST_S)
        assert names(view) == ["ada", "iris"]
        assert (view.unseen[0].name, view.unseen[0].rule) == ("loom", "silent")
        assert "no answer yet (250 ms; the others took 3 ms at most)" in view.unseen[0].because
        for _ in range(40):
            view, took_s = await fleet.cycle(pause_s=pause_s)
            assert took_s <= max(SHARE * pause_s, 4 * 0.003) + 1e-6
            assert (names(view), view.unseen[0].rule) == (["ada", "iris"], "silent")

    in_virtual_time(whole(story()))


@pytest.mark.parametrize("kind", [ALink, OpenLink])
def test_a_node_that_takes_questions_and_answers_none_costs_the_others_nothing(
    kind: type[ALink]
) -> None:
    """Seen to fail (12 ms in each cycle): its session stands, so four times as long as the others
    take was waited for it. Once it answers it is late once.
    """

    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.001}, kind=kind)
        await fleet.cycle()
        fleet.takes["loom"] = NEVER
        await fleet.cycle()
        for _ in range(10):
            view, took_s = await fleet.cycle(pause_s=20)  # its last question has run out
            assert took_s == pytest.approx(0.003)
            assert (names(view), view.unseen[0].rule) == (["ada", "iris"], "silent")
        fleet.takes["loom"] = 0.008
        await fleet.cycle(pause_s=20)
        view, _ = await fleet.cycle(pause_s=20)
        assert names(view) == ["ada", "iris", "loom"]

    in_virtual_time(whole(story()))


@pytest.mark.parametrize("pause_s", [0.5, 2.0, 20.0, 300.0])
def test_a_node_that_drips_its_answers_costs_no_more(pause_s: float) -> None:
    """Seen to fail without SHARE."""

    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.001})
        await fleet.cycle()
        fleet.takes["loom"] = 0.9
        await fleet.cycle(pause_s=pause_s)
        for _ in range(40):
            _, took_s = await fleet.cycle(pause_s=pause_s)
            assert took_s <= max(SHARE * pause_s, 4 * 0.003) + SHARE + 1e-6

    in_virtual_time(whole(story()))


def test_a_distant_node_is_late_once_and_then_waited_for() -> None:
    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.3})
        fleet.late.answered("loom", 0.002)
        for name in ("ada", "iris"):
            fleet.late.answered(name, 0.002)
        view, _ = await fleet.cycle()
        assert names(view) == ["ada", "iris"]
        for _ in range(5):
            view, took_s = await fleet.cycle()
            assert names(view) == ["ada", "iris", "loom"]
            assert took_s == pytest.approx(0.3)

    in_virtual_time(whole(story()))


def test_one_question_at_a_time_is_open_beyond_its_cycle_and_its_end_is_told_once() -> None:
    """Seen to fail with every cycle asking anew."""

    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.001})
        await fleet.cycle()
        fleet.takes["loom"] = NEVER
        for _ in range(10):
            view, _ = await fleet.cycle(pause_s=0.5)
        assert fleet.asked["loom"] == 2
        assert "s after it was asked" in view.unseen[0].because
        assert (fleet.late.take(), len(fleet.late.background)) == ((set(), []), 1)
        for _ in range(60):
            await fleet.cycle(pause_s=0.5)
        came, news = fleet.late.take()
        assert [(one.node, one.event) for one in news] == [("loom", "answer_never_came")]
        assert news[0].took_s == pytest.approx(10)
        assert (came, fleet.asked["loom"]) == (set(), 5)
        fleet.takes["loom"] = 0.001
        await fleet.cycle(pause_s=11)
        view, _ = await fleet.cycle()
        assert names(view) == ["ada", "iris", "loom"]
        assert not fleet.late.background

    in_virtual_time(whole(story()))


def test_an_answer_that_came_late_is_asked_for_again_soon() -> None:
    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.001}, kind=OpenLink)
        await fleet.cycle()
        fleet.takes["loom"] = 2.0
        await fleet.cycle()
        await fleet.cycle(pause_s=3)
        came, news = fleet.late.take()
        assert (came, [one.event for one in news]) == ({"loom"}, ["answer_came_late"])
        assert news[0].took_s == pytest.approx(2)

    in_virtual_time(whole(story()))


def test_where_most_are_slow_nobody_is_late() -> None:
    """A hub whose own line is slow does not take the one node beside it for the measure."""

    async def story() -> None:
        fleet = Fleet({"ada": 0.001, "iris": 0.9, "loom": 0.8})
        for name in fleet.takes:
            fleet.late.answered(name, 0.001)
        view, _ = await fleet.cycle()
        assert names(view) == ["ada", "iris", "loom"]

    in_virtual_time(whole(story()))


def test_a_node_that_asks_for_cycles_of_its_own_and_says_nothing_holds_them_up_once() -> None:
    """Nobody else is asked in such a cycle, so what the others took before is the measure."""

    async def story() -> None:
        fleet = Fleet({"ada": 0.003, "iris": 0.002, "loom": 0.001})
        await fleet.cycle()
        fleet.takes = {"loom": NEVER}
        _, took_s = await fleet.cycle()
        assert took_s == pytest.approx(10)
        for _ in range(40):
            _, took_s = await fleet.cycle(pause_s=0.2)
            assert took_s <= 4 * 0.003 + 1e-6

    in_virtual_time(whole(story()))


def test_a_first_contact_takes_as_long_as_it_takes() -> None:
    """Seen to fail without `_known`."""

    async def story() -> None:
        fleet = Fleet({"ada": 0.001, "iris": 0.002, "loom": 3.0})
        view, took_s = await fleet.cycle()
        assert names(view) == ["ada", "iris", "loom"]
        assert took_s == pytest.approx(3)

    in_virtual_time(whole(story()))


async def test_what_breaks_inside_a_look_ends_the_survey_and_hangs_nobody() -> None:
    async def say(do: str, fields: JsonObject) -> JsonObject:
        raise ZeroDivisionError

    async with asyncio.timeout(5):
        with pytest.raises(ZeroDivisionError):
            await survey({"loom": ALink("loom", say)}, roles={}, clock=FakeClock(), late=Lateness())


@dataclass
class Anew:
    """One node whose session stands, and loom, which has to be met anew in each cycle."""

    takes_s: float = 0.06
    says: Exception | None = None
    late: Lateness = field(default_factory=Lateness)
    beside: str = "ada"
    met_at: list[float] = field(default_factory=list)  # by the loop's clock, each try

    def links(self) -> dict[str, Link]:
        async def say(do: str, fields: JsonObject) -> JsonObject:
            await asyncio.sleep(0.005)
            return a_status(node=self.beside)

        async def say_late(do: str, fields: JsonObject) -> JsonObject:
            self.met_at.append(asyncio.get_running_loop().time())
            await asyncio.sleep(self.takes_s)
            if self.says is not None:
                raise self.says
            return a_status(node="loom")

        loom = ALink("loom", say_late, incarnation=LIFE)
        loom.is_met = False
        return {self.beside: OpenLink(self.beside, say, incarnation=LIFE), "loom": loom}

    async def cycle(self, pause_s: float = 300.0) -> tuple[FleetView, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(pause_s)
        began = loop.time()
        view = await survey(self.links(), roles={}, clock=LoopClock(loop), late=self.late)
        return view, loop.time() - began


def test_a_session_that_is_opened_in_vain_costs_the_others_nothing() -> None:
    """Seen to fail (65 ms in each cycle): whoever lets sessions begin and breaks them was waited
    for to the end of each."""

    async def story() -> None:
        fleet = Anew(says=LoginRefused("loom", "it took no key of ours"))
        await fleet.cycle()
        for _ in range(10):
            view, took_s = await fleet.cycle()
            assert took_s == pytest.approx(0.005)
            assert names(view) == ["ada"]

    in_virtual_time(whole(story()))


def test_who_failed_is_met_apart_from_the_cycle_in_which_the_others_answer() -> None:
    """Seen to fail: keys were exchanged, and a flood of bytes taken in, while the hub had the
    answers of the others to read. It is so too in a look that waits for everybody.
    """

    async def story() -> None:
        fleet = Anew(says=NodeUnreachable("loom", "it said what is no message"))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = LoopClock(loop)
        await fleet.cycle()
        for _ in range(3):
            await fleet.cycle()
            began = loop.time() - 0.005
            await asyncio.sleep(1)
            assert fleet.met_at.pop() - began == pytest.approx(APART_S)
        began = loop.time()
        view = await survey(fleet.links(), roles={}, clock=clock, known=fleet.late)
        assert names(view) == ["ada"]
        assert fleet.met_at.pop() - began == pytest.approx(APART_S)

    in_virtual_time(whole(story()))


def test_who_failed_and_is_asked_alone_or_by_a_person_is_met_at_once() -> None:
    """It holds nobody up, and whoever looks wants to know now."""

    async def story() -> None:
        fleet = Anew(says=NodeUnreachable("loom", "nobody listens"))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = LoopClock(loop)
        await fleet.cycle()
        await asyncio.sleep(1)
        for links, late in (({"loom": fleet.links()["loom"]}, fleet.late), (fleet.links(), None)):
            began = loop.time()
            await survey(links, roles={}, clock=clock, late=late)
            assert fleet.met_at.pop() == pytest.approx(began)

    in_virtual_time(whole(story()))


def test_its_own_reason_stands_while_it_is_tried_again() -> None:
    """Seen to fail: `silent`, no answer yet, where a person has to see to a key."""

    async def story() -> None:
        fleet = Anew(says=LoginRefused("loom", "it took no key of ours"))
        for pause_s in (300, 300, 300, 0.01, 300):
            view, _ = await fleet.cycle(pause_s)
            (loom,) = view.unseen
            assert (loom.rule, loom.code) == ("login", LoginRefused.code)
            assert "took no key of ours" in loom.because

    in_virtual_time(whole(story()))


def test_who_answers_after_all_is_waited_for_and_asked_soon() -> None:
    async def story() -> None:
        fleet = Anew(says=LoginRefused("loom", "it took no key of ours"))
        for _ in range(3):
            await fleet.cycle()
        fleet.says = None
        await fleet.cycle()
        await asyncio.sleep(1)
        came, _ = fleet.late.take()
        assert came == {"loom"}
        view, _ = await fleet.cycle()
        assert names(view) == ["ada", "loom"]

    in_virtual_time(whole(story()))


def test_the_hubs_own_queue_is_nobody_whom_a_node_could_hold_up() -> None:
    """Seen to fail: once every node had failed (the hub's own network was away), no cycle waited
    longer than for the inbox, which takes no time; all stayed unseen for one interval more.
    """

    async def story() -> None:
        fleet = Anew(says=NodeSilent("loom", "no route"), beside="inbox")
        for pause_s in (300.0, 300.0, 300.0):
            view, took_s = await fleet.cycle(pause_s)
            assert (names(view), took_s <= 1.0) == (["inbox"], True)
            await asyncio.sleep(1)
        fleet.says = None
        view, _ = await fleet.cycle()
        assert names(view) == ["inbox", "loom"]

    in_virtual_time(whole(story()))


def test_a_look_that_breaks_behind_its_cycle_leaves_nobody_out_for_ever() -> None:
    """Seen to fail: its question was open from then on, so that no cycle asked the node again."""

    async def story() -> None:
        fleet = Anew(takes_s=2.0)
        fleet.late.answered("loom", 0.005)
        fleet.late.answered("ada", 0.005)
        fleet.says = ZeroDivisionError()
        await fleet.cycle()
        await asyncio.sleep(20)
        assert fleet.late.open == {}
        reason = fleet.late.failure_of("loom")
        assert reason is not None
        assert "ZeroDivisionError" in reason.because
        fleet.says, fleet.takes_s = None, 0.006
        await fleet.cycle()
        view, _ = await fleet.cycle()
        assert names(view) == ["ada", "loom"]

    in_virtual_time(whole(story()))
