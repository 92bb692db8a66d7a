"""Who answered a moment ago is not asked for the same again; who may have changed always is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from arc.looking import FRESH_S, look
from arc.queues import HASTY_S
from arc.sensor import SensorReport, Wakeful
from tests.sensors_stage import Scene, within

REBALANCE, ROUTER, HEALTH = "fleet-rebalance", "fleet-router", "fleet-health"
LOOM = frozenset({"loom"})


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Scene]:
    """Iris has a queue and no slot left, loom is idle, and health has just looked at everybody."""
    one = Scene(tmp_path)
    one.has("iris", 30, priority=8)
    while one.asks("iris", "status")["free_slots"]:
        one.works("iris")
    one.passes(300)
    one.run(HEALTH)
    yield one
    one.close()


def asked(report: SensorReport, what: str = "status") -> object:
    return within(report.details, "requests", what)


def test_a_full_node_that_answered_a_moment_ago_is_asked_for_its_queue_alone(
    night: Scene
) -> None:
    report = night.run(REBALANCE, woken=LOOM)

    assert (asked(report), asked(report, "candidates")) == (1, 1)
    assert report.acted


def test_a_moment_later_it_is_asked_again(night: Scene) -> None:
    night.passes(FRESH_S + 0.1)
    assert asked(night.run(REBALANCE, woken=LOOM)) == 2


def test_both_ends_of_a_move_are_asked_again(night: Scene) -> None:
    moved = night.run(REBALANCE, woken=LOOM).moves
    assert night.hub.stirred == {end for one in moved for end in (one.busy, one.idle)}
    assert "iris" in night.hub.stirred
    assert asked(night.run(REBALANCE, woken=LOOM)) == len(night.fleet.machines)


def test_who_has_a_free_slot_is_always_asked(night: Scene) -> None:
    """It may be given work, and that goes by its counts alone."""
    night.has("forge", 3)
    night._do(look(night.hub))
    assert asked(night.run(REBALANCE, woken=LOOM)) == 2


def test_the_router_asks_everybody_with_waiting_work(night: Scene) -> None:
    """It gives by what their reports say, and looks into no queue of theirs."""
    night.asks("inbox", "add", tasks=[{"subject": "a", "skills": ["clarity"]}])
    assert asked(night.run(ROUTER, woken=LOOM)) == 2


def test_news_that_a_look_has_taken_are_news_until_that_look_is_over(night: Scene) -> None:
    """A silent node holds the other look up: what it has heard meanwhile nobody else knows."""
    night.hub.stirred.add("iris")
    night.link("spark").takes_s = 5.0
    seen: list[SensorReport] = []

    async def both() -> None:
        slow = asyncio.create_task(look(night.hub))
        await asyncio.sleep(0.1)
        rebalance = next(one for one in night.hub.sensors if one.name == REBALANCE)
        assert isinstance(rebalance, Wakeful)
        seen.append(await rebalance.run_woken(night.hub, night.hub.clock.now(), LOOM))
        await slow

    night._do(both())
    assert asked(seen[0]) == 2
    assert night.hub.stirring == []


def test_a_look_that_fails_leaves_the_news_where_they_were(night: Scene) -> None:
    night.hub.stirred.add("iris")
    night.link("iris").takes_s = 5.0

    async def cut_off() -> None:
        async with asyncio.timeout(0.1):
            await look(night.hub)

    with pytest.raises(TimeoutError):
        night._do(cut_off())
    assert (night.hub.stirred, night.hub.stirring) == ({"iris"}, [])


def test_one_that_falls_silent_in_that_moment_holds_nobody_up_for_long(night: Scene) -> None:
    """Nobody has heard in this cycle that it answers: its queue is waited for a second, not ten."""
    night.link("iris").takes_s = 1e6
    began = night.loop.seconds

    report = night.run(REBALANCE, woken=LOOM)

    assert night.loop.seconds - began < HASTY_S + 0.5
    assert "queue_was_read" in {one.rule for one in report.decisions}


def test_those_that_are_not_asked_say_who_of_the_others_is_late(night: Scene) -> None:
    """Of two that are asked one is silent: with all that answered a moment ago, that is few."""
    for name in ("forge", "spark"):
        night.has(name, 30)
        while night.asks(name, "status")["free_slots"]:
            night.works(name)
    for _ in range(2):
        night._do(look(night.hub, late=night.hub.late))
    night.link("loom").takes_s = 1e6
    began = night.loop.seconds

    night.run(REBALANCE, woken=LOOM)

    assert night.loop.seconds - began < 1.0
    night.passes(20)  # until its question has run out of its own time


def test_nor_does_one_that_is_being_drained(night: Scene) -> None:
    night.asks("iris", "drain", reason="disk swap")
    night._do(look(night.hub))
    night.link("iris").takes_s = 1e6
    began = night.loop.seconds

    night.run(REBALANCE, woken=LOOM)

    assert night.loop.seconds - began < 2 * HASTY_S + 0.5
