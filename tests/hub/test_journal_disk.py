"""A hub whose journal met a failing disk ends and says so, and the next one tells of it."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_node import wreck
from agent_node.clock import SystemClock
from arc.errors import MachineFailed, StateBroken
from arc.hub import Hub
from arc.journal import Journal
from arc.journal_disk import BECAUSE_MAX, disk_failed_lately, leave_word, word_in_the_way
from arc.journal_runs import RunBook
from arc.running import run_hub
from arc.schedule import RunTold
from tests.builders import FakeClock
from tests.hub.cli.desk import RealFleet
from tests.hub_builders import Counting, a_hub
from tests.node.daemon.living import PATIENCE_S


@contextmanager
def no_file_grows() -> Iterator[None]:
    """A write beyond a file's first page is refused by the kernel, and SQLite says IOERR."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def meets_a_bad_disk(hub: Hub) -> None:
    """The next line of its journal cannot be written."""
    with no_file_grows(), pytest.raises(MachineFailed):
        hub.journal.runs.log("node_joined")


def suspends(journal: Journal) -> None:
    """A word of a person, durable before it is told."""
    journal.words.suspend("iris", reason="a test", by="human:lukas")


@pytest.mark.parametrize("write", [suspends, lambda journal: journal.runs.log("node_joined")])
def test_nothing_is_asked_of_a_journal_whose_disk_failed(
    tmp_path: Path, write: Callable[[Journal], None]
) -> None:
    """Seen to fail: the next word was `remembered` by a connection whose last sync had failed."""
    said: list[str] = []
    journal = Journal(tmp_path / "journal.db", FakeClock(), broke=said.append)
    with no_file_grows(), pytest.raises(MachineFailed, match=r"journal\.db: disk I/O error") as one:
        write(journal)
    assert said == [str(one.value)]
    with pytest.raises(MachineFailed, match="its disk failed"):
        suspends(journal)
    with pytest.raises(MachineFailed, match="its disk failed"):
        journal.words.suspended()
    journal.close()

    after = Journal(tmp_path / "journal.db", FakeClock())
    assert after.words.suspended() == {}
    after.close()


def test_a_full_disk_is_no_failed_one(tmp_path: Path) -> None:
    """The change did not happen, and the journal goes on when there is room again."""
    said: list[str] = []
    journal = Journal(tmp_path / "journal.db", FakeClock(), broke=said.append)
    database = journal._database
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count={pages}").fetchall()
    with pytest.raises(StateBroken, match="full"):
        journal.runs.log("node_joined", fields={"because": "much " * 100_000})
    database.execute("PRAGMA max_page_count=100000").fetchall()
    journal.runs.log("node_left_after")
    assert said == []
    journal.close()


@pytest.mark.parametrize("once", [True, False])
async def test_the_hub_ends_and_the_next_one_says_why(tmp_path: Path, *, once: bool) -> None:
    """Seen to fail: it ran on with the same connection, and wrote to it."""
    after = Counting("b", 300)
    hub = a_hub(tmp_path, SystemClock(), nodes=(), sensors=[
        Counting("a", 300, lambda: meets_a_bad_disk(hub)), *([after] if once else [])])  # fmt: skip
    heard: list[RunTold] = []
    async with asyncio.timeout(20):
        with pytest.raises(MachineFailed, match="the hub's journal: its disk failed"):
            await run_hub(hub, once=once, heard=heard.append)
    assert after.began == [], "nothing more was begun"
    assert ["NOT WRITTEN DOWN" in told.report.summary for told in heard] == [True]

    following = a_hub(tmp_path, SystemClock())  # lease and lock are free
    lines = [line for line in following.journal.runs.lines() if line.event == "journal_disk_broken"]
    assert len(lines) == 1
    assert "disk I/O error" in str(lines[0].fields["because"])
    (need,) = disk_failed_lately(following)
    assert "its disk failed" in str(need)
    assert not (tmp_path / ".arc" / "journal.failed").exists()
    await following.close()


