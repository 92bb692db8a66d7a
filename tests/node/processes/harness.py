"""Plays the daemon for tests: hands attempts over, waits on pidfds, clears up after dead shims."""

from __future__ import annotations

import itertools
import os
import platform
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_node.attempts import AttemptFolder, create_folder
from agent_node.evidence import Dead, Evidence, Leftovers, judge_attempt
from agent_node.job import TASK_JSON, Job
from agent_node.kept import Kept
from agent_node.killing import kill_leftovers, kill_strays
from agent_node.processes import reap_children, send_signal
from agent_node.ulid import fresh_ulid
from agent_node.verdicts import Verdict, read_verdict
from agent_node.zygote_link import Spawned, Zygote

PATIENCE_S = 30.0


@dataclass(frozen=True)
class Attempt:
    folder: AttemptFolder
    token: str
    spawned: Spawned

    def __post_init__(self) -> None:
        """This daemon has one attempt for each shim, and says so to each that has reported."""
        if self.spawned:
            self.spawned.line.close()

    def signal_shim(self, number: int) -> None:
        send_signal(self.spawned.pidfd, number)

    def printed(self) -> str:
        return Path(self.folder.stdout).read_text(errors="replace")

    def judge(self) -> Evidence:
        return judge_attempt(self.folder, self.token)


class FakeDaemon:
    """What the real daemon does around an attempt, and nothing of the queue."""

    def __init__(self, tasks: Path, zygote: Zygote) -> None:
        self.tasks, self.zygote = str(tasks), zygote

    def lay_out(self, argv: list[str], **more: object) -> tuple[Job, AttemptFolder]:
        uid = fresh_ulid()
        folder = create_folder(self.tasks, uid, 1)
        folder.add(TASK_JSON, b'{"subject":"try"}\n')
        token = f"token-of-{uid}"
        env = {"PATH": os.environ["PATH"], "AGENT_ATTEMPT_TOKEN": token}
        fields: dict[str, object] = {"env": env, "cwd": folder.path, "grace_s": 0.3, **more}
        job = Job(uid=uid, n=1, token=token, argv=tuple(argv), **fields)  # type: ignore[arg-type]
        return job, folder

    def begin(self, argv: list[str], **more: object) -> Attempt:
        job, folder = self.lay_out(argv, **more)
        return Attempt(folder, job.token, self.zygote.spawn(job, folder, patience_s=PATIENCE_S))

    def keep(self, argv: list[str], **more: object) -> tuple[Attempt, Kept]:
        """One whose shim may be given another when it is over."""
        job, folder = self.lay_out(argv, **more)
        spawned = self.zygote.spawn(job, folder, patience_s=PATIENCE_S)
        kept = Kept("iris", spawned.shim, spawned.pidfd, spawned.line.dup())
        return Attempt(folder, job.token, spawned), kept

    def shell(self, script: str, **more: object) -> Attempt:
        return self.begin(["/bin/sh", "-c", script], **more)

    def end(self, attempt: Attempt) -> Verdict | None:
        """Wait until the shim is gone; its verdict, if it left one."""
        wait_readable(attempt.spawned.pidfd)
        os.close(attempt.spawned.pidfd)
        return read_verdict(attempt.folder)

    def clear(self, attempt: Attempt) -> Evidence:
        """What the daemon does about an attempt without a verdict, until it is proven dead."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            evidence = attempt.judge()
            if isinstance(evidence, Leftovers):
                kill_leftovers(evidence.processes)
            if isinstance(evidence, Dead) or time.monotonic() > give_up:
                return evidence

    def clear_all(self, attempt: Attempt) -> Evidence:
        """The same, and then whoever has become our own child because its shim died."""
        evidence = self.clear(attempt)
        wait_until(self._alone)
        return evidence

    def _alone(self) -> bool:
        kill_strays(keep=[self.zygote.pid])
        reap_children(keep=[self.zygote.pid])
        return children_of_ours(but=self.zygote.pid) == []


def wait_readable(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(PATIENCE_S * 1000), "nothing happened in time"


def wait_until(true: Callable[[], bool]) -> None:
    """For what the kernel shows only in /proc: look again and again, never longer than patience."""
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, "it never became true"
        os.sched_yield()


_marks = itertools.count(1)


def a_mark() -> str:
    """A length of sleep that nobody else sleeps: whoever carries it in its argv is of this test."""
    return f"9{os.getpid()}.{next(_marks):06}"


def carrying(mark: str) -> list[int]:
    """Processes that have this mark in their command line; a mark survives `env -i`."""
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    return [pid for pid in pids if mark.encode() in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    """As its first thread shows it, or, once that one has ended, any other."""
    try:
        threads = [f"/proc/{pid}", *Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return b""
    for thread in threads:
        try:
            line = Path(f"{thread}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if line:
            return line
    return b""


# A program whose first thread has ended while another one works: it prints `up` only then. The
# kernel shows it as a zombie. {first} is done before, {then} by the thread that goes on.
HEADLESS = """
import ctypes, os, sys, threading, time
def work():
    {first}
    while open(f"/proc/{{os.getpid()}}/stat").read().rpartition(")")[2].split()[0] != "Z":
        os.sched_yield()
    os.write(1, b"up\\n")
    {then}
    time.sleep(120)  # and then it ends by itself, for `ps` shows nobody whose it was
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({exit}, 0)
"""
_EXIT = {"x86_64": 60}.get(platform.machine(), 93)  # ends one thread and not the process


def a_headless_program(
    mark: str, *, first: str = "pass", then: str = "pass", python: str = sys.executable
) -> list[str]:
    """The words that start one; to be ended by whoever starts it."""
    script = HEADLESS.format(first=first, then=then, exit=_EXIT)
    return [python, "-I", "-S", "-c", script, mark]


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def children_of_ours(but: int) -> list[int]:
    listed = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == os.getpid() and int(name) != but:
            listed.append(int(name))
    return listed


KILL = signal.SIGKILL
