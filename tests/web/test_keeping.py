"""Many pages that ask for the same cost as much as one, and what is cheap is always new."""

from __future__ import annotations

import asyncio

import pytest

from agent_node.strict import JsonObject
from arc.web.panels.keeping import ENTRIES_MAX, Keeping


class Costly:
    """Work that takes so many seconds of a clock that it moves itself."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.times = seconds, 100.0, 0

    def clock(self) -> float:
        return self.now

    async def work(self) -> JsonObject:
        await asyncio.sleep(0)
        self.now += self.seconds
        self.times += 1
        return {"n": self.times}


async def test_three_pages_cost_as_much_as_one_and_a_sixtieth_of_a_core_at_most() -> None:
    costly = Costly(0.5)
    keeping = Keeping(costly.clock)
    for _ in range(600):  # ten minutes
        await asyncio.gather(*(keeping.ask(("heat", "span=24h"), costly.work) for _ in range(3)))
        costly.now += 1.0

    assert costly.times * 0.5 <= 600 / 60 * 1.1


async def test_what_is_cheap_is_asked_anew_each_second() -> None:
    costly = Costly(0.005)
    keeping = Keeping(costly.clock)
    seen = []
    for _ in range(5):
        seen.append(await keeping.ask(("lanes",), costly.work))
        costly.now += 1.0

    assert [one["n"] for one in seen] == [1, 2, 3, 4, 5]


async def test_what_failed_is_not_kept_and_other_questions_have_other_answers() -> None:
    costly = Costly(0.5)
    keeping = Keeping(costly.clock)

    async def fails() -> JsonObject:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        await keeping.ask(("heat",), fails)
    assert await keeping.ask(("heat",), costly.work) == {"n": 1}
    assert await keeping.ask(("heat", "span=1h"), costly.work) == {"n": 2}


async def test_only_the_newest_questions_are_remembered() -> None:
    costly = Costly(1.0)
    keeping = Keeping(costly.clock)
    for number in range(ENTRIES_MAX + 1):
        await keeping.ask((str(number),), costly.work)
    before = costly.times
    await keeping.ask(("0",), costly.work)

    assert costly.times == before + 1
    assert len(keeping._kept) == ENTRIES_MAX
