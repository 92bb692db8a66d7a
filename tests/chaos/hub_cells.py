"""Brings the hub to named places by its own commands, then types the same again, and settles."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos.checker import Findings, judge, read_ledger
from tests.chaos.crash_table import HubPoint
from tests.chaos.fleet import HEAL_S, NAMES, Fleet
from tests.chaos.hub import ROOT, new_ulid
from tests.node.daemon.living import is_ready

ANSWER_S = 90.0
FLEET = """\
version: 1
rebalance: {every: 1d}
router: {every: 1d, enabled: false}
nodes:
  - {name: iris, local: true, home: ./iris}
  - {name: loom, local: true, home: ./loom}
"""
HEAD = "version: 1\nnodes:\n  - {name: iris, local: true, home: ./iris}\n"
# What comes after these is the settling of what they left, or the same once more.
MOVING = ("move", "settle", "init")
AGAIN_IS_FINE = {0, 3}  # 3: something is left undone, and said so


class HubCells:
    """One fleet with real daemons; each command of the hub is a process of its own."""

    def __init__(self, fleet: Fleet, action: str) -> None:
        self.fleet, self.action, self.place = fleet, action, fleet.place
        self.problems: list[str] = []
        self.reached: list[str] = []
        self._number = 0
        env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        self._forks = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.hub_forks"], cwd=ROOT, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        for name in NAMES:
            fleet.start_surely(name)
        self.must("init", str(self.place))
        (self.place / "fleet.yaml").write_text(FLEET)

    # --- one cell -------------------------------------------------------------------------------

    def cell(self, point: HubPoint) -> None:
        """It happens there; what was said is judged; then the same is typed again, and goes."""
        self._number += 1
        words = getattr(self, f"_{point.scenario}")()
        seen = self.place / f"hub-seen-{self._number}"
        code, said = self._run(words, f"{point.name}:{self.action}:{point.nth}", seen)
        cell = f"{point.name} {self.action} in {point.scenario}"
        assert seen.exists(), f"{cell} was never reached: {code}: {said}"
        self.reached.append(cell)
        self._judge(cell, code, said)
        if self.action != "stop" and point.scenario not in MOVING:
            code, said = self._run(words, "", seen)
            if code not in AGAIN_IS_FINE and not self._may_be_done(point):
                self.problems.append(f"{cell}: again: {code}: {said}")
        check = getattr(self, f"_after_{point.scenario}", None)
        if check is not None:
            check(cell)

    def _judge(self, cell: str, code: int, said: str) -> None:
        if "Traceback" in said or "ARC-FAULT" in said:
            self.problems.append(f"{cell}: {said[-1500:]}")
        if self.action == "kill" and code != -9:
            self.problems.append(f"{cell}: ended with {code}: {said}")
        if self.action == "stop" and code not in AGAIN_IS_FINE:
            self.problems.append(f"{cell}: ended with {code}: {said}")
        errors = [line for line in said.splitlines() if line.startswith("error[")]
        if self.action in ("EIO", "ENOSPC") and (code < 0 or len(errors) > 1):
            self.problems.append(f"{cell}: ended with {code}: {said}")
        told = bool(errors) or "failed: " in said
        if self.action in ("EIO", "ENOSPC") and code not in AGAIN_IS_FINE and not told:
            self.problems.append(f"{cell}: {code} without a word: {said}")

    def _may_be_done(self, point: HubPoint) -> bool:
        """The first time it may have happened: then the second is told no, that it is there."""
        return point.scenario == "edit"

    # --- what is typed --------------------------------------------------------------------------

    def _move(self) -> list[str]:
        uids = self.add_at("iris", 2)
        return ["tasks", "move", *uids, "--to", "loom", "--yes", "--reason", "a test"]

    def _after_move(self, cell: str) -> None:
        self._settled(cell)

    def _settle(self) -> list[str]:
        """First a move that stands still after its escrow, because its hub died."""
        self._run(self._move(), "hub.escrow.after:kill:1", self.place / "nobody-looks")
        return ["doubts", "settle"]

    def _after_settle(self, cell: str) -> None:
        self._settled(cell)

    def _settled(self, cell: str) -> None:
        """Nothing is in doubt any more, or a person is told what is."""
        until = time.monotonic() + HEAL_S
        while self._doubts():
            assert time.monotonic() < until, f"{cell}: {self._doubts()}"
            self._run(["doubts", "settle"], "", self.place / "nobody-looks")

    def _say(self) -> list[str]:
        self.must("resume")
        return ["pause", "--reason", "a test"]

    def _after_say(self, cell: str) -> None:
        self.must("resume")

    def _cycle(self) -> list[str]:
        return ["up", "--once"]

    def _take_over(self) -> list[str]:
        return ["up", "--once", "--take-over"]

    def _fence(self) -> list[str]:
        self._life = new_ulid(self.fleet.dice)
        return ["@fence", str(self.place / ".arc"), "ghost", self._life]

    def _after_fence(self, cell: str) -> None:
        said = (self.place / ".arc" / "fences.json").read_text()
        if said.count(self._life) != 1:
            self.problems.append(f"{cell}: {said}")

    def _edit(self) -> list[str]:
        file = self.place / "edited" / "fleet.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(HEAD)
        return ["@edit", str(file), "loom"]

    def _after_edit(self, cell: str) -> None:
        text = (self.place / "edited" / "fleet.yaml").read_text()
        if not text.startswith(HEAD) or text.count("name: loom") != 1:
            self.problems.append(f"{cell}: {text}")

    def _pin(self) -> list[str]:
        return ["@pin", str(self.place / ".arc" / "known_hosts"), f"node{self._number}"]

    def _after_pin(self, cell: str) -> None:
        text = (self.place / ".arc" / "known_hosts").read_text()
        if text.count(f"node{self._number} ") != 1:
            self.problems.append(f"{cell}: {text}")

    def _init(self) -> list[str]:
        self._new = self.place / f"new-{self._number}"
        return ["init", str(self._new)]

    def _after_init(self, cell: str) -> None:
        """The folder is whole, and both halves of the key are of one pair."""
        told = self._told("init", str(self._new))
        public = (self._new / ".arc" / "keys" / "hub_ed25519.pub").read_text().strip()
        if told["public_key"] != public or not (self._new / "fleet.yaml").exists():
            self.problems.append(f"{cell}: {told}: {public}")
        drafts = [path.name for path in self._new.rglob(".*.[0-9]*")]
        if self.action != "kill" and drafts:
            self.problems.append(f"{cell}: left behind: {drafts}")

    def _first_add(self) -> list[str]:
        self._new = self.place / f"new-{self._number}"
        self.must("init", str(self._new))
        return self._add_to(self._new)

    def _after_first_add(self, cell: str) -> None:
        self._after_add(cell)

    def _add(self) -> list[str]:
        self._new = self.place
        return self._add_to(self.place)

    def _add_to(self, folder: Path) -> list[str]:
        key = f"key-{self._number}"
        return ["--fleet", str(folder / "fleet.yaml"), "tasks", "add", key, "--key", key]

    def _after_add(self, cell: str) -> None:
        """Typed twice, there once; and nothing in the inbox is kept from being routed."""
        told = self._told("--fleet", str(self._new / "fleet.yaml"), "tasks", "list")
        found = [one for one in told["tasks"] if one["subject"] == f"key-{self._number}"]
        if [one["state"] for one in found] != ["READY"]:
            self.problems.append(f"{cell}: {found}")

    # --- what is typed of its own queue ---------------------------------------------------------

    def _set(self) -> list[str]:
        return ["tasks", "set", self._added(), "--priority", "3", "--reason", "a test"]

    def _after_set(self, cell: str) -> None:
        self._is(cell, "READY", priority=3)

    def _cancel(self) -> list[str]:
        return ["tasks", "cancel", self._added(), "--reason", "a test"]

    def _after_cancel(self, cell: str) -> None:
        self._is(cell, "CANCELLED")

    def _retry(self) -> list[str]:
        uid = self._added()
        self.must("tasks", "cancel", uid, "--reason", "so that it can be retried")
        return ["tasks", "retry", uid, "--reason", "a test"]

    def _after_retry(self, cell: str) -> None:
        self._is(cell, "READY")

    def _submit(self) -> list[str]:
        self._uid, self._dag = new_ulid(self.fleet.dice), new_ulid(self.fleet.dice)
        file = self.place / f"graph-{self._number}.json"
        task = {"uid": self._uid, "subject": "a", "needs": ["nobody has it"]}
        file.write_text(json.dumps({"id": self._dag, "title": "one", "tasks": {"a": task}}))
        return ["dag", "submit", str(file)]

    def _after_submit(self, cell: str) -> None:
        self._is(cell, "READY")

    def _graph_cancel(self) -> list[str]:
        self.must(*self._submit())
        return ["dag", "cancel", self._dag, "--reason", "a test"]

    def _after_graph_cancel(self, cell: str) -> None:
        self._is(cell, "CANCELLED")

    def _added(self) -> str:
        """A task that stays in the hub's queue: no node will ever take it."""
        told = self._told("tasks", "add", f"key-{self._number}", "--need", "nobody has it")
        self._uid = str(told["results"][0]["uid"])
        return self._uid

    def _is(self, cell: str, state: str, **fields: object) -> None:
        task = self._told("tasks", "show", self._uid)["task"]
        wanted = {"state": state, **fields}
        found = {name: task[name] for name in wanted}
        if found != wanted:
            self.problems.append(f"{cell}: {found}")

    # --- around it ------------------------------------------------------------------------------

    def add_at(self, name: str, count: int) -> list[str]:
        """Tasks that wait at this node: nobody there can run them before the end."""
        uids = [new_ulid(self.fleet.dice) for _ in range(count)]
        tasks = [{"uid": uid, "subject": "write it down", "needs": ["later"]} for uid in uids]
        with self.fleet.nodes[name].one_talk() as talk:
            results = talk.ask("add", tasks=tasks)["results"]
        assert {one["outcome"] for one in results} == {"added"}, results
        self.fleet.acked += uids
        return uids

    def must(self, *words: str) -> str:
        """A command that nothing happens to."""
        code, said = self._run([*words], "", self.place / "nobody-looks")
        assert code == 0, (words, code, said)
        return said

    def _told(self, *words: str) -> dict[str, Any]:
        said = self.must(*words, "--json")
        told: dict[str, Any] = json.loads(said.splitlines()[-1])["data"]
        return told

    def _run(self, words: list[str], failpoint: str, seen: Path) -> tuple[int, str]:
        out = self.place / f"out-{time.monotonic_ns()}"
        asked = {"words": words, "cwd": str(self.place), "failpoint": failpoint,
                 "seen": str(seen), "out": str(out)}  # fmt: skip
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        self._forks.stdin.write(json.dumps(asked).encode() + b"\n")
        self._forks.stdin.flush()
        assert select.select([self._forks.stdout], [], [], ANSWER_S)[0], f"{words} goes on"
        answer = json.loads(self._forks.stdout.readline())
        return int(answer["code"]), out.read_text(errors="replace")

    def _doubts(self) -> list[object]:
        found: list[object] = []
        for node in self.fleet.nodes.values():
            with node.one_talk() as talk:
                found += talk.ask("doubts")["doubts"]
        return found

    def end(self) -> Findings:
        """Everything is settled by the hub itself, and worked off; then the books are read."""
        self._settled("the end")
        self.fleet._configure(skills=["later"])
        for name in NAMES:
            self.fleet.kill(name)
            self.fleet.start_surely(name)
        until = time.monotonic() + HEAL_S
        while self._waiting():
            assert time.monotonic() < until, "tasks are stuck"
            is_ready(self.fleet.rest, 0.05)
            for daemon in self.fleet.daemons.values():
                daemon.drain()
        for name in NAMES:
            assert self.fleet.daemons[name].stop() == 0
        databases = {name: node.home / "queue.db" for name, node in self.fleet.nodes.items()}
        assert not self.problems, "\n".join(self.problems)
        return judge(read_ledger(self.place / "ledger"), databases, self.fleet.acked)

    def _waiting(self) -> int:
        waiting = 0
        for node in self.fleet.nodes.values():
            with node.one_talk() as talk:
                counts = talk.ask("status")["counts"]
            waiting += sum(n for state, n in counts.items() if state not in ("COMPLETED", "MOVED"))
        return waiting

    def close(self) -> None:
        """End the process that forks."""
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        with suppress(BrokenPipeError):
            self._forks.stdin.close()
        try:
            self._forks.wait(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            self._forks.kill()
            self._forks.wait()
        self._forks.stdout.close()
