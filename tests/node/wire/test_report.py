"""fleet-status.json is replaced in one step, seldom, and at once where it takes `idle` back."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent_node import report as module
from agent_node.home import Home
from agent_node.report import Reporter, report_or_withdraw, sweep_strays, write_report
from tests.builders import FakeClock, a_clock


class Node:
    """A node whose report can be set by hand, and what was written of it."""

    def __init__(self, place: Path) -> None:
        self.home, self.clock = Home(place), a_clock()
        self.idle, self.built = False, 0
        self.reporter = Reporter(self.home, self.clock, self.build)

    def build(self) -> dict[str, Any]:
        self.built += 1
        since = "2026-03-10T11:00:00Z" if self.idle else None
        return {"idle": self.idle, "idle_since": since, "number": self.built}

    def rest(self) -> None:
        """Idle, and said so; the denial lies ready."""
        self.idle = True
        assert self.reporter.turn()
        assert self.reporter.wait_s() == 0
        assert not self.reporter.turn()
        self.idle = False

    def beside(self) -> list[str]:
        """What lies beside the report."""
        return [name for name in os.listdir(self.home.root) if name != self.home.status.name]

    def on_disk(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.home.status.read_text(encoding="utf-8"))
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_first_report_is_due_at_once(node: Node) -> None:
    assert node.reporter.wait_s() == 0
    assert node.reporter.turn()
    assert node.on_disk()["number"] == 1
    assert stat.S_IMODE(node.home.status.stat().st_mode) == 0o600


def test_changes_within_a_second_become_one_write(node: Node) -> None:
    node.reporter.turn()
    for _ in range(50):
        node.reporter.changed()
        assert not node.reporter.turn()
        node.clock.advance(0.01)
    assert node.reporter.wait_s() == pytest.approx(0.5)
    node.clock.advance(0.5)
    assert node.reporter.turn()
    assert node.on_disk()["number"] == 2


def test_without_a_change_it_is_written_every_thirty_seconds(node: Node) -> None:
    node.reporter.turn()
    node.clock.advance(29.9)
    assert not node.reporter.turn()
    node.clock.advance(0.1)
    assert node.reporter.turn()


def test_what_takes_idle_back_is_written_before_anything_else_happens(node: Node) -> None:
    """Guard: the write in `changed`. Without it a node that runs looks idle for a second; seen."""
    node.idle = True
    node.reporter.turn()
    node.idle = False
    node.reporter.changed()
    assert node.on_disk()["idle"] is False
    written = node.built
    node.reporter.changed()
    assert node.built == written, "the next change is gathered as usual"


def test_idle_is_taken_back_by_one_rename_and_the_rest_follows_in_a_second(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: what lies ready is synced when it is made; taking back syncs and builds nothing."""
    synced: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", synced.append)
        node.rest()
        assert len(synced) == 3, "the report, its folder, the denial"
        before = node.on_disk()
        (ready,) = node.beside()
        assert stat.S_IMODE((node.home.root / ready).stat().st_mode) == 0o600
        node.clock.advance(20)
        node.reporter.deny_idle()
        assert len(synced) == 3
    assert node.on_disk() == before | {"idle": False, "idle_since": None}
    assert node.built == 1
    assert node.beside() == []
    assert node.home.status.stat().st_nlink == 1
    assert node.reporter.wait_s() == pytest.approx(1.0)
    node.clock.advance(1)
    assert node.reporter.turn()
    assert node.on_disk()["number"] == 2


def test_whatever_makes_a_node_busy_takes_idle_back_the_same_way(node: Node) -> None:
    node.rest()
    (ready,) = node.beside()
    inode = (node.home.root / ready).stat().st_ino
    node.reporter.changed()
    assert node.home.status.stat().st_ino == inode
    assert node.on_disk()["idle"] is False


