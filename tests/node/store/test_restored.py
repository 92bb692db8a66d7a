"""A database that was put back, copied or lost is noticed before anything of it runs."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import moves
from agent_node.errors import DiskBroken
from agent_node.store.generation import GenerationFile, Mark
from agent_node.store.sqlite import open_store
from tests.builders import NodeAtHand, a_clock, a_task, refusal, rule_of, uid, xfer
from tests.node.store.test_sqlite import Sqlite


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def mark_of(node: NodeAtHand) -> Mark:
    mark = GenerationFile(node.place / "generation").read()
    assert mark is not None
    return mark


def put_back(node: NodeAtHand, meanwhile: Callable[[], object]) -> None:
    """Copy the database, go on working, and put the copy back; the file beside it stays."""
    node.close()
    shutil.copy(node.place / "queue.db", node.place / "copy.db")
    node.open()
    meanwhile()
    node.close()
    (node.place / "copy.db").replace(node.place / "queue.db")
    node.clock.advance(1)
    node.open()


def test_the_file_follows_every_transfer_command(node: NodeAtHand) -> None:
    """Fails when the mark is not written: a restored database would not be noticed."""
    given = node.has(a_task(1), a_task(2))
    steps: tuple[Callable[[], object], ...] = (
        lambda: node.escrow(xfer(1), given),
        lambda: node.commit(xfer(1), uid(1)),
        lambda: node.settled(xfer(1), uid(1)),
        lambda: node.hold(xfer(2), a_task(9)),
        lambda: node.drop(xfer(2), uid(9)),
        lambda: node.abort(xfer(3), uid(1)),
    )
    for step in steps:
        before = mark_of(node).generation
        step()
        mark, facts = mark_of(node), node.facts()
        assert mark.generation > before
        assert (mark.generation, mark.incarnation) == (facts.generation, facts.incarnation)


def test_the_file_is_never_ahead_of_the_database(node: NodeAtHand) -> None:
    for number in range(5):
        node.clock.advance(1)
        node.has(a_task(number))
        assert mark_of(node).generation <= node.facts().generation


def test_a_restart_is_no_restore(node: NodeAtHand) -> None:
    node.gives_away(xfer(), node.has(a_task()))
    before = node.facts().incarnation
    for _ in range(3):
        node.reopen()
        assert (node.facts().state, node.facts().incarnation) == ("active", before)


def test_an_older_copy_starts_in_quarantine_under_a_later_incarnation(node: NodeAtHand) -> None:
    node.has(a_task())
    before = node.facts().incarnation
    generations: list[int] = []

    def meanwhile() -> None:
        node.gives_away(xfer(), a_task())
        generations.append(node.facts().generation)

    put_back(node, meanwhile)
    facts = node.facts()
    assert facts.state == "quarantined"
    assert facts.incarnation > before
    assert facts.generation > generations[0]
    assert rule_of(node.claim()) == "quarantined"
    assert rule_of(node.escrow(xfer(2), a_task())) == "quarantined"


def test_a_quarantine_outlives_restarts_without_yet_another_name(node: NodeAtHand) -> None:
    node.has(a_task())
    put_back(node, lambda: node.gives_away(xfer(), a_task()))
    facts = node.facts()
    node.reopen()
    assert (node.facts().state, node.facts().incarnation) == ("quarantined", facts.incarnation)


def test_an_older_copy_that_only_missed_local_work_is_noticed_after_a_second(
    node: NodeAtHand,
) -> None:
    def meanwhile() -> None:
        node.clock.advance(1.5)
        node.has(a_task())

    put_back(node, meanwhile)
    assert node.facts().state == "quarantined"


def test_a_copy_on_another_machine_is_quarantined(node: NodeAtHand) -> None:
    node.has(a_task())
    node.close()
    node.settings["machine"] = "another"
    node.open()
    assert node.facts().state == "quarantined"


def test_a_database_without_its_file_is_quarantined(node: NodeAtHand) -> None:
    node.has(a_task())
    node.close()
    (node.place / "generation").unlink()
    node.open()
    assert node.facts().state == "quarantined"


@pytest.mark.parametrize("call", ["pwrite", "fsync", "fdatasync"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_first_start_that_the_disk_cut_off_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    """Fails when the database may come further than a file that does not stand yet."""
    left, real = [nth], getattr(os, call)

    def broken(*words: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*words)

    with monkeypatch.context() as disk, suppress(DiskBroken):
        disk.setattr(os, call, broken)
        open_store(tmp_path, name="iris", clock=a_clock(), machine="here").close()

    store = open_store(tmp_path, name="iris", clock=a_clock(), machine="here")
    assert store.node_state() == "active"
    store.close()


def test_an_empty_database_beside_the_file_of_a_lost_one_is_quarantined(node: NodeAtHand) -> None:
    """The tombstones are gone with it: a late hold would bring back what runs elsewhere."""
    node.gives_away(xfer(), node.has(a_task()))
    node.close()
    (node.place / "queue.db").unlink()
    node.open()
    assert node.facts().state == "quarantined"
    assert rule_of(node.hold(xfer(), a_task())) == "quarantined"


def test_an_attempt_on_the_disk_that_the_database_does_not_know_quarantines(
    node: NodeAtHand,
) -> None:
    node.has(a_task())
    node.close()
    (node.place / "tasks" / uid() / "1").mkdir(parents=True)
    node.open()
    assert node.facts().state == "quarantined"


def test_a_new_home_that_is_quarantined_at_once_has_a_generation(tmp_path: Path) -> None:
    """Fails when the events of a quarantine stand for the first raise: 0 says that none ever was,
    and such a database needs no file.
    """
    (tmp_path / "tasks" / uid() / "1").mkdir(parents=True)
    node = NodeAtHand(Sqlite(), tmp_path)
    assert node.facts().state == "quarantined"
    assert mark_of(node).generation == node.facts().generation > 0
    node.close()


def test_a_quarantine_is_entered_once_however_often_it_starts(node: NodeAtHand) -> None:
    """Fails when the file is held against the node's row alone, which events do not change."""
    node.has(a_task())
    node.close()
    (node.place / "tasks" / uid() / "1").mkdir(parents=True)
    node.open()
    was = node.facts()
    assert was.state == "quarantined"
    node.reopen()
    assert (node.facts().state, node.facts().incarnation) == ("quarantined", was.incarnation)


