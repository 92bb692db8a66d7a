"""Has the kernel fail or end a node, and a hub, at every write, sync and rename of their own files.

`make crashpoints BUDGET=minutes` counts the calls of each scenario first (strace), then injects
EIO, ENOSPC or a SIGKILL at each of them, or at as many as the budget allows, evenly chosen; `all`
goes on until each was struck. After each blow the same is started again without any, and what the
tasks themselves wrote is read. The file `KEEP=` remembers what was struck: the next run goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.chaos.crash_trace import CALLS, Counted, count, strace, struck, worth_a_blow
from tests.chaos.crash_world import SCENARIOS, World

BLOWS = ("error=EIO", "error=ENOSPC", "signal=KILL")
AT_ONCE = int(os.environ.get("AT_ONCE", 2 * (os.cpu_count() or 2)))  # half of it is waiting
AIMS = 3  # a name made by chance is met by counting, and pipes are counted with it
TELL_S = 15.0
MISSING = "crashpoints: strace is not here; on Debian: apt-get install strace"


@dataclass(frozen=True)
class Point:
    """One blow: in this scenario, at the so many-th such call that a process makes on this file."""

    scenario: str
    call: str
    file: str
    aim: str  # beneath the world; empty: by the so many-th call of this name on anything
    nth: int
    child: bool  # only a process that it started itself makes this call
    blow: str


@dataclass(frozen=True)
class Became:
    """What came of it: what it met, and what is wrong, which is empty where the books are right."""

    point: Point
    met: str  # `its own file`, `elsewhere` or `nothing`
    wrong: str
    took_s: float


def strike(point: Point, place: str) -> Became:
    """One blow in the world of this process; one by counting is aimed again where it missed."""
    began = time.monotonic()
    for _ in range(1 if point.aim else AIMS):
        met, wrong = _strike_once(point, World(Path(place) / str(os.getpid()), point.scenario))
        if wrong or met == "its own file":
            break
    return Became(point, met, wrong, time.monotonic() - began)


def _strike_once(point: Point, world: World) -> tuple[str, str]:
    try:
        words = world.begin()
        trace = world.place / "trace"
        aim = ["-P", str(world.place / point.aim)] if point.aim else []
        inject = f"inject={point.call}:{point.blow}:when={point.nth}"
        before = strace(trace, *aim, "-e", f"trace={point.call}", "-e", inject,
                        alone=not point.aim and not point.child,
                        signals="signal" in point.blow)  # fmt: skip
        world.run_traced(words, before)
        lines = trace.read_text(errors="replace").splitlines()
        files = struck(lines, str(world.place))
        wrong = world.heal()
        wrong = f"{wrong}: {world.said[-2500:]}" if wrong else world.bad_words()
        met = "its own file" if point.file in files else "elsewhere" if files else "nothing"
        return met, wrong
    except (OSError, AssertionError, subprocess.SubprocessError) as error:
        return "nothing", f"the harness: {type(error).__name__}: {error}"
    finally:
        world.end()


def points_of(scenario: str, place: Path, seed: str) -> tuple[list[Point], Counted]:
    """Each blow that this scenario is worth, and all that was counted."""
    world = World(place, scenario)
    try:
        trace = place / "trace"
        words = world.begin()
        world.run_traced(words, strace(trace, "-e", f"trace={','.join(CALLS)}"))
        assert "Traceback" not in world.said, world.said
        counted = count(trace.read_text(errors="replace").splitlines(), str(world.place))
        top = f"{world.place}/"
        return [Point(scenario, call.name, call.file, call.aim.removeprefix(top),
                      call.of_aim if call.aim else call.of_name, call.process > 0, blow)
                for call in worth_a_blow(counted.calls, Random(seed))
                for blow in BLOWS], counted  # fmt: skip
    finally:
        world.end()


def main() -> int:
    """Prints a line for each scenario; 1 where anything was wrong."""
    if shutil.which("strace") is None:
        sys.stderr.write(MISSING + "\n")
        return 2
    budget, seed = os.environ.get("BUDGET", "10"), os.environ.get("SEED", "crash")
    until = time.monotonic() + (float("inf") if budget in ("0", "all") else 60 * float(budget))
    keep = Path(os.environ["KEEP"]) if os.environ.get("KEEP") else None
    place = Path(tempfile.mkdtemp(prefix="crashpoints-", dir=_fast()))
    try:
        points: list[Point] = []
        for scenario in SCENARIOS:
            if os.environ.get("SCENARIO", "") in scenario:
                found, counted = points_of(scenario, place / "count", seed)
                points += found
                _tell_counted(scenario, counted, len(found))
        Random(seed).shuffle(points)
        done = list(_kept(keep, points))
        known = {one.point for one in done}
        left = [point for point in points if point not in known]
        for one in strike_until(until, left, str(place)):
            done.append(one)
            if keep:
                with keep.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return tell(points, done)


def _fast() -> str | None:
    """Nobody cuts the power here, so a disk in memory loses nothing and syncs at once."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _kept(keep: Path | None, points: list[Point]) -> Iterator[Became]:
    """What an earlier run of the same seed has struck."""
    wanted = set(points)
    if keep and keep.exists():
        for line in keep.read_text().splitlines():
            said = json.loads(line)
            one = Became(**{**said, "point": Point(**said["point"])})
            if one.point in wanted:
                yield one


