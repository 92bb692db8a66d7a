"""Gives the tests of the wire two nodes to talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.wire.talking import Talk


@pytest.fixture
def iris(tmp_path: Path) -> Iterator[Talk]:
    """A node named iris."""
    talk = Talk(tmp_path / "iris", "iris")
    yield talk
    talk.close()


@pytest.fixture
def loom(tmp_path: Path) -> Iterator[Talk]:
    """Another node, named loom."""
    talk = Talk(tmp_path / "loom", "loom")
    yield talk
    talk.close()
