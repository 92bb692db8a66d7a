"""What a hub remembers is played again: the same tasks, where they came, as long as they ran."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node import commands as c
from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.config import read_fleet
from arc.errors import ArcError, NoHistory, WrongUse
from arc.history import History
from arc.simulate.history_source import scene_of_history
from arc.simulate.wanted import Wanted, source_of
from arc.simulate.what_if import policy_of, replayed, what_if
from tests.builders import START, uid
from tests.hub.test_history import claims, ends, looks
from tests.hub_builders import TimedLink
from tests.sensors_stage import Scene

FLEET = """\
version: 1
domains:
  research: {skills: [arc-research], prefix: ["Research:"], words: [paper]}
  infrastructure: {skills: [deploy]}
nodes:
  - {name: forge, host: forge.lan, owns: [infrastructure], also: [research]}
  - {name: iris, host: iris.lan, owns: [research]}
  - {name: loom, host: loom.lan, owns: [], also: [research]}
  - {name: spark, host: spark.lan, owns: []}
"""


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """An hour of a fleet: iris has twelve tasks of research, and works them off one by one; loom is
    paused all the while, forge idle, and nobody moves anything.
    """
    place = tmp_path_factory.mktemp("past")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TimedLink, "takes_s", 0.0)  # so that times are as they read here
        yield from an_hour(place)


def an_hour(place: Path) -> Iterator[Scene]:
    day = Scene(place)
    (place / "fleet.yaml").write_text(FLEET)
    for name, machine in day.fleet.machines.items():
        machine.store.apply(c.SetAgents((c.AgentRow(name, 1, ()),)))
    day.asks("loom", "pause", reason="audit", by="human:ada")
    looks(day)
    day.passes(60)
    day.has("iris", 12, domain="research", priority=8)
    looks(day)
    for _ in range(10):
        task, n = claims(day, "iris")
        day.passes(300)
        ends(day, "iris", task, n)
        looks(day)
    yield day
    day.close()


def fleet(day: Scene) -> Any:
    return read_fleet(day.place / "fleet.yaml")


def window(day: Scene) -> tuple[Any, Any]:
    return START, day.hub.clock.now()


def test_the_scene_has_what_came_and_how_long_it_ran(past: Scene) -> None:
    history, (since, until) = History(past.hub.settings.state), window(past)
    found = scene_of_history(history, fleet(past), since, until, tasks_max=100)
    jobs = found.scene.jobs
    assert [job.home for job in jobs] == ["iris"] * 12
    assert [job.takes_ms for job in jobs] == [300_000] * 12
    assert {job.kind.domain for job in jobs} == {"research"}
    assert {job.at_ms for job in jobs} == {60_000}
    assert found.guessed == 2
    assert found.doubts == ("2 tasks had not ended: each is taken to run as long as usual",)
    places = {place.name: place for place in found.scene.places}
    assert {name: place.slots for name, place in places.items()} == {
        "forge": 1, "iris": 1, "loom": 1, "spark": 1}  # fmt: skip
    assert [(one.since_ms, one.until_ms) for one in places["loom"].away] == [(0, 3_060_000)]
    assert not places["iris"].away


def test_of_too_many_tasks_the_newest_are_taken_and_it_is_said(past: Scene) -> None:
    history, (since, until) = History(past.hub.settings.state), window(past)
    found = scene_of_history(history, fleet(past), since, until, tasks_max=5)
    assert found.cut.startswith("only what came since 2026-03-10T03:46:00.000Z: 5 tasks")


def test_the_command_takes_the_fleets_own_history(past: Scene) -> None:
    source = source_of(Wanted(from_history="7d"), fleet(past))
    assert (source.seeds, source.fleet) == (1, fleet(past))
    assert len(source.scene(1).jobs) == 12
    with pytest.raises(WrongUse, match="--from-history: should be a length of time"):
        source_of(Wanted(from_history="week"), fleet(past))


def test_the_command_ends_where_it_is_told_to(past: Scene) -> None:
    """As the page's own copied command does, where it shows a moment of the past."""
    source = source_of(Wanted(from_history="20m", until=iso(START + timedelta(minutes=30))),
                       fleet(past))  # fmt: skip
    assert source.facts["since"] == iso(START + timedelta(minutes=10))
    assert source.facts["until"] == iso(START + timedelta(minutes=30))
    early = iso(START - timedelta(days=1))
    for words, said in (("yesterday", "no zoned time"), (early, "nothing was remembered"),
                        ("0001-01-01T00:00:00Z", "nothing was remembered")):  # fmt: skip
        with pytest.raises(ArcError, match=said):
            source_of(Wanted(from_history="20m", until=words), fleet(past))


