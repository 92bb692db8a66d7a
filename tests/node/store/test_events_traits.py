"""What a node's events say of the tasks that came or were claimed, if they are asked to."""

from __future__ import annotations

from pathlib import Path
from random import Random

from agent_node import commands as c
from agent_node import queries as q
from agent_node.store.sqlite import SqliteStore, open_store
from agent_node.strict import JsonObject
from arc.decisions.tallying import UNIT, tally_events
from tests.builders import FakeClock, a_task, uid


def a_store(place: Path) -> SqliteStore:
    place.mkdir()
    store = open_store(place, name="iris", clock=FakeClock(), rng=Random(1), machine="here")
    store.apply(c.SetAgents((c.AgentRow("iris", 8, ("gpu",)),)))
    store.live.dispatching = True
    return store


def events(store: SqliteStore, *, traits: bool = True) -> dict[str, JsonObject]:
    return {str(one["event"]): one for one in store.read(q.Events(traits=traits))}


def test_what_came_and_was_claimed_says_what_it_is_like_and_never_what_it_says(
    tmp_path: Path,
) -> None:
    store = a_store(tmp_path / "iris")
    store.apply(c.Add((a_task(1, priority=3, skills=["web"], needs=["gpu"], domain="protocol",
                              expected_s=90, pinned=True, source="human:lukas"),)))  # fmt: skip
    got = store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    store.apply(c.Started(uid(1), got.n, 42, 99, FakeClock().boot_id()))

    said = events(store)
    traits = {"priority": 3, "domain": "protocol", "skills": ["web"], "needs": ["gpu"],
              "pinned": True, "expected_s": 90.0, "source": "human"}  # fmt: skip
    assert said["task_added"]["traits"] == traits
    assert said["task_claimed"]["traits"] == traits
    assert "traits" not in said["task_started"]
    assert "traits" not in events(store, traits=False)["task_added"]
    store.close()


def test_what_judges_its_output_is_among_the_needs_that_are_told(tmp_path: Path) -> None:
    """A replay of history needs them too. Run once without `needs_of` in `new_row`: it fails."""
    store = a_store(tmp_path / "iris")
    store.apply(c.Add((a_task(1, needs=["gpu"], validate={"kind": "json-schema", "schema": {}}),)))
    traits = events(store)["task_added"]["traits"]
    assert isinstance(traits, dict)
    assert traits["needs"] == ["gpu", "json-schema"]
    store.close()


def test_a_start_says_whose_it_is_so_that_it_is_counted_beside_its_claim(tmp_path: Path) -> None:
    store = a_store(tmp_path / "iris")
    store.apply(c.Add((a_task(1),)))
    got = store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    store.apply(c.Started(uid(1), got.n, 42, 99, FakeClock().boot_id()))

    assert events(store)["task_started"]["by"] == "iris"
    counts = tally_events("n1", store.read(q.Events()), {})
    iris = (("agent", "iris"), ("node", "n1"))
    assert counts["agent_starts_total", iris] == counts["agent_claims_total", iris] == UNIT
    store.close()


def test_what_a_task_does_not_say_is_told_as_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path / "iris")
    store.apply(c.Add((a_task(1, source="nobody"),)))
    traits = events(store)["task_added"]["traits"]
    assert isinstance(traits, dict)
    assert (traits["domain"], traits["expected_s"], traits["skills"]) == (None, None, [])
    assert (traits["pinned"], traits["source"]) == (False, "nobody")
    store.close()
