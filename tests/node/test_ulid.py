"""Names that are unique for ever and sort by when they were made."""

from __future__ import annotations

from agent_node.ulid import is_ulid, later_ulid, new_ulid


def test_a_later_name_sorts_after_an_earlier_one_whatever_the_clock_says() -> None:
    """Seen to fail with `max` in later_ulid replaced by the clock alone."""
    old = new_ulid(1_000_000, b"\xff" * 10)
    for clock_ms in (0, 999_999, 1_000_000, 1_000_001, 5_000_000):
        later = later_ulid(old, clock_ms, b"\0" * 10)
        assert is_ulid(later)
        assert later > old


def test_the_first_ten_letters_are_the_time() -> None:
    assert new_ulid(0, b"\0" * 10) == "0" * 26
    assert new_ulid(2**48 - 1, b"\xff" * 10) == "7" + "Z" * 25
