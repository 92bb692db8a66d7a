"""Upgrades machines that joined, over a real sshd, while they work; a broken program goes back."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from arc import door
from tests.node.upgrading.programs import IMPATIENT, Pyz, a_broken_program, a_program
from tests.ssh.joining_desk import Operator
from tests.ssh.lab import Lab
from tests.ssh.lab_node import Home, LabNode
from tools.sources import ROOT

WORK = b"""\
#!/bin/sh
echo began >> /home/agent/log
while [ ! -e /home/agent/go ]; do sleep 0.1; done
echo ended >> /home/agent/log
"""
PATIENCE_S = 20.0
NAMES = ("iris", "loom")


class Joined:
    """Two machines that joined by `arc nodes add`, each with a task that runs."""

    def __init__(self, place: Path, lab: Lab) -> None:
        self.lab, self.operator = lab, Operator(place, lab)
        self.nodes = dict(zip(NAMES, lab.start(len(NAMES)), strict=True))
        self.place = place
        for name, node in self.nodes.items():
            node.authorize("agent", lab.operator_key.with_suffix(".pub").read_text())
            node.write("/opt/work.sh", WORK, mode=0o755)
            node.install(name=name, run=["/opt/work.sh"])  # its settings are kept by joining
            ran = self.operator.add(node, name=name)
            assert ran.code == 0, (ran.out, ran.err)

    def up(self) -> None:
        """A hub that runs."""
        fleet = self.operator.fleet
        self.lab.child(
            [sys.executable, "-m", "arc", "--fleet", str(fleet), "up"],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=str(fleet.parent),
        )  # fmt: skip
        until(lambda: door.ask(fleet, "sensors.list", {}, by="human:ada") is not None)

    def begin(self) -> None:
        """A task runs on each of them."""
        for name, node in self.nodes.items():
            self.local(name, "add", f"work on {name}")
            until(node_says(node, "began\n"))

    def finish(self) -> None:
        """All of them end, and each was run once."""
        for name, node in self.nodes.items():
            node.write("/home/agent/go", b"", user="agent")
            until(node_says(node, "began\nended\n"))
            until(self.has_done_one(name))

    def has_done_one(self, name: str) -> Callable[[], bool]:
        """Whether its one task is over, once."""
        return lambda: self.status(name)["counts"] == {"COMPLETED": 1}

    def local(self, name: str, *words: str) -> dict[str, object]:
        """A command of the node's own program, typed there."""
        node = self.nodes[name]
        home = Home(node, name, "agent", "/home/agent/.agent-node")
        return dict(home.run(*words))

    def status(self, name: str) -> dict[str, object]:
        return self.local(name, "status")

    def upgrade(self, pyz: Pyz, *words: str) -> tuple[int, dict[str, str]]:
        """The exit code, and what became of each node."""
        path = self.place / "new.pyz"
        path.write_bytes(pyz.content)
        ran = self.operator.arc("nodes", "upgrade", *NAMES, "--file", str(path), "--yes",
                                "--json", *words)  # fmt: skip
        assert "data" in ran.envelope, (ran.out, ran.err)
        return ran.code, {one["node"]: one["outcome"] for one in ran.data["nodes"]}

    def link(self, name: str) -> str:
        return os.readlink(self.nodes[name].path("/home/agent/.agent-node/program/agent-node.pyz"))


def log_of(node: LabNode) -> str:
    path = node.path("/home/agent/log")
    return path.read_text() if path.exists() else ""


def node_says(node: LabNode, text: str) -> Callable[[], bool]:
    """Whether its tasks wrote this, and no more."""
    return lambda: log_of(node) == text


def until(look: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)  # between two looks at what tells nobody when it changes


@pytest.fixture
def joined(lab: Lab, tmp_path: Path) -> Joined:
    return Joined(tmp_path, lab)


def test_a_fleet_that_works_is_upgraded_canary_first_and_its_tasks_do_not_notice(
    joined: Joined
) -> None:  # fmt: skip
    joined.up()
    joined.begin()
    new = a_program("0.2.0", IMPATIENT)
    assert joined.upgrade(new, "--canary", "loom") == (0, {"loom": "upgraded", "iris": "upgraded"})
    for name in NAMES:
        said = joined.status(name)
        assert (said["version"], said["program"]) == ("0.2.0", new.sha256[:12])
        assert said["dispatcher"] == "running"
        assert joined.link(name) == new.name
    joined.finish()


def test_a_broken_program_stops_at_the_canary_which_goes_back(joined: Joined) -> None:
    joined.begin()
    before = {name: joined.link(name) for name in NAMES}
    code, outcomes = joined.upgrade(a_broken_program(), "--canary", "iris")
    assert (code, outcomes) == (1, {"iris": "went_back", "loom": "not_begun"})
    assert {name: joined.link(name) for name in NAMES} == before
    assert [joined.status(name)["dispatcher"] for name in NAMES] == ["running", "running"]
    joined.finish()


def test_the_hubs_own_key_brings_no_code(joined: Joined) -> None:
    key = joined.operator.state / "keys" / "hub_ed25519"
    code, outcomes = joined.upgrade(a_program("0.2.0"), "--key", str(key))
    assert (code, outcomes) == (1, {"iris": "refused", "loom": "not_begun"})
