"""Claims about how a program is started, fed, timed and reported on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from agent_node.job import STDIN
from tests.node.processes.harness import Attempt, FakeDaemon, wait_until


def test_a_program_that_exits_leaves_a_verdict_with_its_code(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("echo out; echo err >&2; exit 3")
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert (verdict.kind, verdict.exit_code, verdict.signal) == ("exited", 3, None)
    assert not verdict.succeeded
    assert verdict.stdout == (4, 0)
    assert attempt.printed() == "out\n"
    assert Path(attempt.folder.stderr).read_text() == "err\n"
    assert attempt.spawned.started_at is not None
    assert verdict.started_at is not None
    assert verdict.ended_at >= verdict.started_at


def test_exit_zero_is_success(daemon: FakeDaemon) -> None:
    verdict = daemon.end(daemon.begin(["true"]))

    assert verdict is not None
    assert verdict.succeeded
    assert verdict.leftovers_killed == 0


def test_a_program_killed_by_a_signal_is_told_apart_from_an_exit(daemon: FakeDaemon) -> None:
    verdict = daemon.end(daemon.shell("kill -SEGV $$"))

    assert verdict is not None
    assert (verdict.kind, verdict.exit_code, verdict.signal) == ("signalled", None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("argv", "more"),
    [(["no-such-program"], {}), (["true"], {"cwd": "/no/such/folder"}), (["/etc/passwd"], {}),
     (["true"], {"stdin": "not-there"}), (["true", "nul\0byte"], {})],
)
def test_a_program_that_cannot_start_says_why(
    daemon: FakeDaemon, argv: list[str], more: dict[str, str]
) -> None:
    attempt = daemon.begin(argv, **more)
    verdict = daemon.end(attempt)

    assert attempt.spawned.started_at is None
    assert verdict is not None
    assert verdict.kind == "could_not_start"
    assert verdict.started_at is None
    assert argv[0] in verdict.because


def test_the_task_comes_on_stdin_and_nothing_else_is_open(daemon: FakeDaemon) -> None:
    """Run once with the received descriptors inheritable: shim.lock then showed up here."""
    attempt = daemon.shell("cat; for fd in /proc/$$/fd/*; do readlink $fd; done")
    daemon.end(attempt)
    subject, *opened = attempt.printed().splitlines()

    assert json.loads(subject) == {"subject": "try"}
    kinds = {os.path.basename(name).partition(":")[0] for name in opened}
    assert kinds == {"task.json", "pipe", "tree.lock"}
    assert len(opened) == 4


def test_another_file_may_be_stdin(daemon: FakeDaemon) -> None:
    job, folder = daemon.lay_out(["cat"], stdin=STDIN)
    folder.add(STDIN, b"the body alone")
    daemon.end(Attempt(folder, job.token, daemon.zygote.spawn(job, folder)))

    assert Path(folder.stdout).read_text() == "the body alone"


def test_the_environment_is_exactly_the_jobs(daemon: FakeDaemon) -> None:
    env = {"PATH": os.environ["PATH"], "ODD": "\udcff"}
    attempt = daemon.begin(["env"], env=env)
    daemon.end(attempt)
    lines = Path(attempt.folder.stdout).read_bytes().splitlines()

    assert sorted(lines) == sorted([b"PATH=" + os.environb[b"PATH"], b"ODD=\xff"])


def test_the_program_has_a_session_of_its_own_and_default_signals(daemon: FakeDaemon) -> None:
    attempt = daemon.shell(
        "cut -d' ' -f1,6 /proc/$$/stat; exec grep -E 'Sig(Blk|Ign)' /proc/self/status"
    )
    daemon.end(attempt)
    first, *masks = attempt.printed().splitlines()
    pid, session = first.split()

    assert pid == session
    glibcs_own = 1 << 31 | 1 << 32  # its posix_spawn leaves its two internal signals ignored
    assert [int(line.split()[1], 16) & ~glibcs_own for line in masks] == [0, 0]


def test_a_program_over_its_time_is_ended_and_the_verdict_says_timeout(daemon: FakeDaemon) -> None:
    verdict = daemon.end(daemon.shell("sleep 9999", max_s=0.05))

    assert verdict is not None
    assert (verdict.kind, verdict.signal) == ("timeout", signal.SIGTERM)
    assert "longer than it may" in verdict.because


def test_a_program_that_ignores_term_is_killed_after_its_grace(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("trap '' TERM; while :; do sleep 0.01; done", max_s=0.05, grace_s=0.2)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert (verdict.kind, verdict.signal) == ("timeout", signal.SIGKILL)
    assert verdict.duration_s >= 0.25


def test_term_to_the_shim_stops_the_program_politely(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done")
    wait_until(lambda: attempt.printed() == "up\n")
    attempt.signal_shim(signal.SIGTERM)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert (verdict.kind, verdict.exit_code) == ("stopped", 5)
    assert attempt.printed() == "up\nbye\n"


def test_a_second_term_does_not_wait_for_the_grace(daemon: FakeDaemon) -> None:
    script = "trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done"
    attempt = daemon.shell(script, grace_s=9999)
    wait_until(lambda: attempt.printed() == "up\n")
    attempt.signal_shim(signal.SIGTERM)
    wait_until(lambda: "asked" in attempt.printed())
    attempt.signal_shim(signal.SIGTERM)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert (verdict.kind, verdict.signal) == ("stopped", signal.SIGKILL)


def test_a_shim_beats_for_a_program_that_does_not(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("while ! test -e go; do sleep 0.01; done", beat_s=0.05)
    wait_until(lambda: os.path.exists(attempt.folder.heartbeat))
    first = os.stat(attempt.folder.heartbeat).st_mtime_ns
    wait_until(lambda: os.stat(attempt.folder.heartbeat).st_mtime_ns > first)
    Path(attempt.folder.file("go")).touch()

    assert daemon.end(attempt) is not None


def test_everything_the_shim_writes_is_for_its_user_alone(daemon: FakeDaemon) -> None:
    attempt = daemon.begin(["true"])
    daemon.end(attempt)
    files = [entry for entry in os.scandir(attempt.folder.path) if entry.name != "task.json"]

    assert {entry.name for entry in files} == {
        "shim.json", "shim.lock", "tree.lock", "stdout.log", "stderr.log", "verdict.json"}
    assert {entry.stat().st_mode & 0o777 for entry in files} == {0o600}
    assert os.stat(attempt.folder.path).st_mode & 0o777 == 0o700


def test_a_flood_of_output_is_bounded_and_counted(daemon: FakeDaemon) -> None:
    size = 64 * 1024 * 1024
    attempt = daemon.shell(f"echo first; head -c {size} /dev/zero; echo last", output_cap=1_000_000)
    verdict = daemon.end(attempt)
    log = Path(attempt.folder.stdout).read_bytes()

    assert verdict is not None
    assert verdict.stdout.bytes == size + 11
    assert verdict.stdout.bytes - verdict.stdout.dropped == 1_000_000
    assert len(log) < 1_000_100
    assert log.startswith(b"first\n")
    assert log.endswith(b"last\n")
    assert f"{verdict.stdout.dropped} bytes dropped here".encode() in log
