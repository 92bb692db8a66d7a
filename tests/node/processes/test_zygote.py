"""Claims about the zygote: its locks, its death, and what it leaves alone."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

from agent_node.evidence import Alive, Dead
from agent_node.job import ASK_MAX, RUN_ATTEMPT, encode_job
from agent_node.killing import kill_strays
from agent_node.processes import look_at, process_table
from agent_node.traces import holders_of
from agent_node.zygote_link import Zygote, ZygoteGone
from tests.node.processes.harness import Attempt, FakeDaemon, a_mark, wait_readable, wait_until


def test_only_the_shim_holds_its_lock_and_it_is_free_when_it_ends(daemon: FakeDaemon) -> None:
    """Run once with the daemon keeping its copy, once with inheritable descriptors: both seen."""
    attempt = daemon.shell("echo up; while ! test -e go; do sleep 0.01; done")
    wait_until(lambda: attempt.printed() == "up\n")

    assert holders_of(attempt.folder.shim_lock).found == {attempt.spawned.shim.pid}
    Path(attempt.folder.file("go")).touch()
    daemon.end(attempt)
    assert holders_of(attempt.folder.shim_lock).found == frozenset()
    with open(attempt.folder.shim_lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_only_the_program_holds_the_tree_lock(daemon: FakeDaemon) -> None:
    attempt = daemon.shell(f"echo up; exec sleep {a_mark()}")
    wait_until(lambda: attempt.printed() == "up\n")
    (holder,) = holders_of(attempt.folder.tree_lock).found
    seen = look_at(holder)

    assert seen is not None
    assert seen.ppid == attempt.spawned.shim.pid
    attempt.signal_shim(signal.SIGTERM)
    daemon.end(attempt)


def test_a_killed_zygote_takes_nothing_running_with_it(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("echo up; while ! test -e go; do sleep 0.01; done; exit 4")
    wait_until(lambda: attempt.printed() == "up\n")
    os.kill(daemon.zygote.pid, signal.SIGKILL)
    wait_readable(daemon.zygote.fileno())
    with pytest.raises(ZygoteGone):
        daemon.zygote.replies()

    daemon.zygote.start()
    again = daemon.begin(["true"])
    assert daemon.end(again) is not None
    assert attempt.judge() == Alive(attempt.spawned.shim)
    Path(attempt.folder.file("go")).touch()
    verdict = daemon.end(attempt)
    assert verdict is not None
    assert verdict.exit_code == 4


def test_no_spare_outlives_a_killed_zygote(daemon: FakeDaemon) -> None:
    daemon.end(daemon.begin(["true"]))
    zygote = daemon.zygote.pid
    family = {pid for pid, seen in process_table().items() if seen.ppid == zygote}
    assert family
    os.kill(zygote, signal.SIGKILL)
    wait_until(lambda: not any((now := look_at(pid)) and not now.zombie for pid in family))


def test_a_zygote_ends_with_its_daemon_and_running_shims_go_on(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("echo up; while ! test -e go; do sleep 0.01; done; exit 6")
    wait_until(lambda: attempt.printed() == "up\n")
    daemon.zygote.close()

    assert attempt.judge() == Alive(attempt.spawned.shim)
    Path(attempt.folder.file("go")).touch()
    verdict = daemon.end(attempt)
    assert verdict is not None
    assert verdict.exit_code == 6


def test_what_was_handed_to_a_zygote_that_died_first_is_proven_dead(daemon: FakeDaemon) -> None:
    daemon.end(daemon.begin(["true"]))
    stop(daemon.zygote.pid)  # first, so that the family grows no more
    family = family_of(daemon.zygote.pid)
    for pid in family:
        stop(pid)  # nobody takes work any more, and nobody has noticed
    job, folder = daemon.lay_out(["true"])
    daemon.zygote.hand_over(job, folder)
    attempt = Attempt(folder, job.token, None)  # type: ignore[arg-type]
    assert attempt.judge() == Alive(None, signed_in=False)  # the lock is on its way
    for pid in [*family, daemon.zygote.pid]:
        os.kill(pid, signal.SIGKILL)
    daemon.zygote.close()

    wait_until(lambda: isinstance(attempt.judge(), Dead))


def test_handing_over_to_a_dead_zygote_starts_nothing(daemon: FakeDaemon) -> None:
    os.kill(daemon.zygote.pid, signal.SIGKILL)
    wait_readable(daemon.zygote.fileno())
    job, folder = daemon.lay_out(["touch", "started"])

    with pytest.raises(ZygoteGone):
        daemon.zygote.hand_over(job, folder)
    assert isinstance(Attempt(folder, job.token, None).judge(), Dead)  # type: ignore[arg-type]


def test_the_zygote_inherits_no_lock_of_the_daemon(daemon: FakeDaemon, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with open(lock, "wb") as file:
        os.set_inheritable(file.fileno(), True)
        fcntl.flock(file, fcntl.LOCK_EX)
        daemon.zygote.start()
        daemon.end(daemon.begin(["true"]))
        assert holders_of(str(lock)).found == {os.getpid()}


def test_a_prefix_that_cannot_start_is_named() -> None:
    zygote = Zygote(prefix=("no-such-prefix",))

    with pytest.raises(ZygoteGone, match="no-such-prefix"):
        zygote.start()
    assert zygote.pid == 0


def test_a_prefix_may_change_what_runs_the_shims(tmp_path: Path) -> None:
    zygote = Zygote(prefix=("env", "BEHIND=prefix"))
    zygote.start()
    try:
        daemon = FakeDaemon(tmp_path, zygote)
        attempt = daemon.shell("tr '\\0' '\\n' </proc/$PPID/environ")
        daemon.end(attempt)
        assert "BEHIND=prefix" in attempt.printed().splitlines()
    finally:
        zygote.close()


def test_many_attempts_at_once_each_get_their_own_shim(daemon: FakeDaemon) -> None:
    attempts = [daemon.shell("while ! test -e go; do sleep 0.05; done") for _ in range(12)]

    assert len({attempt.spawned.shim for attempt in attempts}) == 12
    for attempt in attempts:
        Path(attempt.folder.file("go")).touch()
    assert all(daemon.end(attempt) for attempt in attempts)
    assert kill_strays(keep=[daemon.zygote.pid]) == frozenset()


@pytest.mark.parametrize("room", [-1, 0, 1, 200_000])
def test_a_job_of_any_length_arrives_whole(daemon: FakeDaemon, room: int) -> None:
    """Around the length that a message takes, and far beyond: Linux takes 128 KiB a variable.

    Guard: a longer job goes into a file. Without it the message is cut; seen.
    """
    job, _ = daemon.lay_out(["/bin/sh", "-c", COUNT], env={"ONE": "", "TWO": ""})
    left = max(ASK_MAX - len(RUN_ATTEMPT) - len(encode_job(job)) + room, room)
    env = {"ONE": "x" * (left // 2), "TWO": "y" * (left - left // 2)}
    attempt = daemon.begin(["/bin/sh", "-c", COUNT], env=env)
    daemon.end(attempt)
    assert attempt.printed() == f"{left}\n"


COUNT = "echo $((${#ONE} + ${#TWO}))"


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: b") T" in Path(f"/proc/{pid}/stat").read_bytes())


def family_of(zygote: int) -> list[int]:
    return [pid for pid, seen in process_table().items() if seen.ppid == zygote]
