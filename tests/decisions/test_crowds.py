"""Checks that tasks are sorted into crowds alike, however many subjects there are to listen to."""

from __future__ import annotations

import pytest

from arc.decisions import crowds
from arc.decisions.crowds import Sorter
from arc.decisions.domains import Domain
from arc.decisions.limits import StealLimits
from arc.decisions.view import QueuedTask

DOMAINS = (Domain("infra", prefix=("Infra:",)), Domain("research", words=("papers",)))


def sorted_by_domain(subjects: list[str]) -> dict[tuple[str, ...], list[str]]:
    """The subjects of each crowd, by the domains that its tasks belong to."""
    tasks = [QueuedTask(f"{place:026d}", 1, subject, priority=5)
             for place, subject in enumerate(subjects)]  # fmt: skip
    found = Sorter(DOMAINS, StealLimits(), frozenset()).crowds_of(tasks)
    return {one.like.belongs.names: [task.subject for task in one.tasks] for one in found}


@pytest.mark.parametrize("remembered", [0, 1, 2, 100])
def test_a_subject_that_was_heard_before_says_the_same_again(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """What is remembered is bounded, and what is not remembered is listened to again."""
    monkeypatch.setattr(crowds, "SUBJECTS_MAX", remembered)
    subjects = ["infra: a", "read papers", "look", "infra: b"] * 3

    assert sorted_by_domain(subjects) == {
        ("infra",): ["infra: a", "infra: b"] * 3, ("research",): ["read papers"] * 3,
        (): ["look"] * 3,
    }  # fmt: skip


def test_no_more_subjects_are_remembered_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "SUBJECTS_MAX", 2)
    sorter = Sorter(DOMAINS, StealLimits(), frozenset())

    sorter.crowds_of([QueuedTask(f"{n:026d}", 1, f"infra: {n}", priority=5) for n in range(9)])

    assert len(sorter._sounds) == 2
