"""A process without descriptors says so in one line, and says what else went wrong as ever."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_node.clock import SystemClock
from arc.errors import BadSettings, MachineFailed, StateBroken
from arc.exhausted import say_what_is_exhausted
from arc.fences import FenceFile
from arc.journal import Journal
from arc.running import in_a_line, run_hub
from tests.builders import FakeClock
from tests.hub_builders import Counting, a_hub


async def test_who_cannot_be_let_in_is_told_of_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen to fail: asyncio wrote a traceback for each try, one a second, for as long as it lasted.
    """
    clock, said, loop = FakeClock(), list[str](), asyncio.get_running_loop()
    say_what_is_exhausted(clock, "the hub", said.append)
    full: dict[str, Any] = {"message": "socket.accept() out of system resource",
                            "exception": OSError(errno.EMFILE, os.strerror(errno.EMFILE))}
    for _ in range(99):
        loop.call_exception_handler(full)
        clock.advance(0.6)
    loop.call_exception_handler(full)
    assert len(said) == 1
    assert said[0].startswith("the hub cannot answer who asks: Too many open files (ulimit -n is ")

    clock.advance(1)
    loop.call_exception_handler(full)
    assert len(said) == 2


@pytest.mark.parametrize("error", [KeyError("x"), OSError(errno.EBADF, "bad"), None])
async def test_what_is_no_want_of_descriptors_is_told_as_ever(
    caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    said: list[str] = []
    say_what_is_exhausted(FakeClock(), "the hub", said.append)
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "odd", **({"exception": error} if error else {})})
    assert (said, caplog.records[0].getMessage()) == ([], "odd")


@contextmanager
def descriptors_left(number: int) -> Iterator[None]:
    """This process may open so many more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_journal_that_cannot_be_opened_for_want_of_descriptors_is_not_moved_away(
    tmp_path: Path, left: int
) -> None:
    """Seen to fail: it said to move journal.db to journal.db.broken, and all that people had said
    of nodes was to be said again.
    """
    Journal(tmp_path / "journal.db", FakeClock()).close()
    with descriptors_left(left), pytest.raises(MachineFailed, match="Too many open files") as told:
        Journal(tmp_path / "journal.db", FakeClock())
    assert "ulimit -n" in told.value.hint
    Journal(tmp_path / "journal.db", FakeClock()).close()


def test_fences_that_cannot_be_opened_for_want_of_descriptors_are_not_put_back(
    tmp_path: Path,
) -> None:
    """Seen to fail: it said to put fences.json back from a copy."""
    FenceFile(tmp_path).add("forge", "LIFE", at=FakeClock().now(), by="ada", reason="burnt")
    with descriptors_left(0), pytest.raises(MachineFailed, match="Too many open files"):
        FenceFile(tmp_path)
    assert FenceFile(tmp_path).has("forge", "LIFE")


def test_a_journal_that_is_no_file_is_told_as_one(tmp_path: Path) -> None:
    with pytest.raises(StateBroken):
        Journal(tmp_path / "missing" / "journal.db", FakeClock())


async def test_a_hub_that_stays_says_so_of_itself(tmp_path: Path) -> None:
    hub, said = a_hub(tmp_path, SystemClock(), sensors=[Counting("a", 300)]), list[str]()
    heard, stop = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(
        run_hub(hub, stop=stop, heard=lambda told: heard.set(), say=said.append))
    await asyncio.wait_for(heard.wait(), 10)
    full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    asyncio.get_running_loop().call_exception_handler({"message": "full", "exception": full})
    stop.set()
    await running
    assert len([line for line in said if line.startswith("the hub cannot answer")]) == 1


def test_a_fault_of_fleet_yaml_without_a_line_has_none() -> None:
    """Seen to fail: `line None: is not UTF-8 at byte 0` stood under NEEDS YOU."""
    error = BadSettings("1 error", problems=({"message": "is not UTF-8 at byte 0"},
                                             {"message": "a tab", "line": 3}))  # fmt: skip
    assert in_a_line(error) == "is not UTF-8 at byte 0; line 3: a tab"
