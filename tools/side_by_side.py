"""Runs a few programs side by side, each with a file for what it says and an end to its time."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

LOOK_S = 0.1  # between two looks at who has ended
ASKED, CLEAN_UP_S = 3, 10.0  # how often a program is asked to end, and its time after each
MINUTE_S = 60.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Job:
    """One program; what it prints goes to the file `said`, which is made anew.

    `lane`: it is started once fewer run of that name than there are lanes of it.
    """

    name: str
    argv: tuple[str, ...]
    said: Path
    lane: str = ""


@dataclass(frozen=True)
class Ended:
    """How a job ended: its exit code, or minus the signal; `late`: we ended it, its time was up."""

    job: Job
    code: int
    took_s: float
    late: bool = False


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    output: BinaryIO
    began: float


def run_side_by_side(
    jobs: Sequence[Job], *, lanes: Mapping[str, int], limit_s: float,
    ended: Callable[[Ended], None], minute: Callable[[Sequence[str], int], None],
) -> list[Ended]:  # fmt: skip
    """All jobs, as many at a time as there are `lanes` for them, begun in their order in each.

    `limit_s` is for each alone. `ended` hears of each at once, `minute` of those that run and how
    many wait. Whatever raises, Ctrl-C and SIGTERM among it, ends all that still run, by their pids.
    """
    waiting, running, done = list(jobs), list[_Running](), list[Ended]()
    told = time.monotonic()
    with _asked_to_end() as came:
        try:
            while waiting or running:
                if came:
                    raise KeyboardInterrupt(came[0])
                while (job := _next(waiting, running, lanes)) is not None:
                    waiting.remove(job)
                    running.append(_begin(job))
                for one in [one for one in running if _is_over(one, limit_s)]:
                    running.remove(one)
                    done.append(_end(one, limit_s))
                    ended(done[-1])
                if time.monotonic() - told > MINUTE_S:
                    told = time.monotonic()
                    minute([one.job.name for one in running], len(waiting))
                time.sleep(LOOK_S)
        finally:
            _end_all(running)
    return done


def _next(
    waiting: Sequence[Job], running: Sequence[_Running], lanes: Mapping[str, int]
) -> Job | None:
    """The first that has a free lane; None: whatever waits has to wait."""
    taken = Counter(one.job.lane for one in running)
    return next((job for job in waiting if taken[job.lane] < lanes[job.lane]), None)


def _begin(job: Job) -> _Running:
    """In a group of its own: Ctrl-C reaches it through us, once, and not by the terminal, too."""
    output = job.said.open("wb")
    process = subprocess.Popen(
        job.argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0
    )
    return _Running(job, process, output, time.monotonic())


def _is_over(one: _Running, limit_s: float) -> bool:
    return one.process.poll() is not None or time.monotonic() - one.began > limit_s


def _end(one: _Running, limit_s: float) -> Ended:
    """What became of it; one that has not ended by itself is ended here."""
    late = one.process.poll() is None
    if late:
        one.output.write(f"\nended from outside: it ran for over {limit_s:g} s\n".encode())
        _end_all([one])
    one.output.close()
    return Ended(one.job, one.process.returncode, time.monotonic() - one.began, late)


def _end_all(running: Sequence[_Running]) -> None:
    """Asked, as a run of tests takes down what it set up, and asked again: a test of a program
    that is interrupted may have taken the first for its own. Killed when it does not listen.
    """
    for _ in range(ASKED):
        left = [one for one in running if one.process.poll() is None]
        for one in left:
            one.process.send_signal(signal.SIGINT)
        until = time.monotonic() + CLEAN_UP_S
        for one in left:
            with suppress(subprocess.TimeoutExpired):
                one.process.wait(max(until - time.monotonic(), 0))
    for one in running:
        one.process.kill()
        one.process.wait()
        one.output.close()


@contextmanager
def _asked_to_end() -> Iterator[list[str]]:
    """The signals that came meanwhile, by name; raised in the loop, never between two of its steps.

    A signal that whoever started us has set to be ignored stays so, for us. Our programs are
    started with a SIGINT that works.
    """
    came: list[str] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(signal.Signals(number).name)

    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
        elif number is signal.SIGINT:
            signal.signal(number, lambda *_: None)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
