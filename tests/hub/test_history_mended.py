"""What an earlier version wrote of when tasks were ready is mended as the journal is opened."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agent_node.clock import iso
from arc import journal_tables
from arc.history import History
from arc.journal import Journal
from tests.builders import START, FakeClock, uid

MADE_MS = int(START.timestamp() * 1000)
MOVED_S = 2.0
MOST = 1000


def before(place: Path) -> Journal:
    """A journal in which the mending step was not taken yet."""
    journal = Journal(place / "journal.db", FakeClock())
    journal._rows.write("DELETE FROM _sqlite_migrations WHERE name = 'ready_as_they_came'")
    return journal


def came(journal: Journal, *, ready_s: float | None = MOVED_S, how: str = "added",
         node: str = "inbox") -> None:  # fmt: skip
    ready = None if ready_s is None else MADE_MS + int(1000 * ready_s)
    journal._rows.write("INSERT INTO arrival (uid, at, node, how, priority, ready_at)"
                        " VALUES (?,?,?,?,5,?)", [uid(1), MADE_MS, node, how, ready])  # fmt: skip


def moved(journal: Journal, *, at_s: float = MOVED_S, busy: str = "inbox",
          outcome: str = "moved") -> None:  # fmt: skip
    journal._rows.write(
        "INSERT INTO move (at, xfer, uid, busy, idle, busy_incarnation, idle_incarnation, why,"
        " rule, outcome, because) VALUES (?,'x',?,?,'iris','','','routed','',?,'')",
        [iso(START + timedelta(seconds=at_s)), uid(1), busy, outcome],
    )


def tied(journal: Journal, *, at_s: float, node: str = "iris") -> None:
    journal._rows.write("INSERT INTO tie (node, uid, at) VALUES (?,?,?)",
                        [node, uid(2), iso(START + timedelta(seconds=at_s))])  # fmt: skip


def ready_s(journal: Journal, place: Path) -> float | None:
    journal.close()
    Journal(place / "journal.db", FakeClock()).close()
    (one,) = History(place).arrivals(START, START + timedelta(days=1))
    return None if one.ready_at is None else (one.ready_at - START).total_seconds()


def test_what_was_moved_at_once_was_ready_as_it_came(tmp_path: Path) -> None:
    journal = before(tmp_path)
    came(journal)
    moved(journal)
    tied(journal, at_s=-60)
    tied(journal, at_s=1, node="loom")
    assert ready_s(journal, tmp_path) == 0


@pytest.mark.parametrize("what", ["tied", "long", "apart", "elsewhere", "kept", "arrived",
                                  "never"])  # fmt: skip
def test_what_the_journal_cannot_prove_stays_as_it_was_heard(tmp_path: Path, what: str) -> None:
    journal = before(tmp_path)
    ready = {"long": 61.0, "never": None}.get(what, MOVED_S)
    came(journal, ready_s=ready, how="arrived" if what == "arrived" else "added")
    moved(journal, at_s={"long": 61.0, "apart": 63.0}.get(what, MOVED_S),
          busy="loom" if what == "elsewhere" else "inbox",
          outcome="kept" if what == "kept" else "moved")  # fmt: skip
    if what == "tied":
        tied(journal, at_s=1)
    assert ready_s(journal, tmp_path) == ready


def test_only_the_newest_are_looked_at_in_a_large_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a million, each one to mend, take three seconds of a start."""
    monkeypatch.setattr(journal_tables, "READY_MEND_MAX", MOST)
    journal = before(tmp_path)
    many = MOST + 10
    with journal._rows.transaction():
        journal._rows.write_many(
            "INSERT INTO arrival (uid, at, node, how, priority, ready_at)"
            " VALUES (?,?,'inbox','added',5,?)",
            [(str(n), MADE_MS + n, MADE_MS + n + 2000) for n in range(many)],
        )
        journal._rows.write_many(
            "INSERT INTO move (at, xfer, uid, busy, idle, busy_incarnation, idle_incarnation,"
            " why, rule, outcome, because) VALUES (?,'x',?,'inbox','iris','','','','','moved','')",
            [(iso(START + timedelta(milliseconds=n + 2000)), str(n)) for n in range(many)],
        )
    journal.close()
    journal = Journal(tmp_path / "journal.db", FakeClock())
    rows = journal._rows.read("SELECT count(*) AS many FROM arrival WHERE ready_at > at")
    journal.close()
    assert rows == [{"many": 10}]
