"""Two homes under kill -9 at random moments: nothing runs twice, in two places, or gets lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.chaos.conftest import MakeFleet
from tests.chaos.fleet import NAMES, Fleet
from tests.node.daemon.living import is_ready

SEEDS = ("ada", "grace")
STEPS = int(os.environ.get("ARC_CHAOS_STEPS", "25"))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_doubled_or_lost_whoever_is_killed(make_fleet: MakeFleet, seed: str) -> None:
    """Fails when an attempt without a verdict counts as dead unproved: tasks overlap."""
    journal = "truncate" if seed == SEEDS[-1] else "wal"
    fleet = make_fleet(seed, journal=journal)
    rage(fleet, STEPS)
    fleet.heal()
    findings = fleet.end()
    assert findings.clean, (findings, fleet.done)
    assert len(fleet.acked) >= STEPS // 2


@pytest.mark.soak
@pytest.mark.parametrize("number", range(int(os.environ.get("ARC_CHAOS_ROUNDS", "20"))))
def test_nothing_is_doubled_or_lost_in_the_long_run(make_fleet: MakeFleet, number: int) -> None:
    """ARC_CHAOS_ROUNDS fleets of ARC_CHAOS_STEPS blows each; ARC_CHAOS_SEED makes other ones."""
    seed = f"{os.environ.get('ARC_CHAOS_SEED', 'soak')}-{number}"
    fleet = make_fleet(seed, journal=("wal", "truncate")[number % 2])
    rage(fleet, STEPS * 5)
    fleet.heal()
    findings = fleet.end()
    assert findings.clean, (findings, fleet.done)


def rage(fleet: Fleet, steps: int) -> None:
    """Blow after blow; between two of them the fleet works for some hundredths of a second."""
    blows: list[Callable[[Fleet], None]] = [
        kill_a_daemon, kill_a_daemon, stop_a_daemon, freeze_a_daemon, leave_a_home_alone,
        kill_a_zygote, kill_a_shim, kill_a_daemon_and_its_shims, kill_the_hub, kill_a_serve,
    ]  # fmt: skip
    fleet.start_hub()
    for name in NAMES:
        fleet.start(name)
    for step in range(steps):
        if step % 2 == 0:
            fleet.add(fleet.dice.randint(2, 9))
        fleet.dice.choice(blows)(fleet)
        for name in NAMES:
            fleet.tend(name)
        work(fleet, fleet.dice.uniform(0.0, 0.25))


def work(fleet: Fleet, seconds: float) -> None:
    """Let everybody go on for a while."""
    is_ready(fleet.rest, seconds)
    for daemon in fleet.daemons.values():
        daemon.drain()


def kill_a_daemon(fleet: Fleet) -> None:
    name = fleet.dice.choice(NAMES)
    fleet.kill(name)
    fleet.start(name)


def leave_a_home_alone(fleet: Fleet) -> None:
    """No daemon for a while: `serve` answers by itself, under the lock."""
    fleet.kill(fleet.dice.choice(NAMES))


def stop_a_daemon(fleet: Fleet) -> None:
    """TERM twice: it leaves, and what runs goes on under its shims."""
    daemon = fleet.daemons.get(fleet.dice.choice(NAMES))
    if daemon is not None and daemon.process.poll() is None:
        daemon.signal(signal.SIGTERM)
        daemon.signal(signal.SIGTERM)


def freeze_a_daemon(fleet: Fleet) -> None:
    """STOP, some work of the others, CONT: whoever waited for it goes on."""
    daemon = fleet.daemons.get(fleet.dice.choice(NAMES))
    if daemon is not None and daemon.process.poll() is None:
        daemon.signal(signal.SIGSTOP)
        work(fleet, 0.1)
        daemon.signal(signal.SIGCONT)


def kill_a_zygote(fleet: Fleet) -> None:
    fleet.kill_zygote(fleet.dice.choice(NAMES))


def kill_a_shim(fleet: Fleet) -> None:
    fleet.kill_shim(fleet.dice.choice(NAMES))


def kill_a_daemon_and_its_shims(fleet: Fleet) -> None:
    """Their programs run on with nobody beside them, until the next daemon finds them."""
    name = fleet.dice.choice(NAMES)
    fleet.kill(name)
    for _ in range(3):
        fleet.kill_shim(name)
    fleet.start(name)


def kill_the_hub(fleet: Fleet) -> None:
    fleet.start_hub()


def kill_a_serve(fleet: Fleet) -> None:
    fleet.kill_serve()
