"""Death at every step of a move in a `serve` that works by itself, without any daemon."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.chaos.conftest import MakeFleet
from tests.chaos.crash_table import STEPS
from tests.chaos.fleet import Fleet
from tests.node.daemon.living import LOOK_S, is_ready

REACH_S = 20.0
WITHOUT_A_DAEMON = (*(f"{step}.after:kill" for step in STEPS), "commit.before_move:kill",
                    "store.before_commit:kill:4", "generation.before_file:kill:4")  # fmt: skip


def test_a_serve_by_itself_may_die_at_every_named_place(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("without a daemon")
    fleet.add_waiting()
    for failpoint in WITHOUT_A_DAEMON:
        before = fleet.log.read_text().count("serve_killed")
        fleet.start_hub(failpoint, gives_up=0.8 if failpoint[:4] in {"abor", "drop"} else 0.1)
        meanwhile(fleet, lambda before=before:  # type: ignore[misc]
                  fleet.log.read_text().count("serve_killed") > before, failpoint)  # fmt: skip
    must_be_clean(fleet)


def meanwhile(fleet: Fleet, done: Callable[[], bool], what: str) -> None:
    """New work now and then, until this has happened."""
    end, looks = time.monotonic() + REACH_S, 0
    while not done():
        assert time.monotonic() < end, f"{what} was never reached: {fleet.done[-5:]}"
        if looks % 20 == 0:
            fleet.add(6, at="iris")
        looks += 1
        for daemon in fleet.daemons.values():
            daemon.drain()
        ear = fleet.daemons["iris"].process.stderr if "iris" in fleet.daemons else None
        is_ready(ear.fileno(), LOOK_S) if ear and not ear.closed else is_ready(fleet.rest, LOOK_S)


def must_be_clean(fleet: Fleet) -> None:
    fleet.heal()
    findings = fleet.end()
    assert findings.clean, (findings, fleet.done)
