"""Claims that nothing a program starts outlives its attempt, however it tries."""

from __future__ import annotations

import shlex
import signal
import sys
from collections import Counter
from functools import partial

import pytest

from agent_node.evidence import Alive, Dead
from tests.node.processes.harness import (
    Attempt,
    FakeDaemon,
    a_headless_program,
    a_mark,
    carrying,
    wait_until,
)

HEADLESS = "a first thread that ends before the others"
# {mark} is a sleep of a length that nobody else sleeps: it stays in the command line whatever the
# program does to its environment, its session and its descriptors.
TREES = {
    "a session of its own": "setsid sleep {mark} & sleep {mark}",
    "a daemon by double fork": "(setsid sh -c 'sleep {mark} & sleep {mark}' &) ; {up}",
    "without an environment": "env -i $(command -v setsid) $(command -v sleep) {mark} & {up}",
    "deaf to TERM": "trap '' TERM; setsid sleep {mark} & {up}; while :; do sleep {mark}; done",
    "forking and forking": (
        "f() {{ if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep {mark}; }}; f 4; {up}"
    ),
    "without output": "exec >&- 2>&-; setsid sleep {mark} & sleep {mark}",
    "a grandchild on the pipe": "sleep {mark} & {up}",
    "a flood of output": "setsid yes {mark} & sleep {mark}",
    "free of lock, token and session": (
        "env -i $(command -v setsid) /bin/sh -c 'exec 3>&- </dev/null >/dev/null 2>&1; "
        "/bin/sleep {mark} & /bin/sleep {mark}' & {up}"
    ),
    HEADLESS: "exec {headless}",
}
ENDS = ("time is up", "asked to stop", "the shim is killed", "it kills its own shim")


def the_script(kind: str, mark: str, python: str = sys.executable) -> str:
    """One of these as a shell runs it."""
    child = f"[os.posix_spawnp('sleep', ['sleep', '{mark}'], os.environ) for _ in range(2)]"
    headless = a_headless_program(mark, first="os.closerange(3, 60)", then=child, python=python)
    return TREES[kind].format(mark=mark, up=f"sleep {mark}", headless=shlex.join(headless))


def a_tree(daemon: FakeDaemon, kind: str, end: str) -> tuple[Attempt, str]:
    mark = a_mark()
    script = the_script(kind, mark)
    after = 0.4 if kind == HEADLESS else 0.05  # a Python has to start first
    if end == "it kills its own shim":
        script = f"(sleep {after}; kill -9 $PPID) & {script}"
    more = {"max_s": after} if end == "time is up" else {}
    return daemon.shell(script, grace_s=0.05, output_cap=65_536, **more), mark


def bring_to_its_end(daemon: FakeDaemon, attempt: Attempt, mark: str, end: str) -> None:
    if end == "asked to stop":
        wait_until(lambda: len(carrying(mark)) > 1)
        attempt.signal_shim(signal.SIGTERM)
    elif end == "the shim is killed":
        wait_until(lambda: len(carrying(mark)) > 1)
        attempt.signal_shim(signal.SIGKILL)
    verdict = daemon.end(attempt)
    if end in ("time is up", "asked to stop"):
        assert verdict is not None
        assert verdict.kind == ("timeout" if end == "time is up" else "stopped")
        assert verdict.survivors == 0
    else:
        assert verdict is None


def nobody_carries(mark: str) -> bool:
    return carrying(mark) == []


def go_through(daemon: FakeDaemon, rounds: int) -> Counter[str]:
    """Every kind with every end, so often; how many attempts were proven dead by what."""
    proven: Counter[str] = Counter()
    for _ in range(rounds):
        for end in ENDS:
            trees = [(kind, *a_tree(daemon, kind, end)) for kind in TREES]
            for kind, attempt, mark in trees:
                bring_to_its_end(daemon, attempt, mark, end)
                evidence = daemon.clear_all(attempt)
                assert isinstance(evidence, Dead), f"{kind}, {end}: {evidence}"
                wait_until(partial(nobody_carries, mark))
                proven[end] += 1
    return proven


def test_a_hundred_hostile_trees_leave_nobody_behind(daemon: FakeDaemon) -> None:
    """Run once without the subreaper (the daemons got away), and once without the daemon's hunt
    for strays (what had dropped lock and token outlived the shim that was killed)."""
    assert go_through(daemon, rounds=3) == dict.fromkeys(ENDS, 30)


@pytest.mark.soak
def test_a_thousand_hostile_trees_leave_nobody_behind(daemon: FakeDaemon) -> None:
    assert go_through(daemon, rounds=25).total() >= 1000


HOPPER = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    if os.fork():
        os._exit(0)
    {each_hop}
"""


@pytest.mark.parametrize("each_hop", ["pass", "os.setsid()"])
def test_who_forks_and_exits_without_end_is_caught(daemon: FakeDaemon, each_hop: str) -> None:
    mark, script = a_mark(), HOPPER.format(each_hop=each_hop)
    attempt = daemon.begin([sys.executable, "-I", "-S", "-c", script, mark], grace_s=0.05)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert verdict.survivors == 0
    assert verdict.leftovers_killed >= 1
    assert carrying(mark) == []


def test_what_a_program_leaves_behind_is_ended_and_counted(daemon: FakeDaemon) -> None:
    mark = a_mark()
    attempt = daemon.shell(f"setsid sleep {mark} & exit 0", grace_s=0.05)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert verdict.succeeded
    assert verdict.leftovers_killed == 1
    assert "left processes behind" in verdict.because
    assert carrying(mark) == []


def test_a_stopped_program_hears_term_too(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("trap 'exit 7' TERM; kill -STOP $$; exit 1", grace_s=20, max_s=0.1)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert (verdict.kind, verdict.exit_code) == ("timeout", 7)


def test_a_living_attempt_is_alive_and_says_whose(daemon: FakeDaemon) -> None:
    attempt = daemon.shell(f"sleep {a_mark()}")

    assert attempt.judge() == Alive(attempt.spawned.shim)
    attempt.signal_shim(signal.SIGTERM)
    daemon.end(attempt)
    assert isinstance(attempt.judge(), Dead)
