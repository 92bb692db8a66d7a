"""Five hundred nodes and a day of them: each panel in a second of work and a megabyte."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from time import process_time

import pytest

from arc.history import History
from arc.web.panels import PANELS
from tests.web.past_large import NODES, UNTIL, write_large

GOAL_S, GOAL_BYTES = 1.0, 1_000_000
LEEWAY = 2.0  # beside other tests the same work costs more of a processor's time


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large(tmp_path_factory.mktemp("large"))


@pytest.mark.parametrize("name", sorted(PANELS.keys() - {"what_if", "life"}))
def test_a_panel_of_a_large_fleet_is_quick_and_small(large: Path, name: str) -> None:
    took: list[float] = []
    for _ in range(2):
        began = process_time()
        data = PANELS[name].data(History(large), UNTIL, {"span": "24h"})
        text = json.dumps(data, separators=(",", ":"))
        took.append(process_time() - began)

    assert len(text) <= GOAL_BYTES
    assert min(took) <= GOAL_S * LEEWAY


def test_its_heat_map_has_every_node_and_the_stranded_ones_first(large: Path) -> None:
    data = PANELS["heat"].data(History(large), UNTIL, {"span": "24h"})
    nodes = data["nodes"]

    assert isinstance(nodes, list)
    assert len(nodes) == NODES
    lost = [one["stranded_s"] for one in nodes if isinstance(one, dict)]
    assert lost == sorted(lost, key=float, reverse=True)  # type: ignore[arg-type]
    assert lost[0] == pytest.approx(3000, rel=0.05)


def test_one_of_its_nodes_still_has_a_lane(large: Path) -> None:
    whole = PANELS["lanes"].data(History(large), UNTIL, {"span": "24h"})
    one = PANELS["lanes"].data(History(large), UNTIL, {"span": "24h", "nodes": "n007"})

    assert (whole["fleet"], whole["nodes"]) == (NODES, [])
    assert isinstance(one["nodes"], list)
    assert len(one["nodes"]) == 1


def test_two_weeks_are_bounded_too(large: Path) -> None:
    data = PANELS["heat"].data(History(large), UNTIL + timedelta(days=2), {"span": "14d"})

    assert len(json.dumps(data)) <= GOAL_BYTES
