"""What a run asks is counted and timed, also what it takes to reach a node at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_node.clock import Clock
from agent_node.strict import JsonObject
from arc.errors import NodeUnreachable
from arc.links import Met
from arc.links.pipes import PipeWay
from arc.survey import survey
from arc.tally import SlowAsk, Tally
from tests.hub.links.places import a_home, a_link
from tests.hub_nodes import ALink
from tests.virtual_time import LoopClock, VirtualLoop, in_virtual_time


async def test_a_first_contact_costs_a_hello_for_each_node(tmp_path: Path) -> None:
    """Seen to fail with the meeting not counted: five requests were told where ten had left."""
    names = ("forge", "iris", "loom", "spark", "wren")
    links = {name: a_link(PipeWay(name, a_home(tmp_path, name)), name=name) for name in names}
    clock = links["iris"]._clock
    first = Tally(links, clock)
    view = await survey(first.links, roles={}, clock=clock)
    assert len(view.seen) == 5
    assert dict(first.asked) == {"hello": 5, "status": 5}
    assert first.requests == sum(link.requests for link in links.values()) == 10
    again = Tally(links, clock)
    await survey(again.links, roles={}, clock=clock)
    assert dict(again.asked) == {"status": 5}
    for link in links.values():
        await link.close()


class Far(ALink):
    """A node whose login takes so long, and which may then not be there after all."""

    def __init__(self, login_s: float, *, there: bool = True, listens: bool = False) -> None:
        super().__init__("iris", _says_nothing)
        self.login_s, self.there, self.is_met = login_s, there, False
        self.costs = 2 if listens else 1

    async def meet(self, *, anew: bool = False) -> Met:
        await asyncio.sleep(self.login_s)
        if not self.there:
            raise NodeUnreachable("iris", "no route")
        if not self.is_met or anew:
            self.requests += self.costs
        self.is_met = True
        return await super().meet(anew=anew)


async def _says_nothing(do: str, fields: JsonObject) -> JsonObject:
    return {}


def met(far: Far, *, times: int = 1, anew: bool = False) -> Tally:
    async def story() -> Tally:
        tally = Tally({"iris": far}, clock())
        await asyncio.gather(*(tally.links["iris"].meet(anew=anew) for _ in range(times)),
                             return_exceptions=True)  # fmt: skip
        return tally

    return in_virtual_time(story())[0]


def clock() -> Clock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return LoopClock(loop)


def test_a_slow_login_is_told_as_a_slow_question_is() -> None:
    """Seen to fail with the meeting not timed: the run took eight seconds and said of none why."""
    tally = met(Far(8.0))
    assert tally.slow == [SlowAsk("iris", "hello", 8.0)]
    assert met(Far(1.9)).slow == []


def test_a_login_that_fails_is_timed_and_was_no_request() -> None:
    tally = met(Far(8.0, there=False))
    assert (tally.requests, tally.slow) == (0, [SlowAsk("iris", "hello", 8.0)])


@pytest.mark.parametrize("times", [1, 3])
def test_an_opening_counts_once_for_all_who_wait_for_it(times: int) -> None:
    assert dict(met(Far(0.5, listens=True), times=times).asked) == {"hello": 1, "subscribe": 1}


def test_a_session_that_stands_costs_nothing_and_one_that_is_opened_anew_does() -> None:
    far = Far(0.0)
    assert dict(met(far).asked) == {"hello": 1}
    assert dict(met(far).asked) == {}
    assert dict(met(far, anew=True).asked) == {"hello": 1}
