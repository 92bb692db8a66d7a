"""The checker catches what it is there to catch: create-then-close, and every kind of finding."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.chaos.careless import Careless
from tests.chaos.checker import Line, judge, judge_rows, read_ledger
from tests.chaos.hub import new_ulid

_DICE = Random("careless")
UIDS = [new_ulid(_DICE) for _ in range(6)]


def test_create_then_close_runs_a_task_twice_when_its_mover_is_killed(tmp_path: Path) -> None:
    """The negative control: the kill that the escrow protocol survives at every step."""
    careless = Careless(tmp_path, UIDS)
    assert careless.move(die_at="between", nth=2) == -9
    careless.work()
    findings = judge(read_ledger(tmp_path / "ledger"), careless.databases, UIDS)
    assert findings.two_places == (f"{UIDS[2]}/1",)
    assert findings.accepted_twice == (UIDS[2],)
    assert findings.lost == (UIDS[2],), "it did not end in exactly one home"
    assert not findings.clean


def test_create_then_close_passes_as_long_as_nobody_is_killed(tmp_path: Path) -> None:
    """So what the checker holds against it is the kill, and not the way it is looked at."""
    careless = Careless(tmp_path, UIDS)
    assert careless.move() == 0
    careless.work()
    assert judge(read_ledger(tmp_path / "ledger"), careless.databases, UIDS).clean


@pytest.mark.soak
def test_create_then_close_fails_under_random_kills_as_well(tmp_path: Path) -> None:
    calm = tmp_path / "calm"
    calm.mkdir()
    dice, caught, takes_s = Random("random kills"), 0, Careless(calm, UIDS).moved_in_s()
    for number in range(60):
        place = tmp_path / str(number)
        place.mkdir()
        careless = Careless(place, UIDS)
        careless.move_until_killed(dice, takes_s)
        careless.work()
        findings = judge(read_ledger(place / "ledger"), careless.databases, UIDS)
        caught += bool(findings.two_places)
    assert caught > 0


@pytest.mark.parametrize(
    ("finding", "ledger", "task", "attempts"),
    [
        ("overlapped", "start a 1, overlap a 2, start a 2, end a 2", "a COMPLETED",
         "a 1 interrupted, a 2 completed"),
        ("two_places", "start a 1, start a 1, end a 1", "a COMPLETED", "a 1 completed"),
        ("two_places", "start a 1, start a 2, end a 2", "a COMPLETED", "a 2 completed"),
        ("lost", "start a 1, end a 1", "a READY", "a 1 interrupted"),
        ("lost", "", "", ""),
        ("accepted_twice", "start a 1, start a 2, end a 2", "a COMPLETED",
         "a 1 completed, a 2 completed"),
        ("accepted_twice", "start a 1, end a 1", "a COMPLETED, a COMPLETED", "a 1 completed"),
        ("invented", "start a 1", "a COMPLETED", "a 1 completed"),
    ],
)  # fmt: skip
def test_each_kind_of_finding_is_found(
    finding: str, ledger: str, task: str, attempts: str
) -> None:
    lines = [Line(word, uid, int(n), "iris", 1, 1, 1.0) for word, uid, n in _words(ledger)]
    tasks = [{"uid": uid, "state": state} for uid, state in _words(task)]
    closed = [{"uid": uid, "n": int(n), "outcome": outcome} for uid, n, outcome in _words(attempts)]
    findings = judge_rows(lines, tasks, closed, ["a"])
    assert getattr(findings, finding), findings
    assert not findings.clean


def test_a_task_that_ran_again_after_a_proven_death_is_no_finding() -> None:
    lines = [Line(word, "a", n, "iris", 1, 1, 1.0)
             for word, n in (("start", 1), ("start", 2), ("end", 2))]  # fmt: skip
    closed = [{"uid": "a", "n": 1, "outcome": "interrupted"},
              {"uid": "a", "n": 2, "outcome": "completed"}]  # fmt: skip
    assert judge_rows(lines, [{"uid": "a", "state": "COMPLETED"}], closed, ["a"]).clean


def _words(rows: str) -> list[list[str]]:
    return [row.split() for row in rows.split(", ") if row]


def test_a_second_end_is_found_where_the_row_shows_only_the_last(tmp_path: Path) -> None:
    """Fails when the rows alone are asked: the second result lies upon the first."""
    path = tmp_path / "queue.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            "CREATE TABLE task (uid TEXT, state TEXT); CREATE TABLE attempt (uid TEXT, n INTEGER,"
            " outcome TEXT); CREATE TABLE event (uid TEXT, n INTEGER, event TEXT)"
        )
        db.execute("INSERT INTO task VALUES ('a', 'COMPLETED')")
        told = [("a", n, "task_completed") for n in (1, 2)]
        db.executemany("INSERT INTO event VALUES (?, ?, ?)", told)
    assert judge([], {"iris": path}, ["a"]).accepted_twice == ("a",)
