"""Checks what an event says of an end: the same, written as a whole or put together."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from agent_node.commands import Result
from agent_node.output_hash import OUTPUT_SHA256, canonical, hash_of_output
from agent_node.store.completing import in_words, told

VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.floats(allow_nan=False)
    | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
)  # fmt: skip


@given(
    VALUES, some.lists(some.text(), max_size=2), some.none() | some.floats(0, 9),
    some.none() | some.just("0.12"), some.none() | some.integers(0, 255),
)  # fmt: skip
def test_an_end_put_together_says_what_it_says_as_a_whole(
    output: object, artifacts: list[str], duration_s: float | None, cost_usd: str | None,
    exit_code: int | None,
) -> None:  # fmt: skip
    left: Any = output
    result = Result("completed", output=left, artifacts=[*artifacts], cost_usd=cost_usd,
                    duration_s=duration_s, exit_code=exit_code)  # fmt: skip
    text = None if result.output is None else canonical(result.output)

    said = json.loads(in_words(result, text))

    assert said == json.loads(canonical(told(result)))
    assert said.get(OUTPUT_SHA256) == hash_of_output(result.output)
    assert ("output" in said) is (result.output is not None)
