"""Upgrades machines that joined, over a real sshd, while they work; a broken program goes back."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from arc import door
from tests.node.upgrading.programs import IMPATIENT, Pyz, a_broken_program, a_program
from tests.ssh.joining_desk import Operator, an_operator
from tests.ssh.lab import Lab
from tests.ssh.lab_node import Home, LabNode
from tests.ssh.two_users import TwoUsers
from tools.sources import ROOT

WORK = b"""\
#!/bin/sh
echo began >> /home/agent/log
while [ ! -e /home/agent/go ]; do sleep 0.1; done
echo ended >> /home/agent/log
"""
PATIENCE_S = 20.0
NAMES = ("iris", "loom")
NEXT_WIRE = ("wire.py", "WIRE = 1", "WIRE = 2")


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

    def upgrade(
        self, pyz: Pyz, *words: str, names: Sequence[str] = NAMES
    ) -> tuple[int, dict[str, str]]:
        """The exit code, and what became of each node."""
        path = self.place / "new.pyz"
        path.write_bytes(pyz.content)
        ran = self.operator.arc("nodes", "upgrade", *names, "--file", str(path), "--yes",
                                "--json", *words)  # fmt: skip
        assert "data" in ran.envelope, (ran.out, ran.err)
        return ran.code, {one["node"]: one["outcome"] for one in ran.data["nodes"]}

    def asked(self, *words: str) -> Any:
        """What the hub answers to this command; a refusal is a failure of the test."""
        ran = self.operator.arc(*words, "--json")
        assert "data" in ran.envelope, (ran.out, ran.err)
        return ran.data

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


def test_a_node_of_the_next_wire_version_gives_and_takes_under_this_hub(joined: Joined) -> None:
    """Guard: a program that speaks 2 alone is not taken, as its trial talks to it in ours."""
    joined.up()
    joined.begin()  # so that what is added waits
    alone = a_program("0.2.0", NEXT_WIRE, ("wire.py", "OLDEST_WIRE = 1", "OLDEST_WIRE = 2"))
    assert joined.upgrade(alone, names=["iris"])[1] == {"iris": "failed"}
    next_one = a_program("0.2.1", NEXT_WIRE)
    assert joined.upgrade(next_one, names=["iris"]) == (0, {"iris": "upgraded"})
    said = joined.asked("doctor", "--node", "iris")
    assert "agent-node 0.2.1, wire 1" in str(said["checks"]), "the newest that both speak"
    for giver, taker in (("iris", "loom"), ("loom", "iris")):
        added = joined.asked("tasks", "add", f"from {giver}", "--to", giver)
        uid = added["results"][0]["uid"]
        (moved,) = joined.asked("tasks", "move", uid, "--to", taker)["results"]
        assert (moved["outcome"], moved["to"]) == ("moved", taker)
        assert joined.local(taker, "show", uid)["task"]["state"] == "READY"  # type: ignore[index]
    assert joined.asked("doubts", "list")["doubts"] == []


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


OTHERS_WORK = WORK.decode().replace("/home/agent", "/home/arc-run")


def test_an_upgrade_leaves_alone_what_runs_as_another_user(lab: Lab, tmp_path: Path) -> None:
    """The daemon becomes the new program in its place; who starts tasks there is started anew.

    Guard: with `hand_nothing_on` out and an end of its socket that exec keeps, the old one stays.
    """
    ada, node = an_operator(tmp_path, lab)
    two = TwoUsers(node)
    home = two.home
    ada.joined(node)
    until(lambda: len(of_others(node)) >= 2)  # whoever leads to that user, and is it
    starters = {*of_others(node)}
    two.add(OTHERS_WORK)
    until(log_is(node, "began\n"))
    runs = the_task_and_its_shim(node)
    new = a_program("0.2.0", IMPATIENT)
    path = tmp_path / "new.pyz"
    path.write_bytes(new.content)
    ran = ada.arc("nodes", "upgrade", "iris", "--file", str(path), "--yes", "--json")
    assert [one["outcome"] for one in ran.data["nodes"]] == ["upgraded"], (ran.out, ran.err)
    until(lambda: not (starters - runs) & {*of_others(node)})
    assert the_task_and_its_shim(node) == runs
    assert home.run("status")["version"] == "0.2.0"
    node.write("/home/arc-run/go", b"", user="arc-run")
    until(log_is(node, "began\nended\n"))
    until(lambda: home.run("status")["counts"] == {"COMPLETED": 1})
    two.add(OTHERS_WORK)  # and the new one starts tasks as that user
    until(log_is(node, "began\nended\nbegan\nended\n"))


def of_others(node: LabNode) -> dict[str, tuple[str, str]]:
    """Whatever runs as the tasks' user or leads there: its parent and its name, by pid."""
    ran = node.exec(["ps", "-eo", "pid=,ppid=,user=,comm="], check=False).stdout.decode()
    found = [line.split() for line in ran.splitlines()]
    return {pid: (parent, name) for pid, parent, user, name in found
            if user == "arc-run" or name == "sudo"}  # fmt: skip


def the_task_and_its_shim(node: LabNode) -> set[str]:
    """Their pids: what works, and whoever waits beside it.

    The shell that works forks, and its child is called as it is until it has become the next
    `sleep`: so whose parent is a shell does not count.
    """
    found = of_others(node)
    shells = {pid for pid, (_, name) in found.items() if name == "sh"}
    ((shim, task),) = [(found[pid][0], pid) for pid in shells if found[pid][0] not in shells]
    return {shim, task}


def log_is(node: LabNode, text: str) -> Callable[[], bool]:
    """Whether the other user's tasks wrote this, and no more."""
    path = node.path("/home/arc-run/log")
    return lambda: path.exists() and path.read_text() == text
