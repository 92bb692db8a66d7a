"""A folder goes whole, whatever modes its program left; nothing beyond it is touched."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_node.removal import MOUNTED, UNFINISHED, remove_folder
from tests.node.daemon.test_trouble import a_small_disk, as_root
from tests.node.processes.test_as_an_ordinary_user import NOBODY, as_nobody

DEEP = 1500  # beyond the calls that Python nests, and the files that a process may open


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_what_a_program_made_read_only_goes_and_what_it_points_to_stays() -> None:
    """Seen to fail with `shutil.rmtree`: all that lay in a folder of 0555 stayed."""

    def act() -> None:
        with tempfile.TemporaryDirectory(dir="/tmp") as name:
            place = Path(name)
            outside, work = place / "outside", place / "tasks" / "task" / "1" / "work"
            outside.mkdir()
            (outside / "kept").write_text("kept")
            for inner in (work / "read-only", work / "closed" / "deeper"):
                inner.mkdir(parents=True)
                (inner / "file").write_text("x")
            (work / "linked").symlink_to(outside)
            (work / "dangling").symlink_to("nowhere")
            (work / "twin").hardlink_to(outside / "kept")
            (outside / "kept").chmod(0o400)
            outside.chmod(0o500)
            (work / "closed").chmod(0)
            for path in (work / "read-only", work, work.parent, work.parent.parent):
                path.chmod(0o555)
            assert remove_folder(f"{place}/tasks", "task") is None
            assert os.listdir(place / "tasks") == []
            assert (mode_of(outside), mode_of(outside / "kept")) == (0o500, 0o400)
            assert os.listdir(outside) == ["kept"]

    as_nobody(act)


@contextmanager
def nested(top: Path) -> Iterator[None]:
    """Folders within folders with a file in the last; whatever is left goes at the end."""
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    try:
        yield
    finally:  # pytest itself could not: it would end in a RecursionError
        subprocess.run(["rm", "-rf", top], check=True)


@as_root
def test_what_belongs_to_somebody_else_stays_and_keeps_nothing_else() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        theirs, mine = place / "tasks" / "task" / "1" / "theirs", place / "tasks" / "task" / "mine"
        theirs.mkdir(parents=True)
        mine.mkdir()
        for path in (place, *(place / "tasks").rglob("*"), place / "tasks"):
            os.chown(path, NOBODY, NOBODY)
        for folder in (theirs, mine):
            (folder / "file").write_text("x")
        os.chown(theirs, 0, 0)

        def act() -> None:
            assert remove_folder(f"{place}/tasks", "task") == "Permission denied"

        as_nobody(act)
        left = sorted(str(path.relative_to(place)) for path in (place / "tasks").rglob("*"))
        assert left == ["tasks/task", "tasks/task/1", "tasks/task/1/theirs",
                        "tasks/task/1/theirs/file"]  # fmt: skip
        assert mode_of(theirs) == 0o755


@as_root
def test_what_is_mounted_in_it_is_left_alone(tmp_path: Path) -> None:
    """Seen to fail with `shutil.rmtree`: it emptied what was mounted there."""
    inner = tmp_path / "task" / "1"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    with a_small_disk(inner / "disk", "1m") as disk:
        (disk / "theirs").write_text("x")
        disk.chmod(0o500)
        assert remove_folder(str(tmp_path), "task") == MOUNTED
        assert os.listdir(disk) == ["theirs"]
        assert mode_of(disk) == 0o500
        assert os.listdir(inner) == ["disk"]
    assert remove_folder(str(tmp_path), "task") is None
    assert os.listdir(tmp_path) == []


def test_folders_within_folders_go_however_deep_they_are(tmp_path: Path) -> None:
    """Seen to fail with `shutil.rmtree`: it ended in a RecursionError, and so did the daemon."""
    with nested(tmp_path / "task"):
        assert remove_folder(str(tmp_path), "task") is None
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_in_its_place_stays(tmp_path: Path, kind: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    if kind == "file":
        (tmp_path / "task").touch()
    else:
        (tmp_path / "task").symlink_to(tmp_path / "outside")
    assert remove_folder(str(tmp_path), "task") == "Not a directory"
    assert sorted(os.listdir(tmp_path)) == ["outside", "task"]
    assert os.listdir(tmp_path / "outside") == ["kept"]


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_folder(str(tmp_path), "task") is None
    assert remove_folder(str(tmp_path / "tasks"), "task") is None


def test_whoever_waits_for_it_waits_no_longer_than_that(tmp_path: Path) -> None:
    """Seen to fail: as long as a program nested folders faster than they went, the daemon stood."""
    (tmp_path / "task").mkdir()
    at, looks = os.open(tmp_path / "task", os.O_RDONLY), 0

    def goes_deeper() -> bool:
        """At each look there are two folders more, as of a program that still runs in there."""
        nonlocal at, looks
        looks += 1
        for _ in range(2):
            os.mkdir("d", dir_fd=at)
            inner = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        return looks > 200

    goes_deeper()
    assert remove_folder(str(tmp_path), "task", goes_deeper) == UNFINISHED
    os.close(at)
    assert remove_folder(str(tmp_path), "task") is None


def test_where_the_tasks_lie_on_another_disk_their_folders_go_as_well(tmp_path: Path) -> None:
    """Seen to fail: a link in place of tasks/ kept every old task for ever."""
    (tmp_path / "large" / "task" / "1").mkdir(parents=True)
    (tmp_path / "tasks").symlink_to(tmp_path / "large")
    assert remove_folder(str(tmp_path / "tasks"), "task") is None
    assert os.listdir(tmp_path / "large") == []
