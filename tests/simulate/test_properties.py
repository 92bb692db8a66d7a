"""Whatever the scene and the policy: nothing is lost, nothing runs twice, and a seed is a story."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node.strict import JsonObject
from arc.decisions.domains import Role
from arc.simulate.advice import TRIED, advise, beginnings
from arc.simulate.comparing import compare
from arc.simulate.engine import Run, jobs_in_order, simulate
from arc.simulate.ledger import Ended
from arc.simulate.policies import parse_policy
from arc.simulate.scene import INBOX, Away, Job, Kind, Place, Scene
from arc.simulate.wanted import Wanted, all_scenes, source_of
from arc.text.simulate import _advice
from tests.fleet_builders import DOMAINS

NAMES = ("ada", "bob", "cy")
POLICIES = ("none", "arc0", "swift", "arc0:every=7s,idle_min=0s,busy_over=0,steal_from=P1",
            "arc0:on_idle=true,idle_min=3s,busy_over=1", "swift:gain_min=0s,hops=1")  # fmt: skip
KINDS = (Kind(), Kind(domain="research"), Kind(domain="protocol"), Kind(skills=("ci",)),
         Kind(domain="research", pinned=True), Kind(needs=("gpu",)))  # fmt: skip
roles = st.sampled_from([Role(("research",)), Role(("protocol",), ("research",)),
                         Role(("research", "integrations"), never=("protocol",)),
                         Role()])  # fmt: skip


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """A few nodes, some away for a while, and up to forty tasks that come within minutes."""
    places = []
    for name in NAMES[: draw(st.integers(1, 3))]:
        away = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 90)), max_size=1))
        places.append(Place(
            name, draw(st.integers(1, 3)), draw(roles), draw(st.sampled_from([(), ("gpu",)])),
            tuple(Away(1000 * begin, 1000 * (begin + long)) for begin, long in away),
        ))  # fmt: skip
    homes = st.sampled_from([*(one.name for one in places), INBOX])
    jobs = [
        Job(number, draw(st.integers(0, 300)) * 500, draw(homes), draw(st.integers(1, 60_000)),
            draw(st.sampled_from(KINDS)), draw(st.integers(1, 10)),
            draw(st.sampled_from([None, None, 5.0, 100.0])))
        for number in range(1, draw(st.integers(1, 40)) + 1)
    ]  # fmt: skip
    return Scene(tuple(places), jobs_in_order(jobs), DOMAINS)


def most_at_once(spans: list[tuple[int, int]]) -> int:
    steps = sorted([(end, -1) for _, end in spans] + [(begin, 1) for begin, _ in spans])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def check(scene: Scene, ended: Ended) -> None:
    jobs = {job.uid: job for job in scene.jobs}
    assert ended.starts.keys() == jobs.keys()
    started = {uid: (node, at) for uid, (node, at) in ended.starts.items() if at >= 0}
    assert len(started) + ended.never_started == len(jobs)
    for uid, (node, at) in started.items():
        assert at >= jobs[uid].at_ms
        assert not jobs[uid].kind.pinned or node == jobs[uid].home
    for place in scene.places:
        spans = [(at, at + jobs[uid].takes_ms) for uid, (node, at) in started.items()
                 if node == place.name]  # fmt: skip
        assert most_at_once(spans) <= place.slots
        for away in place.away:
            assert not [at for at, _ in spans if away.since_ms <= at < away.until_ms]


@settings(max_examples=60, deadline=None)
@given(scene=scenes(), word=st.sampled_from([*POLICIES, "central"]))
def test_every_task_runs_once_within_the_slots_of_a_node_that_is_there(
    scene: Scene, word: str
) -> None:
    """Seen to fail with a slot too many, and with pins that nobody looks at."""
    if word == "central":  # it knows of nobody's absence
        scene = replace(scene, places=tuple(replace(one, away=()) for one in scene.places))
    check(scene, simulate(scene, parse_policy(word)))


@settings(max_examples=60, deadline=None)
@given(scene=scenes(), word=st.sampled_from(POLICIES))
def test_plans_that_are_not_made_would_have_moved_nothing(scene: Scene, word: str) -> None:
    """The one shortcut of the engine: no plan where no slot is free, or nothing waits for one.

    Seen to fail where it also skipped plans while anything was on its way.
    """
    policy = parse_policy(word)
    quick, whole = (Run(scene, policy, hurried=hurried).to_the_end() for hurried in (True, False))
    assert replace(quick, cycles=0) == replace(whole, cycles=0)


def test_the_same_seed_is_the_same_story_and_another_is_another() -> None:
    source = source_of(Wanted(nodes=3, days=".1"), None)
    again = source_of(Wanted(nodes=3, days=".1"), None)
    policy = parse_policy("swift")
    assert source.scene(7) == again.scene(7)
    assert simulate(source.scene(7), policy) == simulate(again.scene(7), policy)
    assert source.scene(7) != source.scene(8)


def test_each_policy_is_shown_the_same_work() -> None:
    scenes = all_scenes(source_of(Wanted(nodes=3, days=".1", seeds=3), None), 1)
    found = compare([parse_policy(word) for word in ("none", "swift", "central")], scenes)
    assert len({one.tasks.mean for one in found}) == 1


def test_what_was_watched_is_as_long_as_what_the_looks_counted() -> None:
    """As with the hub: its history adds up to the table of `arc status`, second for second."""
    scene = source_of(Wanted(nodes=3, days=".1"), None).scene(1)
    scene = replace(scene, measured_from_ms=0, measured_to_ms=0)
    ended = Run(scene, parse_policy("arc0"), watched=True).to_the_end()
    by_node: dict[str, float] = {}
    for one in ended.stretches:
        length_s = (one.until_ms - one.since_ms) / 1000
        by_node[one.node] = by_node.get(one.node, 0.0) + length_s
    counted: dict[str, float] = {}
    for (node, _), seconds in ended.stranded_s.items():
        counted[node] = counted.get(node, 0.0) + seconds
    assert {node: round(s, 3) for node, s in by_node.items()} == {
        node: round(s, 3) for node, s in counted.items()}  # fmt: skip
    assert counted
    assert Counter(one.why for one in ended.moves)["stolen"] == ended.thefts


@pytest.fixture(scope="module")
def five() -> list[Scene]:
    return list(all_scenes(source_of(Wanted(days=".15", seeds=4), None), 1))


def test_advice_names_changes_that_hold_on_every_seed_and_is_the_same_again(
    five: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = {"arc0": (("every", ("20s",)), ("idle_min", ("0s",)), ("busy_over", ("0", "9")))}
    monkeypatch.setattr("arc.simulate.advice.TRIED", tried)
    found = advise(parse_policy("arc0"), five)
    assert [change.key for change in found.changes][:1] == ["busy_over"]
    heard: list[int] = []
    assert found == advise(parse_policy("arc0"), five, heard=heard.append)
    assert heard[-1] == found.runs, "who waits for it hears how far it is"
    for change in found.changes:
        assert change.wait_after.mean < change.wait_before.mean


def test_advice_about_many_tasks_is_cut_short_and_says_so(
    five: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arc.simulate.advice.TASKS_MAX", 4000)
    found = advise(parse_policy("arc0"), five)
    assert found.cut
    assert sum(len(scene.jobs) for scene in five) * found.runs / len(five) <= 4000


def test_advice_that_cannot_try_each_change_once_takes_no_time_and_says_so(
    five: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: it ran the first changes of the table, which took as long as all that was asked
    for, and then said that no limit would be changed.
    """
    tasks = sum(len(scene.jobs) for scene in five)
    one_round = 1 + sum(len(values) for _, values in TRIED["arc0"])
    monkeypatch.setattr("arc.simulate.advice.RUNS_MAX", one_round * len(five) - 1)
    monkeypatch.setattr("arc.simulate.advice.TASKS_MAX", tasks * 1000)
    found = advise(parse_policy("arc0"), five)
    assert (found.cut, found.runs, found.changes) == (True, 0, ())
    said = "\n".join(_advice({"policy": "arc0", "runs": 0, "cut": True, "changes": []}))
    assert said.startswith("No other limits of arc0 were tried: the scenes are too large")