def test_a_word_that_cannot_be_written_down_keeps_no_hub_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays for the next; guarded by the suppressed error: without it, nothing opens at all."""
    path = tmp_path / "journal.db"
    leave_word(path, "it burnt", at=FakeClock().now())

    def full(book: RunBook, event: str, **more: object) -> None:
        raise StateBroken("the disk is full")

    with monkeypatch.context() as there:
        there.setattr(RunBook, "log", full)
        Journal(path, FakeClock()).close()
    journal = Journal(path, FakeClock())
    assert journal.disk_failed is not None
    assert journal.disk_failed.because.endswith("it burnt")
    journal.close()


def test_a_disk_that_fails_as_the_journal_is_opened_is_synced_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: whoever collected the connection closed it, which syncs once more."""
    path, log = tmp_path / "journal.db", RunBook.log
    Journal(path, FakeClock()).close()
    leave_word(path, "it burnt", at=FakeClock().now())

    def fails(book: RunBook, event: str, **more: Any) -> None:
        with no_file_grows():
            log(book, event, **more)

    monkeypatch.setattr(RunBook, "log", fails)
    monkeypatch.setattr(wreck, "_LEFT", [])
    with pytest.raises(MachineFailed, match="its disk failed"):
        Journal(path, FakeClock())
    assert wreck.any_left()
    assert (tmp_path / "journal.failed").exists()


def test_too_long_a_word_is_cut(tmp_path: Path) -> None:
    """Seen to fail: it was never read, never went, and each failure from then on was untold."""
    path = tmp_path / "journal.db"
    leave_word(path, "it burnt " * BECAUSE_MAX, at=FakeClock().now())
    journal = Journal(path, FakeClock())
    assert journal.disk_failed is not None
    assert "it burnt it burnt" in journal.disk_failed.because
    assert len(journal.disk_failed.because) <= BECAUSE_MAX
    assert not (tmp_path / "journal.failed").exists()
    journal.close()


STRANGE: dict[str, Callable[[Path, Path], None]] = {
    "fifo": lambda place, other: os.mkfifo(place),
    "link": lambda place, other: place.symlink_to(other),
    "second name": lambda place, other: place.hardlink_to(other),
    "folder": lambda place, other: place.mkdir(),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_of_ours_in_its_place_is_named_and_left_alone(
    tmp_path: Path, kind: str
) -> None:
    """Seen to fail: nobody was told of it, and a file of which it was a second name was emptied."""
    other = tmp_path / "somebodys"
    other.write_text("2026-03-10T03:45:02Z not of ours")
    first = a_hub(tmp_path, FakeClock())
    assert word_in_the_way(first) == []
    place = first.journal.path.with_name("journal.failed")
    first.journal.close()
    first.lease.close()
    STRANGE[kind](place, other)

    leave_word(place.with_name("journal.db"), "it burnt", at=FakeClock().now())
    hub = a_hub(tmp_path, FakeClock())
    assert hub.journal.disk_failed is None
    (need,) = word_in_the_way(hub)
    assert isinstance(need, dict)
    assert "no plain file" in str(need["text"])
    assert need["try"] == f"mv {place} {place}.strange"
    assert os.path.lexists(place)
    assert other.read_text() == "2026-03-10T03:45:02Z not of ours"

    os.rename(place, f"{place}.strange")
    leave_word(hub.journal.path, "it burnt", at=FakeClock().now())
    assert word_in_the_way(hub) == []
    hub.journal.close()
    hub.lease.close()
    journal = Journal(place.with_name("journal.db"), FakeClock())
    assert journal.disk_failed is not None
    journal.close()


def test_it_is_told_for_a_day(tmp_path: Path) -> None:
    clock = FakeClock()
    for event, told in (("inbox_disk_broken", True), ("journal_disk_broken", True), ("x", False)):
        place = tmp_path / event
        first = a_hub(place, clock)
        first.journal.runs.log(event, fields={"because": "it burnt"})
        first.journal.close()
        second = Journal(first.journal.path, clock)
        assert (second.disk_failed is not None) is told
        first.journal = second
        assert bool(disk_failed_lately(first)) is told
        clock.advance(25 * 3600)
        assert disk_failed_lately(first) == []
        second.close()
        first.lease.close()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealFleet]:
    """Two homes over pipes, one daemon, no hub yet."""
    made = RealFleet(tmp_path)
    yield made
    made.close()


def test_a_running_hub_ends_loudly_and_the_next_one_works(
    real: RealFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was asked meanwhile was answered with the disk, or not at all; never with yes."""
    monkeypatch.setenv("ARC_FAILPOINT", "journal.before_commit:EIO:40")
    hub = real.up()
    monkeypatch.delenv("ARC_FAILPOINT")
    for _ in range(200):
        if hub.poll() is not None:
            break
        real.arc("pause", "--reason", "a test")
        real.arc("resume")
    out, err = hub.communicate(timeout=PATIENCE_S)
    assert (hub.returncode, err.count("error[ARC-MACHINE]"), "Traceback" in err) == (1, 1, False), (
        out + err)  # fmt: skip
    assert "the hub's journal: its disk failed" in err

    real.up()
    real.arc("resume")
    assert "journal_disk_broken" in real.arc("log").out
    assert "its disk failed" in real.arc("status").out
