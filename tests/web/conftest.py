"""A page for every test of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.stage import Stage, a_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """iris, loom and spark behind a hub of this process, and the page over it."""
    made = a_stage(tmp_path)
    yield made
    made.close()
    made.desk.close()
