"""Holds the hub's own queue against the contract of every link."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node.clock import SystemClock, iso
from agent_node.home import Home, HomeLock
from agent_node.spec import hash_of, spec_of
from agent_node.strict import JsonObject
from agent_node.task import to_wire
from agent_node.wreck import _LEFT
from arc.errors import AnswerUnreadable, NodeRefused, NodeUnreachable, OutcomeUnknown
from arc.links.inbox import WAKE_EVERY_S, InboxLink
from tests.builders import a_clock, a_task, uid, xfer
from tests.hub.links.places import words
from tests.link_contract import LinkContract, Reach, said_of


class TestInbox(LinkContract):
    """The queue in the hub's state folder."""

    name = "inbox"

    @asynccontextmanager
    async def reaching(self, place: Path) -> AsyncIterator[Reach]:
        yield lambda term=1: InboxLink(place / "inbox", words(term), clock=SystemClock())


async def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    link = InboxLink(tmp_path / "state" / "inbox", words(), clock=a_clock())
    await link.meet()
    assert stat.S_IMODE((tmp_path / "state" / "inbox").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "inbox" / "node.toml").stat().st_mode) == 0o600
    await link.close()


async def test_what_was_put_in_is_there_after_a_restart(tmp_path: Path) -> None:
    for expected in (["added"], ["exists"]):
        link = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
        said = await link.ask("add", {"tasks": [{"subject": "x", "key": "once"}]})
        assert [said_of(said)["outcome"]] == expected
        await link.close()


async def test_an_answer_that_cannot_be_read_is_one_of_a_link(tmp_path: Path) -> None:
    """Seen to fail: what left `ask` ended the run of the sensor, also after a change was made."""
    link = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
    await link.meet()
    answers = link._answers
    assert answers is not None
    real = answers.answer
    answers.answer = lambda session, line: real(session, line) + b"}"  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown, match="no message"):
        await link.ask("add", {"tasks": [{"subject": "x"}]})
    with pytest.raises(AnswerUnreadable, match="nothing changed"):
        await link.ask("list", {})
    answers.answer = real  # type: ignore[method-assign]
    assert (await link.ask("list", {}))["tasks"]
    await link.close()


async def test_a_lock_that_somebody_else_holds_is_said(tmp_path: Path) -> None:
    home = Home(tmp_path / "inbox")
    home.root.mkdir(mode=0o700)
    lock = HomeLock.try_take(home)
    assert lock is not None
    link = InboxLink(home.root, words(), clock=a_clock())
    with pytest.raises(NodeUnreachable, match="lock"):
        await link.ask("status")
    lock.release()
    assert (await link.ask("status"))["node"] == "inbox"
    await link.close()


async def test_nothing_is_held_here_unless_it_may_stand_still(tmp_path: Path) -> None:
    link = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
    task = a_task()
    move: JsonObject = {"xfer": xfer(1), "task": to_wire(task), "sha256": hash_of(spec_of(task))}
    said = await link.ask("hold", {"from": "iris", "why": "moved", "moves": [move]})
    because = said_of(said)["because"]
    assert isinstance(because, dict)
    assert because["rule"] == "dispatcher_stopped"
    again: JsonObject = {**move, "xfer": xfer(2)}
    said = await link.ask(
        "hold", {"from": "iris", "why": "moved", "moves": [again], "even_if_stopped": True}
    )
    assert said_of(said)["outcome"] == "held"
    await link.close()


async def test_an_escrow_whose_lease_ended_is_given_back(tmp_path: Path) -> None:
    """Without the wake before each request it would wait for the hub's next start."""
    clock = a_clock()
    link = InboxLink(tmp_path / "inbox", words(), clock=clock)
    await link.ask("add", {"tasks": [{"uid": uid(1), "subject": "x"}]})
    move: JsonObject = {"xfer": xfer(1), "uid": uid(1), "epoch": 1}
    await link.ask("escrow", {"to": "iris", "why": "routed", "lease_s": 60, "moves": [move]})
    assert (await link.ask("status"))["pending_count"] == 0
    clock.advance(61)
    assert (await link.ask("status"))["pending_count"] == 1
    await link.close()


async def test_an_empty_queue_says_the_same_until_something_is_written(tmp_path: Path) -> None:
    """Each look at the fleet asks it; what is known already costs it nothing."""
    clock = a_clock()
    link = InboxLink(tmp_path / "inbox", words(), clock=clock)
    first = await link.ask("status")
    clock.advance(0.2)
    again = await link.ask("status")
    assert again == {**first, "written_at": iso(clock.now())}
    assert again["counts"] is first["counts"], "it was not made anew"
    await link.ask("add", {"tasks": [{"uid": uid(1), "subject": "x"}]})
    assert (await link.ask("status"))["pending_count"] == 1
    await link.close()


async def test_what_waits_in_it_is_as_old_as_it_is(tmp_path: Path) -> None:
    clock = a_clock()
    link = InboxLink(tmp_path / "inbox", words(), clock=clock)
    await link.ask("add", {"tasks": [{"uid": uid(1), "subject": "x"}]})
    await link.ask("status")
    clock.advance(0.2)
    assert (await link.ask("status"))["oldest_ready_s"] == pytest.approx(0.2)
    await link.close()


