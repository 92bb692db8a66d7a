"""Claims about how texts from elsewhere are shown."""

from __future__ import annotations

import io
import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.text import (
    HIDDEN_CATEGORIES,
    ago,
    duration,
    safe_text,
    short_uids,
    size,
    table,
    terminal_width,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 漢字 🙂", "größe 漢字 🙂"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\0b\x7f\x85\x9b", "a\\x00b\\x7f\\x85\\x9b"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("\U000e0041", "\\U000e0041"),
        ("e\u0301", "e\u0301"),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "\\u0301\\u0301"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
    ],
)
def test_what_could_drive_a_terminal_is_made_visible(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@given(st.text())
def test_no_text_at_all_leaves_anything_hidden(text: str) -> None:
    shown = safe_text(text)
    assert not {unicodedata.category(char) for char in shown} & HIDDEN_CATEGORIES
    assert safe_text(shown) == shown


@given(st.text(), st.integers(1, 40))
def test_a_limit_is_kept(text: str, limit: int) -> None:
    assert len(safe_text(text, limit)) <= limit


def test_a_cut_is_visible_and_a_log_keeps_its_lines() -> None:
    assert safe_text("abcdef", 4) == "abc…"
    assert safe_text("a\r\nb\x1b\t", keep="\n\t") == "a\\x0d\nb\\x1b\t"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.25, "0.2s"), (59.9, "59s"), (60, "1m"), (3725, "1h 2m"), (90_061, "1d 1h")],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_moment_ahead_is_not_said_to_be_past() -> None:
    assert (ago(120), ago(-120)) == ("2m ago", "in 2m")


def test_sizes_are_in_binary_units() -> None:
    assert [size(n) for n in (0, 1023, 1024, 5 * 2**30, 2**50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 GiB",
        "1024.0 TiB",
    ]


@given(st.sets(st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26), max_size=30))
def test_short_forms_are_as_many_as_uids(uids: set[str]) -> None:
    short = short_uids(uids)
    assert len(set(short.values())) == len(uids)
    assert all(uid.lower().endswith(short[uid]) for uid in uids)


def test_a_table_is_cut_only_for_a_terminal() -> None:
    rows = [("1", "x" * 50), ("22", "two\nlines")]
    whole = table(("N", "TEXT"), rows)
    assert whole.splitlines() == ["N   TEXT", "1   " + "x" * 50, "22  two\\x0alines"]
    assert [len(line) for line in table(("N", "TEXT"), rows, 10).splitlines()] == [8, 10, 10]


def test_only_a_terminal_has_a_width() -> None:
    assert terminal_width(io.StringIO(), {"COLUMNS": "80"}) is None
    assert terminal_width(Terminal(), {"COLUMNS": "80"}) == 80


def test_a_terminal_that_does_not_know_its_width_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail with 0 columns taken for a width: every line was an ellipsis."""
    screen = Terminal()
    monkeypatch.setattr(screen, "fileno", lambda: 1, raising=False)
    monkeypatch.setattr("agent_node.text.os.get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert terminal_width(screen, {}) is None
