"""Claims about what counts as proof that an attempt is dead."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from agent_node import cgroups, evidence, processes
from agent_node.attempts import AttemptFolder, create_folder
from agent_node.evidence import Alive, Dead, Leftovers, Unprovable, judge_attempt
from agent_node.job import SHIM_JSON
from agent_node.processes import Identity, Seen, identify, read_boot_id
from agent_node.traces import Search
from agent_node.ulid import fresh_ulid
from tests.node.processes.harness import FakeDaemon, a_mark, carrying, wait_until

NOBODY = "token-that-nobody-carries"


def a_folder(tmp_path: Path) -> AttemptFolder:
    return create_folder(str(tmp_path), fresh_ulid(), 1)


def sign_in(folder: AttemptFolder, *, boot_id: str, pid: int = 1, ticks: int = 1) -> None:
    entry = {"pid": pid, "start_ticks": ticks, "boot_id": boot_id, "token": NOBODY, "cgroup": None}
    folder.add(SHIM_JSON, json.dumps(entry).encode())


def test_an_attempt_without_anything_is_dead(tmp_path: Path) -> None:
    assert isinstance(judge_attempt(a_folder(tmp_path), NOBODY), Dead)


def test_a_held_shim_lock_is_life_even_before_the_shim_signs_in(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    lock = folder.take_shim_lock()

    assert judge_attempt(folder, NOBODY) == Alive(None, signed_in=False)
    os.close(lock)
    assert isinstance(judge_attempt(folder, NOBODY), Dead)


def test_a_shim_whose_entry_is_lost_is_known_by_its_lock(daemon: FakeDaemon) -> None:
    attempt = daemon.shell("rm ../*/shim.json; echo up; while ! test -e go; do sleep 0.01; done")
    wait_until(lambda: attempt.printed() == "up\n")

    assert attempt.judge() == Alive(attempt.spawned.shim, signed_in=False)
    Path(attempt.folder.file("go")).touch()
    daemon.end(attempt)


def test_a_tree_lock_held_by_somebody_unseen_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_folder(tmp_path)
    folder.add("tree.lock", b"")
    monkeypatch.setattr(evidence, "holders_of", lambda path: Search(frozenset(), frozenset()))
    holder = os.open(folder.tree_lock, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        assert isinstance(judge_attempt(folder, NOBODY), Unprovable)
    finally:
        os.close(holder)


def test_a_process_of_ours_that_cannot_be_read_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run once with the unreadable ones ignored: the attempt was then called dead."""
    folder = a_folder(tmp_path)
    folder.add("tree.lock", b"")
    hidden = Search(frozenset(), frozenset({os.getpid()}))
    monkeypatch.setattr(evidence, "carrying_token", lambda token: hidden)

    verdict = judge_attempt(folder, NOBODY)

    assert isinstance(verdict, Unprovable)
    assert str(os.getpid()) in verdict.why


