"""What an older version took in, and this one would not, stops no daemon and no page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.errors import BadInput
from agent_node.newborn import new_task
from agent_node.store.sqlite import SqliteStore
from agent_node.strict import JsonObject
from tests.builders import NodeAtHand, a_task, an_agent, uid, xfer
from tests.node.store.contract_graphs import (
    a_graph,
    ended,
    facts,
    meets_a_hub,
    of,
    states,
    submit,
    tell,
    told,
)
from tests.node.store.test_sqlite import Sqlite

NEXT: JsonObject = {"title": "next", "tasks": {"x": {"subject": "x"}}}
SLIPS: dict[str, JsonObject] = {
    "a word that is no type": {"kind": "json-schema", "schema": {"type": "sting"}},
    "no schema of all": {"kind": "json-schema", "schema": {"allOf": []}},
    "a pattern of another tongue": {"kind": "json-schema", "schema": {"pattern": r"\p{L}"}},
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def took_in(node: NodeAtHand, dag: str, then: JsonObject) -> None:
    """The graph has this to follow it, as a version took it that looked less closely."""
    assert isinstance(node.store, SqliteStore)
    query = "UPDATE graph SET then_document = ? WHERE id = ?"
    assert node.store._db.execute(query, (json.dumps(then), dag)).rowcount == 1


def with_slip(validate: JsonObject) -> JsonObject:
    return {"title": "next", "tasks": {"x": {"subject": "x", "validate": validate}}}


@pytest.mark.parametrize("slip", SLIPS)
def test_an_end_is_recorded_although_this_version_would_not_take_what_follows(
    node: NodeAtHand, slip: str
) -> None:
    """Fails where the row of the end is refused with it: the daemon ends by it, at each start."""
    graph = a_graph(a=[], then=NEXT)
    submit(node, graph)
    took_in(node, graph.id, with_slip(SLIPS[slip]))
    assert ended(node) == "a"
    assert states(node, graph) == {"a": "COMPLETED"}
    assert facts(node, graph).state == "completed"
    (said,) = [one for one in node.ask(q.Events()) if one["event"] == "dag_not_followed"]
    assert said["uid"] == graph.id
    assert "graph.tasks.x.validate.schema" in str(said["because"])


def test_what_was_not_followed_is_named_as_it_would_have_been(node: NodeAtHand) -> None:
    graph = a_graph(a=[], then=NEXT)
    twin = NodeAtHand(Sqlite(), node.place.with_name("twin"))
    for one in (node, twin):
        submit(one, graph)
    took_in(node, graph.id, with_slip(SLIPS["no schema of all"]))
    ended(node)
    ended(twin)
    (said,) = [one for one in node.ask(q.Events()) if one["event"] == "dag_not_followed"]
    assert said["data"] == {"dag": facts(twin, graph).then}
    twin.close()


def test_a_page_of_ends_is_noted_although_what_follows_one_cannot_be_read(
    node: NodeAtHand,
) -> None:
    """Fails where one graph's following keeps every end of the page from being noted."""
    meets_a_hub(node)
    graph, other = a_graph(1, a=[], then=NEXT), a_graph(2, a=[])
    for one in (graph, other):
        submit(node, one)
    took_in(node, graph.id, with_slip(SLIPS["no schema of all"]))
    for number, one in enumerate((graph, other), start=1):
        node.gives_away(xfer(number), node.task(of(one, "a")))
    ends = [told(of(one, "a")) for one in (graph, other)]
    assert tell(node, *ends) == ["noted", "noted"]
    assert [facts(node, one).state for one in (graph, other)] == ["completed", "completed"]


@pytest.mark.parametrize("slip", SLIPS)
def test_a_task_of_an_older_rule_is_shown_listed_moved_claimed_and_retried(
    node: NodeAtHand, tmp_path: Path, slip: str
) -> None:
    """Fails where a stored task is read by the check of new ones: it can be added by none now,
    and whatever lies there since before goes its way.
    """
    with pytest.raises(BadInput):
        new_task({"uid": uid(1), "subject": "new", "validate": SLIPS[slip]})
    loom = NodeAtHand(Sqlite(), tmp_path / "loom", "loom")
    loom.set_agents(an_agent("loom", "json-schema", slots=8))
    node.has(a_task(1, validate=SLIPS[slip], max_attempts=1))
    assert node.task(uid(1)).validate == SLIPS[slip]
    assert [one.uid for one in node.ask(q.ListTasks()).tasks] == [uid(1)]
    loom.takes(xfer(1), node.gives_away(xfer(1), node.task(uid(1))), giver="iris")
    loom.finish(loom.running(), "failed", error_kind="auth_failure")
    assert loom.say(c.RetryNow(uid(1))).outcome == "changed"
    loom.finish(loom.running())
    assert loom.state(uid(1)) == "COMPLETED"
    loom.close()
