"""A desk with a small fleet for every test of the hub's command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.cli.desk import Desk, RealFleet


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """iris, loom and spark, each with eight slots and nothing to do, and the hub's own queue."""
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealFleet]:
    """Two homes over pipes, one daemon, no hub yet."""
    made = RealFleet(tmp_path)
    yield made
    made.close()