def test_large_scenes_are_searched_by_their_beginnings_which_is_said(
    five: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: of any fleet of a week, the usual one too, it said that nothing was tried."""
    arc0 = parse_policy("arc0")
    tried = 1 + sum(len(values) for _, values in TRIED["arc0"])
    assert beginnings(five, arc0) == (tuple(five), 0)
    monkeypatch.setattr("arc.simulate.advice.TASKS_MAX", 2 * tried * len(five) * 150)

    few, first = beginnings(five, arc0)
    assert first == 150
    assert [scene.jobs for scene in few] == [scene.jobs[:150] for scene in five]
    assert all(scene.measured_from_ms < scene.measured_to_ms for scene in few)
    found = advise(arc0, few)
    assert found.runs >= tried * len(five)
    data: JsonObject = {"policy": "arc0", "runs": found.runs, "first_tasks": first, "seeds": 4,
                        "changes": []}  # fmt: skip
    assert f"({found.runs} runs tried of the first 150 tasks)" in _advice(data)[0]
    assert "of one stretch: no interval" in _advice({**data, "seeds": 1})[0]

    monkeypatch.setattr("arc.simulate.advice.TASKS_MAX", 2 * tried * len(five))
    assert beginnings(five, arc0) == (tuple(five), 0), "all of these would lie before the measure"


def test_a_task_is_stolen_as_often_as_its_hops_allow_and_once_more(five: list[Scene]) -> None:
    """Once it was stolen more often than `hops`, it stays where it is."""
    for hops, most in ((1, 2), (9, 3)):
        policy = parse_policy(f"swift:hops={hops},gain_min=0s")
        moves = Run(five[3], policy, watched=True).to_the_end().moves
        assert max(Counter(one.uid for one in moves).values()) == most


def test_advice_keeps_silent_where_the_seeds_disagree(
    five: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arc.simulate.advice.TRIED", {"arc0": (("idle_min", ("30s",)),)})
    assert advise(parse_policy("arc0"), five).changes == ()


def test_nothing_starts_on_a_node_in_the_moment_in_which_it_goes_away() -> None:
    """Seen to fail where what ends in that millisecond comes first, and leaves its slot."""
    place = Place("ada", 1, away=(Away(5000, 9000),))
    jobs = tuple(Job(number, 0, "ada", 5000, Kind()) for number in (1, 2))

    ended = simulate(Scene((place,), jobs, DOMAINS), parse_policy("none"))

    assert [at for _, at in ended.starts.values()] == [0, 9000]
