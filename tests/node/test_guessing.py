"""A task that names no domain is guessed at by how its subject begins, and by its words."""

from __future__ import annotations

import pytest

from agent_node.guessing import Ears, ears_for
from agent_node.strict import JsonObject

TABLE: JsonObject = {
    "infrastructure": {"prefix": ["Ops:", "Ops: deploy"], "words": ["host"]},
    "integrations": {"prefix": ["ops: deploy bitflow"]},
    "research": {"skills": ["s"], "prefix": ["Research:"], "words": ["paper", "pull request"]},
}


@pytest.mark.parametrize(
    ("subject", "domain"),
    [
        ("Research: what is new", "research"),
        ("research: the same in small letters", "research"),
        ("On Research: not at the beginning", None),
        ("Ops: deploy bitflow now", "integrations"),
        ("Ops: deploy the rest", "infrastructure"),
        ("read that PAPER today", "research"),
        ("papers and wallpaper", None),
        ("review the pull request", "research"),
        ("the host of the paper", "infrastructure"),
        ("Ops: read the paper", "infrastructure"),
        ("", None),
    ],
)
def test_the_longest_beginning_wins_then_the_first_whole_word(
    subject: str, domain: str | None
) -> None:
    assert ears_for(TABLE).guess(subject) == domain


@pytest.mark.parametrize(
    "table",
    [{}, {"a": "odd"}, {"a": {"prefix": "x", "words": 5}},
     {"a": {"prefix": [""], "words": [None]}}],
)  # fmt: skip
def test_a_table_that_says_nothing_leads_to_no_guess(table: JsonObject) -> None:
    assert ears_for(table) == Ears()
    assert ears_for(table).guess("x") is None


def test_words_are_words_and_no_pattern() -> None:
    assert ears_for({"a": {"words": [".*", "c++"]}}).guess("anything c++ like") == "a"
    assert ears_for({"a": {"words": [".*"]}}).guess("anything") is None
