"""How long tasks took says how long the next ones will, and policy `swift` plans by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from arc.decisions.limits import StealLimits
from arc.decisions.memory import Memory
from arc.decisions.usual import ENDS_LEAST
from arc.looking import look
from tests.builders import a_task, uid
from tests.sensors_stage import Scene

SWIFT = StealLimits(policy="swift", busy_over=1, steal_from=1, anyone_from=1)
Scenes = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scenes]:
    made: list[Scene] = []

    def make(**fields: Any) -> Scene:
        made.append(Scene(tmp_path / str(len(made)), **{"policy": "swift", "steal": SWIFT,
                                                        **fields}))  # fmt: skip
        return made[-1]

    yield make
    for one in made:
        one.close()


def memory(day: Scene) -> Memory:
    return day._do(look(day.hub)).memory


def done(day: Scene, count: int, length_s: float, *, first: int = 500, **fields: Any) -> None:
    """So many tasks ran on spark, one after the other, and were heard of."""
    machine = day.fleet.machines["spark"]
    machine.store.apply(c.Add(tuple(a_task(first + n, **fields) for n in range(count))))
    for _ in range(count):
        got = machine.store.apply(c.Claim("spark"))
        assert isinstance(got, c.Claimed)
        boot = machine.clock.boot_id()
        machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, boot))
        day.passes(length_s)
        machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    day.run("fleet-health")


def test_what_is_typical_is_the_middle_of_the_last_ends_of_a_domain(scene: Scenes) -> None:
    day = scene()
    assert memory(day).typical_s == {}
    done(day, ENDS_LEAST - 1, 60)
    assert memory(day).typical_s == {}, "too few to say anything"
    done(day, 1, 6000, first=600)
    done(day, ENDS_LEAST, 20, first=700, domain="protocol")
    typical = memory(day).typical_s
    assert typical == {"": pytest.approx(60, abs=0.1), "protocol": pytest.approx(20, abs=0.1)}


def test_a_hub_that_starts_again_knows_it_still(scene: Scenes) -> None:
    from arc.journal import Journal

    day = scene()
    done(day, ENDS_LEAST, 60)
    before = memory(day).typical_s
    day.hub.journal.close()
    day.hub.journal = Journal(day.hub.journal.path, day.hub.clock)
    assert memory(day).typical_s == before != {}


def test_what_runs_goes_on_for_what_is_usual_less_what_it_ran_already(scene: Scenes) -> None:
    day = scene()
    done(day, ENDS_LEAST, 100)
    day.has("iris", 3, priority=1)
    day.works("iris")
    day.run("fleet-health")
    day.passes(30)
    assert memory(day).running_left_s == {"iris": pytest.approx(70, abs=1)}


def test_what_may_have_ended_since_it_was_heard_is_not_reckoned_with(scene: Scenes) -> None:
    """The plan falls back on what is usual for as many as run; a guess would be worse."""
    day = scene()
    done(day, ENDS_LEAST, 100)
    day.has("iris", 3)
    day.works("iris")
    day.run("fleet-health")
    day.passes(150)
    assert memory(day).running_left_s == {}
    day.run("fleet-health")  # it does run on
    assert memory(day).running_left_s == {"iris": pytest.approx(150 / 4, abs=1)}
    day.works("iris")  # and now another one beside it, of which nothing was heard
    assert memory(day).running_left_s == {}


def test_what_waits_says_for_how_long_all_has_run_there(scene: Scenes) -> None:
    """Nothing of it was heard by fleet-health; the report says it."""
    day = scene()
    day.has("iris", 10)
    for _ in range(8):
        day.works("iris")
    day.passes(40)
    assert memory(day).runs_for_s == {"iris": pytest.approx(40, abs=1)}

    machine = day.fleet.machines["iris"]
    machine.store.apply(c.Finish(uid(101), 1, c.Result("completed")))
    assert memory(day).runs_for_s == {}, "a slot is free"
    day.works("iris")
    day.passes(10)
    assert memory(day).runs_for_s == {"iris": pytest.approx(10, abs=1)}


def test_swift_moves_nothing_that_would_start_soon_anyway_by_what_tasks_took(
    scene: Scenes,
) -> None:
    """Two wait behind eight one-second tasks: without the history each is taken for ten minutes
    long, and moving them looks like a gain.
    """
    moved = []
    for known in (False, True):
        day = scene()
        if known:
            done(day, ENDS_LEAST, 1)
        day.has("iris", 10)
        for _ in range(8):
            day.works("iris")
        day.run("fleet-health")
        report = day.run("fleet-rebalance")
        moved.append(sum(one.outcome == "moved" for one in report.moves))
    assert moved[0] > moved[1] == 0


def test_arc0_does_not_ask_for_it(scene: Scenes) -> None:
    day = scene(policy="arc0", steal=StealLimits())
    done(day, ENDS_LEAST, 60)
    found = memory(day)
    assert (found.typical_s, found.running_left_s) == ({}, {})
