"""What a rule may say, whom it needs, and what a validator's end means, by the pure part alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node import judge
from agent_node.errors import BadInput
from agent_node.strict import JsonObject
from agent_node.validation import (
    EXIT_NO_RULE,
    EXIT_REJECTED,
    EXIT_TOO_LONG,
    KINDS,
    Broken,
    Judgement,
    NoRule,
    Passed,
    Rejected,
    check_validate,
    is_judged,
    judge_check,
    needs_of,
    timeout_of,
)


def judged(
    kind: str, code: int | None, said: bytes = b"", *, timed_out: bool = False
) -> type[Judgement]:
    return type(judge_check(kind, exit_code=code, timed_out=timed_out, said=said))


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"kind": "none"},
        {"kind": "regex", "pattern": "^ok$", "timeout_s": 3},
        {"kind": "json-schema", "schema": {"$ref": "#/$defs/a", "$defs": {"a": {}}}},
        {"kind": "test-pass", "validator": "tests"},
        {"kind": "llm-judge", "validator": "judge", "timeout_s": 0.5},
    ],
)
def test_a_rule_by_which_somebody_can_judge_is_taken(rule: JsonObject) -> None:
    check_validate(rule)


SOUND: list[JsonObject] = [
    {"type": "object", "properties": {"type": {"type": ["string", "null"]}}, "required": ["type"]},
    {"items": [{"type": "string"}, True], "additionalItems": False},
    {"$schema": "http://json-schema.org/draft-03/schema#", "type": "any"},
    {"$schema": "https://example.org/other", "type": 7},
    {"allOf": [{"not": {"enum": [{"type": "bananas"}]}}], "const": {"type": 7}},
    {"$defs": {"a": {"minLength": 0, "pattern": "^a"}}, "x-ours": {"type": "bananas"}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SOUND)
def test_a_schema_that_may_be_one_is_taken(schema: JsonObject) -> None:
    """Also by words that we do not know, and whatever stands where values do."""
    check_validate({"kind": "json-schema", "schema": schema})


@pytest.mark.parametrize(
    ("schema", "field", "said"),
    [
        ({"type": "bananas"}, "validate.schema.type", "one of array, boolean"),
        ({"type": []}, "validate.schema.type", "one of array"),
        ({"type": ["string", 7]}, "validate.schema.type", "one of array"),
        ({"properties": {"a": {"type": "strng"}}}, "validate.schema.properties.a.type", "one of"),
        ({"properties": ["a"]}, "validate.schema.properties", "an object belongs"),
        ({"properties": {"a": "string"}}, "validate.schema.properties.a", "a schema belongs"),
        ({"required": "a"}, "validate.schema.required", "a list of names"),
        ({"enum": "a"}, "validate.schema.enum", "a list belongs"),
        ({"anyOf": []}, "validate.schema.anyOf", "a list of schemas"),
        ({"anyOf": [True, {"minimum": "1"}]}, "validate.schema.anyOf[1].minimum", "a number"),
        ({"items": {"maxItems": -1}}, "validate.schema.items.maxItems", "from 0 on"),
        ({"items": {"pattern": "("}}, "validate.schema.items.pattern", "no regular expression"),
        ({"not": None}, "validate.schema.not", "a schema belongs"),
    ],
)  # fmt: skip
def test_a_schema_that_is_none_is_refused_before_anything_is_paid(
    schema: JsonObject, field: str, said: str
) -> None:
    """Seen to fail: it was taken, its program ran and was paid, and then a person had to decide."""
    with pytest.raises(BadInput, match=said) as caught:
        check_validate({"kind": "json-schema", "schema": schema})
    assert caught.value.field == field


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9),
                    lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.text(max_size=9), inner, max_size=3), max_leaves=9))
def test_whatever_a_rule_holds_it_is_taken_or_refused(inside: object) -> None:
    fields: set[str] = set()
    for kind in KINDS:
        for field in ("schema", "pattern", "validator", "timeout_s"):
            try:
                check_validate({"kind": kind, field: inside})  # type: ignore[dict-item]
            except BadInput as error:
                fields.add(error.field.partition(".")[0])
    assert fields <= {"validate"}


@pytest.mark.parametrize(
    ("rule", "needs"),
    [
        ({}, ["gpu"]),
        ({"kind": "none"}, ["gpu"]),
        ({"kind": "regex", "pattern": "x"}, ["gpu"]),
        ({"kind": "json-schema", "schema": {}}, ["gpu", "json-schema"]),
        ({"kind": "test-pass", "validator": "tests"}, ["gpu", "validator:tests"]),
        ({"kind": "llm-judge", "validator": "judge"}, ["gpu", "validator:judge"]),
        ({"kind": "oracle"}, ["gpu", "validate:oracle"]),
    ],
)
def test_who_runs_a_task_can_also_judge_it(rule: JsonObject, needs: list[str]) -> None:
    """A kind that a newer node knows is a power that nobody here has."""
    assert needs_of(["gpu"], rule) == needs
    assert is_judged(rule) is (rule not in ({}, {"kind": "none"}))


@pytest.mark.parametrize(
    ("code", "means"),
    [(0, Passed), (1, Rejected), (123, Rejected), (124, Broken), (127, Broken), (255, Broken),
     (None, Broken)],
)  # fmt: skip
def test_the_exit_codes_of_a_test(code: int | None, means: type[Judgement]) -> None:
    assert judged("test-pass", code) is means


@pytest.mark.parametrize(
    ("code", "said", "means"),
    [
        (0, b'{"pass": true}', Passed),
        (0, b'{"pass": true}\nand more\n', Passed),
        (0, b'{"pass": false, "reason": "no"}', Rejected),
        (0, b'{"pass": false, "reason": 7}', Rejected),
        (0, b'{"pass": "yes"}', Broken),
        (0, b"[1]", Broken),
        (0, b"[" * 9000, Broken),
        (0, b"\xff", Broken),
        (0, b"", Broken),
        (1, b'{"pass": true}', Broken),
        (None, b'{"pass": true}', Broken),
    ],
)
def test_what_a_judge_may_say(code: int | None, said: bytes, means: type[Judgement]) -> None:
    assert judged("llm-judge", code, said) is means


@pytest.mark.parametrize(
    ("code", "means"),
    [(0, Passed), (1, Broken), (EXIT_REJECTED, Rejected), (EXIT_NO_RULE, NoRule),
     (EXIT_TOO_LONG, Rejected), (None, Broken)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["regex", "json-schema"])
def test_a_fault_of_our_own_judge_is_no_verdict(
    kind: str, code: int | None, means: type[Judgement]
) -> None:
    """Fails when a verdict shares its exit code with a traceback of Python's, which is 1."""
    assert judged(kind, code) is means