def test_a_fleet_without_history_says_so(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    with pytest.raises(NoHistory):
        source_of(Wanted(from_history="7d"), read_fleet(tmp_path / "fleet.yaml"))


def test_what_if_lays_the_replay_beside_what_was(past: Scene) -> None:
    """Nobody moved a task in reality. With a look each minute forge takes some of iris' tasks;
    loom, which was paused, and spark, whose work it is not, get none.
    """
    history, (since, until) = History(past.hub.settings.state), window(past)
    limits = policy_of(fleet(past), {"every": "1m", "busy_over": "0"}, "arc0")
    found = cast("Any", replayed(
        history, fleet(past), limits, since=since, until=until, buckets=50
    ))  # fmt: skip
    real, same, other = found["reality"], found["as_it_is"], found["what_if"]
    assert (real["moves"], real["waited"]) == (0, 10)
    assert real["mean_wait_s"] == pytest.approx(sum(range(0, 3000, 300)) / 10)
    assert {one["to"] for one in other["moved"]} == {"forge"}
    assert {one["from"] for one in other["moved"]} == {"iris"}
    assert {one["uid"] for one in other["moved"]} <= {uid(101 + number) for number in range(12)}
    assert other["stranded_s"] < same["stranded_s"]
    assert other["mean_wait_s"] < same["mean_wait_s"] < real["mean_wait_s"] + 1
    assert set(other["stretches"]) == {"forge"}
    for one in (real, same, other):
        assert len(one["stranded"]) == 50
        total = sum(one["stranded"]) * found["step_s"]
        assert total == pytest.approx(one["stranded_s"], abs=1)
    assert found["since"] == round(START.timestamp() * 1000)
    assert any("had not ended" in one for one in found["cut"])


def test_a_replay_that_would_take_too_long_ends_early_and_says_where(
    past: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arc.simulate.what_if.WORK_MAX", 4)
    history, (since, until) = History(past.hub.settings.state), window(past)
    policy = policy_of(fleet(past), {"every": "1m"}, "swift")
    found = cast("Any", replayed(history, fleet(past), policy, since=since, until=until))
    assert any("swift:every=1m: replayed up to 2026-03-10T03:" in one for one in found["cut"])


def test_what_if_runs_in_a_process_of_its_own_from_words_to_words(past: Scene) -> None:
    since, until = window(past)
    state = past.hub.settings.state
    text = FLEET.replace("version: 1\n", f"version: 1\nhub: {{state: {state}}}\n")
    (past.place / "there.yaml").write_text(text)
    asked: JsonObject = {
        "fleet": str(past.place / "there.yaml"), "since": iso(since), "until": iso(until),
        "limits": {"every": "1m"}, "buckets": 10,
    }  # fmt: skip
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(what_if, asked).result(timeout=60)
    assert found == what_if(asked)


@pytest.mark.parametrize(("asked", "said"), [
    ({"limits": {"soft": "3"}}, "one may change idle_min"),
    ({"limits": {"every": "1m,busy_over=0"}}, "one may change idle_min"),
    ({"limits": {"every": "soon"}}, "rebalance.every"), ({"limits": [1]}, "limits should be"),
    ({"policy": "bob"}, "there is no 'bob'"), ({"policy": "central"}, "is no policy"),
    ({"buckets": 0}, "1 to 2000 buckets"), ({"buckets": "x"}, "buckets a number"),
    ({"since": "yesterday"}, "since should be a zoned time"), ({"since": None}, "since is missing"),
    ({"until": iso(START - timedelta(days=1))}, "ends after it began"),
    ({"fleet": ""}, "fleet is missing"),
])  # fmt: skip
def test_what_if_refuses_what_makes_no_sense(past: Scene, asked: JsonObject, said: str) -> None:
    since, until = window(past)
    whole: JsonObject = {"fleet": str(past.place / "fleet.yaml"), "since": iso(since),
                         "until": iso(until), **asked}  # fmt: skip
    with pytest.raises(ArcError, match=said):
        what_if(whole)


def test_a_stretch_in_which_nothing_came_is_no_empty_answer(past: Scene) -> None:
    history, (since, _) = History(past.hub.settings.state), window(past)
    policy = policy_of(fleet(past), {}, "arc0")
    with pytest.raises(NoHistory, match="nothing is known to have come"):
        replayed(history, fleet(past), policy, since=since - timedelta(days=2),
                 until=since - timedelta(days=1))  # fmt: skip


def test_the_fleets_own_words_are_kept_beside_those_that_are_changed(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET + "rebalance: {busy_over: 2, every: 7m}\n")
    policy = policy_of(read_fleet(tmp_path / "fleet.yaml"), {"every": "1m"}, "arc0")
    assert (policy.every_s, policy.steal.busy_over) == (60.0, 2)
