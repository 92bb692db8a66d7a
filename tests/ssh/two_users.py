"""A node in a container whose tasks run as another user than the one that its queue belongs to."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_node.other_user import FIRST_WORDS
from tests.ssh.lab_node import LabNode

ACCOUNT = "arc-run"
PATIENCE_S = 30.0
LOOK_S = 0.05
TOML = """\
name = "iris"
disk_floor = 0
grace_s = 1
run_as = "arc-run"

[[agent]]
name = "iris"
run = ["sh", "-s"]
stdin = "body"
slots = {slots}
"""


class TwoUsers:
    """`owner` has the queue, `arc-run` runs the tasks; a task's body is a script for `sh -s`."""

    def __init__(self, node: LabNode, owner: str = "agent", *, slots: int = 4) -> None:
        if owner != "root" and shutil.which("sudo") is None:
            pytest.skip("needs sudo: apt-get install sudo")
        self.node, self.owner = node, owner
        self.home = node.install(name="iris", user=owner)
        node.write(f"{self.home.path}/node.toml", TOML.format(slots=slots).encode(),
                   mode=0o600, user=owner)  # fmt: skip
        words = FIRST_WORDS.replace(",", "\\,")
        rule = f"agent ALL=({ACCOUNT}) NOPASSWD: {node.python} -I -S -c {words}\n"
        node.write("/etc/sudoers", b"root ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n",
                   mode=0o440)  # fmt: skip
        node.write("/etc/sudoers.d/agent-node", rule.encode(), mode=0o440)

    def start(self) -> None:
        self.home.start_daemon()

    def add(self, script: str, **fields: str) -> str:
        more = [word for name, value in fields.items() for word in (f"--{name}", value)]
        said: Any = self.home.run("add", "work", "--body", script, *more)
        return str(said["results"][0]["uid"] if "results" in said else said["uid"])

    def add_all(self, scripts: list[tuple[str, dict[str, object]]]) -> list[str]:
        """The uids of tasks with these bodies and these fields, added in one go."""
        lines = [json.dumps({"subject": "work", "body": body, **fields})
                 for body, fields in scripts]  # fmt: skip
        self.node.write("/home/tasks.jsonl", "\n".join(lines).encode(), mode=0o644)
        said: Any = self.home.run("add", "--file", "/home/tasks.jsonl")
        return [str(one["uid"]) for one in said["results"]]

    def wait(self, true: Callable[[], bool], what: str) -> None:
        """Until this is so; for what the node's own user cannot be told of."""
        end = time.monotonic() + PATIENCE_S
        while not true():
            there = self.processes("")
            assert time.monotonic() < end, f"{what} did not come: {there}\n{self.said()}"
            time.sleep(LOOK_S)

    def show(self, uid: str) -> Any:
        return self.home.run("show", uid)

    def until(self, uid: str, *states: str, seconds: float = PATIENCE_S) -> Any:
        """The task, once it is in one of these states."""
        end = time.monotonic() + seconds
        while (task := self.show(uid)["task"])["state"] not in states:
            assert time.monotonic() < end, f"{task}\n{self.said()}"
            time.sleep(LOOK_S)
        return task

    def file(self, uid: str, name: str, n: int = 1) -> str:
        return self.node.read(f"{self.home.path}/tasks/{uid}/{n}/{name}").decode()

    def said(self) -> str:
        """What the daemon logged."""
        return self.node.read(f"{self.home.path}/daemon.log").decode()

    def processes(self, mark: str, user: str = ACCOUNT) -> list[str]:
        """Command lines of that user that have this mark."""
        ran = self.node.exec(["ps", "-u", user, "-o", "pid=,args="], check=False)
        return [line for line in ran.stdout.decode().splitlines() if mark in line]
