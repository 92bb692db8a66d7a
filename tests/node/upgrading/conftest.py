"""Gives the tests of upgrades keys, and nodes that run a program of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.daemon.living import Bell, end_all
from tests.node.upgrading.programs import IMPATIENT, Keys, ProgramNode, Pyz, a_program


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen: programs are signed and checked by it")
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def old() -> Pyz:
    """What the nodes run first; it waits three seconds for a new daemon instead of twenty."""
    return a_program("0.1.0", IMPATIENT)


@pytest.fixture(scope="session")
def new() -> Pyz:
    return a_program("0.2.0", IMPATIENT)


@pytest.fixture
def node(tmp_path: Path, keys: Keys, old: Pyz) -> Iterator[ProgramNode]:
    """iris, version 0.1.0, not yet started; afterwards nothing of it runs."""
    made = ProgramNode(tmp_path / "iris")
    made.install(old, keys)
    yield made
    end_all(made.processes)
    made.clean_up()
    assert made.processes() == []


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Bell]:
    """Where programs wait until the test lets them go on: `read x < {gate.path}`."""
    made = Bell(tmp_path / "gate")
    yield made
    made.close()
