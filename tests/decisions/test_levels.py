"""The levels of a graph, as a person sees it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.levels import levels_of


def levels(needs: dict[str, list[str]]) -> dict[str, int]:
    return {one.uid: one.level for one in levels_of(needs)}


def test_each_task_stands_below_all_that_it_waits_for() -> None:
    assert levels({"d": ["b", "c"], "a": [], "b": ["a"], "c": ["b"]}) == {
        "a": 1, "b": 2, "c": 3, "d": 4}  # fmt: skip


def test_what_lies_outside_of_the_graph_makes_no_level() -> None:
    assert levels({"a": ["elsewhere"], "b": ["a", "a"]}) == {"a": 1, "b": 2}


def test_a_circle_comes_last_and_ends() -> None:
    assert levels({"a": ["b"], "b": ["a"], "c": []}) == {"c": 1, "a": 2, "b": 2}


def test_ten_thousand_in_a_row_take_no_recursion() -> None:
    chain = {str(n): [str(n - 1)] if n else [] for n in range(10_000)}
    assert levels(chain)["9999"] == 10_000


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30))
def test_every_edge_leads_to_a_level_above(edges: list[list[int]]) -> None:
    needs = {str(n): [str(m) for m in some if m < n] for n, some in enumerate(edges)}
    found = levels(needs)
    assert all(found[one] < found[uid] for uid, some in needs.items() for one in some)
    assert found.keys() == needs.keys()
