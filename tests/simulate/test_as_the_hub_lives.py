"""A real hub with its own schedule and ears moves what `arc simulate` shows, and when it does.

Here nobody tells the hub when to look: `run_hub` starts its cycles, as `arc up` does.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from arc.simulate.engine import Run, jobs_in_order
from arc.simulate.policies import parse_policy
from arc.simulate.scene import INBOX, Job, Kind, Place, Scene
from tests.builders import START
from tests.fleet_builders import DOMAINS, ROLES
from tests.hub_builders import NAMES, TimedLink
from tests.simulate.lived import Move, lived

KINDS = (
    Kind(domain="research"), Kind(skills=("ci",)), Kind(domain="protocol"), Kind(),
    Kind(skills=("deploy",)), Kind(subject="Research: a thing"),
    Kind(domain="research", pinned=True), Kind(domain="integrations"),
)  # fmt: skip
POLICIES = (
    "arc0", "arc0:every=1m,idle_min=30s,busy_over=1", "arc0:on_idle=true,idle_min=20s,busy_over=1",
    "swift", "swift:gain_min=1m,every=1m",
)  # fmt: skip


@pytest.fixture(autouse=True)
def quick_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """No question takes any time, as in the simulator; only a move does."""
    monkeypatch.setattr(TimedLink, "takes_s", 0.0)
    monkeypatch.setattr("arc.transfer.SETTLE_AFTER_S", 0.0)


def drawn(seed: int) -> Scene:
    """An hour of a small fleet; no two jobs come in the same millisecond."""
    chance = Random(seed)
    places = tuple(Place(name, 1 + chance.randrange(2), ROLES[name]) for name in NAMES)
    homes = [*NAMES, NAMES[seed % len(NAMES)], NAMES[seed % len(NAMES)], INBOX, INBOX]
    moments = chance.sample(range(1, 3_600_000), 90)
    jobs: list[Job] = []
    for number, at_ms in enumerate(moments, start=1):
        home = chance.choice(homes)
        some = [kind for kind in KINDS if home != INBOX or kind.domain]
        kind = chance.choice([kind for kind in some if home != INBOX or not kind.pinned])
        jobs.append(Job(number, at_ms, home, chance.randrange(5_000, 600_000), kind,
                        chance.randint(1, 10)))  # fmt: skip
    return Scene(places, jobs_in_order(jobs), DOMAINS, START)


STORIES = [(word, seed) for word in ("arc0", "swift") for seed in range(3)]
STORIES += [(word, 7) for word in POLICIES if word not in ("arc0", "swift")]


@pytest.mark.parametrize(("word", "seed"), STORIES)
def test_the_hub_moves_what_the_simulator_moves_in_its_order_and_at_its_moments(
    tmp_path: Path, word: str, seed: int
) -> None:
    """Fails where the hub begins fleet-rebalance before fleet-router at a moment at which both are
    due (of a look each minute), and where the simulator plans while moves are under way.
    """
    scene, policy = drawn(seed), parse_policy(word)
    run = Run(scene, policy, watched=True)
    ended = run.to_the_end()
    moves, starts = lived(tmp_path, scene, policy, run.last_ms)
    assert moves == [Move(*one[:4]) for one in ended.moves]
    assert len(moves) > 10
    assert starts == ended.starts