@pytest.mark.parametrize(
    ("kind", "means"),
    [("regex", Rejected), ("json-schema", Rejected), ("test-pass", Rejected),
     ("llm-judge", Broken)],
)  # fmt: skip
def test_whose_fault_it_is_that_time_ran_out(kind: str, means: type[Judgement]) -> None:
    """A test that hangs tests work that hangs; a judge that hangs has judged nothing."""
    assert judged(kind, None, timed_out=True) is means


def test_the_node_has_the_last_word_on_time() -> None:
    asked: JsonObject = {"kind": "test-pass", "validator": "tests", "timeout_s": 900}
    assert timeout_of(asked, 60) == 60
    assert timeout_of(asked, None) == 900
    assert timeout_of({**asked, "timeout_s": 5}, 60) == 5
    assert timeout_of({"kind": "regex"}, None) == 10


@given(st.sampled_from(KINDS), st.none() | st.integers(0, 255), st.binary(max_size=99))
def test_no_end_of_a_validator_is_left_without_a_meaning(
    kind: str, code: int | None, said: bytes
) -> None:
    told = judge_check(kind, exit_code=code, timed_out=False, said=said)
    assert isinstance(told, Passed) or 0 < len(told.why) < 700


def test_both_sides_of_a_judge_mean_the_same_by_an_exit() -> None:
    """The judge can import nothing of ours, so its numbers stand in two places."""
    assert (judge.REJECTED, judge.NO_RULE, judge.TOO_LONG) == (
        EXIT_REJECTED, EXIT_NO_RULE, EXIT_TOO_LONG,
    )  # fmt: skip
