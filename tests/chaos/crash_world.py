"""One small world for one blow: two homes and a hub's folder, made once and put back each time."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import sqlite_utils

from agent_node.ulid import new_ulid
from tests.chaos.checker import judge, read_ledger
from tests.chaos.hub import ROOT
from tests.chaos.warm import run_warm
from tests.node.daemon.living import carriers, end_all

PROGRAM = Path(__file__).with_name("program.py")
LIMIT_S, AGAIN, TASKS = 60.0, 6, 3
BORN_MS = 1_800_000_000_000  # of the tasks: their folders are named the same in each world
LEFT_S = 3.0  # what a blow left behind may go on for as long; then nobody looks any more
# A write to a pipe of its own, which meets no disk: only strace can make it fail.
NO_DISK = ("Exception ignored when trying to write to the signal wakeup fd:\n"
           "Traceback (most recent call last):")  # fmt: skip
BAD_WORDS = re.compile(r"Traceback|ARC-FAULT|error\[fault\]|not over after")
FLEET = """\
version: 1
rebalance: {every: 1d}
router: {every: 1d, enabled: false}
nodes:
  - {name: iris, local: true, home: ./iris}
  - {name: loom, local: true, home: ./loom}
"""
SCENARIOS = ("node adds", "node runs", "hub moves", "hub cycles")
HOMES = ("iris", "loom")


class World:
    """At one path for all its blows, since a home that lies elsewhere would be a copy."""

    def __init__(self, place: Path, scenario: str) -> None:
        self.place, self.scenario, self.said = place / "world", scenario, ""
        dice = Random("crash")
        self.uids = [new_ulid(BORN_MS, dice.randbytes(10)) for _ in range(TASKS)]
        self._kept = place / f"kept-{scenario.replace(' ', '-')}"

    def begin(self) -> list[str]:
        """As it is before the scenario; what is then to be struck."""
        shutil.rmtree(self.place, ignore_errors=True)
        if not self._kept.exists():
            self._make()
            self.place.rename(self._kept)
        shutil.copytree(self._kept, self.place)
        self.said = ""
        return self._words()

    def _words(self) -> list[str]:
        return {
            "node adds": ["agent_node", "add", "--file", str(self.place / "tasks")],
            "node runs": ["agent_node", "run", "--until-idle"],
            "hub moves": ["arc", "tasks", "move", *self.uids, "--to", "inbox", "--yes",
                          "--reason", "a test"],
            "hub cycles": ["arc", "up", "--once"],
        }[self.scenario]  # fmt: skip

    def _make(self) -> None:
        self.place.mkdir(mode=0o700, parents=True)
        for name in HOMES:
            (self.place / name).mkdir(mode=0o700)
            run = json.dumps([sys.executable, "-I", "-S", str(PROGRAM), str(self.place)])
            (self.place / name / "node.toml").write_text(
                f'name = "{name}"\ndisk_floor = 0\nstop_grace_s = 5\ngrace_s = 2\n'
                f'[[agent]]\nname = "{name}"\nrun = {run}\nslots = 2\n')  # fmt: skip
        tasks = [{"uid": uid, "subject": "write it down", "max_attempts": 50,
                  "retry": {"strategy": "immediate"}} for uid in self.uids]  # fmt: skip
        (self.place / "tasks").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
        if self.scenario == "node adds":
            return
        assert self.run(["agent_node", "add", "--file", "tasks"]) == 0, self.said
        if self.scenario.startswith("hub"):
            assert self.run(["arc", "init", str(self.place)]) == 0, self.said
            (self.place / "fleet.yaml").write_text(FLEET)
        if self.scenario == "hub moves":  # its first start is what the other one is about
            assert self.run(["arc", "up", "--once"]) == 0, self.said

    def env(self, home: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1",
                "AGENT_NODE_HOME": str(self.place / home)}  # fmt: skip

    def run(self, words: list[str], home: str = "iris") -> int:
        """The exit code; everything that was said is kept, to be looked through."""
        code, said = run_warm(words, cwd=self.place, env=self.env(home), limit_s=LIMIT_S)
        late = f"not over after {LIMIT_S} s\n" if code == 124 else ""
        self.said += f"\n{words}: {code}\n{late}{said}"
        return code

    def run_traced(self, words: list[str], strace: list[str]) -> int:
        """The same as a whole start of Python, under strace; its own end counts, and what it left
        behind may go on a moment more.
        """
        with (self.place.parent / "said").open("w+b") as said:
            traced = subprocess.Popen([*strace, sys.executable, "-m", *words], cwd=self.place,
                                      env=self.env("iris"), stdin=subprocess.DEVNULL, stdout=said,
                                      stderr=said, start_new_session=True)  # fmt: skip
            until, came, gone = time.monotonic() + LIMIT_S, False, False
            while traced.poll() is None and time.monotonic() < until:
                with suppress(subprocess.TimeoutExpired):
                    traced.wait(0.1)
                here = _has_child(traced.pid)
                came = came or here
                if came and not here and not gone:
                    gone, until = True, min(until, time.monotonic() + LEFT_S)
            late = traced.poll() is None
            if late:
                traced.send_signal(signal.SIGTERM)  # it lets go of what it followed
                traced.wait(LIMIT_S)
            said.seek(0)
            words_said = said.read().decode(errors="replace")
        stuck = late and not gone
        self.said += f"\n{words}: {'not over after' if stuck else traced.returncode}\n{words_said}"
        return 124 if stuck else traced.returncode

    def heal(self) -> str:
        """Nothing happens any more: what is wrong all the same, or nothing."""
        hub = self.scenario.startswith("hub")
        if self.scenario == "node adds" and not self._until(self._words()):
            return "cannot be added again"
        if hub and (why := self._heal_hub()):
            return why
        for home in HOMES if hub else ("iris",):
            if not self._work_off(home):
                return f"{home}: stuck"
        databases = {name: self.place / name / "queue.db" for name in HOMES
                     if (self.place / name / "queue.db").exists()}  # fmt: skip
        findings = judge(read_ledger(self.place / "ledger"), databases, self.uids, rows=rows_here)
        return "" if findings.clean else str(findings)

    def _heal_hub(self) -> str:
        if not self._until(["arc", "up", "--once"]):
            return "the hub does not start again"
        if not self._until(["arc", "doubts", "settle"]):
            return "doubts are left"
        if self.run(["arc", "tasks", "list", "--state", "READY", "--json"]) != 0:
            return "cannot be listed"
        self._bring_back()
        return ""

    def _bring_back(self) -> None:
        """What went to the inbox goes to loom, which runs it."""
        loom = ["--to", "loom", "--yes", "--reason", "a test"]
        daemon = subprocess.Popen([sys.executable, "-m", "agent_node", "run"], cwd=self.place,
                                  env=self.env("loom"), stderr=subprocess.PIPE)  # fmt: skip
        try:
            self.said += f"\nloom: {_first_line(daemon)}"  # before it nobody dispatches there
            if self.run(["arc", "tasks", "move", *self.uids, *loom]) != 0:
                for uid in self.uids:
                    self._until(["arc", "tasks", "move", uid, *loom])
        finally:
            daemon.terminate()
            daemon.communicate(timeout=LIMIT_S)

    def _until(self, words: list[str]) -> bool:
        return any(self.run(words) == 0 for _ in range(AGAIN))

    def _work_off(self, home: str) -> bool:
        """Until nothing is left; a person resolves what nobody can know."""
        for _ in range(AGAIN):
            code = self.run(["agent_node", "run", "--until-idle"], home=home)
            if code == 0:
                return True
            for uid in self.uids if code == 3 else ():
                self.run(["agent_node", "resolve", uid, "--as", "ready", "--alone",
                          "--reason", "a test"], home=home)  # fmt: skip
        return False

    def bad_words(self) -> str:
        """What nobody may ever be told, with the lines around it; empty: none was said."""
        said = self.said.replace(NO_DISK, "")
        found = BAD_WORDS.search(said)
        return f"said: {said[max(0, found.start() - 200):found.start() + 1500]}" if found else ""

    def end(self) -> None:
        """No process of it is left, and no file."""
        marks = [f"AGENT_NODE_HOME={self.place / name}".encode() for name in HOMES]
        end_all(lambda: [pid for mark in marks for pid in carriers(mark)])
        shutil.rmtree(self.place, ignore_errors=True)


def rows_here(database: Path, table: str) -> list[Mapping[str, Any]]:
    """As `sqlite-utils rows` reads them, by the same package, without a start of Python."""
    opened = sqlite_utils.Database(database)
    try:
        return list(opened[table].rows)
    finally:
        opened.close()


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """What it reports first; empty where it ended, or says nothing for long."""
    assert process.stderr is not None
    ready, _, _ = select.select([process.stderr], [], [], LIMIT_S)
    return process.stderr.readline().decode(errors="replace") if ready else ""


def _has_child(pid: int) -> bool:
    """Whether what strace started is still there: its first child, which it waits for itself."""
    try:
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:  # it has ended itself, or this kernel does not say
        return True
