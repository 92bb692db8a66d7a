"""What was, and the same played again, are measured by one measure and over one stretch of time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node import commands as c
from agent_node.clock import iso
from arc.config import read_fleet
from arc.history import History
from arc.sensor import Moved
from arc.simulate.engine import Run
from arc.simulate.history_source import DOUBTS, Remembered, scene_of_history
from arc.simulate.what_if import _Frame, _simulated, policy_of, replayed
from tests.builders import START, a_task, uid, xfer
from tests.hub.test_history import claims, ends, looks
from tests.hub_builders import TimedLink
from tests.hub_nodes import twisted
from tests.sensors_stage import Scene
from tests.simulate.test_history_source import fleet

LOOK_S = 300.0  # fleet-health's own interval
ANYWHERE = {"domain": "research", "priority": 8}  # iris' own work, which all others take too
FLEET = """\
version: 1
domains:
  research: {skills: [arc-research], prefix: ["Research:"], words: [paper]}
nodes:
  - {name: forge, host: forge.lan, also: [research]}
  - {name: iris, host: iris.lan, owns: [research]}
  - {name: loom, host: loom.lan, also: [research]}
  - {name: spark, host: spark.lan, also: [research]}
"""


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Four nodes with a slot each. Nobody moves anything but where a test does."""
    monkeypatch.setattr(TimedLink, "takes_s", 0.0)
    (tmp_path / "fleet.yaml").write_text(FLEET)
    made = Scene(tmp_path, nodes=read_fleet(tmp_path / "fleet.yaml").nodes)
    for name, machine in made.fleet.machines.items():
        machine.store.apply(c.SetAgents((c.AgentRow(name, 1, ()),)))
    yield made
    made.close()


def goes_on(day: Scene, looks_: int) -> None:
    for _ in range(looks_):
        day.passes(LOOK_S)
        looks(day)


def past(day: Scene) -> History:
    return History(day.hub.settings.state)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def played(day: Scene, since: datetime = START, until: datetime | None = None, **how: Any) -> Any:
    """With the fleet's own limits."""
    policy = policy_of(fleet(day), {}, how.pop("word", "arc0"))
    return cast("Any", replayed(past(day), fleet(day), policy, since=since,
                                until=until or day.hub.clock.now(), **how))  # fmt: skip


def scene(day: Scene, since: datetime = START, until: datetime | None = None) -> Remembered:
    return scene_of_history(past(day), fleet(day), since, until or day.hub.clock.now(),
                            tasks_max=100)  # fmt: skip


# --- One measure ----------------------------------------------------------------------------------


def test_where_nobody_moves_anything_the_same_limits_played_again_are_what_was(day: Scene) -> None:
    """One task waits beside three nodes that might run it, for three hours: one node is stranded,
    as fleet-health counts. Seen to fail where all free nodes counted.
    """
    looks(day)
    day.has("iris", 2, **ANYWHERE)
    task, n = claims(day, "iris")
    goes_on(day, 36)
    ends(day, "iris", task, n)
    claims(day, "iris")
    goes_on(day, 2)
    found = played(day, buckets=20)
    real, same = found["reality"], found["as_it_is"]
    assert real["stranded_s"] == 36 * LOOK_S
    assert abs(same["stranded_s"] - real["stranded_s"]) <= LOOK_S
    assert set(real["stretches"]) == set(same["stretches"]) == {"forge"}
    for was, again in zip(real["stranded"], same["stranded"], strict=True):
        assert abs(was - again) <= LOOK_S / found["step_s"]
    assert real["moves"] == same["moves"] == 0
    assert (same["waited"], same["mean_wait_s"]) == (real["waited"], real["mean_wait_s"])


def test_work_that_nothing_ever_moves_strands_a_node_to_the_very_end(day: Scene) -> None:
    """For five hours nothing happens but looks. Seen to fail where the replay ended once nothing
    was left that could begin.
    """
    day.fleet.machines["loom"].store.apply(c.SetAgents((c.AgentRow("loom", 1, ("gpu",)),)))
    day._do(day.hub.links["loom"].meet())
    day.hub.links["loom"] = twisted(day.hub.links["loom"], with_a_gpu)
    day.has("loom", 1, needs=["gpu"], **ANYWHERE)
    task, n = claims(day, "loom")
    looks(day)
    goes_on(day, 1)
    ends(day, "loom", task, n)
    day.has("iris", 1, needs=["gpu"], **ANYWHERE)
    goes_on(day, 60)
    found = played(day)
    assert found["reality"]["stranded_s"] == 60 * LOOK_S
    assert abs(found["as_it_is"]["stranded_s"] - 60 * LOOK_S) <= LOOK_S


def with_a_gpu(do: str, result: Any) -> Any:
    """As its node.toml would say."""
    if do == "status":
        return {**result, "agents": [{**one, "skills": ["gpu"]} for one in result["agents"]]}
    return result


