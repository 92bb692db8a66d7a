"""Lets machines join whose Python has another name, or whose clock is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arc.joining.story import LOOK_S
from tests.ssh.joining_desk import an_operator
from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode
from tests.ssh.test_joining import KEYS, answers

NAMES = ("python3", "python3.11", "python3.12", "python3.13")
OLD = b'#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n'
FIRST = "/usr/local/bin"  # a login looks here before /usr/bin


def only_python(node: LabNode, path: str) -> str:
    """Whatever a login calls Python is too old, but at this path; where it leads to."""
    node.exec(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", FIRST])
    node.write("/tmp/old", OLD, mode=0o755)
    for name in NAMES:
        node.exec(["cp", "/tmp/old", f"{FIRST}/{name}"])
    folder = path.rpartition("/")[0]
    node.exec(["mkdir", "-p", folder])
    node.exec(["ln", "-sf", node.python, path])
    node.exec(["chmod", "-R", "a+rX", folder])
    return node.exec(["realpath", path]).stdout.decode().strip()


def test_a_machine_whose_python3_is_too_old_joins_by_the_one_it_has_besides(
    lab: Lab, tmp_path: Path
) -> None:
    """Guard: with `python3` as the only name that is looked for it is refused."""
    ada, node = an_operator(tmp_path, lab)
    found = only_python(node, f"{FIRST}/python3.11")
    ada.joined(node, "--run", "cat")
    line = node.read(KEYS).decode().splitlines()[-1]
    assert line.startswith(f'restrict,command="{found} -I -S /home/agent/.agent-node/program/')
    assert answers(ada, node)


@pytest.mark.parametrize("path", [
    f"{FIRST}/python3.13", f"{FIRST}/python3.12",
    "/home/agent/.pyenv/versions/3.12.4/bin/python3.12", "/opt/python/bin/python3.11",
])  # fmt: skip
def test_python_is_found_under_every_name_and_in_every_place_that_is_promised(
    lab: Lab, tmp_path: Path, path: str
) -> None:
    """Guard: with that name or that place out of the shell line it is refused."""
    ada, node = an_operator(tmp_path, lab)
    found = only_python(node, path)
    data = ada.joined(node, "--run", "cat", "--dry-run")
    (machine,) = [one["text"] for one in data["steps"] if one["step"] == "machine"]
    assert machine.startswith("python 3.")
    assert machine.endswith(found)


@pytest.mark.parametrize("off_s", [-86_400, 3600])
def test_a_clock_that_is_off_is_told_to_whoever_adds_the_machine(
    lab: Lab, tmp_path: Path, off_s: int
) -> None:
    """Guard: with the warning out of `_told` nobody hears of it, and the machine joins."""
    ada, node = an_operator(tmp_path, lab)
    assert "its clock" not in ada.add(node, "--run", "cat", "--dry-run").err
    node.skew(off_s)
    ran = ada.add(node, "--run", "cat", "--dry-run")
    assert ran.code == 0, ran.err
    said = re.search(r"iris: its clock is ([+-]\d+) s off \(clock_off: 30 s\): set it", ran.err)
    assert said, ran.err
    assert abs(int(said[1]) - off_s) <= LOOK_S / 2, "half of how long the answer took, at most"
