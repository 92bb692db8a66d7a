"""What a node that is not root sees of the processes of its own user: a zombie hides nothing."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_node import evidence, traces
from agent_node.attempts import AttemptFolder, create_folder
from agent_node.evidence import Dead, Evidence, Leftovers, Unprovable, judge_attempt
from agent_node.processes import Seen, is_ending
from agent_node.traces import Search, carrying_token, holders_of
from agent_node.ulid import fresh_ulid

NOBODY = 65534


def as_nobody(act: Callable[[], None]) -> None:
    """In a process of its own, which root turns into nobody's. What it asserts is told here."""
    near, far = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            act()
            code = 0
        except BaseException as error:  # noqa: BLE001 - told to the test, which fails by it
            os.write(far, repr(error).encode()[:4096])
        finally:
            os._exit(code)
    os.close(far)
    with os.fdopen(near, "rb") as told:
        said = told.read().decode()
    assert os.waitpid(pid, 0)[1] == 0, said


def as_an_ordinary_user(claim: Callable[[AttemptFolder], None]) -> None:
    """The same with an attempt of that user."""

    def act() -> None:
        with tempfile.TemporaryDirectory(dir="/tmp") as place:
            claim(an_attempt(place))

    as_nobody(act)


def an_attempt(place: str) -> AttemptFolder:
    """Its shim is gone, and its program was started: tree.lock is there."""
    folder = create_folder(place, fresh_ulid(), 1)
    folder.add("tree.lock", b"")
    return folder


def test_a_zombie_of_its_own_user_hides_nothing() -> None:
    """Seen to fail before: one zombie, anybody's of that user, and each attempt that was cut off
    was PARKED, for only root may see that a zombie has nothing."""

    def claim(folder: AttemptFolder) -> None:
        zombie = os.fork()
        if zombie == 0:
            os._exit(0)
        os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
        for search in (carrying_token("nobody has it"), holders_of(folder.tree_lock)):
            assert zombie not in search.found | search.unreadable | search.ending
        os.waitpid(zombie, 0)

    as_an_ordinary_user(claim)


def test_what_is_being_taken_down_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel closes a process to its user before it has let go of its memory, which may take a
    second; nothing runs in it meanwhile. Who only hides is told apart."""

    def refuses(thread: str) -> bool:
        raise PermissionError(thread)

    me = os.getpid()
    monkeypatch.setattr(traces, "all_pids", lambda: iter([me]))
    assert traces._search(refuses) == Search(frozenset(), frozenset({me}), frozenset())
    monkeypatch.setattr(traces, "is_ending", lambda pid: True)
    assert traces._search(refuses) == Search(frozenset(), frozenset(), frozenset({me}))


def test_whose_first_thread_is_closed_to_us_is_asked_by_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To its own user the kernel closes a first thread that has ended; the others run, and say it.
    Who is closed to us whole is unreadable, and no word for dead."""
    me, left = os.getpid(), threading.Event()
    other = threading.Thread(target=left.wait)
    other.start()

    def refuses(thread: str) -> bool:
        if thread == f"/proc/{me}":
            raise PermissionError(thread)
        return True

    monkeypatch.setattr(traces, "all_pids", lambda: iter([me]))
    try:
        monkeypatch.setattr(traces, "look_at", lambda pid: Seen(1, 1, zombie=False, headless=True))
        assert traces._search(refuses) == Search(frozenset({me}), frozenset())
        monkeypatch.setattr(traces, "look_at", lambda pid: Seen(1, 1, zombie=False))
        assert traces._search(refuses) == Search(frozenset(), frozenset({me}))
    finally:
        left.set()
        other.join()


def test_a_process_that_runs_is_not_being_taken_down() -> None:
    assert not is_ending(os.getpid())
    ended = os.posix_spawnp("true", ["true"], os.environ)
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    assert is_ending(ended)
    os.waitpid(ended, 0)
    assert is_ending(ended)


def test_a_lock_that_goes_with_its_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail before: the attempt was parked by whoever looked in that second."""
    folder = an_attempt(str(tmp_path))
    nobody: frozenset[int] = frozenset()

    def judged(ending: frozenset[int]) -> Evidence:
        monkeypatch.setattr(evidence, "holders_of", lambda path: Search(nobody, nobody, ending))
        return judge_attempt(folder, "nobody has it")

    monkeypatch.setattr(evidence, "carrying_token", lambda token: Search(nobody, nobody))
    holder = os.open(folder.tree_lock, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert isinstance(judged(nobody), Unprovable)
        left = judged(frozenset({os.getpid()}))
        assert isinstance(left, Leftovers)
        assert left.processes == (), "nobody is killed for it"
    finally:
        os.close(holder)
    assert isinstance(judged(frozenset({os.getpid()})), Dead)
