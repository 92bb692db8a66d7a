"""A task is read whole or refused by its field; its hash covers what no node may change."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node.errors import BadInput
from agent_node.spec import content_of, hash_of, spec_of, values_of
from agent_node.strict import JsonObject, decode_line
from agent_node.task import (
    CHANGES,
    DEFAULTS,
    FIELDS,
    IMMUTABLE,
    SETTABLE,
    State,
    Task,
    may_become,
    task_from,
    to_wire,
    to_wire_tersely,
    with_fields,
)
from tests.builders import a_task, uid

VECTORS = json.loads((Path(__file__).parents[1] / "wire" / "hash_vectors.json").read_text())
by_name = pytest.mark.parametrize("vector", VECTORS, ids=[one["name"] for one in VECTORS])

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
words = st.sampled_from(["float", "object", "a", "b"]) | texts
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(words, values, max_size=4)


@by_name
def test_the_text_that_is_hashed_never_changes(vector: dict[str, str]) -> None:
    """Fails when a field joins the hash, leaves it, or is written another way: old hashes break."""
    assert spec_of(task_from(vector["task"])) == vector["spec"]


@by_name
def test_the_hash_is_plain_sha256_of_that_text(vector: dict[str, str]) -> None:
    assert hash_of(vector["spec"]) == vector["sha256"]
    assert hashlib.sha256(vector["spec"].encode()).hexdigest() == vector["sha256"]


@by_name
def test_a_task_rebuilt_from_its_spec_has_the_same_hash(vector: dict[str, str]) -> None:
    """What a store keeps as text has to give the same task back."""
    rebuilt = task_from(values_of(vector["spec"]))
    assert hash_of(spec_of(rebuilt)) == vector["sha256"]


@by_name
def test_a_task_keeps_its_hash_on_the_wire(vector: dict[str, str]) -> None:
    line = json.dumps(to_wire(task_from(vector["task"]))).encode()
    assert hash_of(spec_of(task_from(decode_line(line)))) == vector["sha256"]


@given(extra=objects)
def test_anything_in_extra_survives_the_hash_and_the_wire(extra: dict[str, object]) -> None:
    task = a_task(extra=extra)
    spec = spec_of(task)
    back = values_of(spec).get("extra", {})
    assert json.dumps(back, sort_keys=True) == json.dumps(extra, sort_keys=True)
    again = task_from(decode_line(json.dumps(to_wire(task)).encode()))
    assert spec_of(again) == spec
    assert "NaN" not in spec


@given(one=objects, two=objects)
def test_different_extras_have_different_texts(one: object, two: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (spec_of(a_task(extra=one)) == spec_of(a_task(extra=two))) == same


OTHER_WORDS: JsonObject = {
    "uid": uid(2), "subject": "other", "body": "b", "type": "t", "needs": ["n"], "key": "k",
    "ref": "r", "origin": "human:eve", "created_at": "2026-03-10T03:45:02.000Z", "parent": uid(3),
    "dag": "d", "depends_on": [{"uid": uid(4)}], "context_refs": ["c"], "max_cost_usd": "1",
    "retry": {"jitter": 0}, "validate": {"v": 1}, "output_type": "json", "on_interrupt": "park",
    "extra": {"e": 1},
}  # fmt: skip


def test_every_field_that_no_node_may_change_changes_the_hash() -> None:
    """Fails when a field is taken out of the hash: a node could rewrite it unseen."""
    assert set(OTHER_WORDS) == IMMUTABLE
    plain = spec_of(a_task())
    for name, value in OTHER_WORDS.items():
        changed = task_from({**to_wire(a_task()), name: value})
        assert hash_of(spec_of(changed)) != hash_of(plain), name


def test_no_field_that_nodes_may_change_changes_the_hash() -> None:
    moved = a_task(priority=9, skills=["s"], pinned=True, epoch=5, hops=3, state="RUNNING")
    assert spec_of(moved) == spec_of(a_task())


def test_every_field_has_a_check_and_a_place() -> None:
    names = {field.name for field in fields(Task)}
    assert names == set(FIELDS) == set(DEFAULTS)
    assert not IMMUTABLE & SETTABLE
    assert {"uid", "subject", "body", "needs", "key"} <= IMMUTABLE
    assert {"priority", "tags", "pinned", "max_attempts"} <= SETTABLE


def test_every_field_passes_its_own_check_at_its_default() -> None:
    for name, value in DEFAULTS.items():
        if name not in {"uid", "subject"}:
            assert FIELDS[name](value, name) == value, name


def test_the_content_of_a_request_is_what_its_sender_decided() -> None:
    """A repeat may come with another uid, at another time and from another mouth."""
    one = a_task(1, subject="rotate", origin="human:ada")
    two = a_task(2, subject="rotate", origin="cron:daily", created_at="2026-03-10T03:45:02.000Z")
    assert content_of(spec_of(one)) == content_of(spec_of(two))
    assert content_of(spec_of(one)) != content_of(spec_of(a_task(3, subject="delete")))


def test_unknown_fields_are_kept_in_extra() -> None:
    task = a_task(colour="blue", size={"w": 1}, extra={"mine": True})
    assert task.extra == {"mine": True, "colour": "blue", "size": {"w": 1}}
    assert task_from(to_wire(task)) == task


@pytest.mark.parametrize("missing", ["uid", "subject"])
def test_a_task_has_a_uid_and_a_subject(missing: str) -> None:
    document: JsonObject = {"uid": uid(), "subject": "work"}
    wrongs: tuple[JsonObject, ...] = ({}, {missing: ""}, {missing: None})
    for wrong in wrongs:
        given_: JsonObject = {**{k: v for k, v in document.items() if k != missing}, **wrong}
        with pytest.raises(BadInput, match=missing):
            task_from(given_)


def test_a_uid_is_minted_only_where_none_was_brought() -> None:
    assert task_from({"subject": "work"}, mint=uid(7)).uid == uid(7)
    assert task_from({"uid": uid(1), "subject": "work"}, mint=uid(7)).uid == uid(1)


@pytest.mark.parametrize("document", [None, [], "task", 7, True])
def test_a_task_is_an_object(document: object) -> None:
    with pytest.raises(BadInput, match="task"):
        task_from(document)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fine", "view"), [(0, 1), (9, 1), (10, 2), (49, 5), (89, 9), (90, 10), (99, 10), (100, 10)]
)
def test_priority_is_the_view_of_the_finer_one(fine: int, view: int) -> None:
    assert a_task(priority_100=fine).priority == view
    assert a_task(priority_100=fine, priority=view).priority_100 == fine
    with pytest.raises(BadInput, match="priority"):
        a_task(priority_100=fine, priority=view % 10 + 1)


def test_a_task_that_was_taken_can_always_travel() -> None:
    """The reply that hands it over nests it deeper than the request that brought it."""
    for depth in range(1, 20):
        inner = "[" * depth + "]" * depth
        line = f'{{"do":"add","tasks":[{{"uid":"{uid()}","subject":"s","extra":{{"a":{inner}}}}}]}}'
        try:
            document = decode_line(line.encode())
            task = task_from(document["tasks"][0])  # type: ignore[index, call-overload]
        except BadInput:
            assert depth > 4
            continue
        results = [{"xfer": uid(9), "outcome": "escrowed", "task": to_wire(task), "sha256": "0"}]
        reply = {"id": 1, "ok": True, "result": {"results": results}}
        decode_line(json.dumps(reply).encode())


def test_the_table_knows_every_state_and_leads_out_of_none_that_is_final() -> None:
    assert set(CHANGES) == set(State)
    assert CHANGES[State.COMPLETED] == frozenset()
    for state, after in CHANGES.items():
        assert state not in after
        assert after <= set(State)


def test_only_ready_is_claimed_and_only_escrow_is_moved() -> None:
    """Fails when the table lets anything else run or leave."""
    assert may_become(State.CLAIMED) == (State.READY,)
    assert may_become(State.ESCROW) == (State.READY,)
    assert may_become(State.MOVED) == (State.ESCROW,)
    assert may_become(State.RUNNING) == (State.CLAIMED,)
    assert may_become(State.HELD) == ()


@settings(max_examples=300)
@given(document=st.dictionaries(st.sampled_from(sorted(FIELDS)), values, max_size=6))
def test_whatever_stands_in_a_field_is_a_task_or_one_clear_refusal(document: object) -> None:
    try:
        task = task_from(document, mint=uid())  # type: ignore[arg-type]
    except BadInput:
        return
    assert task_from(to_wire(task)) == task
    assert len(hash_of(spec_of(task))) == 64


def test_every_task_has_its_fields_in_one_order_however_it_was_made() -> None:
    """What is told tersely pairs fields with their defaults by their place."""
    order = [*DEFAULTS]
    plain, changed = Task(uid=uid(), subject="s"), a_task(body="b", heat=2.0)
    read = task_from({"subject": "s", "uid": uid(), "heat": 1.0, "body": "b"})
    for task in (plain, changed, read, replace(read, body="c"), with_fields(read, {"body": "d"})):
        assert [*task.__dict__] == order


@given(document=st.dictionaries(st.sampled_from(sorted(FIELDS)), values, max_size=6))
def test_a_task_told_tersely_is_read_as_the_same_task(document: JsonObject) -> None:
    """Seen to fail with a default that is left out although the task says another value."""
    try:
        task = task_from({"uid": uid(), "subject": "work", **document})
    except BadInput:
        return
    told = to_wire_tersely(task)
    assert task_from(told) == task
    assert {"uid", "subject", "epoch"} <= told.keys()
    assert all(told[name] != default for name, default in DEFAULTS.items()
               if name in told and name not in ("uid", "subject", "epoch"))