async def test_a_doubt_in_it_is_as_old_as_it_is(tmp_path: Path) -> None:
    """Seen to fail without a look at the doubts: nothing waits there, and its age stood still."""
    clock = a_clock()
    link = InboxLink(tmp_path / "inbox", words(), clock=clock)
    await link.ask("add", {"tasks": [{"uid": uid(1), "subject": "x"}]})
    move: JsonObject = {"xfer": xfer(1), "uid": uid(1), "epoch": 1}
    await link.ask("escrow", {"to": "iris", "why": "routed", "lease_s": 60, "moves": [move]})
    ages = []
    for _ in range(2):
        (doubt,) = cast("list[JsonObject]", (await link.ask("status"))["doubts"])
        ages.append(doubt["age_s"])
        clock.advance(0.2)
    assert ages == pytest.approx([0, 0.2])
    await link.close()


async def test_its_free_disk_is_looked_at_again(tmp_path: Path) -> None:
    """No change of the queue tells of it, but it is woken every second."""
    clock = a_clock()
    link = InboxLink(tmp_path / "inbox", words(), clock=clock)
    first = await link.ask("status")
    clock.advance(WAKE_EVERY_S)
    assert (await link.ask("status"))["counts"] is not first["counts"]
    await link.close()


async def test_who_listens_hears_of_new_work(tmp_path: Path) -> None:
    link = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    await link.listen(lambda node, event: heard.put_nowait((node, event)))
    await link.ask("add", {"tasks": [{"subject": "x"}]})
    async with asyncio.timeout(5):
        assert await heard.get() == ("inbox", "task_ready")
    await link.close()


async def test_a_refusal_of_the_hello_gives_the_lock_back(tmp_path: Path) -> None:
    bad = words()
    link = InboxLink(tmp_path / "inbox", type(bad)("NOT A FLEET", "arc", 1, bad.instance, {}),
                     clock=a_clock())  # fmt: skip
    with pytest.raises(NodeRefused):
        await link.ask("status")
    good = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
    await good.meet()
    await good.close()
    await link.close()


async def test_a_copy_of_the_queue_gives_nothing_away(tmp_path: Path) -> None:
    """Two hubs, the second from a copied state folder, would run each task once each.

    Seen to fail with the owner not looked at.
    """
    mine = words()
    link = InboxLink(tmp_path / "inbox", mine, clock=a_clock())
    await link.ask("add", {"tasks": [{"uid": uid(1), "subject": "x"}]})
    life = (await link.meet()).incarnation
    await link.close()

    other = replace(mine, instance="01J0000000000000000000000Z", term=2)
    for _ in range(2):  # the second time it is the other's own, and still set apart
        copy = InboxLink(tmp_path / "inbox", other, clock=a_clock())
        said = await copy.ask("status")
        assert (said["state"], said["incarnation"] != life) == ("quarantined", True)
        assert mine.instance in str(said["reason"])
        move: JsonObject = {"xfer": xfer(1), "uid": uid(1), "epoch": 1}
        fields: JsonObject = {"to": "iris", "why": "routed", "lease_s": 60, "moves": [move]}
        assert said_of(await copy.ask("escrow", fields))["outcome"] == "refused"
        await copy.close()


class Watched:
    """The connection of a store, which notes what is done with it; a COMMIT meets a bad disk."""

    def __init__(self, db: sqlite3.Connection, *, commits: bool) -> None:
        self._db, self.commits, self.done = db, commits, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.done.append(name)
        return getattr(self._db, name)

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self.done.append(sql)
        if sql == "COMMIT" and not self.commits:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return self._db.execute(sql, *values)


def disk_fails(link: InboxLink, where: str) -> Watched:
    """From now on the disk says no to this: the COMMIT, or the file that is written after it."""
    assert link._answers is not None
    store = cast("Any", link._answers.desk.store)
    store._db = Watched(store._db, commits=where != "commit")

    def refuse(mark: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    if where == "generation":
        store._file.write = refuse
        store._raised_at = float("-inf")  # so that it is due
    return cast("Watched", store._db)


@pytest.mark.parametrize(("where", "kept"), [("generation", "exists"), ("commit", "added")])
async def test_a_queue_whose_disk_failed_is_asked_nothing_more(
    tmp_path: Path, where: str, kept: str
) -> None:
    """Seen to fail: the next `add` was answered `added` on the same connection, whose second sync
    may say that all is well; and closing it synced once more.
    """
    told: list[str] = []
    link = InboxLink(tmp_path / "inbox", words(), clock=a_clock(), broke=told.append)
    await link.ask("status")
    watched = disk_fails(link, where)
    add: JsonObject = {"tasks": [{"subject": "x", "key": "once"}]}
    with pytest.raises(OutcomeUnknown):
        await link.ask("add", add)
    done = [*watched.done]
    watched.commits = True  # as a second sync would seem to work
    assert not Home(tmp_path / "inbox").status.exists(), "no report is not an idle node"
    for do, fields in (("add", add), ("status", {})):
        with pytest.raises(NodeUnreachable, match="its disk failed"):
            await link.ask(do, fields)
    with pytest.raises(NodeUnreachable, match="this hub ends"):
        await link.meet()
    await link.close()
    assert (watched.done, len(told), watched in _LEFT) == (done, 1, True)

    again = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
    assert said_of(await again.ask("add", add))["outcome"] == kept
    assert len(cast("list[object]", (await again.ask("list"))["tasks"])) == 1
    await again.close()


async def test_a_look_that_cannot_read_the_disk_is_no_refusal(tmp_path: Path) -> None:
    """A read that fails breaks the queue as a sync does; nothing changed, and asking is safe."""
    link = InboxLink(tmp_path / "inbox", words(), clock=a_clock())
    await link.ask("status")
    watched = disk_fails(link, "nowhere")

    def unreadable(sql: str, *values: object) -> sqlite3.Cursor:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_READ"
        raise error

    watched.execute = unreadable  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(NodeUnreachable, match="SQLITE_IOERR_READ"):
            await link.ask("list")
    await link.close()