@pytest.mark.parametrize("trouble", ["gone", "renamed"])
def test_a_denial_that_cannot_be_used_is_written_the_long_way(
    node: Node, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Guard: the answer of `_denied`. Without it the file says idle while a program runs; seen."""
    node.rest()
    (ready,) = node.beside()
    if trouble == "gone":
        (node.home.root / ready).unlink()
    else:
        failed: list[int] = []
        real = os.rename

        def rename(*names: Any, **folders: Any) -> None:
            if not failed:
                failed.append(1)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(*names, **folders)

        monkeypatch.setattr(os, "rename", rename)
    node.reporter.deny_idle()
    assert node.on_disk() == {"idle": False, "idle_since": None, "number": 2}
    assert node.beside() == []


def test_a_denial_serves_the_report_it_was_made_for_alone(node: Node) -> None:
    """Guard: `_forget_denial` in `write_now`. Without it an old one stands there later; seen."""
    node.rest()
    (old,) = node.beside()
    node.clock.advance(30)
    node.rest()
    (new,) = node.beside()
    assert new != old
    node.reporter.deny_idle()
    assert node.on_disk() == {"idle": False, "idle_since": None, "number": 2}


def test_a_node_that_is_not_idle_keeps_nothing_ready_and_nothing_open(node: Node) -> None:
    """Guard: the close in `_forget_denial`; the report that was denied lives as long as it is open.

    Without it a daemon has one more file open for each time that work came; seen.
    """
    node.rest()
    had = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        node.reporter.deny_idle()
        node.clock.advance(1)
        assert node.reporter.turn()
        assert node.beside() == []
        node.clock.advance(30)
        node.rest()
    assert len(os.listdir("/proc/self/fd")) == had
    node.reporter.write_now()
    assert node.beside() == []
    assert len(os.listdir("/proc/self/fd")) == had - 1


def test_a_disk_that_takes_no_denial_stops_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.idle = True
    node.reporter.turn()

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert not node.reporter.turn()
    assert node.reporter.wait_s() == pytest.approx(30), "not tried again before the next report"
    assert node.beside() == []
    assert "denial_unwritten" in capsys.readouterr().err
    node.idle = False
    node.reporter.deny_idle()
    assert node.on_disk()["idle"] is False


def test_a_full_disk_does_not_keep_idle_from_being_taken_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.rest()

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        node.reporter.deny_idle()
        node.clock.advance(1)
        assert node.reporter.turn()
    assert node.on_disk()["idle"] is False


def test_an_idle_left_by_an_earlier_daemon_is_taken_back_at_once_too(node: Node) -> None:
    write_report(node.home, {"idle": True})
    node.reporter.changed()
    assert node.on_disk()["idle"] is False


def test_a_change_that_leaves_it_idle_waits_its_turn(node: Node) -> None:
    node.idle = True
    node.reporter.turn()
    node.reporter.changed()
    assert node.on_disk()["number"] == 1
    node.clock.advance(1)
    assert node.reporter.turn()


def test_no_link_is_followed_and_nobody_elses_file_is_written(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    home = Home(tmp_path / "home")
    home.root.mkdir()
    home.status.symlink_to(victim)
    write_report(home, {"idle": False})
    assert victim.read_text(encoding="utf-8") == "mine"
    assert not home.status.is_symlink()


def test_a_report_that_the_disk_does_not_take_is_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node without a daemon answers on a full disk; what it said before would be a lie now."""
    write_report(Home(tmp_path), {"idle": True})

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    report_or_withdraw(Home(tmp_path), {"idle": False})
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_name_that_is_taken_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: O_EXCL and O_NOFOLLOW. Without them the link that was laid out is written through."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    monkeypatch.setattr(os, "urandom", lambda count: b"\0" * count)
    laid_out = tmp_path / f"{module.STRAY}{'00' * 8}"
    laid_out.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_report(Home(tmp_path), {"idle": False})
    assert victim.read_text(encoding="utf-8") == "mine"
    assert laid_out.is_symlink()


def test_the_file_is_on_the_disk_before_it_is_renamed_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: each of the three steps; without one of them the order below differs."""
    steps: list[str] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_fsync(descriptor)

    def rename(*names: Any, **folders: Any) -> None:
        steps.append("rename")
        real_rename(*names, **folders)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    write_report(Home(tmp_path), {"idle": False})
    assert steps == ["file", "rename", "folder"]


def test_strays_of_writers_that_were_killed_are_swept_at_the_start(tmp_path: Path) -> None:
    (tmp_path / f"{module.STRAY}abc").write_text("half", encoding="utf-8")
    (tmp_path / "queue.db").write_text("", encoding="utf-8")
    Reporter(Home(tmp_path), a_clock(), dict)
    assert [path.name for path in tmp_path.iterdir()] == ["queue.db"]
    assert sweep_strays(Home(tmp_path)) == 0


def test_a_full_disk_ends_nothing_and_idle_does_not_stay_on_the_disk(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guard: the unlink in `_failed`. Without it the old `idle` stays readable; seen."""
    node.idle = True
    node.reporter.turn()
    node.idle = False

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        node.reporter.changed()
        for _ in range(3):
            node.clock.advance(1)
            assert node.reporter.turn()
    assert not node.home.status.exists()
    assert node.reporter.trouble == os.strerror(errno.ENOSPC)
    assert capsys.readouterr().err.count("report_unwritten") == 1
    assert os.listdir(node.home.root) == []
    node.clock.advance(1)
    assert node.reporter.turn(), "it recovers by itself"
    assert node.on_disk()["idle"] is False
    assert node.reporter.trouble is None


def test_the_clock_on_the_wall_does_not_delay_a_report(node: Node) -> None:
    clock: FakeClock = node.clock
    node.reporter.turn()
    clock.set_wall("2020-01-01T00:00:00Z")
    clock.advance(30)
    assert node.reporter.turn()
