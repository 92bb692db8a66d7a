"""Gives a test a laboratory of container nodes, or says exactly what this machine lacks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ssh.lab import Lab
from tools.laboratory import missing_for_nodes


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab | None]:
    """One for the whole run; None where there can be none."""
    if missing_for_nodes():
        yield None
        return
    made = Lab(tmp_path_factory.mktemp("laboratory"))
    yield made
    made.close()


@pytest.fixture
def lab(laboratory: Lab | None) -> Iterator[Lab]:
    """The laboratory, empty; this thread is in its network while the test runs."""
    if laboratory is None:
        pytest.skip(f"needs lab: {'; '.join(missing_for_nodes())}")
    with laboratory.entered() as entered:
        yield entered
