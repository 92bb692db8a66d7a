"""Slots are the nodes' own word: work is made up for as many as each said that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.config import read_fleet
from arc.simulate.describing import drawn_for
from arc.simulate.wanted import Source, Wanted
from tests.hub.test_history import looks
from tests.sensors_stage import Scene

HEAD = "version: 1\nfleet: arc0\nhub: {name: arc, state: .arc}\nnodes:\n"


def drawn(place: Path, *names: str, slots: int | None = None) -> Source:
    nodes = "".join(f"  - {{name: {name}, host: {name}.lan, user: a}}\n" for name in names)
    (place / "fleet.yaml").write_text(HEAD + nodes)
    return drawn_for(Wanted(slots=slots), read_fleet(place / "fleet.yaml"))


def slots_of(source: Source) -> dict[str, int]:
    return {place.name: place.slots for place in source.scene(1).places}


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    """Iris and loom said how many slots they have; iris was not reached at the last look."""
    day = Scene(tmp_path)
    for name, slots in (("iris", 3), ("loom", 2)):
        day.fleet.machines[name].store.apply(c.SetAgents((c.AgentRow(name, slots, ()),)))
    looks(day)
    day.passes(60)
    day.fleet.machines["loom"].store.apply(c.SetAgents((c.AgentRow("loom", 5, ()),)))
    day.off("iris")
    looks(day)
    day.close()
    return tmp_path


def test_each_node_has_the_slots_that_it_said_last(heard: Path) -> None:
    """Seen to fail: `1 slot each`, of nodes that `arc status` showed with more."""
    source = drawn(heard, "iris", "loom")
    assert slots_of(source) == {"iris": 3, "loom": 5}
    assert ", 8 slots in all as last heard, work made up" in source.sentence
    assert (source.facts["slots"], source.facts["slots_of"]) == (None, {"iris": 3, "loom": 5})


def test_a_node_that_was_never_heard_is_taken_to_have_one_and_is_named(heard: Path) -> None:
    source = drawn(heard, "loom", "vega")
    assert slots_of(source) == {"loom": 5, "vega": 1}
    assert "6 slots in all as last heard, 1 slot assumed of vega, never heard" in source.sentence
    assert source.facts["slots_assumed"] == ["vega"]


def test_what_is_typed_counts_for_all_and_a_fleet_without_a_hub_has_one_each(
    heard: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    typed = drawn(heard, "iris", "loom", slots=4)
    assert slots_of(typed) == {"iris": 4, "loom": 4}
    assert "nodes of fleet.yaml, 4 slots each, work" in typed.sentence
    new = drawn(tmp_path_factory.mktemp("new"), "iris", "loom")
    said: JsonObject = {"slots": 1, "slots_from": "heard", "slots_assumed": ["iris", "loom"]}
    assert "1 slot each, assumed: none was ever heard" in new.sentence
    assert {name: new.facts[name] for name in said} == said
