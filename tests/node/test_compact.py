"""The encoder that is made once writes what the standard one writes, letter for letter."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.compact import writer
from agent_node.strict import JsonValue

VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_every_value_is_written_as_the_standard_encoder_writes_it(
    value: JsonValue, sorted_keys: bool
) -> None:
    """Taken away once: with ', ' between two values in `writer` this fails."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sorted_keys)

    assert writer(sorted_keys=sorted_keys)(value) == plain


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_finite_writer_refuses_what_is_no_json_number(number: float) -> None:
    """Taken away once: with `allow_nan` always on this fails."""
    value: JsonValue = {"load": [number]}

    with pytest.raises(ValueError, match="Out of range float"):
        writer(finite=True)(value)
    assert writer()(value) == json.dumps(value, separators=(",", ":"))


def test_what_json_cannot_say_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="Object of type set is not JSON serializable"):
        writer()({"words": {1, 2}})  # type: ignore[dict-item]


def test_without_the_encoder_in_c_the_same_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.encoder.c_make_encoder", None)
    value: JsonValue = {"b": [1, 2.5, "é\x1f"], "a": None}

    assert writer(sorted_keys=True)(value) == '{"a":null,"b":[1,2.5,"é\\u001f"]}'


def test_a_value_that_is_too_deep_is_an_error_and_no_crash() -> None:
    deep: JsonValue = []
    for _ in range(sys.getrecursionlimit() * 20):
        deep = [deep]

    with pytest.raises(RecursionError):
        writer()(deep)
