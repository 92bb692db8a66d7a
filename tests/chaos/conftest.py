"""Gives the kill harness a fleet, and proves that nothing of it is left running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.chaos.fleet import Fleet
from tests.node.daemon.conftest import make_node

__all__ = ["make_fleet", "make_node"]

MakeFleet = Callable[..., Fleet]


@pytest.fixture
def make_fleet(tmp_path: Path) -> Iterator[MakeFleet]:
    """Builds fleets of two homes; afterwards no process carries a home of theirs."""
    fleets: list[Fleet] = []
    numbers = count()  # fleets are made by several threads at once

    def make(seed: str, **options: str) -> Fleet:
        place = tmp_path / f"fleet-{next(numbers)}"
        place.mkdir()
        fleet = Fleet(place, seed, **options)
        fleets.append(fleet)
        return fleet

    yield make
    for fleet in fleets:
        fleet.clean_up()
    assert [pid for fleet in fleets for pid in fleet._processes()] == []
