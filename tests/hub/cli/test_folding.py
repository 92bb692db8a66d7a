"""A narrow terminal folds what it cannot show beside each other, and loses no word of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.text.folding import fitted, folded
from tests.hub.cli.desk import Desk

WORDS = st.text("abc xyz-", max_size=90).map(lambda text: " ".join(text.split()))
TITLES = ("NODE", "STATE", "OWNS", "REASON")
NARROW = st.integers(20, 140)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.lists(st.tuples(st.sampled_from(["arc", "iris"]), WORDS, WORDS, WORDS), max_size=5),
       NARROW)  # fmt: skip
def test_every_word_is_there_and_no_line_is_too_long(
    lines: list[tuple[str, ...]], width: int
) -> None:
    """Seen to fail with the last column cut at the width, as it was."""
    text = fitted(TITLES, lines, width)
    assert max(map(len, text.splitlines())) <= width
    at = 0
    for line in lines:
        for cell in line:
            if cell not in {"", "-"}:
                found = squeezed(text).find(squeezed(cell), at)
                assert found >= 0, cell
        at = squeezed(text).find(line[0], at) + 1


@given(st.lists(st.tuples(st.just("arc"), WORDS), max_size=3))
def test_what_fits_stands_in_columns_under_its_titles(lines: list[tuple[str, ...]]) -> None:
    assert len(fitted(("NODE", "REASON"), lines, 200).splitlines()) == 1 + len(lines)


def test_a_sentence_is_folded_in_its_column_while_that_is_readable() -> None:
    line = ("iris", "paused", "research", "the machine is needed for something else until four")
    assert fitted(TITLES, [line], 60).splitlines() == [
        "NODE  STATE   OWNS      REASON",
        "iris  paused  research  the machine is needed for something",
        "                        else until four",
    ]
    assert fitted(TITLES, [line], 40).splitlines() == [
        "NODE  STATE   OWNS      REASON",
        "iris  paused  research",
        "    reason: the machine is needed for",
        "    something else until four",
    ]


def test_columns_that_say_nothing_give_their_room_away() -> None:
    lines = [("iris", "paused", "-", "a disk that is nearly full there")]
    assert fitted(TITLES, lines, 50).splitlines() == [
        "NODE  STATE   REASON", "iris  paused  a disk that is nearly full there"]


@given(WORDS, NARROW)
def test_a_folded_line_keeps_its_words(line: str, width: int) -> None:
    text = folded(line, width)
    assert squeezed(text) == squeezed(line)
    assert max(map(len, text.splitlines()), default=0) <= width
    assert folded(line, None) == line


@pytest.mark.parametrize("words", [("status",), ("tasks", "list"), ("nodes", "list")])
def test_eighty_columns_show_every_reason_whole(desk: Desk, words: tuple[str, ...]) -> None:
    """The reason is what one looks for; seen to fail with the last column cut."""
    desk.waits("iris", 1, 2, priority=3, skills=["arc-research"], subject="tidy up " * 20)
    desk.arc("nodes", "pause", "iris", "--reason", "the machine is needed for the audit until four")
    desk.arc("sensors", "run", "fleet-rebalance")
    whole, seen = desk.arc(*words), desk.arc(*words, typed=b"", environ={"COLUMNS": "80"})
    assert max(len(line) for line in seen.lines[1:]) <= 80
    reason = max((line.rpartition("  ")[2] for line in whole.lines if "iris" in line), key=len)
    assert len(reason) > 20
    assert squeezed(reason) in squeezed(seen.out)
