"""Another user's attempts: what proves their death and what never does, and what a warden does."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import other_user, warden
from agent_node.account import commands_for_root
from agent_node.attempts import AttemptFolder, create_folder
from agent_node.evidence import Alive, Dead, Unprovable, judge_attempt
from agent_node.other_evidence import Sight, Unseen, clearing, judge_other, sight_of
from agent_node.other_user import (
    FIRST_WORDS,
    NoOtherUser,
    OtherUser,
    find_other_user,
    may_reach,
    sudoers_line,
)
from agent_node.processes import Identity, identify, read_boot_id
from agent_node.strict import JsonObject
from agent_node.ulid import fresh_ulid
from agent_node.workplace import make_place, take_answer
from tests.node.test_removal import nested

GONE = Identity(2**22 + 1, 1, read_boot_id())
NOBODY = OtherUser("nobody", 65534, 65534, "/nonexistent")
SAW_NOBODY = Sight((), ())


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    """An attempt whose shim is dead; its program was started, for tree.lock is there."""
    made = create_folder(str(tmp_path), fresh_ulid(), 1)
    made.add("shim.json", json.dumps({**GONE._asdict(), "token": "t", "cgroup": None}).encode())
    made.add("tree.lock", b"")
    return made


def test_nothing_is_dead_that_no_warden_has_looked_at(folder: AttemptFolder) -> None:
    """Seen to fail with a missing sight taken for one that saw nobody."""
    assert isinstance(judge_other(folder), Unseen)
    assert isinstance(judge_other(folder, sight=SAW_NOBODY), Dead)


@pytest.mark.parametrize("sight", [Sight((7,), ()), Sight((), (7,))])
def test_who_is_left_and_who_cannot_be_seen_prove_nothing(
    folder: AttemptFolder, sight: Sight
) -> None:
    """Seen to fail with the hidden ones left out: what a program hides would then be dead."""
    judged = judge_other(folder, sight=sight)
    assert isinstance(judged, Unseen)
    assert "7" in judged.why


def test_a_held_lock_outweighs_whatever_a_warden_says(folder: AttemptFolder) -> None:
    lock = os.open(folder.tree_lock, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert isinstance(judge_other(folder, sight=SAW_NOBODY), Unseen)
    finally:
        os.close(lock)


def test_a_held_shim_lock_is_life_until_its_shim_is_known_to_be_dead(
    folder: AttemptFolder,
) -> None:
    lock = folder.take_shim_lock()
    try:
        assert isinstance(judge_other(folder, sight=SAW_NOBODY), Unseen)
        os.unlink(folder.shim_json)
        me = identify(os.getpid())
        assert judge_other(folder, shim=me, sight=SAW_NOBODY) == Alive(me)
        assert judge_other(folder, sight=SAW_NOBODY) == Alive(None, signed_in=False)
    finally:
        os.close(lock)


def test_an_earlier_boot_is_proof_enough(folder: AttemptFolder) -> None:
    assert isinstance(judge_other(folder, claimed_boot="another boot"), Dead)


@pytest.mark.parametrize(
    "reply",
    [None, {}, {"left": []}, {"left": [], "hidden": None}, {"left": ["1"], "hidden": []}],
)
def test_a_reply_that_says_less_than_it_should_is_no_sight(
    reply: JsonObject | None,
) -> None:
    assert sight_of(reply) is None


def test_processes_of_whom_the_shim_was_are_not_passed_over(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail when only the node's own user counts: a node that is not root saw nobody."""
    from agent_node import evidence
    from agent_node.traces import Search

    born = identify(os.getpid())
    assert born is not None
    Path(folder.shim_json).write_text(json.dumps(
        {**GONE._replace(start_ticks=born.start_ticks)._asdict(), "token": "t", "cgroup": None}))
    hidden = Search(frozenset(), frozenset({os.getpid()}))
    monkeypatch.setattr(evidence, "carrying_token", lambda token: hidden)
    monkeypatch.setattr(evidence, "real_uid", lambda pid: 4711)
    assert isinstance(judge_attempt(folder, "t"), Dead)
    monkeypatch.setattr(evidence, "owner_of", lambda path: 4711)
    assert isinstance(judge_attempt(folder, "t"), Unprovable)


