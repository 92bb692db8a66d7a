"""Whom a node obeys is read from what it says anyway: its hello, its refusals and its reports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_node.moves import Hello
from arc.decisions.alerts import Alert, Edge
from arc.decisions.failing import NodeFactsSeen
from arc.displaced import displaced_by
from arc.links import Met
from arc.operations.page_now import page_now
from tests.decisions.test_health import judged, rules
from tests.fleet_builders import a_node, a_report
from tests.hub.cli.desk import Desk

TYPE = "arc up --take-over"
MET = Met("iris", "01ARZ3NDEKTSV4RRFFQ69G5FAV", 1, 3, "active", "0.1.0", 1, waits_for_hub=False,
          at="", clock_off_s=0.0)  # fmt: skip


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("term", [None, 0, 2, 3])
def test_a_term_no_higher_than_ours_is_no_other_hub(term: int | None) -> None:
    """None: the node is too old to say."""
    assert displaced_by(a_report("iris", term=term, hub="arc"), MET, 3) == ""


def test_a_higher_term_in_a_report_is_another_hub() -> None:
    """Its session was opened before; nothing was ordered since. Seen to fail with the report not
    looked at.
    """
    because = "iris has seen term 4 of hub arc; this one says 3"
    assert displaced_by(a_report("iris", term=4, hub="arc"), MET, 3) == because
    unnamed = "iris has seen term 4; this one says 3"
    assert displaced_by(a_report("iris", term=4), None, 3) == unnamed


def test_what_the_node_said_to_us_itself_comes_first() -> None:
    """Under one term the report does not show it: the node obeys who spoke first."""
    met = replace(MET, old_term="iris obeys another hub of term 3")
    assert displaced_by(a_report("iris", term=3), met, 3) == "iris obeys another hub of term 3"


def test_a_node_that_obeys_another_hub_has_a_state_of_its_own() -> None:
    found = judged(a_node("iris"), NodeFactsSeen(other_hub="iris has seen term 4"))
    assert (found.state, rules(found)) == ("other_hub", ["obeys_this_hub"])
    assert TYPE in found.troubles[0].because
    assert found.troubles[0].alarm


def test_one_line_says_so_first_however_many_nodes_it_is(desk: Desk) -> None:
    """Also on the page, which asks nobody. What the last run for health found is not said again."""
    desk.waits("iris", 1)
    desk.nodes.machines["spark"].off = True
    assert ours(desk) == []
    for name in ("iris", "loom"):
        store = desk.nodes.machines[name].store
        store.apply(Hello("arc0", "arc", 7, desk.clock.boot_id()))
    alert = Alert("iris", "obeys_this_hub", "it obeys another hub")
    desk.hub.journal.nodes.note(Edge(began=(alert,), standing=(alert,)))
    first = desk.arc("status", "--json").data["needs_you"][0]
    assert (first["node"], first["try"]) == ("hub", TYPE)
    assert first["text"].startswith("another hub is obeyed by iris, loom, and nothing that")
    assert "iris has seen term 7 of hub arc; this one says 1" in first["text"]
    assert len(ours(desk)) == 1
    page: Any = asyncio.run(page_now(desk.hub, {})).data
    assert [one for one in page["needs_you"] if one["try"] == TYPE] == [first]


def ours(desk: Desk) -> list[Any]:
    said = desk.arc("status", "--json").data["needs_you"]
    return [one for one in said if one["try"] == TYPE or "another hub" in one["text"]]
