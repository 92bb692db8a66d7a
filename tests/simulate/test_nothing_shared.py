"""Work that is made up for a fleet in which nothing is shared is said to be nobody's to move."""

from __future__ import annotations

from pathlib import Path

import pytest

from arc.config import read_fleet
from arc.simulate.describing import NOTHING_SHARED, drawn_for
from arc.simulate.wanted import Wanted


@pytest.mark.parametrize(("owns", "also", "portable", "warns"), [
    ("[ops]", "[]", "", True), ("[ops]", "[ops]", "", False), ("[]", "[]", "", False),
    ("[ops]", "[]", "0", False),
])  # fmt: skip
def test_where_no_two_nodes_do_the_same_that_is_said(
    tmp_path: Path, owns: str, also: str, portable: str, *, warns: bool
) -> None:
    """Seen to fail: `60% portable`, and four policies that came to the same without a word."""
    text = ("version: 1\nfleet: arc0\nhub: {name: arc, state: .arc}\n"
            "domains: {ops: {skills: [ops]}}\n"
            f"nodes:\n  - {{name: iris, host: iris.lan, user: a, owns: {owns}}}\n"
            f"  - {{name: loom, host: loom.lan, user: a, also: {also}}}\n")
    (tmp_path / "fleet.yaml").write_text(text)
    source = drawn_for(Wanted(portable=portable), read_fleet(tmp_path / "fleet.yaml"))
    assert source.warnings == (NOTHING_SHARED if warns else ())
