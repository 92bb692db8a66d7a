"""A program whose first thread has ended is shown as a zombie, and works on: it is not dead."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_node import warden
from agent_node.attempts import create_folder
from agent_node.evidence import Dead, Leftovers
from agent_node.other_evidence import clearing
from agent_node.processes import identify, look_at
from agent_node.strict import JsonObject
from agent_node.traces import carrying_token
from agent_node.ulid import fresh_ulid
from tests.node.processes.harness import (
    FakeDaemon,
    a_headless_program,
    a_mark,
    carrying,
    wait_until,
)

WITHOUT_LOCK, WITHOUT_TOKEN = "os.closerange(3, 60)", "pass"


@pytest.mark.parametrize("first", [WITHOUT_LOCK, WITHOUT_TOKEN])
def test_a_program_without_its_first_thread_is_found_and_killed(
    daemon: FakeDaemon, first: str
) -> None:
    """Seen to fail before: with the token alone it was called dead while it went on writing, and
    with the lock alone it could neither be proven dead nor be killed."""
    mark = a_mark()
    bare = {"env": {"PATH": os.environ["PATH"]}} if first == WITHOUT_TOKEN else {}
    attempt = daemon.begin(a_headless_program(mark, first=first), **bare)
    wait_until(lambda: attempt.printed() == "up\n")
    attempt.signal_shim(signal.SIGKILL)
    daemon.end(attempt)

    left = attempt.judge()
    assert isinstance(left, Leftovers)
    assert [each.pid for each in left.processes] == carrying(mark) != []
    assert isinstance(daemon.clear_all(attempt), Dead)
    assert carrying(mark) == []


def test_its_shim_ends_it_when_its_time_is_up(daemon: FakeDaemon) -> None:
    """Seen to fail before: it was never killed, there was no verdict, and its slot stayed taken."""
    attempt = daemon.begin(a_headless_program(a_mark()), grace_s=0.05)
    wait_until(lambda: attempt.printed() == "up\n")
    attempt.signal_shim(signal.SIGTERM)
    verdict = daemon.end(attempt)

    assert verdict is not None
    assert (verdict.kind, verdict.survivors) == ("stopped", 0)


def test_it_is_no_zombie_while_a_thread_of_it_lives() -> None:
    with headless() as program:
        seen, known = look_at(program.pid), identify(program.pid)
        assert seen is not None
        assert (seen.headless, seen.zombie) == (True, False)
        assert known is not None
        program.kill()
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        seen = look_at(program.pid)
        assert seen is not None
        assert (seen.headless, seen.zombie) == (False, True)
        assert identify(program.pid) is None


def test_a_warden_ends_it_for_another_user(tmp_path: Path) -> None:
    """Seen to fail before: whoever tasks run as, its warden said that nobody was left."""
    token, folder = fresh_ulid(), create_folder(str(tmp_path), fresh_ulid(), 1)
    folder.add("tree.lock", b"")
    with headless(AGENT_ATTEMPT_TOKEN=token) as program:
        assert carrying_token(token).found == {program.pid}
        more: JsonObject = {"daemon": -1, "born": 0, "shims": [], "starters": []}
        said = warden.clear({**clearing(folder, token, None), **more})
        assert (said["killed"], said["left"]) == (1, [])
        assert program.wait() == -signal.SIGKILL


@contextmanager
def headless(**env: str) -> Iterator[subprocess.Popen[bytes]]:
    """One that nobody but this test minds, with its first thread gone."""
    words = a_headless_program(a_mark())
    with subprocess.Popen(words, env={**os.environ, **env}, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == b"up\n"
            yield program
        finally:
            program.kill()
