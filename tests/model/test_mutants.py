"""Takes the guards away one by one: the needed ones are missed at once, the spare ones are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.guards import NEEDED, SPARE, SPARE_WITHOUT_REOWNING
from tests.model.search import search
from tests.model.world import Scope

MOVES = Scope(nodes=2, transfers=2)
MORE_MOVES = Scope(nodes=2, transfers=3)
FORGETTING = Scope(nodes=2, transfers=2, forgetting=True)
GIVER_RESTORED = Scope(nodes=2, transfers=1, is_restored=(0,), reowns=1)
TAKER_RESTORED = Scope(nodes=2, transfers=1, is_restored=(1,), reowns=1)
THREE_RESTORED = Scope(nodes=3, transfers=2, is_restored=(0,), reowns=1)
GIVER_FENCED = Scope(nodes=2, transfers=1, loses_power=(0,), reowns=1, heard_before_hello=False)
TAKER_FENCED = Scope(nodes=2, transfers=1, loses_power=(1,), reowns=2, heard_before_hello=False)
FENCED_AND_RESTORED = Scope(nodes=2, transfers=1, loses_power=(1,), is_restored=(0,), reowns=1)
RESTORED_AND_FORGETTING = Scope(nodes=2, transfers=2, forgetting=True, is_restored=(1,), reowns=1)

FOUND_IN = {
    "commit_only_on_escrow": MOVES,
    "activate_only_on_held": MOVES,
    "activate_after_commit": MOVES,
    "commit_after_hold": MOVES,
    "no_drop_by_a_clock": MOVES,
    "escrow_names_its_epoch": MORE_MOVES,
    "held_gives_way_to_newer": MOVES,
    "unseen_abort_recorded": MOVES,
    "xfer_floor": FORGETTING,
    "bar_recorded": THREE_RESTORED,
    "bar_keeps_the_copy": GIVER_RESTORED,
    "disk_evidence": TAKER_RESTORED,
    "other_incarnation": TAKER_RESTORED,
    "later_incarnation_refuses": TAKER_FENCED,
    "quarantine_on_restore": TAKER_RESTORED,
    "new_incarnation_on_restore": TAKER_RESTORED,
    "hearsay_outlives_restore": FENCED_AND_RESTORED,
    "wait_for_hello": TAKER_FENCED,
    "wait_covers_the_offered": GIVER_FENCED,
    "hello_tells_the_fence": TAKER_FENCED,
    "fence_names_the_boot": GIVER_FENCED,
    "new_incarnation_on_fence": TAKER_FENCED,
}
FOUND_LATE = {"reown_recorded": RESTORED_AND_FORGETTING}


def assert_it_is_missed(guard: str, scope: Scope) -> None:
    """The same scope is clean with the guard and broken without it."""
    verdict = search(replace(scope, off=guard))
    assert verdict.counterexample is not None, f"without {guard} nothing went wrong"
    print(f"without {guard} ({NEEDED[guard]}): {verdict.counterexample}")


@pytest.mark.parametrize("guard", FOUND_IN)
def test_a_needed_guard_is_missed(guard: str) -> None:
    assert_it_is_missed(guard, FOUND_IN[guard])


@pytest.mark.soak
@pytest.mark.parametrize("guard", FOUND_LATE)
def test_a_needed_guard_is_missed_after_a_long_while(guard: str) -> None:
    assert_it_is_missed(guard, FOUND_LATE[guard])


@pytest.mark.parametrize("scope", sorted({*FOUND_IN.values()}, key=repr), ids=str)
def test_with_every_guard_on_the_mutants_own_scopes_are_clean(scope: Scope) -> None:
    """Otherwise a mutant could be found for another reason than its missing guard."""
    assert search(scope).counterexample is None


def test_every_needed_guard_has_its_mutant() -> None:
    assert {*FOUND_IN, *FOUND_LATE} == {*NEEDED}


@pytest.mark.parametrize("guard", SPARE)
@pytest.mark.parametrize("scope", [MORE_MOVES, FORGETTING, TAKER_RESTORED, TAKER_FENCED],
                         ids=["moves", "forgetting", "restored", "fenced"])
def test_removing_a_spare_guard_alone_keeps_the_promise(guard: str, scope: Scope) -> None:
    assert search(replace(scope, off=guard)).counterexample is None


@pytest.mark.parametrize("guard", SPARE_WITHOUT_REOWNING)
@pytest.mark.parametrize("scope", [MORE_MOVES, FORGETTING], ids=["moves", "forgetting"])
def test_tombstones_are_spare_while_tasks_only_move(guard: str, scope: Scope) -> None:
    assert search(replace(scope, off=guard)).counterexample is None


@pytest.mark.parametrize("guard", SPARE_WITHOUT_REOWNING)
def test_tombstones_are_needed_for_a_bar_to_hold(guard: str) -> None:
    assert search(replace(TAKER_RESTORED, off=guard)).counterexample is not None


def test_the_epoch_check_of_escrow_is_spare_where_hold_goes_by_the_task() -> None:
    """The check guards against a copy that is held at an older epoch than it was escrowed at."""
    scope = replace(MORE_MOVES, epoch_from_task=True, off="escrow_names_its_epoch")
    assert search(scope).counterexample is None
