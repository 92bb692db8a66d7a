"""A folder that lies ready is taken by one rename, and only as it was made; else it is left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_node import spare_folder
from agent_node.attempts import AttemptExists, list_attempts
from agent_node.errors import BadInput
from agent_node.spare_folder import Folders, is_taken
from agent_node.timers import Timers
from agent_node.ulid import fresh_ulid
from agent_node.upkeep import SPARE_WAIT_S, Upkeep
from tests.builders import FakeClock, a_clock
from tests.node.wire.talking import a_home


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """With a spare."""
    folders = Folders(str(tmp_path))
    folders.make_spare()
    return folders


def inode(path: Path | str) -> int:
    return os.lstat(path).st_ino


def everything(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def test_a_first_attempt_takes_the_spare_and_nothing_is_left_of_it(
    tmp_path: Path, folders: Folders
) -> None:
    uid, spare = fresh_ulid(), inode(tmp_path / ".next" / "1")
    folder = folders.create(uid, 1)
    assert (folder.path, folder.uid, folder.n) == (f"{tmp_path}/{uid}/1", uid, 1)
    assert inode(folder.path) == spare
    assert everything(tmp_path) == [uid, f"{uid}/1"]
    assert [path.stat().st_mode & 0o7777 for path in (tmp_path / uid, tmp_path / uid / "1")] == [
        0o700, 0o700]  # fmt: skip
    assert not folders.has_spare


def test_a_spare_is_no_attempt_and_nobodys_task(tmp_path: Path, folders: Folders) -> None:
    assert everything(tmp_path) == [".next", ".next/1"]
    assert list(list_attempts(str(tmp_path))) == []
    with pytest.raises(BadInput):
        folders.create(".next", 1)
    assert folders.has_spare


def test_without_a_spare_and_for_later_attempts_folders_are_made_as_ever(tmp_path: Path) -> None:
    """Seen to fail when any attempt takes the spare: the second one would begin as the first."""
    folders, uid = Folders(str(tmp_path)), fresh_ulid()
    folders.create(uid, 1)
    folders.make_spare()
    folders.create(uid, 2)
    assert everything(tmp_path) == [".next", ".next/1", uid, f"{uid}/1", f"{uid}/2"]
    assert folders.has_spare
    other = fresh_ulid()
    assert folders.create(other, 2).path == f"{tmp_path}/{other}/2"
    assert folders.has_spare


def test_an_empty_folder_of_the_task_is_taken(tmp_path: Path, folders: Folders) -> None:
    uid, spare = fresh_ulid(), inode(tmp_path / ".next" / "1")
    (tmp_path / uid).mkdir()
    assert inode(folders.create(uid, 1).path) == spare


def test_no_attempt_is_run_over_evidence(tmp_path: Path, folders: Folders) -> None:
    """Seen to fail when what stands in the way is removed for the spare."""
    uid = fresh_ulid()
    (tmp_path / uid / "1").mkdir(parents=True)
    (tmp_path / uid / "1" / "shim.json").write_text("somebody's")
    with pytest.raises(AttemptExists):
        folders.create(uid, 1)
    assert (tmp_path / uid / "1" / "shim.json").read_text() == "somebody's"


def test_what_a_task_left_beside_stays(tmp_path: Path, folders: Folders) -> None:
    uid = fresh_ulid()
    (tmp_path / uid / "2").mkdir(parents=True)
    folders.create(uid, 1)
    assert everything(tmp_path) == [".next", ".next/1", uid, f"{uid}/1", f"{uid}/2"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_a_file_in_the_tasks_place_is_not_replaced(
    tmp_path: Path, folders: Folders, kind: str
) -> None:
    uid, elsewhere = fresh_ulid(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        (tmp_path / uid).symlink_to(elsewhere)
    else:
        (tmp_path / uid).touch()
    before = inode(tmp_path / uid)
    with pytest.raises(OSError, match=uid):
        folders.create(uid, 1)
    assert inode(tmp_path / uid) == before
    assert list(elsewhere.iterdir()) == []


# A spare that is no longer as it was made.


def put_into_the_inner(spare: Path) -> None:
    (spare / "1" / "answer.json").write_text("planted")


def put_into_the_outer(spare: Path) -> None:
    (spare / "2").mkdir()


def open_it_to_others(spare: Path) -> None:
    (spare / "1").chmod(0o777)


def make_another_inner(spare: Path) -> None:
    (spare / "1").rmdir()
    (spare / "1").mkdir(mode=0o700)


def make_another(spare: Path) -> None:
    (spare / "1").rmdir()
    spare.rmdir()
    (spare / "1").mkdir(mode=0o700, parents=True)


def lay_a_link(spare: Path) -> None:
    spare.rename(spare.with_name("moved"))
    spare.symlink_to(spare.with_name("moved"))


def lay_a_link_inside(spare: Path) -> None:
    (spare / "1").rename(spare.with_name("moved"))
    (spare / "1").symlink_to(spare.with_name("moved"))


@pytest.mark.parametrize("tamper", [
    put_into_the_inner, put_into_the_outer, open_it_to_others, make_another_inner, make_another,
    lay_a_link, lay_a_link_inside,
])  # fmt: skip
def test_a_spare_that_somebody_changed_is_not_used(
    tmp_path: Path, folders: Folders, tamper: Callable[[Path], None]
) -> None:
    """Seen to fail when it is not compared."""
    tamper(tmp_path / ".next")
    before, uid = everything(tmp_path), fresh_ulid()
    folder = folders.create(uid, 1)
    assert os.listdir(folder.path) == []
    assert os.lstat(folder.path).st_mode & 0o7777 == 0o700
    assert everything(tmp_path) == sorted([*before, uid, f"{uid}/1"])
    assert not folders.has_spare


def test_the_times_of_a_spare_are_put_back_so_that_any_change_sets_others(
    tmp_path: Path, folders: Folders
) -> None:
    """Kernels before 6.13 tell the time of a change by a tick of some milliseconds: what comes in
    the one in which the spare was made would set the times that it has. Seen to fail without.
    """
    for path in (tmp_path / ".next", tmp_path / ".next" / "1"):
        found = os.lstat(path)
        assert found.st_ctime_ns - found.st_mtime_ns > 900_000_000


@pytest.mark.parametrize("nth", [0, 1, 2], ids=["at once", "half sealed", "sealed"])
@pytest.mark.parametrize("where", [".next/answer.json", ".next/1/answer.json"])
def test_what_comes_while_a_spare_is_made_is_in_no_attempts_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int, where: str
) -> None:
    """Seen to fail: what somebody put there between the two steps was sealed in, and taken for
    what the next attempt left.
    """
    folders, seals = Folders(str(tmp_path)), 0
    utime = os.utime

    def plants(path: str, *, ns: tuple[int, int], follow_symlinks: bool) -> None:
        nonlocal seals
        if seals == nth:
            (tmp_path / where).write_text("planted")
        utime(path, ns=ns, follow_symlinks=follow_symlinks)
        seals += 1
        if seals == nth == 2:
            (tmp_path / where).write_text("planted")

    monkeypatch.setattr(os, "utime", plants)
    folders.make_spare()
    monkeypatch.undo()
    uid = fresh_ulid()
    folders.create(uid, 1)
    assert list((tmp_path / uid).iterdir()) == [tmp_path / uid / "1"]
    assert list((tmp_path / uid / "1").iterdir()) == []
    assert (tmp_path / where).exists()


def test_a_spare_that_is_gone_costs_nothing(tmp_path: Path, folders: Folders) -> None:
    (tmp_path / ".next" / "1").rmdir()
    (tmp_path / ".next").rmdir()
    uid = fresh_ulid()
    folders.create(uid, 1)
    assert everything(tmp_path) == [uid, f"{uid}/1"]


# Making one.


@pytest.mark.parametrize("left", ["whole", "half", "none"])
def test_what_an_earlier_daemon_left_is_never_used_and_replaced_by_one(
    tmp_path: Path, left: str
) -> None:
    if left != "none":
        (tmp_path / ".next").mkdir()
    if left == "whole":
        (tmp_path / ".next" / "1").mkdir(mode=0o777)
    before = everything(tmp_path)
    folders, uid = Folders(str(tmp_path)), fresh_ulid()
    assert not folders.has_spare
    folders.create(uid, 1)
    assert everything(tmp_path) == [*before, uid, f"{uid}/1"]
    folders.make_spare()
    folders.make_spare()
    assert everything(tmp_path) == [".next", ".next/1", uid, f"{uid}/1"]
    assert os.lstat(tmp_path / ".next" / "1").st_mode & 0o7777 == 0o700
    assert folders.has_spare


@pytest.mark.parametrize("tamper", [put_into_the_inner, put_into_the_outer, lay_a_link])
def test_what_somebody_put_there_is_never_removed(
    tmp_path: Path, folders: Folders, tamper: Callable[[Path], None]
) -> None:
    """Seen to fail when a link is followed on the way: what it leads to would be emptied."""
    tamper(tmp_path / ".next")
    before = {path: inode(path) for path in tmp_path.rglob("*") if path.name != "1"}
    folders.make_spare()
    assert not folders.has_spare
    assert {path: inode(path) for path in tmp_path.rglob("*") if path.name != "1"} == before
    if tamper is not put_into_the_outer:
        assert (tmp_path / ".next" / "1").exists()


def test_what_is_not_a_daemons_in_the_spares_place_is_told(tmp_path: Path) -> None:
    """`agent-node doctor` says so; an empty place, an empty spare and half of one are usual."""
    tasks, spare = str(tmp_path), tmp_path / ".next"
    usual = [is_taken(tasks)]
    spare.mkdir()
    usual.append(is_taken(tasks))
    (spare / "1").mkdir()
    usual.append(is_taken(tasks))
    assert usual == [False] * 3
    (spare / "1" / "note").write_text("x")
    assert is_taken(tasks)
    (spare / "1" / "note").unlink()
    (spare / "2").mkdir()
    assert is_taken(tasks)
    (spare / "1").rmdir()
    (spare / "2").rmdir()
    (spare / "1").symlink_to(tmp_path)
    assert is_taken(tasks)
    (spare / "1").unlink()
    spare.rmdir()
    spare.write_text("x")
    assert is_taken(tasks)
    spare.unlink()
    spare.symlink_to(tmp_path)
    assert is_taken(tasks)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("at", [0, 1])
def test_a_disk_that_takes_no_spare_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    number: int, at: int,
) -> None:  # fmt: skip
    real, made = os.mkdir, list[str]()

    def full(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        made.append(path)
        if len(made) > at:
            raise OSError(number, os.strerror(number))
        real(path, mode, dir_fd=dir_fd)

    folders = Folders(str(tmp_path))
    with monkeypatch.context() as disk:
        disk.setattr(os, "mkdir", full)
        folders.make_spare()
    assert (len(made), folders.has_spare) == (at + 1, False)
    folders.create(fresh_ulid(), 1)
    folders.make_spare()
    assert folders.has_spare
    assert [path.name for path in tmp_path.glob(".*")] == [".next"]
    assert capfd.readouterr() == ("", "")


def test_a_rename_that_the_disk_refuses_leaves_the_longer_way(
    tmp_path: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    monkeypatch.setattr(spare_folder, "failpoint", refuse)
    uid = fresh_ulid()
    folders.create(uid, 1)
    assert everything(tmp_path) == [".next", ".next/1", uid, f"{uid}/1"]


# When one is made.


class Node:
    """The upkeep of a daemon whose runs and news are given by hand, as is its clock."""

    def __init__(self, home: Path) -> None:
        self.clock: FakeClock = a_clock()
        self.timers, self.runs, self.came = Timers(self.clock), list[str](), False
        place = a_home(home)
        self.folders = Folders(str(place.tasks))
        dispatcher = SimpleNamespace(runs=self.runs, folders=self.folders, owes_starts=False)
        self.upkeep = Upkeep(
            cast("Any", SimpleNamespace(unraised=0)), cast("Any", dispatcher), self.timers, place,
            lambda: self.came,
        )  # fmt: skip

    def passes(self, seconds: float) -> bool:
        """Whether a spare is there when these have passed."""
        self.clock.advance(seconds)
        self.timers.run_due()
        return self.folders.has_spare

    @property
    def sets_no_timer(self) -> bool:
        return self.timers.wait_s(999) == 999


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "iris")


def test_a_node_at_rest_makes_a_spare_a_moment_after_the_last_change_and_then_rests(
    node: Node,
) -> None:
    """Seen to fail when the timer of an earlier change counts, and when each change sets one."""
    node.upkeep.after_changes()
    node.upkeep.after_changes()
    assert not node.passes(SPARE_WAIT_S * 0.6)
    node.upkeep.after_changes()
    assert not node.passes(SPARE_WAIT_S * 0.6)
    assert node.passes(SPARE_WAIT_S * 1.2)
    assert node.sets_no_timer
    node.upkeep.after_changes()
    assert node.sets_no_timer


def test_nothing_is_made_where_something_runs_or_came(node: Node) -> None:
    """Seen to fail when either is not asked: what came would wait for the disk."""
    node.runs.append("a run")
    node.upkeep.after_changes()
    assert node.sets_no_timer
    node.runs.clear()
    node.upkeep.after_changes()
    node.came = True
    assert not node.passes(SPARE_WAIT_S)
    node.came = False
    node.runs.append("what came")
    assert not node.passes(SPARE_WAIT_S)
    assert node.sets_no_timer
    node.runs.clear()
    node.upkeep.after_changes()
    assert node.passes(SPARE_WAIT_S)


def test_a_disk_that_says_no_is_asked_again_at_the_next_change_alone(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as disk:
        disk.setattr(spare_folder, "SPARE", "not/there")
        disk.setattr(node.folders, "_spare", "/proc/not/there")
        node.upkeep.after_changes()
        assert not node.passes(SPARE_WAIT_S)
        assert node.sets_no_timer
    node.upkeep.after_changes()
    assert node.passes(SPARE_WAIT_S)
