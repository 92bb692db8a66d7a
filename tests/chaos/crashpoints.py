"""Has the kernel fail or end a node, and a hub, at every write, sync and rename that they make.

`make crashpoints BUDGET=minutes` counts the calls of each scenario first (strace), then injects
EIO, ENOSPC or a SIGKILL at each of them, or at as many as the budget allows, evenly chosen. After
each blow the same is started again without any, and what the tasks themselves wrote is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread

from tests.chaos.checker import judge, read_ledger
from tests.chaos.hub import ROOT, new_ulid
from tests.node.daemon.living import carriers, end_all

PROGRAM = Path(__file__).with_name("program.py")
CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "link", "unlink",
         "ftruncate")  # fmt: skip
BLOWS = ("error=EIO", "error=ENOSPC", "signal=KILL")
AT_ONCE, LIMIT_S, AGAIN, TASKS = 2, 60.0, 6, 3
# A write to a pipe of its own, which meets no disk: only strace can make it fail.
NO_DISK = ("Exception ignored when trying to write to the signal wakeup fd:\n"
           "Traceback (most recent call last):")  # fmt: skip
MISSING = "crashpoints: strace is not here; on Debian: apt-get install strace"
FLEET = """\
version: 1
rebalance: {every: 1d}
router: {every: 1d, enabled: false}
nodes:
  - {name: iris, local: true, home: ./iris}
  - {name: loom, local: true, home: ./loom}
"""
SCENARIOS = ("node adds", "node runs", "node and its shims run", "hub moves", "hub cycles")


@dataclass(frozen=True)
class Point:
    """One blow: in this scenario, at the so many-th call of this name that a process makes."""

    scenario: str
    call: str
    blow: str
    nth: int


@dataclass(frozen=True)
class Became:
    """What came of it; `wrong` is empty where the books are right."""

    point: Point
    hit: bool
    wrong: str


class World:
    """Two homes and a hub's folder, for one blow."""

    def __init__(self, place: Path, dice: Random) -> None:
        self.place, self.said = place, ""
        self.uids = [new_ulid(dice) for _ in range(TASKS)]
        place.chmod(0o700)
        for name in ("iris", "loom"):
            (place / name).mkdir(mode=0o700)
            run = json.dumps([sys.executable, "-I", "-S", str(PROGRAM), str(place)])
            (place / name / "node.toml").write_text(
                f'name = "{name}"\ndisk_floor = 0\nstop_grace_s = 5\ngrace_s = 2\n'
                f'[[agent]]\nname = "{name}"\nrun = {run}\nslots = 2\n')  # fmt: skip
        tasks = [{"uid": uid, "subject": "write it down", "max_attempts": 50,
                  "retry": {"strategy": "immediate"}} for uid in self.uids]  # fmt: skip
        (place / "tasks").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))

    def run(self, words: list[str], strace: list[str] | None = None, home: str = "iris") -> int:
        """The exit code; everything that was said is kept, to be looked through."""
        env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1",
               "AGENT_NODE_HOME": str(self.place / home)}  # fmt: skip
        argv = [*(strace or []), sys.executable, "-m", *words]
        try:
            ran = subprocess.run(argv, cwd=self.place, env=env, capture_output=True, text=True,
                                 timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False,
                                 errors="replace")  # fmt: skip
        except subprocess.TimeoutExpired:
            self.said += f"\n{words}: not over after {LIMIT_S} s"
            return 124
        self.said += f"\n{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.returncode

    def prepare(self, scenario: str) -> list[str]:
        """All that comes before it; what is then traced."""
        add = ["agent_node", "add", "--file", str(self.place / "tasks")]
        if scenario == "node adds":
            return add
        assert self.run(add) == 0, self.said
        if scenario.startswith("node"):
            return ["agent_node", "run", "--until-idle"]
        assert self.run(["arc", "init", str(self.place)]) == 0, self.said
        (self.place / "fleet.yaml").write_text(FLEET)
        if scenario == "hub cycles":
            return ["arc", "up", "--once"]
        return ["arc", "tasks", "move", *self.uids, "--to", "inbox", "--yes", "--reason", "a test"]

    def heal(self, scenario: str, words: list[str]) -> str:
        """Nothing happens any more: what is wrong all the same, or nothing."""
        if scenario == "node adds" and self._until([*words], {0}) is None:
            return "cannot be added again"
        if scenario.startswith("hub"):
            if self._until(["arc", "up", "--once"], {0}) is None:
                return "the hub does not start again"
            if self._until(["arc", "doubts", "settle"], {0}) is None:
                return "doubts are left"
            if self.run(["arc", "tasks", "list", "--state", "READY", "--json"]) != 0:
                return "cannot be listed"
            self._bring_back()
        for home in ("iris", "loom") if scenario.startswith("hub") else ("iris",):
            if not self._work_off(home):
                return f"{home}: stuck"
        databases = {name: self.place / name / "queue.db" for name in ("iris", "loom")
                     if (self.place / name / "queue.db").exists()}  # fmt: skip
        findings = judge(read_ledger(self.place / "ledger"), databases, self.uids)
        return "" if findings.clean else str(findings)

    def _bring_back(self) -> None:
        """What went to the inbox goes to loom, which runs it."""
        loom = ["--to", "loom", "--yes", "--reason", "a test"]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "AGENT_NODE_HOME": str(self.place / "loom")}
        with (self.place / "loom.log").open("wb") as said:
            daemon = subprocess.Popen([sys.executable, "-m", "agent_node", "run"], env=env,
                                      cwd=self.place, stdout=said, stderr=said)  # fmt: skip
        try:
            for uid in self.uids:
                self._until(["arc", "tasks", "move", uid, *loom], {0})
        finally:
            daemon.terminate()
            daemon.wait(timeout=LIMIT_S)

    def _until(self, words: list[str], fine: set[int]) -> int | None:
        for _ in range(AGAIN):
            if (code := self.run(words)) in fine:
                return code
        return None

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

    def end(self) -> None:
        """No process of it is left, and no file."""
        homes = [f"AGENT_NODE_HOME={self.place / name}".encode() for name in ("iris", "loom")]
        end_all(lambda: [pid for home in homes for pid in carriers(home)])
        shutil.rmtree(self.place, ignore_errors=True)