@pytest.fixture
def token() -> Iterator[str]:
    """A token that a process of ours carries, in a session of its own, with a child of its own."""
    token = fresh_ulid()
    script = "import os, time; os.fork(); time.sleep(600)"
    started = subprocess.Popen([sys.executable, "-c", script], start_new_session=True,
                               env={"AGENT_ATTEMPT_TOKEN": token})  # fmt: skip
    yield token
    started.kill()
    started.wait()


def errand(folder: AttemptFolder, token: str) -> JsonObject:
    asked, me = clearing(folder, token, None), identify(os.getpid())
    assert me is not None
    more: JsonObject = {"daemon": -1, "born": me.start_ticks, "shims": [], "starters": []}
    return {**asked, **more}


def test_a_warden_ends_a_whole_tree_and_then_sees_nobody(
    folder: AttemptFolder, token: str
) -> None:
    asked = errand(folder, token)
    assert warden.look(asked)["left"], "it looks without ending anybody"
    said = warden.clear(asked)
    assert (said["left"], said["hidden"]) == ([], [])
    assert said["killed"] in (1, 2)


def test_a_program_that_hides_from_its_own_user_is_hidden_and_never_dead(
    folder: AttemptFolder,
) -> None:
    """Root sees all; anybody else gets `hidden`, which proves nothing."""
    if os.geteuid() != 0:
        pytest.skip("needs root: to look as another user")
    hides = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); time.sleep(600)"
    said = as_nobody(folder, hides)
    assert said["left"] == []
    assert said["hidden"] == [said["program"]]
    assert isinstance(judge_other(folder, sight=sight_of(said)), Unseen)


def as_nobody(folder: AttemptFolder, program: str) -> JsonObject:
    """What a warden that is nobody says about nobody's processes, and which one was started."""
    near, far = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            near.close()
            far.send(json.dumps(_look_as_nobody(folder, program)).encode())
            code = 0
        finally:
            os._exit(code)
    far.close()
    with near:
        assert select.select([near], [], [], 20)[0]
        said: JsonObject = json.loads(near.recv(65536))
    os.waitpid(pid, 0)
    os.kill(int(str(said["program"])), signal.SIGKILL)
    return said


def _look_as_nobody(folder: AttemptFolder, program: str) -> dict[str, warden.Json]:
    asked = errand(folder, "nobody carries this")
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    start = '/usr/bin/python3 -I -c "$1" >/dev/null 2>&1 & echo $!'
    ran = subprocess.run(["sh", "-c", start, "sh", program], capture_output=True, check=True)
    pid = int(ran.stdout)  # an orphan: no child of the warden's own
    while _can_read(pid):
        os.sched_yield()
    said = warden.look(asked)
    return {**said, "program": pid}


