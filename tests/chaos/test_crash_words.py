"""Every word that changes a queue meets every fault, before it is on the disk and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_node.replies import CHANGES
from tests.chaos.crash_table import ACTIONS, SIDES
from tests.chaos.word_cases import ORDER
from tests.chaos.word_cells import WordCells
from tests.node.daemon.conftest import MakeNode

MakeCells = Callable[..., WordCells]


@pytest.fixture
def make_cells(make_node: MakeNode, tmp_path: Path) -> Iterator[MakeCells]:
    made: list[WordCells] = []

    def make(action: str, *, busy: bool = True) -> WordCells:
        place = tmp_path / f"world-{len(made)}"
        place.mkdir()
        made.append(WordCells(make_node(home=place / "iris", stop_grace_s=0), place, action,
                              busy=busy))  # fmt: skip
        return made[-1]

    yield make
    for cells in made:
        cells.close()


def test_every_word_that_changes_something_has_a_case() -> None:
    assert sorted(ORDER) == sorted(CHANGES)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_word_that_met_a_fault_and_is_said_again_takes_effect_once(
    make_cells: MakeCells, action: str
) -> None:
    """Seen to fail where a bar that is said twice is refused, where an earlier hub is heard after
    the hello of a later one, and where a failing disk is told as a fault of ours.
    """
    cells = make_cells(action)
    reached = cells.campaign(ORDER)
    assert reached == [f"{do}.{side}" for do in ORDER for side in SIDES]
    cells.end()


@pytest.mark.soak
@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("do", ORDER)
def test_each_cell_of_a_word_by_itself(
    make_cells: MakeCells, do: str, action: str, side: str, *, busy: bool
) -> None:
    """In a home of its own, where nothing has happened yet; the books are read after it."""
    cells = make_cells(action, busy=busy or do == "spawn")  # only what runs can say that
    assert cells.campaign((do,), (side,)) == [f"{do}.{side}"]
    cells.end()
