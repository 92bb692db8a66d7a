"""Whatever is lawful passes: the densest that a hub asks, and the densest that a node answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node.clock import SystemClock
from agent_node.fields import EXTRA_MAX, check_size
from agent_node.graphs import TASKS_MAX
from agent_node.lines import encode, line_of
from agent_node.readiness import EDGES_MAX
from agent_node.requests import ENDS_MAX, MARKS_MAX, marks_of, read_request
from agent_node.strict import LINE_MAX, JsonObject, JsonValue
from agent_node.wire import fitting
from arc import telling
from arc.errors import NodeRefused
from arc.links.inbox import InboxLink
from arc.telling import _parts
from arc.transfer import BATCH_MAX, carry_out
from tests.builders import uid
from tests.hub.links.places import words
from tests.hub.links.test_talk import Peer
from tests.hub_nodes import SomeNodes, some_nodes, twisted

DENSE: list[JsonValue] = [[]] * (EXTRA_MAX // 3)  # with its own brackets and commas 64 KiB
EXTRA: JsonObject = {"x": [[]] * ((EXTRA_MAX - 6) // 3)}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SomeNodes]:
    with some_nodes(tmp_path, "iris", "loom") as found:
        yield found


async def told_to_a_store(place: Path, do: str, fields: JsonObject) -> JsonObject:
    link = InboxLink(place / "inbox", words(), clock=SystemClock())
    try:
        return await link.ask(do, fields)
    finally:
        await link.close()


def test_no_output_has_more_marks_than_lists_of_nothing() -> None:
    check_size(DENSE, "output")
    assert marks_of(DENSE) == EXTRA_MAX * 2 // 3
    assert len(encode(DENSE)) > EXTRA_MAX - 3


async def test_as_many_ends_as_a_hub_tells_at_once_are_heard(tmp_path: Path) -> None:
    """Seen to fail: 3.1 MiB that were refused each time, and no store heard of any end after."""
    ends: list[JsonValue] = [
        {"uid": uid(n), "state": "COMPLETED", "node": "iris", "at": "2026-03-10T03:45:00.000Z",
         "output": DENSE, "because": ",:[{" * 1000}
        for n in range(ENDS_MAX)
    ]  # fmt: skip
    said = await told_to_a_store(tmp_path, "ended", {"tasks": ends})
    assert isinstance(results := said["results"], list)
    assert len(results) == ENDS_MAX


async def test_tasks_of_the_densest_fields_are_added(tmp_path: Path) -> None:
    tasks: list[JsonValue] = [{"subject": "x", "extra": EXTRA} for _ in range(ENDS_MAX)]
    said = await told_to_a_store(tmp_path, "add", {"tasks": tasks})
    assert isinstance(results := said["results"], list)
    assert {one["outcome"] for one in results if isinstance(one, dict)} == {"added"}


async def test_tasks_of_the_densest_fields_move_in_as_many_requests_as_it_takes(
    nodes: SomeNodes,
) -> None:
    """Seen to fail in one, which no node reads."""
    numbers = range(1, MARKS_MAX // marks_of(EXTRA) + 2)
    nodes.add("iris", *numbers, extra=EXTRA)
    steals = [nodes.steal(number, "iris", "loom") for number in numbers]
    done = await carry_out(steals, nodes.links)
    assert {(one.outcome, one.rule) for one in done} == {("moved", "")}
    assert all(nodes.states(number) == {"loom": "READY"} for number in numbers)
    assert nodes.links["loom"].requests == 3  # two holds, and one word for all


async def test_where_a_later_part_is_refused_nothing_is_taken_for_refused_that_was_held(
    nodes: SomeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first part stands there: the two nodes' doubts say how each of them ends."""
    monkeypatch.setattr(telling, "MARKS_MAX", telling._FRAME_MARKS + 1000)
    numbers = range(1, 3)
    nodes.add("iris", *numbers, extra={"x": [1] * 900})
    steals = [nodes.steal(number, "iris", "loom") for number in numbers]
    await nodes.view()
    heard = list[str]()

    def refuses_the_second(do: str, answer: JsonObject) -> JsonObject:
        heard.append(do)
        if heard.count("hold") == 2:
            raise NodeRefused("loom", "bad_input", "no")
        return answer

    links = {**nodes.links, "loom": twisted(nodes.links["loom"], refuses_the_second)}
    done = await carry_out(steals, links)
    assert {one.outcome for one in done} == {"in_doubt"}
    assert nodes.states(1) == {"iris": "ESCROW", "loom": "HELD"}


def test_parts_are_read_and_nothing_is_left_out() -> None:
    moves: list[JsonObject] = [{"xfer": str(n), "task": {"extra": EXTRA}} for n in range(BATCH_MAX)]
    parts = _parts(moves)
    assert [move for part in parts for move in part] == moves
    assert len(parts) == 2
    for part in parts:
        read_request(line_of({"id": 1, "do": "hold", "moves": list[JsonValue](part)}))


def test_the_largest_graph_is_read() -> None:
    """By its tasks and what they wait for; as many values again are left for what they say."""
    each = EDGES_MAX // TASKS_MAX
    tasks: JsonObject = {
        f"t{n}": {"uid": uid(n), "subject": "x, y", "needs": ["a", "b"], "priority": 5,
                  "after": [{"task": f"t{n - m}", "on_failure": "run"} for m in range(1, each + 1)]}
        for n in range(TASKS_MAX)
    }  # fmt: skip
    line = line_of({"id": 1, "do": "submit", "graph": {"title": "t", "tasks": tasks}})
    assert marks_of(tasks) < MARKS_MAX // 2
    assert read_request(line).do == "submit"


async def test_a_page_of_the_densest_events_is_heard() -> None:
    """Seen to fail: the node was called a liar and cut, and asked for the same page ever after."""
    data: JsonObject = {"output": [1] * (EXTRA_MAX // 2 - 1)}
    events: list[JsonObject] = fitting(
        {"seq": n, "event": "task_completed", "uid": uid(n), "data": data} for n in range(500)
    )
    peer = Peer()
    asked: asyncio.Task[Any] = await peer.asked("events")
    peer.answers_tightly(0, events=events)
    assert marks_of(list[JsonValue](events)) > MARKS_MAX
    assert len(encode(list[JsonValue](events))) < LINE_MAX
    assert await asked == {"events": events}
    assert peer.talk.over is None
