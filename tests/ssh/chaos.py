"""Chaos: container nodes, a real hub and real tasks under random faults; then the books.

`python -m tests.ssh.chaos --minutes 30 --nodes 5 --seed ada`. Every fault is bounded and taken
back. Then it is quiet until everything has ended, and the counters come from what the tasks wrote
themselves and from the queues. Anything lost, doubled, stuck or broken ends with 1, and so does a
node that does not come back or a fault that cannot be taken back; the report is told all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from subprocess import TimeoutExpired
from typing import Any

from agent_node.text import safe_text
from tests.chaos.checker import Line, read_ledger
from tests.node.daemon.living import rows_of
from tests.ssh.breaking import faults_of
from tests.ssh.chaos_faults import FAULTS, Fault, create_then_close, struck, tracebacks
from tests.ssh.chaos_report import Report, by_count, told
from tests.ssh.fleet import NAMES, SshFleet
from tests.ssh.ground import CommandFailed, run
from tests.ssh.lab import Lab
from tools.laboratory import APART, may_run_apart, missing_for_nodes

QUIET_S = 300.0  # for everything to end once no fault is there any more
BACK_S = 60.0  # for one node to be seen again
PAUSE_S = 0.5
TASKS_MAX = 12  # at a time, about twice a second: half of what five nodes can do here
DISK_MB = 1024
NIGHT_MAX_S, TWO_AT_ONCE = 8.0, 0.3
OVER = frozenset({"COMPLETED", "CANCELLED"})
WAITS_FOR_A_PERSON = {"PARKED": "resolve", "DEAD_LETTERED": "retry", "FAILED": "retry"}


class Chaos:
    """One run over one fleet."""

    def __init__(self, fleet: SshFleet, seed: str, *, policy: str, broken: bool) -> None:
        self.fleet, self.dice, self.broken = fleet, Random(seed), broken
        self.report = Report(seed, len(fleet.homes), policy)
        self.deaf = False  # the hub stands still: who asks it waits

    def rage(self, seconds: float) -> None:
        """Fault after fault, now and then two at once; work comes in all the time."""
        began = time.monotonic()
        try:
            while time.monotonic() - began < seconds:
                self._night()
                print(f"{time.monotonic() - began:7.1f} s  {len(self.fleet.added)} added  "
                      f"{self.report.faults.total()} faults", file=sys.stderr)  # fmt: skip
        finally:
            self.report.seconds = round(time.monotonic() - began, 1)

    def _night(self) -> None:
        """One or two faults, work before, within and after them; then every node comes back."""
        names = self.dice.sample(sorted(self.fleet.homes), 2)
        first = self.dice.choice(FAULTS)
        faults = [(first, names[0])]
        if self.dice.random() < TWO_AT_ONCE:
            faults.append((self.dice.choice([one for one in FAULTS if one is not first]), names[1]))
        faults.sort(key=lambda one: one[0].deaf)  # who cannot hear is healed first
        self._give_work()
        with ExitStack() as nights:
            self.deaf = any(fault.deaf for fault, _ in faults)
            for fault, name in faults:
                self.report.faults[fault.name] += 1
                nights.enter_context(struck(self.fleet, fault, self.fleet.homes[name], self.dice))
            if self.broken:
                self._try(lambda: create_then_close(self.fleet, *reversed(names)))
            self._last(self.dice.uniform(0.3, NIGHT_MAX_S))
        healed, self.deaf = time.monotonic(), False
        for fault, name in faults:
            self._is_back(fault, name, healed)

    def _last(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._give_work()
            time.sleep(PAUSE_S)  # work comes in while it lasts, whoever can take it

    def _is_back(self, fault: Fault, name: str, healed: float) -> None:
        """How long until the hub sees the node again."""
        self.fleet.until(lambda: self._well(name), f"{name} is back after {fault.name}",
                         limit_s=BACK_S)  # fmt: skip
        self.report.back[fault.name].append(time.monotonic() - healed)

    def _well(self, name: str) -> bool:
        try:
            seen = self.fleet.shown(name)
        except (AssertionError, ValueError):
            return False  # no hub answers yet
        return bool(seen.get("seen"))

    # --- Work -------------------------------------------------------------------------------------

    def _give_work(self) -> None:
        """Mostly to one node, so that there is something to take from it; else to the hub."""
        count = self.dice.randint(1, TASKS_MAX)
        if self.dice.random() < 0.5 and not self.deaf:
            self._try(lambda: self.fleet.add(count))
        else:
            self._try(lambda: self._add_there(self.dice.choice(sorted(self.fleet.homes)), count))

    def _add_there(self, name: str, count: int) -> None:
        home = self.fleet.homes[name]
        lines = "".join(f'{{"uid": "{uid}", "subject": "local {n}", "priority": 8}}\n'
                        for n, uid in enumerate(self.fleet.name_tasks(count)))  # fmt: skip
        argv = home.argv("add", "--file", "-", "--json")
        ran = home.node.exec(argv, user=home.user, stdin=lines.encode(), timeout_s=5.0)
        self.fleet.added += [str(one["uid"]) for one in json.loads(ran.stdout)["data"]["results"]]

    def _try(self, what: Callable[[], object]) -> None:
        """What is not acknowledged does not count; how it failed does, and that we broke."""
        try:
            what()
        except (CommandFailed, TimeoutExpired) as error:
            self.report.refused[type(error).__name__] += 1
            self.report.broken += faults_of(error)
        except (AssertionError, ValueError, KeyError) as error:
            self.report.refused["not answered"] += 1
            self.report.broken += faults_of(error)

    # --- The end ----------------------------------------------------------------------------------

    def whole(self, seconds: float) -> Report:
        """All of it, and whatever was counted where a part of it did not come to its end."""
        for part in (self.fleet.up, partial(self.rage, seconds), self.settle, self.count):
            try:
                part()
            except Exception as error:  # noqa: BLE001 - whatever it is stands in the report
                self.report.failed.append(_in_a_line(error))
        return self.report

    def settle(self) -> None:
        """No more faults: wait until all has ended; a person settles what waits for a person."""
        began = time.monotonic()
        while time.monotonic() - began < QUIET_S:
            states = self._states()
            left = {uid for uid in self.fleet.added if states.get(uid) not in OVER}
            doubts = self.fleet.data("doubts")["doubts"]
            if not left and not doubts:
                break
            print(f"quiet for {time.monotonic() - began:.1f} s: {len(doubts)} doubts, left: "
                  f"{by_count(Counter(states.get(uid, 'missing') for uid in left))}",
                  file=sys.stderr)  # fmt: skip
            for uid in sorted(left):
                self._as_a_person(uid, states.get(uid, ""))
            time.sleep(PAUSE_S)  # nobody tells when the last task of a fleet has ended
        self.report.quiet_s = round(time.monotonic() - began, 1)
        states = self._states()
        self.report.stuck = [f"{uid} {states.get(uid)}" for uid in self.fleet.added
                             if states.get(uid) not in OVER]  # fmt: skip

    def _as_a_person(self, uid: str, state: str) -> None:
        word = WAITS_FOR_A_PERSON.get(state)
        if word is None:
            return
        more = ["--as", "ready", "--yes"] if word == "resolve" else []
        ran = self.fleet.arc("tasks", word, uid, *more, "--reason", "chaos is over")
        if ran.code == 0:
            self.report.settled_by_hand[state] += 1
        else:
            print(f"{word} {uid}: {ran.out} {ran.err}", file=sys.stderr)

    def _states(self) -> dict[str, str]:
        """Where each task stands, by the queues themselves; a task that is in none is missing."""
        return {str(row["uid"]): str(row["state"]) for row in self._rows("task")}

    def _rows(self, table: str) -> list[dict[str, Any]]:
        """A table of every queue, read among the mounts of the laboratory while all is at work."""
        homes = self.fleet.homes.values()
        paths = [f"/mnt/{home.node.name}{home.path}/queue.db" for home in homes]
        there = ["nsenter", "-t", str(self.fleet.lab.ground.pid), "-m", "--"]
        found = rows_of(self.fleet.state / "inbox" / "queue.db", table)
        for path in paths:
            argv = [*there, sys.executable, "-m", "sqlite_utils", "rows", path, table]
            found += json.loads(run(argv))
        return found

    def count(self) -> Report:
        """The books, by the ledger of the tasks and the rows of all queues."""
        report, fleet = self.report, self.fleet
        ledger = read_ledger(fleet.lab.shared / "ledger")
        found = fleet.books()
        report.acknowledged = len(set(fleet.added))
        report.done = len({line.uid for line in ledger if line.word == "end"} & set(fleet.added))
        report.attempts = sum(line.word == "start" for line in ledger)
        report.interrupted = sum(row["outcome"] == "interrupted" for row in self._rows("attempt"))
        report.moved = len(self._rows("tombstone"))
        report.lost = [*found.lost]
        report.duplicated = [*found.overlapped, *found.two_places, *found.accepted_twice]
        report.unexpected = [*found.invented, *self._of_nobody(ledger)]
        report.broken = [*dict.fromkeys([*report.broken, *fleet.faults, *tracebacks(fleet)])]
        return report


    def _of_nobody(self, ledger: list[Line]) -> list[str]:
        """What stands in a queue, or ran, and nobody ever meant to add, answered for or not."""
        known = {*self.fleet.tried, *self.fleet.added}
        queued = {str(row["uid"]) for row in self._rows("task")} - known
        ran = {line.uid for line in ledger} - known
        return [*(f"{uid} is queued, and nobody added it" for uid in sorted(queued)),
                *(f"{uid} ran, and nobody added it" for uid in sorted(ran - queued))]  # fmt: skip


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {safe_text(str(error), 500)}"


def main(argv: list[str] | None = None) -> int:
    """Run chaos and print its report; 1 when something happened that must not, 2 without a lab."""
    words = argparse.ArgumentParser(prog="chaos", description="A fleet under random faults.")
    words.add_argument("--minutes", type=float, default=5.0)
    words.add_argument("--nodes", type=int, default=5, choices=range(2, len(NAMES) + 1))
    words.add_argument("--seed", default="ada")
    words.add_argument("--policy", default="swift", choices=("swift", "arc0"))
    words.add_argument("--broken", action="store_true", help="create-then-close: must be caught")
    words.add_argument("--json", action="store_true")
    words.add_argument("--keep", type=Path, help="a folder for the logs and queues")
    asked = words.parse_args(argv)
    if os.geteuid() != 0 and may_run_apart():  # root of a namespace of our own is enough
        again = [sys.executable, "-m", "tests.ssh.chaos", *(argv or sys.argv[1:])]
        os.execvp(APART[0], [*APART, *again])
    missing = missing_for_nodes()
    if missing:
        print(f"chaos: this machine has no container nodes: {'; '.join(missing)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        report = run_chaos(asked, asked.keep or Path(scratch))
    print(json.dumps(report.as_json()) if asked.json else told(report))
    return 0 if report.clean else 1


def run_chaos(asked: argparse.Namespace, place: Path) -> Report:
    """A laboratory, a fleet in it, the faults, the quiet, the books."""
    place.mkdir(parents=True, exist_ok=True)
    lab = Lab(place)
    try:
        with lab.entered():
            fleet = SshFleet(lab, place, NAMES[: asked.nodes], disk_mb=DISK_MB, policy=asked.policy)
            chaos = Chaos(fleet, asked.seed, policy=asked.policy, broken=asked.broken)
            return chaos.whole(asked.minutes * 60)
    finally:
        lab.close()


if __name__ == "__main__":
    sys.exit(main())