def test_a_quarantine_is_later_than_all_that_the_database_was(node: NodeAtHand) -> None:
    """Fails when events since the node's row was written are left out: the hub has heard of them,
    and the file may be behind them.
    """
    node.has(*(a_task(number) for number in range(1, 6)))
    before, behind = node.facts(), Mark(1, node.facts().incarnation, mark_of(node).machine)
    node.close()
    file = GenerationFile(node.place / "generation")
    file.write(behind)
    file.write(behind)
    file.close()
    (node.place / "tasks" / uid(9) / "1").mkdir(parents=True)
    node.open()
    assert node.facts().state == "quarantined"
    assert node.facts().generation > before.generation


def test_attempts_that_the_database_knows_are_no_cause_for_alarm(node: NodeAtHand) -> None:
    got = node.running(a_task())
    (node.place / "tasks" / uid() / "1").mkdir(parents=True)
    node.finish(got)
    node.reopen()
    assert node.facts().state == "active"


@pytest.mark.parametrize("opened_anew", [False, True], ids=["by one process", "by one each"])
def test_the_mark_before_is_there_whichever_was_torn(tmp_path: Path, opened_anew: bool) -> None:
    """Fails when two marks in a row go to one slot: generations rise by more than one at a time."""
    path = tmp_path / "generation"
    file = GenerationFile(path)
    for number in range(2, 20, 2):
        if opened_anew:
            file.close()
            file = GenerationFile(path)
        file.write(Mark(number, "life", "machine"))
        whole = path.read_bytes()
        assert GenerationFile(path).read() == Mark(number, "life", "machine")
        torn = "x" * len(str(number))
        path.write_bytes(whole.replace(f" {number} ".encode(), f" {torn} ".encode()))
        before = GenerationFile(path).read()
        assert before == (Mark(number - 2, "life", "machine") if number > 2 else None)
        path.write_bytes(whole)
    file.close()


def test_a_torn_mark_leaves_the_one_before(node: NodeAtHand) -> None:
    node.has(a_task())
    for number in range(3):
        node.abort(xfer(number), uid(9))
    whole = mark_of(node)
    path = node.place / "generation"
    node.close()
    raw = bytearray(path.read_bytes())
    newest = raw.index(f"generation {mark_of(node).generation} ".encode())
    raw[newest + 12 : newest + 40] = b"\0" * 28
    path.write_bytes(bytes(raw))

    assert mark_of(node).generation <= whole.generation + 1
    node.open()
    assert node.facts().state == "active"


def test_nothing_but_a_person_ends_a_quarantine(node: NodeAtHand) -> None:
    node.has(a_task())
    put_back(node, lambda: node.gives_away(xfer(), a_task()))
    assert refusal(node, c.SetNode("active", "go on")) == "quarantined"
    assert node.facts().state == "quarantined"


def opened_at(place: Path) -> NodeAtHand:
    return NodeAtHand(Sqlite(), place)


def test_a_copy_that_lies_beside_its_home_is_quarantined_and_the_home_is_not(
    node: NodeAtHand, tmp_path: Path
) -> None:
    """Seen to fail without a look at the place: both ran what waited, each of them once."""
    node.has(a_task())
    node.close()
    shutil.copytree(node.place, tmp_path / "copy")
    node.open()
    copy = opened_at(tmp_path / "copy")
    assert (node.facts().state, copy.facts().state) == ("active", "quarantined")
    assert "copy" in copy.facts().reason
    assert copy.facts().incarnation > node.facts().incarnation
    copy.close()
    copy.open()
    assert copy.facts().state == "quarantined", "a restart does not end it"
    copy.close()


def test_a_copy_that_a_person_released_stays_a_home_of_its_own(
    node: NodeAtHand, tmp_path: Path
) -> None:
    node.close()
    shutil.copytree(node.place, tmp_path / "copy")
    copy = opened_at(tmp_path / "copy")
    assert copy.facts().state == "quarantined"
    copy.say(moves.Release("the other is gone"))
    copy.close()
    copy.open()
    assert copy.facts().state == "active"
    copy.close()


def test_a_home_that_is_renamed_or_put_back_is_no_copy(node: NodeAtHand, tmp_path: Path) -> None:
    node.has(a_task())
    node.close()
    (tmp_path / "iris").rename(tmp_path / "renamed")
    renamed = opened_at(tmp_path / "renamed")
    assert renamed.facts().state == "active"
    renamed.close()
    shutil.copytree(tmp_path / "renamed", tmp_path / "backup")
    shutil.rmtree(tmp_path / "renamed")
    shutil.copytree(tmp_path / "backup", tmp_path / "renamed")
    renamed.open()
    assert renamed.facts().state == "active"
    renamed.close()


def test_a_torn_word_on_the_place_is_none(node: NodeAtHand) -> None:
    """What nobody can read accuses nobody; it is written anew."""
    node.close()
    file = node.place / "generation"
    raw = bytearray(file.read_bytes())
    raw[520] ^= 1
    file.write_bytes(raw)
    assert GenerationFile(file).read_place() is None
    node.open()
    assert node.facts().state == "active"
    assert GenerationFile(file).read_place() is not None