def test_a_program_that_tidied_its_folder_is_not_dead_while_somebody_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is where it starts; with its files gone it ran beside its next attempt."""
    hidden = Search(frozenset(), frozenset({os.getpid()}))
    monkeypatch.setattr(evidence, "carrying_token", lambda token: hidden)
    shim = Identity(2**22, 1, read_boot_id())

    assert isinstance(judge_attempt(a_folder(tmp_path), NOBODY, shim=shim), Unprovable)


def test_who_was_born_before_the_shim_cannot_be_of_its_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_folder(tmp_path)
    folder.add("tree.lock", b"")
    me = identify(os.getpid())
    assert me is not None
    sign_in(folder, boot_id=read_boot_id(), pid=me.pid, ticks=me.start_ticks + 1)
    hidden = Search(frozenset(), frozenset({me.pid}))
    monkeypatch.setattr(evidence, "carrying_token", lambda token: hidden)

    assert isinstance(judge_attempt(folder, NOBODY), Dead)


@pytest.mark.parametrize(
    ("parent", "of", "proven"),
    [
        (77, 0, True),  # sshd of root, say: it started the session itself
        (66, 0, False),  # older than the shim: who adopts orphans where the node was started
        (77, os.getuid() or 1, False),
        (77, None, False),  # it is gone meanwhile: nothing is known
        (1, 0, False),  # init adopts orphans
        (os.getpid(), 0, False),  # and so may whoever started this node
    ],
)
def test_what_another_users_program_started_is_no_orphan_of_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parent: int, of: int | None, *, proven: bool
) -> None:
    """Without it each session by sshd hides from us, and an attempt that was cut off is PARKED.

    Run once without the look at the parent's age: a living orphan of a systemd of somebody else's
    was called dead, by a judge who came in by another way than the node.
    """
    folder = a_folder(tmp_path)
    folder.add("tree.lock", b"")
    sign_in(folder, boot_id=read_boot_id(), pid=4000, ticks=100)
    mine = os.getuid() or 1
    monkeypatch.setattr(os, "getuid", lambda: mine)
    monkeypatch.setattr(evidence, "owner_of", lambda path: mine)
    seen = {4242: Seen(parent, 2**40, zombie=False), 77: Seen(1, 200, zombie=False),
            66: Seen(1, 50, zombie=False), os.getpid(): Seen(1, 1, zombie=False)}  # fmt: skip
    monkeypatch.setattr(evidence, "process_table", lambda: seen)
    monkeypatch.setattr(evidence, "real_uid", lambda pid: mine if pid == 4242 else of)
    hidden = Search(frozenset(), frozenset({4242}))
    monkeypatch.setattr(evidence, "carrying_token", lambda token: hidden)

    assert isinstance(judge_attempt(folder, NOBODY), Dead) is proven


@pytest.mark.parametrize(("scope", "proven"), [
    ("user@1000.service/init.scope", True),
    ("user@1000.service/app.slice/agent-node.service", False),
    ("user@1001.service/init.scope", False),
    ("user@1000.service/app.slice/init.scope", False),
])  # fmt: skip
def test_what_systemd_keeps_beside_its_manager_of_our_services_is_not_of_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, *, proven: bool
) -> None:
    """Seen to fail, with a systemd in a container that was started again: `(sd-pam)`, child of a
    manager that was younger than the shim, made every attempt PARKED.
    """
    folder = a_folder(tmp_path)
    folder.add("tree.lock", b"")
    sign_in(folder, boot_id=read_boot_id(), pid=4000, ticks=100)
    seen = {73: Seen(72, 300, zombie=False), 72: Seen(1, 200, zombie=False)}
    hidden = Search(frozenset(), frozenset({73}))
    for name, stand_in in (
        ("process_table", lambda: seen), ("real_uid", lambda pid: 1000),
        ("owner_of", lambda path: 1000), ("carrying_token", lambda token: hidden),
        ("holders_of", lambda path: Search(frozenset(), frozenset())),
    ):  # fmt: skip
        monkeypatch.setattr(evidence, name, stand_in)
    (tmp_path / "73").mkdir()
    (tmp_path / "73" / "cgroup").write_text(f"1:pids:/\n0::/user.slice/user-1000.slice/{scope}\n")
    read = partial(cgroups.is_beside_manager, proc=str(tmp_path))
    monkeypatch.setattr(cgroups, "is_beside_manager", read)

    assert isinstance(judge_attempt(folder, NOBODY), Dead) is proven


def test_an_attempt_of_an_earlier_boot_is_dead(tmp_path: Path) -> None:
    verdict = judge_attempt(a_folder(tmp_path), NOBODY, claimed_boot="another-boot")

    assert isinstance(verdict, Dead)
    assert "restarted" in verdict.why


def test_a_forged_boot_in_the_folder_does_not_make_a_living_attempt_dead(
    daemon: FakeDaemon
) -> None:
    attempt = daemon.shell(f"echo up; sleep {a_mark()}")
    wait_until(lambda: attempt.printed() == "up\n")
    attempt.signal_shim(signal.SIGKILL)
    daemon.end(attempt)
    entry = json.loads(Path(attempt.folder.shim_json).read_text())
    Path(attempt.folder.shim_json).write_text(json.dumps({**entry, "boot_id": "another-boot"}))

    assert isinstance(attempt.judge(), Leftovers)
    assert isinstance(daemon.clear_all(attempt), Dead)


def test_the_program_of_a_killed_shim_is_found_by_its_lock(daemon: FakeDaemon) -> None:
    mark = a_mark()
    script = f"exec env -i $(command -v sh) -c 'echo up; $(command -v sleep) {mark}'"
    attempt = daemon.shell(script, env={"PATH": os.environ["PATH"]})
    wait_until(lambda: attempt.printed() == "up\n" and len(carrying(mark)) > 0)
    attempt.signal_shim(signal.SIGKILL)

    assert daemon.end(attempt) is None
    left = attempt.judge()
    assert isinstance(left, Leftovers)
    assert {each.pid for each in left.processes} >= set(carrying(mark))
    assert isinstance(daemon.clear_all(attempt), Dead)
    assert carrying(mark) == []


def test_the_program_of_a_killed_shim_is_found_by_its_token(daemon: FakeDaemon) -> None:
    mark = a_mark()
    attempt = daemon.shell(f"exec 3>&-; echo up; sleep {mark}")
    wait_until(lambda: attempt.printed() == "up\n" and len(carrying(mark)) > 0)
    attempt.signal_shim(signal.SIGKILL)
    daemon.end(attempt)

    assert isinstance(attempt.judge(), Leftovers)
    assert isinstance(daemon.clear_all(attempt), Dead)
    assert carrying(mark) == []


def test_a_reused_pid_is_not_the_process_it_was() -> None:
    me = identify(os.getpid())
    assert me is not None

    assert processes.is_alive(me)
    assert not processes.is_alive(me._replace(start_ticks=me.start_ticks - 1))
    assert processes.open_pidfd(me._replace(start_ticks=me.start_ticks - 1)) is None


def test_a_zombie_is_not_alive() -> None:
    pid = os.posix_spawnp("true", ["true"], os.environ)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    assert identify(pid) is None
    os.waitpid(pid, 0)
