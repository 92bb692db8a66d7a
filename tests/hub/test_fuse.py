"""A hub whose own queue met a failing disk ends, and the next one goes on from what is there."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node.clock import SystemClock
from arc.errors import LinkError, MachineFailed
from arc.hub import Hub
from arc.journal import Journal
from arc.links.inbox import InboxLink
from arc.running import run_hub
from tests.hub.cli.desk import RealFleet
from tests.hub_builders import Counting, a_hub
from tests.node.daemon.living import PATIENCE_S

FAILS = "generation.before_file:EIO"
MANY = 2000  # more than are added in some seconds, however quick the machine


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealFleet]:
    """Two homes over pipes, one daemon, no hub yet."""
    made = RealFleet(tmp_path)
    yield made
    made.close()


async def meets_a_bad_disk(hub: Hub) -> None:
    """The next word to its own queue is behind a file that cannot be written."""

    def refuse(mark: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    await hub.inbox.meet()
    answers = cast("InboxLink", hub.inbox)._answers
    assert answers is not None
    store = cast("Any", answers.desk.store)
    store._file.write, store._raised_at = refuse, float("-inf")
    with pytest.raises(LinkError):
        await hub.inbox.ask("add", {"tasks": [{"subject": "x"}]})


@pytest.mark.parametrize("once", [True, False])
async def test_the_hub_ends_and_says_why(tmp_path: Path, *, once: bool) -> None:
    """Seen to fail: it ran on, and answered `added` from a connection whose sync had failed."""
    after = Counting("b", 300)
    hub = a_hub(tmp_path, SystemClock(), nodes=(), sensors=[
        Counting("a", 300, lambda: meets_a_bad_disk(hub)), *([after] if once else [])])  # fmt: skip
    async with asyncio.timeout(20):
        with pytest.raises(MachineFailed, match="its disk failed"):
            await run_hub(hub, once=once)
    assert after.began == [], "nothing more was begun"
    journal = Journal(tmp_path / ".arc" / "journal.db", SystemClock())
    assert [line.event for line in journal.runs.lines()].count("inbox_disk_broken") == 1
    journal.close()
    await a_hub(tmp_path, SystemClock()).close()  # lease and lock are free


@pytest.mark.parametrize("reopen", [True, False])
async def test_a_queue_whose_disk_failed_is_not_opened_again_by_this_hub(
    tmp_path: Path, *, reopen: bool
) -> None:
    """Seen to fail: other domains in fleet.yaml made a new link, and this process read on from
    pages whose sync had failed.
    """
    hub = a_hub(tmp_path, SystemClock(), nodes=(), sensors=[])
    await meets_a_bad_disk(hub)
    inbox = hub.inbox
    follows = (hub._follow(hub.settings, reopen=True) if reopen
               else hub.follow(replace(hub.settings, domains=())))  # fmt: skip
    with pytest.raises(MachineFailed, match="its disk failed"):
        await follows
    assert hub.inbox is hub.links["inbox"] is inbox
    with pytest.raises(LinkError, match="its disk failed"):
        await hub.inbox.ask("status")
    await hub.close()


async def test_nor_if_it_failed_while_the_old_links_were_closed(tmp_path: Path) -> None:
    hub = a_hub(tmp_path, SystemClock(), nodes=(), sensors=[])
    inbox = cast("Any", hub.inbox)
    closes = inbox.close

    async def breaks() -> None:
        await meets_a_bad_disk(hub)
        await closes()

    inbox.close = breaks
    with pytest.raises(MachineFailed, match="its disk failed"):
        await hub.follow(replace(hub.settings, domains=()))
    await hub.close()


async def test_a_disk_that_fails_over_another_assumption_ends_the_hub_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the hub fell over an error that is no hub's, and the log had no line of why."""
    hub = a_hub(tmp_path, SystemClock(), nodes=(), sensors=[])
    await hub.inbox.meet()

    def refuse(tx: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_READ"
        raise error

    monkeypatch.setattr("agent_node.store.sqlite.note_budgets", refuse)
    with pytest.raises(LinkError, match="disk I/O error"):
        await hub.follow(replace(hub.settings, assume_usd="1"))
    with pytest.raises(MachineFailed, match="its disk failed"):
        hub.fuse.check()
    await hub.close()


def test_the_next_hub_has_each_task_once(
    real: RealFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whatever the first one was asked, answered or not: typed again it is there once."""
    real.arc("status")  # the queue is made, so that the hub's hello is its first pass
    monkeypatch.setenv("ARC_FAILPOINT", f"{FAILS}:2")
    hub = real.up()
    monkeypatch.delenv("ARC_FAILPOINT")
    keys = []
    for number in range(MANY):
        if hub.poll() is not None:
            break
        keys.append(f"key-{number}")
        real.arc("tasks", "add", "work", "--need", "nobody has it", "--key", keys[-1])
    out, err = hub.communicate(timeout=PATIENCE_S)
    assert (hub.returncode, err.count("error[ARC-MACHINE]"), "Traceback" in err) == (1, 1, False), (
        out + err)  # fmt: skip

    real.up()
    for key in keys:
        again = real.arc("tasks", "add", "work", "--need", "nobody has it", "--key", key)
        assert again.code == 0, again.err
    tasks = real.arc("tasks", "list", "--limit", str(MANY), "--json").data["tasks"]
    assert len(tasks) == len(keys) > 0