def test_another_policy_is_looked_at_as_often_as_the_fleet_itself(day: Scene) -> None:
    """`health.every` of fleet.yaml, by which reality was counted, also where `swift` is played."""
    (day.place / "fleet.yaml").write_text(FLEET + "health: {every: 1m}\n")
    looks(day)
    day.has("spark", 3, pinned=True)
    day.has("iris", 9, needs=["gpu"], **ANYWHERE)
    goes_on(day, 1)
    heard: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arc.simulate.experience.Experience.hear",
                      lambda _, now_ms: heard.append(now_ms / 1000))  # fmt: skip
        played(day, word="swift")
    assert heard[:3] == [60, 120, 180]
    assert len(set(heard)) == len(heard) / 2, "both policies looked at the same moments"


# --- One stretch of time --------------------------------------------------------------------------


def test_all_three_end_where_the_first_replay_does(
    day: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not played again is no improvement. Seen to fail with each of the three left as long
    as it was.
    """
    looks(day)
    day.has("iris", 9, **ANYWHERE)
    for _ in range(6):
        task, n = claims(day, "iris")
        goes_on(day, 2)
        ends(day, "iris", task, n)
    day.hub.journal.runs.add_moves((Moved(xfer(1), uid(50), "iris", "loom", "moved"),))
    day.passes(1)
    whole = played(day, buckets=36)
    assert whole["compared_s"] == pytest.approx(3600, abs=1)
    real = whole["reality"]
    assert (real["waited"], real["mean_wait_s"], real["p95_wait_s"], real["moves"]) == (
        6, 1500, 3000, 1), "one began every ten minutes"  # fmt: skip
    assert None not in whole["what_if"]["stranded"]

    monkeypatch.setattr("arc.simulate.what_if.WORK_MAX", 4 * 4)  # four cycles: 0, 5, 10, 15 min
    short = played(day, buckets=36)
    assert short["compared_s"] == 900
    for name in ("reality", "as_it_is", "what_if"):
        one = short[name]
        assert one["stranded"][9:] == [None] * 27, name
        assert one["stranded"][:9] == whole[name]["stranded"][:9], name
        assert one["stranded_s"] == pytest.approx(sum(one["stranded"][:9]) * short["step_s"], abs=1)
        assert one["waited"] < whole[name]["waited"], "what began later is counted nowhere"
        assert all(end <= 900 for some in one["stretches"].values() for _, end in some)
    assert (short["reality"]["waited"], short["reality"]["moves"]) == (2, 0)
    assert any("replayed up to 2026-03-10T04:00:00" in one for one in short["cut"])


def test_of_too_many_tasks_the_oldest_are_left_out_and_how_much_that_was_is_told(
    day: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the rest was taken for the whole."""
    looks(day)
    for number in (1, 2):
        goes_on(day, 6)
        day.fleet.machines["iris"].store.apply(c.Add((a_task(number, **ANYWHERE),)))
        ends(day, "iris", *claims(day, "iris"))
    goes_on(day, 1)
    whole = played(day)
    assert (whole["left_out_s"], whole["asked_s"]) == (0, whole["compared_s"])
    monkeypatch.setattr("arc.simulate.what_if.TASKS_MAX", 1)
    cut = played(day)
    assert cut["left_out_s"] > 0
    assert cut["left_out_s"] + cut["compared_s"] == pytest.approx(cut["asked_s"], abs=1)


def test_the_fleets_own_limits_are_played_beside_the_others_and_both_are_cut_alike(
    day: Scene,
) -> None:
    """Under its own a move lands after five minutes; beside `none`, which moves nothing."""
    looks(day)
    day.has("iris", 9, **ANYWHERE)
    claims(day, "iris")
    goes_on(day, 6)
    same, found = played(day), played(day, word="none")
    assert same["as_it_is"] == same["what_if"] == found["as_it_is"]
    assert found["as_it_is"]["moves"] > found["what_if"]["moves"] == 0

    past_ = scene(day)
    ended = Run(past_.scene, policy_of(fleet(day), {}, "arc0"), watched=True).to_the_end()
    first = min(one.at_ms for one in ended.moves)
    assert _simulated(ended, _Frame(past_, 10, first, []))["moves"] == 0
    assert _simulated(ended, _Frame(past_, 10, first + 1, []))["moves"] != 0


def test_the_bucket_in_which_a_replay_ends_is_the_mean_of_what_was_played(
    day: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(day)
    day.has("iris", 2, **ANYWHERE)
    claims(day, "iris")
    goes_on(day, 12)
    monkeypatch.setattr("arc.simulate.what_if.WORK_MAX", 4 * 2)
    found = played(day, buckets=6)
    assert found["compared_s"] == 300
    assert found["reality"]["stranded"] == [1.0, None, None, None, None, None]


# --- Both ends of the stretch ---------------------------------------------------------------------


def test_what_was_cancelled_before_it_ran_is_no_work(day: Scene) -> None:
    day.has("iris", 6, **ANYWHERE)
    for _ in range(2):
        task, n = claims(day, "iris")
        goes_on(day, 1)
        ends(day, "iris", task, n)
    for number in (103, 104, 105, 106):
        day.asks("iris", "cancel", uid=uid(number), reason="not wanted", by="human:ada")
    goes_on(day, 1)
    found = scene(day)
    assert [(job.name, job.takes_ms) for job in found.scene.jobs] == [
        (uid(101), 300_000), (uid(102), 300_000)]  # fmt: skip
    assert found.doubts == ("4 tasks ended without having run: left out",)
    before = scene(day, until=at(500))  # there they waited still, and nobody knew better
    assert len(before.scene.jobs) == 6


def test_what_was_cancelled_and_taken_back_is_work(day: Scene) -> None:
    day.has("iris", 1, **ANYWHERE)
    day.asks("iris", "cancel", uid=uid(101), reason="not wanted", by="human:ada")
    goes_on(day, 1)
    assert scene(day).scene.jobs == ()
    day.asks("iris", "retry", uid=uid(101), reason="wanted", by="human:ada", alone=True)
    goes_on(day, 1)
    assert [job.name for job in scene(day).scene.jobs] == [uid(101)]


def test_what_waited_when_the_stretch_began_is_there_though_it_did_nothing_in_it(
    day: Scene,
) -> None:
    """Eight tasks on a node that starts none of them, an hour before. Seen to fail where only what
    came, or ran, was taken.
    """
    day.has("iris", 8, **ANYWHERE)
    day.has("spark", 1)
    task, n = claims(day, "spark")
    day.asks("iris", "pause", reason="audit", by="human:ada")
    goes_on(day, 12)
    since = day.hub.clock.now()
    day.has("loom", 1, pinned=True)
    goes_on(day, 6)
    ends(day, "spark", task, n)
    goes_on(day, 1)
    found = scene(day, since)
    assert [job.name for job in found.scene.jobs if job.at_ms == 0 and job.home == "iris"] == [
        uid(101 + number) for number in range(8)]  # fmt: skip
    assert [job.takes_ms for job in found.scene.jobs if job.home == "spark"] == [1_800_000]
    assert {job.name for job in found.scene.jobs if job.uid in found.came} == {uid(201)}
    shown = played(day, since)
    assert shown["reality"]["stranded_s"] > 0
    assert abs(shown["reality"]["stranded_s"] - shown["as_it_is"]["stranded_s"]) <= LOOK_S


def test_it_waits_where_it_had_been_moved_to(day: Scene) -> None:
    day.has("iris", 9, **ANYWHERE)
    looks(day)
    goes_on(day, 1)
    moved = {one.uid: one.idle for one in looks(day, "fleet-rebalance").moves}
    assert moved
    goes_on(day, 1)
    since = day.hub.clock.now()
    goes_on(day, 1)
    found = {job.name: job.home for job in scene(day, since).scene.jobs}
    assert found == {uid(number): moved.get(uid(number), "iris") for number in range(101, 110)}


def test_what_is_parked_or_blocked_waits_for_nobody_s_slot(day: Scene) -> None:
    day.has("iris", 1, on_interrupt="park", **ANYWHERE)
    task, n = claims(day, "iris")
    ends(day, "iris", task, n, "interrupted")
    later = iso(day.hub.clock.now() + timedelta(seconds=1500))
    day.has("forge", 1, not_before=later, **ANYWHERE)
    day.has("loom", 1, not_before=iso(START + timedelta(days=9)), **ANYWHERE)
    goes_on(day, 2)
    since = day.hub.clock.now()
    goes_on(day, 3)
    day.fleet.machines["forge"].wake()
    goes_on(day, 2)
    (job,) = scene(day, since).scene.jobs
    assert (job.name, job.home) == (uid(1), "forge")
    assert job.at_ms == pytest.approx(900_000, abs=1000)


def test_what_was_blocked_comes_when_it_was_ready_and_that_is_said(day: Scene) -> None:
    looks(day)
    later = iso(day.hub.clock.now() + timedelta(seconds=600))
    day.has("iris", 1, not_before=later, **ANYWHERE)
    day.has("loom", 1, not_before=iso(START + timedelta(days=9)), **ANYWHERE)
    day.passes(600)
    day.fleet.machines["iris"].wake()
    task, n = claims(day, "iris")
    goes_on(day, 2)
    ends(day, "iris", task, n)
    goes_on(day, 1)
    found = scene(day)
    (job,) = found.scene.jobs
    assert job.name == uid(101)
    assert job.at_ms == pytest.approx(600_000, abs=1000)
    assert found.doubts == (
        f"1 task {DOUBTS['blocked']}",
        "1 task never came to be ready: left out",
    )
    assert played(day)["reality"]["mean_wait_s"] == pytest.approx(0, abs=1)
