"""Counts of the journal only grow: over days, crashes and prunings, and for any number of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from arc import journal_tallies
from arc.decisions.tallying import UNIT, Labels
from arc.errors import StateBroken
from arc.journal import Journal
from tests.builders import FakeClock

DAY_S = 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def journal(tmp_path: Path, clock: FakeClock) -> Iterator[Journal]:
    made = Journal(tmp_path / "journal.db", clock)
    yield made
    made.close()


def one(name: str, value: int = UNIT, **labels: str) -> dict[tuple[str, Labels], int]:
    return {(name, tuple(sorted(labels.items()))): value}


def test_counts_of_all_days_add_up_and_today_has_its_own(
    journal: Journal, clock: FakeClock,
) -> None:
    journal.tallies.add(one("spent", 5, node="iris"))
    clock.advance(DAY_S)
    journal.tallies.add(one("spent", 7, node="iris"))
    assert journal.tallies.all() == one("spent", 12, node="iris")
    assert journal.tallies.of_today("spent") == one("spent", 7, node="iris")
    assert journal.tallies.of_a_day("spent") == one("spent", 12, node="iris")
    clock.advance(DAY_S)
    assert journal.tallies.of_today("spent") == {}


def test_folding_old_days_changes_no_sum(journal: Journal, clock: FakeClock) -> None:
    for day in range(50):
        journal.tallies.add(one("spent", day, node="iris"))
        clock.advance(DAY_S)
    before = journal.tallies.all()
    journal.prune()
    journal.prune()
    assert journal.tallies.all() == before == one("spent", sum(range(50)), node="iris")
    rows = journal._rows.read("SELECT count(*) AS many FROM tally")
    assert rows[0]["many"] == journal_tallies.DAYS_KEPT + 1


def test_what_is_heard_is_counted_with_it_or_not_at_all(
    journal: Journal, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen to fail with the counting after the transaction instead of within it."""
    journal.nodes.hear("iris", "LIFE", 7, (), one("done", node="iris"))

    def full_disk(tally: object) -> None:
        raise StateBroken("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(journal.tallies, "add", full_disk)
        with pytest.raises(StateBroken):
            journal.nodes.hear("iris", "LIFE", 9, (), one("done", node="iris"))
    assert journal.nodes.heard_up_to("iris", "LIFE") == 7
    journal.nodes.hear("iris", "LIFE", 9, (), one("done", node="iris"))
    assert journal.tallies.all() == one("done", 2 * UNIT, node="iris")


def test_names_without_end_are_counted_under_one(
    journal: Journal, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_tallies, "SERIES_MAX", 3)
    tally: Counter[tuple[str, Labels]] = Counter()
    for number in range(10):
        tally.update(one("spent", 1, node=f"n{number}"))
    journal.tallies.add(tally)
    found = journal.tallies.all()
    assert len(found) == 4
    assert found["spent", ()] == 7


def test_stranded_time_is_counted_in_minutes_of_a_node(journal: Journal) -> None:
    journal.nodes.strand({("iris", "rule"): 90.0, ("loom", "rule"): 30.0})
    labels = (("cause", "rule"),)
    assert journal.tallies.all()["fleet_stranded_node_minutes_total", labels] == 2 * UNIT
