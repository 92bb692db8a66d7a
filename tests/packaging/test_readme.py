"""Types what the README tells a newcomer to type, with an empty HOME."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from agent_node.packing import build_zipapp
from tools.sources import ROOT

README = ROOT / "README.md"


def words_of_the_first_node() -> list[list[str]]:
    """Every `agent-node …` line of the block under that heading, as a shell would split it."""
    block = README.read_text(encoding="utf-8").split("## Your first node")[1].split("```")[1]
    lines = [line for line in block.splitlines() if line.startswith("agent-node ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_the_first_node_of_the_readme_works_as_it_is_written(tmp_path: Path) -> None:
    node, home = tmp_path / "agent-node.pyz", tmp_path / "home"
    build_zipapp(node)
    home.mkdir()
    said: dict[str, str] = {}
    for words in words_of_the_first_node():
        uid = said.get("list", "x").splitlines()[-1].split()[0]
        done = subprocess.run(
            [sys.executable, "-I", "-S", node, *(uid if word == "UID" else word for word in words)],
            env={"PATH": os.environ["PATH"], "HOME": str(home)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        said[words[0]] = done.stdout

    assert list(said) == ["init", "add", "run", "status", "list", "show"]
    assert "COMPLETED 1" in said["status"]
    assert said["show"].endswith("the weekly ones\n")
    assert [entry.name for entry in home.iterdir()] == [".agent-node"]


def test_what_the_demo_set_in_a_terminal_is_unset_before_a_fleet_of_ones_own() -> None:
    text = README.read_text(encoding="utf-8")
    block = text.split("## A fleet of your own")[1].split("```")[1]
    set_before = re.findall(r"^export (ARC_\w+)=", text.partition(block)[0], re.MULTILINE)

    assert set_before == ["ARC_FLEET"]
    for name in set_before:
        assert block.index(f"unset {name}") < block.index("arc init")


def test_every_target_that_the_readme_names_is_one_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)", README.read_text(encoding="utf-8"), re.MULTILINE))

    assert named >= {"demo", "test", "check", "bench"}
    assert named - targets == set()
