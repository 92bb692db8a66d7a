"""A graph's id where a task is asked for: the error says what it is, and where to look at it."""

from __future__ import annotations

import asyncio

import pytest

from arc.operations import graph_finding
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dags import dag_of


@pytest.mark.parametrize("words", [("why",), ("tasks", "show")])
def test_the_id_of_a_graph_leads_to_the_graph(desk: Desk, words: tuple[str, ...]) -> None:
    """Seen to fail: the id that `arc dag submit` prints was nowhere, and the hint listed tasks."""
    dag = dag_of(desk)
    for part in (dag, dag[-6:].lower()):
        text, error = desk.both(*words, part)
        assert (text.code, error["code"]) == (5, "ARC-NOT-FOUND")
        assert f'{dag} is a graph "nightly"' in text.err
        assert f"hint: arc dag show {dag}" in text.err
        assert error["hint"] == f"arc dag show {dag}"
    assert desk.arc(*error["hint"].split()[1:]).code == 0


def test_where_a_node_is_silent_it_may_still_be_a_task_and_the_graph_is_named(desk: Desk) -> None:
    dag = dag_of(desk)
    desk.nodes.switch_off("loom")
    text, error = desk.both("why", dag[-6:])
    assert (text.code, error["code"]) == (3, "ARC-NOT-FOUND-YET")
    assert "loom did not answer" in error["message"]
    assert error["hint"] == f"arc dag show {dag}"


def test_what_is_neither_task_nor_graph_is_found_nowhere_as_before(desk: Desk) -> None:
    dag_of(desk)
    text = desk.arc("why", uid(77))
    assert (text.code, "hint: arc tasks list" in text.err) == (5, True)
    assert "is a graph" not in text.err


def test_an_error_waits_for_no_hint_that_does_not_come(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hangs where a graph is looked for as long as some queue keeps silent."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(graph_finding, "find_graph", never)
    monkeypatch.setattr(graph_finding, "HINT_S", 0.01)
    assert desk.arc("why", "ZZZZ").code == 5