def strike(point: Point, place: Path, number: int) -> Became:
    """One blow in a world of its own."""
    world = World(place, Random(f"crash {number}"))
    try:
        words = world.prepare(point.scenario)
        trace = place / "trace"
        follow = ["-f"] if "shims" in point.scenario else []
        inject = f"inject={point.call}:{point.blow}:when={point.nth}"
        world.said = ""
        world.run(words, ["strace", *follow, "-qq", "-o", str(trace), "-e",
                          f"trace={point.call}", "-e", inject])  # fmt: skip
        said = trace.read_text(errors="replace")
        hit = "INJECTED" in said or "killed by SIGKILL" in said
        wrong = world.heal(point.scenario, words)
        world.said = world.said.replace(NO_DISK, "")
        found = re.search(r"Traceback|ARC-FAULT|error\[fault\]|not over after", world.said)
        if found and not wrong:
            wrong = f"said: {world.said[max(0, found.start() - 100):found.start() + 1500]}"
        elif wrong:
            wrong += f": {world.said[-1500:]}"
        return Became(point, hit, wrong)
    except (OSError, AssertionError, subprocess.SubprocessError) as error:
        return Became(point, hit=True, wrong=f"the harness: {type(error).__name__}: {error}")
    finally:
        world.end()


def count_calls(scenario: str, place: Path) -> Counter[str]:
    """How often a process of this scenario makes each call, at most."""
    world = World(place, Random(scenario))
    try:
        words = world.prepare(scenario)
        follow = ["-f"] if "shims" in scenario else []
        trace = ["strace", *follow, "-qq", "-o", str(place / "trace"), "-e",
                 f"trace={','.join(CALLS)}"]  # fmt: skip
        code = world.run(words, trace)
        assert code in (0, 3), world.said
        each: dict[str, Counter[str]] = {}
        for line in (place / "trace").read_text(errors="replace").splitlines():
            match = re.match(r"(?:(\d+) +)?(\w+)\(", line)
            if match:
                each.setdefault(match[1] or "", Counter())[match[2]] += 1
        most: Counter[str] = Counter()
        for counted in each.values():
            most |= counted
        return most
    finally:
        world.end()


def main() -> int:
    """Prints a line for each scenario and call; 1 where anything was wrong."""
    if shutil.which("strace") is None:
        sys.stderr.write(MISSING + "\n")
        return 2
    until = time.monotonic() + 60 * float(os.environ.get("BUDGET", "10"))
    wanted = os.environ.get("SCENARIO", "")
    place = Path(tempfile.mkdtemp(prefix="crashpoints-"))
    try:
        points = [Point(scenario, call, blow, nth)
                  for number, scenario in enumerate(SCENARIOS) if wanted in scenario
                  for call, most in count_calls(scenario, new(place, f"count-{number}")).items()
                  for blow in BLOWS for nth in range(1, most + 1)]  # fmt: skip
        Random(os.environ.get("SEED", "crash")).shuffle(points)
        done = strike_until(until, points, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return tell(points, done)


def strike_until(until: float, points: list[Point], place: Path) -> list[Became]:
    """Blow after blow, some at once, as many as there is time for; Ctrl-C ends it early."""
    done: list[Became] = []
    left = enumerate(points)
    turn = Lock()

    def go_on() -> None:
        while time.monotonic() < until and not over.is_set():
            with turn:
                number, point = next(left, (0, None))
            if point is None:
                return
            done.append(strike(point, new(place, str(number)), number))

    over = Event()
    strikers = [Thread(target=go_on) for _ in range(AT_ONCE)]
    for striker in strikers:
        striker.start()
    try:
        for striker in strikers:
            striker.join()
    except KeyboardInterrupt:
        over.set()
        for striker in strikers:
            striker.join()
    return done


def new(place: Path, name: str) -> Path:
    (place / name).mkdir(mode=0o700)
    return place / name


def tell(points: list[Point], done: list[Became]) -> int:
    """The table; then everything that was wrong, whole."""
    total = Counter(point.scenario for point in points)
    tried = Counter(one.point.scenario for one in done)
    hit = Counter(one.point.scenario for one in done if one.hit)
    wrong = [one for one in done if one.wrong]
    bad = Counter(one.point.scenario for one in wrong)
    print(f"{'scenario':26}{'points':>8}{'tried':>8}{'struck':>8}{'wrong':>8}")
    for scenario in SCENARIOS:
        print(f"{scenario:26}{total[scenario]:8}{tried[scenario]:8}{hit[scenario]:8}"
              f"{bad[scenario]:8}")  # fmt: skip
    for one in wrong:
        print(f"\n{one.point}: {one.wrong}")
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
