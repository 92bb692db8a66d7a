"""A node on the hub's own machine: what docs/joining.md says to type works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.node.daemon.living import PATIENCE_S, ROOT

PAGE = ROOT / "docs/joining.md"
STOPS = "agent-node stop || :; AGENT_NODE_HOME=~/loom agent-node stop"


def blocks() -> list[str]:
    """What the page says to type for it, block by block."""
    section = PAGE.read_text().partition("\n## A node on the hub's own machine\n")[2]
    here = section.partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", here, re.MULTILINE | re.DOTALL)


def typed(words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """By a person whose home has nothing but a folder for fleet.yaml."""
    env = {"HOME": str(home), "PATH": f"{home.parent / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(["sh", "-e", "-c", words], cwd=home / "fleet", env=env, text=True,
                          capture_output=True, timeout=4 * PATIENCE_S, check=False)  # fmt: skip


def test_what_the_page_says_to_type_makes_a_node_of_this_machine(tmp_path: Path) -> None:
    home, programs = tmp_path / "home", tmp_path / "bin"
    programs.mkdir()
    (home / "fleet").mkdir(parents=True)
    for name, module in (("arc", "arc"), ("agent-node", "agent_node")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m {module} "$@"\n')
        program.chmod(0o755)
    one, another = blocks()
    try:
        for words, node in ((one, "here"), (another, "loom")):
            ran = typed(words, home)
            assert ran.returncode == 0, (ran.stdout, ran.stderr)
            assert re.search(rf"^{node} +ok +answers", ran.stdout, re.MULTILINE), ran.stdout
        sent = typed('arc tasks add "rotate the logs" --to loom', home)
        assert sent.returncode == 0, sent.stderr
    finally:
        left = typed(STOPS, home)
    assert left.returncode == 0, left.stderr