def _can_read(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb"):
            return True
    except PermissionError:
        return False


def test_a_warden_signals_exactly_whom_it_was_told_of() -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        known = identify(child.pid)
        assert known is not None
        later = known._replace(start_ticks=known.start_ticks + 1)
        asked = {**later._asdict(), "signals": [int(signal.SIGKILL)]}
        assert warden.signal_shim(asked) == {"sent": True}
        assert child.poll() is None, "the pid means somebody else by now"
        warden.signal_shim({**asked, **known._asdict()})
        assert child.wait() == -signal.SIGKILL
    finally:
        child.kill()


def test_a_warden_tidies_what_is_old_and_does_not_run(tmp_path: Path) -> None:
    old, running, young = (f"{fresh_ulid()}-1" for _ in range(3))
    for name in (old, running, young, "bin", "mine"):
        (tmp_path / name / "work").mkdir(parents=True)
        if name != young:
            os.utime(tmp_path / name, (0, 0))
    asked: JsonObject = {"folder": str(tmp_path), "running": [running], "older_than_s": 60}
    assert warden.tidy(asked) == {"removed": 1}
    assert {one.name for one in tmp_path.iterdir()} == {running, young, "bin", "mine"}


def test_a_warden_tidies_also_what_a_program_nested_deeply_or_linked(tmp_path: Path) -> None:
    """With `shutil.rmtree` the first was a RecursionError, and nothing was tidied after it."""
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    deep, linked = (f"{fresh_ulid()}-1" for _ in range(2))
    (tmp_path / linked).mkdir()
    (tmp_path / linked / "away").symlink_to(outside)
    asked: JsonObject = {"folder": str(tmp_path), "running": [], "older_than_s": 60}
    with nested(tmp_path / deep):
        for name in (deep, linked):
            os.utime(tmp_path / name, (0, 0))
        assert warden.tidy(asked) == {"removed": 2}
    with nested(tmp_path / f"{deep}.inputs"):
        warden.remove({"folders": [str(tmp_path / f"{deep}.inputs"), str(tmp_path / "nothing")]})
        assert sorted(one.name for one in tmp_path.rglob("*")) == ["kept", "outside"]


def test_a_warden_does_not_tidy_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that still runs may fill its old folder faster than it is emptied."""
    old = tmp_path / f"{fresh_ulid()}-1"
    (old / "work").mkdir(parents=True)
    (old / "work" / "file").touch()
    os.utime(old, (0, 0))
    monkeypatch.setattr(warden, "_TIDY_S", 0.0)
    asked: JsonObject = {"folder": str(tmp_path), "running": [], "older_than_s": 60}
    assert warden.tidy(asked) == {"removed": 0}
    warden.remove({"folders": [str(old)]})
    assert old.exists(), "nothing but the time kept it"
    monkeypatch.undo()
    assert warden.tidy(asked) == {"removed": 1}


def test_a_place_is_never_one_that_was_there(tmp_path: Path) -> None:
    make_place(f"{tmp_path}/run/a")
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileExistsError):
        make_place(f"{tmp_path}/run/a")


def test_what_a_program_calls_its_answer_is_copied_only_when_it_is_a_plain_file(
    tmp_path: Path,
) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    kept.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (place / "answer.json").symlink_to(secret)
    descriptor = os.open(kept, os.O_RDONLY)
    try:
        take_answer(str(place), descriptor)
    finally:
        os.close(descriptor)
    assert (kept / "answer.json").is_dir(), "which the node refuses by name"


def test_the_rule_of_sudoers_names_one_program_to_the_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(other_user, "python_for", lambda user: "/usr/bin/python3.11")
    line = sudoers_line("agent", NOBODY)
    assert line == ("agent ALL=(nobody) NOPASSWD: /usr/bin/python3.11 -I -S -c"
                    r" import os;exec(os.read(0\,65536))")
    assert "*" not in line


def test_root_is_told_commands_that_a_shell_takes_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    make, allow = commands_for_root("no-such-account")
    assert shlex.split(make)[0] == "useradd"
    words = shlex.split(allow)
    assert words[0] == "printf"
    assert FIRST_WORDS.replace(",", r"\,") in words[2]


@pytest.mark.parametrize(("name", "why"), [("root", "is root"), ("no-such-one", "has no user")])
def test_an_account_that_cannot_run_tasks_is_refused(name: str, why: str) -> None:
    with pytest.raises(NoOtherUser, match=why):
        find_other_user(name)


def test_reaching_a_file_takes_every_folder_above_it(tmp_path: Path) -> None:
    file = Path("/tmp/.").resolve() / f"reach-{fresh_ulid()}"
    file.mkdir(0o755)
    try:
        (file / "program").write_text("")
        (file / "program").chmod(0o755)
        assert may_reach(str(file / "program"), NOBODY, 0o001)
        file.chmod(0o700)
        assert not may_reach(str(file / "program"), NOBODY, 0o001)
        assert not may_reach(str(file / "gone"), NOBODY, 0o001)
    finally:
        (file / "program").unlink()
        file.rmdir()
