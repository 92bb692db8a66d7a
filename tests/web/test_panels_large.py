"""Five hundred nodes and a day of them: each panel in a second of work and a megabyte."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from arc import history_shares
from arc.history import History
from arc.web.panels import PANELS
from arc.web.panels.depth import SMALL_MAX
from tests.web.past_large import NODES, UNTIL, write_large

GOAL_S, GOAL_BYTES = 1.0, 1_000_000
LIVE = ("lanes", "heat", "funnel", "feeds", "depth", "money", "sensors")  # what a live page asks
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


def test_all_that_a_live_page_asks_for_together_is_quick_and_small(large: Path) -> None:
    took: list[float] = []
    for _ in range(2):
        began = process_time()
        texts = [json.dumps(PANELS[name].data(History(large), UNTIL, {"span": "24h"}))
                 for name in LIVE]  # fmt: skip
        took.append(process_time() - began)

    assert sum(map(len, texts)) <= GOAL_BYTES
    assert min(took) <= GOAL_S * LEEWAY


def test_only_the_heat_map_adds_up_the_time_of_every_node(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where money, the header of a moment, or the plots of the deepest queues go through a
    hundred and fifty thousand samples for what the database says by itself.
    """
    add_up, added = history_shares._add_up, dict.fromkeys(LIVE, 0)
    added["moment"] = 0

    def counted(*asked: Any) -> dict[str, Any]:
        sums = add_up(*asked)
        added[name] += len(sums)
        return sums

    monkeypatch.setattr(history_shares, "_add_up", counted)
    for name in added:
        PANELS[name].data(History(large), UNTIL, {"span": "24h"})
    assert {name: nodes for name, nodes in added.items() if nodes} == {
        "heat": NODES, "depth": SMALL_MAX}


def test_the_deepest_queues_are_those_of_all_and_money_is_what_shares_say(large: Path) -> None:
    since, history = UNTIL - timedelta(days=1), History(large)
    every = history.depths(since, UNTIL, 120)
    deep = history.depths(since, UNTIL, 120, deepest=SMALL_MAX)
    by_depth = sorted(every.nodes, key=lambda one: (-max(most or 0 for most in one.most), one.node))
    assert deep.nodes == tuple(sorted(by_depth[:SMALL_MAX], key=lambda one: one.node))
    assert (every.more, deep.more) == (0, NODES - SMALL_MAX)
    few = history.depths(since, UNTIL, 120, nodes=["n001", "n002"], deepest=SMALL_MAX)
    assert ([one.node for one in few.nodes], few.more) == (["n001", "n002"], 0)
    spent = history.spent(since, UNTIL, 96)
    assert spent.nodes == {
        one.node: one.cost_usd for one in history.shares(since, UNTIL, 96).nodes}


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
