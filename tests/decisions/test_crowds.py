"""Checks that tasks are sorted into crowds alike, however many subjects there are to listen to."""

from __future__ import annotations

import pytest

from arc.decisions import crowds
from arc.decisions.crowds import Sorter
from arc.decisions.domains import Domain
from arc.decisions.limits import StealLimits
from arc.decisions.view import QueuedTask

DOMAINS = (Domain("infra", prefix=("Infra:",)), Domain("research", words=("papers",)))


def queues_of(*subjects: list[str]) -> list[list[QueuedTask]]:
    return [[QueuedTask(f"{place:026d}", 1, subject, priority=5)
             for place, subject in enumerate(some)] for some in subjects]  # fmt: skip


@pytest.mark.parametrize("remembered", [0, 1, 2, 100])
def test_a_subject_that_was_heard_before_says_the_same_again(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """From one queue to the next, whether what was heard is remembered or listened to again."""
    monkeypatch.setattr(crowds, "SUBJECTS_MAX", remembered)
    subjects = ["infra: a", "read papers", "look", "infra: b"]
    sorter = Sorter(DOMAINS, StealLimits(), frozenset())

    for queue in queues_of(*[subjects] * 3):
        found = sorter.crowds_of(queue)
        assert {one.like.belongs.names: [task.subject for task in one.tasks] for one in found} == {
            ("infra",): ["infra: a", "infra: b"], ("research",): ["read papers"], (): ["look"],
        }  # fmt: skip


def test_where_most_subjects_differ_they_are_remembered_no_longer(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "SUBJECTS_MAX", 2)
    sorter = Sorter(DOMAINS, StealLimits(), frozenset())

    for queue in queues_of(*[[f"infra: {n}{m}" for m in range(3)] for n in range(9)]):
        sorter.crowds_of(queue)

    assert len(sorter._sounds) == 3
