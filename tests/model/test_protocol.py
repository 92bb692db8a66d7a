"""Shows that the promise holds in every state of each scope, and that every task can end."""

from __future__ import annotations

import pytest

from tests.model.happenings import steps
from tests.model.search import Came, explore, search
from tests.model.world import Scope

SCOPES = {
    "two nodes, three transfers": Scope(nodes=2, transfers=3),
    "three nodes, three transfers": Scope(nodes=3, transfers=3),
    "hold goes by the task's epoch": Scope(nodes=2, transfers=3, epoch_from_task=True),
    "old records are forgotten": Scope(nodes=2, transfers=2, forgetting=True),
    "the giver is restored": Scope(nodes=3, transfers=2, is_restored=(0,), reowns=1),
    "the taker is restored": Scope(nodes=2, transfers=2, is_restored=(1,), reowns=1),
    "two re-owns after a restore": Scope(nodes=3, transfers=1, is_restored=(0, 1), reowns=2),
    "the giver is fenced": Scope(nodes=2, transfers=2, loses_power=(0,), reowns=1),
    "the taker is fenced": Scope(nodes=2, transfers=2, loses_power=(1,), reowns=1),
    "two re-owns after a fence": Scope(nodes=3, transfers=1, loses_power=(0, 1), reowns=2),
    "a fence, and old records": Scope(nodes=2, transfers=1, forgetting=True,
                                      loses_power=(0, 1), reowns=1),
    "a restore, and old records": Scope(nodes=2, transfers=1, forgetting=True,
                                        is_restored=(0, 1), reowns=1),
    "a fence, and the giver restored": Scope(nodes=2, transfers=1, loses_power=(0, 1),
                                             is_restored=(0,), reowns=1),
    "a fence, and the taker restored": Scope(nodes=2, transfers=1, loses_power=(0, 1),
                                             is_restored=(1,), reowns=1),
    "restored twice": Scope(nodes=2, transfers=1, is_restored=(0, 1), troubles=2, reowns=1),
}
LARGE_SCOPES = {
    "two nodes, four transfers": Scope(nodes=2, transfers=4),
    "three nodes, four transfers": Scope(nodes=3, transfers=4),
    "three nodes forget": Scope(nodes=3, transfers=2, forgetting=True),
    "B of three is restored": Scope(nodes=3, transfers=2, is_restored=(1,), reowns=1),
    "C of three is restored": Scope(nodes=3, transfers=2, is_restored=(2,), reowns=1),
    "A of three is fenced": Scope(nodes=3, transfers=2, loses_power=(0,), reowns=1),
    "B of three is fenced": Scope(nodes=3, transfers=2, loses_power=(1,), reowns=1),
    "C of three is fenced": Scope(nodes=3, transfers=2, loses_power=(2,), reowns=1),
    "three nodes, two re-owns": Scope(nodes=3, transfers=1, loses_power=(0, 1, 2), reowns=2,
                                      alike=False),
    "power fails twice": Scope(nodes=2, transfers=1, loses_power=(0, 1), troubles=2, reowns=1),
    "restored twice, two re-owns": Scope(nodes=2, transfers=1, is_restored=(0, 1), troubles=2,
                                         reowns=2),
    "a restore between old records": Scope(nodes=2, transfers=2, forgetting=True,
                                           is_restored=(1,), reowns=1),
    "a fence between old records": Scope(nodes=2, transfers=2, forgetting=True,
                                         loses_power=(1,), reowns=1),
}


def assert_the_promise_holds(name: str, scope: Scope) -> None:
    """Never runnable twice, never started twice, and always able to end, in every state."""
    verdict = search(scope)
    print(f"{name}: {verdict.states} states, {verdict.recovered} once all answers are lost")
    assert verdict.counterexample is None, str(verdict.counterexample)


@pytest.mark.parametrize("name", SCOPES)
def test_no_task_is_lost_or_runnable_twice(name: str) -> None:
    assert_the_promise_holds(name, SCOPES[name])


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGE_SCOPES)
def test_no_task_is_lost_or_runnable_twice_in_a_large_scope(name: str) -> None:
    assert_the_promise_holds(name, LARGE_SCOPES[name])


@pytest.mark.parametrize(("scope", "seen"), [
    (SCOPES["old records are forgotten"], {
        "escrow x2 at B: escrowed", "hold x2 at A: held", "commit x2 at B: committed",
        "activate x2 at A: activated", "abort x1 at A: aborted", "drop x1 at B: dropped",
        "refuse x1 at B: refused", "hold x1 at B: too_old", "settled x1 at A: settled",
        "A: the lease of x1 ends", "B starts the task", "A forgets x1", "B forgets x1",
        "A forgets another task's transfer"}),
    (SCOPES["the taker is restored"], {
        "B is restored", "bar at A, epoch 8: barred", "bar at B, epoch 8: barred",
        "re-own at A, epoch 8: reowned", "re-own at B, epoch 8: reowned",
        "B: nothing is left to decide, quarantine ends"}),
    (SCOPES["the taker is fenced"], {
        "B loses power", "a person fences B", "B boots", "B boots; the attempt is dead",
        "hello to B", "hello to B: you were fenced", "re-own at A, epoch 8: reowned",
        "re-own at B, epoch 8: reowned"}),
], ids=["forgetting", "restored", "fenced"])
def test_the_search_walks_every_kind_of_step(scope: Scope, seen: set[str]) -> None:
    """A search that never gets to a step says nothing about it."""
    came: Came = {}
    assert explore([scope.first()], scope, came) is None
    assert seen - {text for world in came for text, _ in steps(world, scope)} == set()
