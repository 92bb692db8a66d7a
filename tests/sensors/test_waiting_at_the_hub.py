"""Nobody waits for ever in the hub's own queue, whoever comes, and whatever stands before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from agent_node.clock import iso
from agent_node.priority import Turn, base_of, class_of, overdue_at, standing, turn_of
from agent_node.strict import JsonObject
from arc.decisions.limits import RouteLimits
from tests.sensors_stage import Scene, rows

ROUTER = "fleet-router"
HOUR = 3600.0
HOUR_MS = 3_600_000
BATCH = 4


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, route=RouteLimits(batch=BATCH))
    yield scene
    scene.close()


@dataclass(frozen=True)
class Waiting:
    """A task in the hub's queue: when it came, and from when on it is overdue, in milliseconds."""

    came: int
    overdue: int


class Overload:
    """More comes than leaves, and most of it is more urgent than what is there."""

    def __init__(self, day: Scene, seed: int) -> None:
        self.day, self.rng = day, Random(seed)
        self.waiting: dict[str, Waiting] = {}

    def now(self) -> int:
        return int(self.day.hub.clock.now().timestamp() * 1000)

    def comes(self, **fields: float | str) -> str:
        """A task of a domain that one node owns; what its deadline adds is not counted here."""
        task: JsonObject = {"subject": "x", "skills": ["clarity"], **fields}
        said = self.day.asks("inbox", "add", tasks=[task])
        uid, now = str(rows(said, "results")[0]["uid"]), self.now()
        boost = fields.get("boost_per_minute")
        pace = class_of(None if boost is None else float(boost))
        stands = standing(base_of(int(fields["priority"]), None))
        due = overdue_at(Turn(pace, turn_of(stands, pace, now)))
        self.waiting[uid] = Waiting(now, due)
        return uid

    def newcomers(self) -> None:
        """One more than leave in a cycle."""
        for _ in range(BATCH + 1):
            fields: dict[str, int | float | str] = {"priority": self.rng.randint(1, 9)}
            if self.rng.random() < 0.3:
                fields["boost_per_minute"] = self.rng.choice([0.2, 1.0])
            self.comes(**fields)

    def cycle(self) -> set[str]:
        """What the router moved; its node is done with all of it at once."""
        report = self.day.run(ROUTER)
        moved = {one.uid for one in report.moves if one.outcome == "moved"}
        if moved:
            self.day.asks("spark", "cancel", uids=[*moved], reason="done")
        return moved


@pytest.mark.parametrize("seed", range(3))
def test_under_a_stream_of_more_urgent_work_everybody_leaves_within_a_bound(
    day: Scene, seed: int
) -> None:
    """Each cycle one more comes than leaves. A task is overdue after a known time, and then waits
    for those alone that were there by then. Seen to fail where the hub's queue goes by P: the P10
    that came first was there for ever.
    """
    load = Overload(day, seed)
    oldest = load.comes(priority=10)
    ahead: dict[str, int] = {}  # how many were there when it became overdue, less who left since
    for _ in range(60):
        load.newcomers()
        now = load.now()
        for uid, one in load.waiting.items():
            if one.overdue <= now:
                ahead.setdefault(uid, len(load.waiting))
        moved = load.cycle()
        assert len(moved) == BATCH
        left = {uid: load.waiting.pop(uid) for uid in moved}
        for uid in [uid for uid in ahead if uid in load.waiting]:
            was = load.waiting[uid]
            assert all(one.came <= was.overdue for one in left.values()), "it was passed"
            ahead[uid] -= len(moved)
            assert ahead[uid] >= 0, "it waits for more than were there before it"
        if oldest not in load.waiting:
            return
        day.passes(2 * HOUR)
    pytest.fail("the least urgent task never left the hub's queue")


def test_what_becomes_urgent_by_its_deadline_leaves_first(day: Scene) -> None:
    """Seen to fail where the order that is kept in memory does not hear of a deadline's step."""
    load = Overload(day, 1)
    soon = day.hub.clock.now().timestamp() + 25 * HOUR
    late = load.comes(priority=7, deadline=iso(day.hub.clock.now().fromtimestamp(
        soon, tz=day.hub.clock.now().tzinfo)))  # fmt: skip
    for _ in range(BATCH):
        load.comes(priority=3)
    day.asks("inbox", "candidates", why="routed", order="most_urgent", **{"for": [{"node": "x"}]})
    day.passes(24.8 * HOUR)
    assert late in load.cycle()


def test_what_a_task_waited_for_at_the_hub_counts_when_it_is_claimed(day: Scene) -> None:
    """Seen to fail: three hours in the hub's queue were told as a wait of no second."""
    day.asks("inbox", "add", tasks=[{"subject": "x", "skills": ["clarity"]}])
    day.run("fleet-health")
    day.passes(3 * HOUR)
    assert day.run(ROUTER).acted == 1
    day.passes(30)
    day.works("spark")
    day.run("fleet-health")
    (waited,) = day.hub.journal.tallies.of_a_day("task_queue_wait_seconds_sum").values()
    assert 3 * HOUR + 30 <= waited / 10**6 < 3 * HOUR + 60


@pytest.mark.parametrize("front", ["nobody_wants", "kept_by_fleet_yaml", "its_node_is_full"])
def test_what_stays_for_ever_hides_nobody_behind_it(
    tmp_path: Path, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What never leaves grows older than all others, and fills every page that a cycle reads. Seen
    to fail without the second question, and of kept priorities where it does not name them.
    """
    monkeypatch.setattr("arc.planning.PAGE", 10)
    monkeypatch.setattr("arc.planning.PAGES_MAX", 2)
    keep = (9,) if front == "kept_by_fleet_yaml" else ()
    day = Scene(tmp_path, route=RouteLimits(keep=keep))
    skill = {"nobody_wants": "cooking", "kept_by_fleet_yaml": "arc-research",
             "its_node_is_full": "clarity"}[front]  # fmt: skip
    if front == "its_node_is_full":
        day.has("spark", 20)
    old = [{"subject": "x", "skills": [skill], "priority": 9} for _ in range(60)]
    day.asks("inbox", "add", tasks=[*old])
    day.passes(30 * HOUR)
    day.asks("inbox", "add", tasks=[{"subject": "y", "skills": ["arc-research"], "priority": 1}])
    report = day.run(ROUTER)
    day.close()
    assert [(one.idle, one.outcome) for one in report.moves] == [("iris", "moved")]
