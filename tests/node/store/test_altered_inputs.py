"""What another task left has a hash: nothing that was changed since is given to an attempt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import graph_words as g
from agent_node.output_hash import hash_of_output
from agent_node.store.inputs import InputDamaged
from agent_node.store.sqlite import SqliteStore
from agent_node.strict import JsonObject, JsonValue
from tests.builders import NodeAtHand, a_task, rule_of, uid
from tests.node.store.contract_graphs import ended, meets_a_hub, tell, told
from tests.node.store.test_sqlite import Sqlite

LEFT: JsonObject = {"b": 0.5, "a": "Zoë"}
REF = f"task:{uid(9)}:output"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    """It has a task that is given what another one left, which nobody has told of yet."""
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    meets_a_hub(node)
    node.has(a_task(1, context_refs=[REF]))
    yield node
    node.close()


def given(node: NodeAtHand) -> JsonValue:
    found = node.ask(g.Inputs(uid(1)))
    return None if found is None else found.context.get(REF)


def alter(node: NodeAtHand, table: str, output: str) -> None:
    assert isinstance(node.store, SqliteStore)
    query = f"UPDATE {table} SET output = ? WHERE uid = ?"
    assert node.store._db.execute(query, (output, uid(9))).rowcount == 1


def test_an_end_whose_output_has_another_hash_is_refused_alone(node: NodeAtHand) -> None:
    """Fails where nobody compares, and where one such end keeps the others of its page away."""
    wrong, right = told(uid(9), output=LEFT, sha256="0" * 64), told(uid(8), output=7)
    node.has(a_task(2, context_refs=[f"task:{uid(8)}:output"]))
    said = node.say(g.NoteEnds((wrong, right)))
    assert [one.outcome for one in said] == ["refused", "noted"]
    assert rule_of(said[0]) == "hash_mismatch"
    assert [node.state(uid(number)) for number in (1, 2)] == ["PENDING", "READY"]
    assert tell(node, told(uid(9), output=LEFT, sha256=hash_of_output(LEFT))) == ["noted"]
    assert given(node) == LEFT


@pytest.mark.parametrize("output", ['{"a":"Zoë","b":0.25}', '{"a":"Zo', "7"])
def test_what_was_told_and_changed_since_is_given_to_no_attempt(
    node: NodeAtHand, output: str
) -> None:
    """Fails where what lies there is believed."""
    tell(node, told(uid(9), output=LEFT))
    assert given(node) == LEFT
    alter(node, "told", output)
    with pytest.raises(InputDamaged, match=uid(9)):
        given(node)


@pytest.mark.parametrize("output", ['{"a":"Zoë","b":0.25}', '{"a":"Zo', "7"])
def test_what_a_task_here_left_and_changed_since_is_given_to_no_attempt(
    node: NodeAtHand, output: str
) -> None:
    """Its hash stands in the event of its end. Fails where only what was told is compared."""
    node.has(a_task(9))
    ended(node, output=LEFT)
    assert given(node) == LEFT
    shown = node.shown(uid(9))
    assert shown is not None
    assert shown.output_sha256 == hash_of_output(LEFT)
    alter(node, "task", output)
    with pytest.raises(InputDamaged, match=uid(9)):
        given(node)


def test_an_output_of_which_the_hash_alone_is_told_is_given_to_no_attempt(
    node: NodeAtHand,
) -> None:
    """It was damaged where it lay. Fails where nothing stands in its place; it may still come."""
    sha256 = hash_of_output(LEFT)
    assert tell(node, told(uid(9), sha256=sha256, because="loom: damaged")) == ["noted"]
    with pytest.raises(InputDamaged, match=uid(9)):
        given(node)
    assert tell(node, told(uid(9), sha256=sha256, because="loom: damaged")) == ["known"]
    assert tell(node, told(uid(9), output=LEFT, sha256=sha256)) == ["noted"]
    assert given(node) == LEFT


def test_an_output_that_is_gone_from_the_row_is_none_that_was_never_there(node: NodeAtHand) -> None:
    node.has(a_task(9))
    ended(node, output=LEFT)
    assert isinstance(node.store, SqliteStore)
    node.store._db.execute("UPDATE task SET output = NULL WHERE uid = ?", (uid(9),))
    shown = node.shown(uid(9))
    assert shown is not None
    assert shown.output_sha256 == hash_of_output(LEFT)
    with pytest.raises(InputDamaged, match=uid(9)):
        given(node)


def test_nothing_left_has_no_hash(node: NodeAtHand) -> None:
    node.has(a_task(9))
    ended(node)
    assert given(node) is None
    shown = node.shown(uid(9))
    assert shown is not None
    assert shown.output_sha256 is None


def test_an_end_whose_event_was_damaged_stops_who_is_given_of_it_and_nobody_else(
    node: NodeAtHand,
) -> None:
    """Seen to fail: the claim of one task could not be read as JSON, and the daemon ended with it,
    at every start.
    """
    node.has(a_task(9))
    ended(node, output=LEFT)
    assert isinstance(node.store, SqliteStore)
    damaged = "UPDATE event SET data = substr(data, 2) WHERE event = 'task_completed'"
    assert node.store._db.execute(damaged).rowcount == 1
    with pytest.raises(InputDamaged, match=uid(9)):
        given(node)


@pytest.mark.parametrize("output", [[], {}, "", 0, False])
def test_an_output_that_is_empty_is_not_taken_for_none(
    node: NodeAtHand, output: JsonValue
) -> None:
    """Seen to fail: [] was null in the event, in the task and on every other node."""
    node.has(a_task(9))
    ended(node, output=output)
    assert given(node) == output
    assert given(node) is not None
    assert node.task(uid(9)).output == output
    (end,) = [one for one in node.events(uid(9)) if one["event"] == "task_completed"]
    said = end["data"]
    assert isinstance(said, dict)
    assert said["output"] == output
