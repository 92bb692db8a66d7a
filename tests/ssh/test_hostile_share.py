"""Measures what one hostile node costs the cycle of the others, beside a fleet that has none.

`make test` holds the bound (tests/ssh/test_faults.py): a tenth of the time between two cycles.
This prints what docs/reliability.md publishes: also how the cycle's own time, some ms, compares.
Whoever else uses the machine makes every cycle longer, and so does what the hostile node burns
here, where it stands on the hub's own machine: a second fleet, in which all are well, tells by how
much, for its cycles go on at the same time.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tests.ssh.fleet import NAMES, SshFleet
from tests.ssh.heard import cycles, next_cycles, noticed, now, well_again
from tests.ssh.lab import Lab
from tests.ssh.test_faults import KEYS, begin_anew, turn_hostile

ROUNDS, CYCLES, EVERY_S = 3, 12, 2.0
OWN_MAX = 1.5
Took = tuple[list[float], list[float]]  # in the fleet with the hostile node, and in the other one


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["mute", "endless", "loris", "stderr"])
def test_how_a_hostile_node_shows_in_the_cycle_of_the_others(
    lab: Lab, tmp_path: Path, mode: str
) -> None:
    """With and without it in turns. The cycle that finds it out is not counted: it may wait ten
    seconds, once.
    """
    fleet, other = a_fleet(lab, tmp_path / "hostile"), a_fleet(lab, tmp_path / "well")
    loom = fleet.homes["loom"].node
    keys = loom.read(KEYS)
    without: Took = ([], [])
    beside: Took = ([], [])
    for _ in range(ROUNDS):
        measure(fleet, other, without)
        began = now()
        turn_hostile(fleet, "loom", mode)
        noticed(fleet, "loom", began, within_s=15)
        measure(fleet, other, beside)
        began = now()
        loom.write(KEYS, keys, mode=0o600, user="agent")
        begin_anew(loom)
        well_again(fleet, "loom", began, within_s=40)
    own = against(beside) / against(without)
    share = (median(beside[0]) - median(without[0])) / EVERY_S
    print(f"{mode}: a cycle took {told(without)} without it and {told(beside)} beside it: "
          f"{own:.2f} times, {100 * share:+.1f} % of the time between two; "
          f"{len(without[0])} and {len(beside[0])} cycles in turns")  # fmt: skip
    assert share <= 0.1
    assert own <= OWN_MAX


def a_fleet(lab: Lab, place: Path) -> SshFleet:
    """Four nodes and their hub, which has met them."""
    place.mkdir()
    fleet = SshFleet(lab, place, NAMES[:4], every=f"{EVERY_S:g}s")
    fleet.up()
    began = now()
    for name in fleet.homes:
        well_again(fleet, name, began - 60, within_s=100)
    return fleet


def measure(fleet: SshFleet, other: SshFleet, took: Took) -> None:
    """So many cycles of the one, and those of the other in the same time."""
    began = now()
    next_cycles(fleet, CYCLES)
    for one, into in zip((fleet, other), took, strict=True):
        into += [took_s for at, took_s in cycles(one) if at >= began]


def against(took: Took) -> float:
    """How the one fleet's cycles compare with the other's of the same time."""
    return median(took[0]) / median(took[1])


def told(took: Took) -> str:
    return f"{1000 * median(took[0]):.1f} ms (the other fleet {1000 * median(took[1]):.1f})"