def strike_until(until: float, points: list[Point], place: str) -> Iterator[Became]:
    """Blow after blow, some at once, as many as there is time for; Ctrl-C ends it early."""
    began, told, done = time.monotonic(), time.monotonic(), 0
    left = iter(points)
    going: set[Future[Became]] = set()
    # In a group of their own: what ends this run at the terminal ends no blow half way.
    with ProcessPoolExecutor(AT_ONCE, get_context("fork"), initializer=os.setpgrp) as strikers:
        try:
            while True:
                while len(going) < AT_ONCE and time.monotonic() < until:
                    if (point := next(left, None)) is None:
                        break
                    going.add(strikers.submit(strike, point, place))
                if not going:
                    return
                ended, going = wait(going, return_when=FIRST_COMPLETED)
                for future in ended:
                    done += 1
                    yield future.result()
                if time.monotonic() - told > TELL_S:
                    told = time.monotonic()
                    _tell_rate(done, len(points), told - began)
        except KeyboardInterrupt:
            yield from (future.result() for future in going)


def _tell_rate(done: int, points: int, took_s: float) -> None:
    each = took_s / done
    sys.stderr.write(f"crashpoints: {done:,} of {points:,} in {took_s:.0f} s, {each:.2f} s each;"
                     f" {(points - done) * each / 60:.0f} min for the others\n")  # fmt: skip
    sys.stderr.flush()


def _tell_counted(scenario: str, counted: Counted, blows: int) -> None:
    left_out = ", ".join(f"{number} {why}" for why, number in sorted(counted.left_out.items()))
    print(f"{scenario}: {len(counted.calls):,} calls on its own files, {blows // len(BLOWS):,}"
          f" that differ, {blows:,} blows; left out: {left_out or 'nothing'}")  # fmt: skip
    sys.stdout.flush()


def tell(points: list[Point], done: list[Became]) -> int:
    """The table; then everything that was wrong, whole."""
    wrong = [one for one in done if one.wrong]
    print(f"{'scenario':14}{'blows':>8}{'tried':>8}{'struck':>8}{'elsewhere':>11}{'nothing':>9}"
          f"{'wrong':>7}{'s each':>8}")  # fmt: skip
    for scenario in SCENARIOS:
        mine = [one for one in done if one.point.scenario == scenario]
        met = Counter(one.met for one in mine)
        total = sum(point.scenario == scenario for point in points)
        each = sum(one.took_s for one in mine) / max(1, len(mine))
        bad = sum(one.point.scenario == scenario for one in wrong)
        print(f"{scenario:14}{total:8,}{len(mine):8,}{met['its own file']:8,}"
              f"{met['elsewhere']:11,}{met['nothing']:9,}{bad:7,}{each:8.2f}")  # fmt: skip
    for one in wrong:
        print(f"\n{one.point}, met {one.met}: {one.wrong}")
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
