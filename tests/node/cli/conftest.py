"""A home and a desk for every test of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    home.chmod(0o700)
    return Desk({"AGENT_NODE_HOME": str(home), "USER": "ada", "PATH": "/usr/bin:/bin"})
