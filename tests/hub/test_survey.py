"""All nodes are asked at once; who does not answer, or lies, is unseen with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node.strict import JsonObject
from arc.decisions.domains import Role
from arc.decisions.node_rules import idle_seconds
from arc.decisions.view import FleetView, NodeUnseen, Queue, QueueUnseen
from arc.errors import (
    AnswerUnreadable,
    ArcError,
    HostKeyChanged,
    LoginRefused,
    NodeCannotServe,
    NodeSilent,
    NodeUnreachable,
    NoNodeProgram,
    OtherHub,
)
from arc.links import Link, Told
from arc.queues import look_into
from arc.survey import survey
from tests.builders import FakeClock, uid
from tests.hub_nodes import ALink, SomeNodes, some_nodes, twisted
from tests.virtual_time import LoopClock, VirtualLoop, in_virtual_time


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SomeNodes]:
    with some_nodes(tmp_path, "forge", "iris", "loom") as found:
        yield found


async def look(links: dict[str, Link]) -> FleetView:
    return await survey(links, roles={}, clock=FakeClock())


async def test_every_node_is_seen_with_its_own_report_and_role(nodes: SomeNodes) -> None:
    nodes.add("iris", 1, 2)
    role = Role(owns=("research",))
    view = await survey(nodes.links, roles={"iris": role}, clock=nodes.machines["iris"].clock)
    assert [node.name for node in view.seen] == ["forge", "iris", "loom"]
    assert [node.report.pending_count for node in view.seen] == [0, 2, 0]
    assert (view.seen[1].role, view.seen[0].role, view.unseen) == (role, Role(), ())


def silent_for(name: str, seconds: float) -> ALink:
    async def say(do: str, fields: JsonObject) -> JsonObject:
        await asyncio.sleep(seconds)
        raise AssertionError("nobody waits that long")

    return ALink(name, say)


def test_a_silent_node_delays_nobody_beyond_its_own_deadline(tmp_path: Path) -> None:
    """Seen to fail with the nodes asked one after the other."""

    async def story() -> FleetView:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with some_nodes(tmp_path, "iris") as nodes:
            links = {**nodes.links, "mute": silent_for("mute", 999), "dumb": silent_for("dumb", 99)}
            return await survey(links, roles={}, clock=LoopClock(loop), deadline_s=10)

    view, took_s = in_virtual_time(story())
    assert took_s == 10
    assert [(node.name, node.took_s, node.age_s) for node in view.seen] == [("iris", 0, 10)]
    assert [(node.name, node.rule, node.code) for node in view.unseen] == [
        ("dumb", "silent", "ARC-SILENT"), ("mute", "silent", "ARC-SILENT"),
    ]  # fmt: skip
    assert "no answer within 10s; nothing changed there" in view.unseen[0].because


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (NodeUnreachable("iris", "no route"), "unreachable"),
        (HostKeyChanged("iris", "another key"), "host_key"),
        (LoginRefused("iris", "not this key"), "login"),
        (NodeCannotServe("iris", "agent-node cannot serve: bad_settings"), "cannot_serve"),
        (NoNodeProgram("iris", "there is no agent-node to start"), "no_node"),
        (NodeSilent("iris", "no answer"), "silent"),
        (AnswerUnreadable("iris", "garbage"), "unreadable"),
        (OtherHub("a later hub"), "other_hub"),
    ],
)
async def test_a_node_that_cannot_be_read_is_unseen_under_the_rule_of_its_error(
    nodes: SomeNodes, error: ArcError, rule: str
) -> None:
    async def say(do: str, fields: JsonObject) -> JsonObject:
        raise error

    view = await look({**nodes.links, "iris": ALink("iris", say)})
    assert [node.name for node in view.seen] == ["forge", "loom"]
    assert view.unseen == (NodeUnseen("iris", rule, str(error), error.code),)


LIES: dict[str, JsonObject] = {
    "idle with a million waiting": {"idle": True, "pending_count": 10**6},
    "less than nothing waiting": {"pending_count": -1, "idle": False},
    "a count that is no number": {"pending_count": float("nan"), "idle": False},
    "idle since nobody knows when": {"idle": True, "idle_since": None},
    "a time that is none": {"written_at": "yesterday"},
    "more free slots than slots": {"free_slots": 99},
    "another node's report": {"node": "loom"},
    "no report at all": {"schema": "weather/1"},
    "doubts that are none": {"doubts": [{"xfer": "x"}]},
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lying_report_is_unreadable_and_stops_no_other_node(
    nodes: SomeNodes, lie: str
) -> None:
    await nodes.view()
    iris = twisted(nodes.links["iris"], lambda do, result: {**result, **LIES[lie]})
    view = await look({**nodes.links, "iris": iris})
    assert [node.name for node in view.seen] == ["forge", "loom"]
    assert [(node.name, node.rule) for node in view.unseen] == [("iris", "unreadable")]


async def test_a_node_that_is_idle_since_a_time_to_come_is_seen(nodes: SomeNodes) -> None:
    """Its clock was put back. Seen to fail: all it said was refused until the clock caught up."""
    await nodes.view()
    later: JsonObject = {"idle": True, "idle_since": "2031-01-01T00:00:00.000Z"}
    iris = twisted(nodes.links["iris"], lambda do, result: {**result, **later})
    view = await look({**nodes.links, "iris": iris})
    (seen,) = (one for one in view.seen if one.name == "iris")
    assert seen.report.idle_since == seen.report.written_at
    assert idle_seconds(seen) == seen.age_s


async def test_a_node_that_became_another_one_is_met_anew(nodes: SomeNodes) -> None:
    """Seen to fail without the second meeting: it stayed unreadable until the link broke."""
    await nodes.view()
    from agent_node.moves import Quarantine

    nodes.machines["iris"].store.apply(Quarantine("a person says so"))
    view = await look(nodes.links)
    assert [node.report.state for node in view.seen] == ["active", "quarantined", "active"]


async def test_a_report_under_another_incarnation_than_was_met_is_unreadable(
    nodes: SomeNodes,
) -> None:
    await nodes.view()
    iris = twisted(nodes.links["iris"],
                   lambda do, result: {**result, "incarnation": "01J" + "7" * 23})  # fmt: skip
    view = await look({**nodes.links, "iris": iris})
    assert [(node.name, node.rule) for node in view.unseen] == [("iris", "unreadable")]
    assert (iris.anew, iris.closed) == (1, 0)


class Open(ALink):
    """A link whose session is open: it may be asked without waiting, and answers in a while."""

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        async def answer() -> None:
            try:
                said: JsonObject | ArcError = await self._saying(do, {})
            except ArcError as error:
                said = error
            told(said)

        self._answering = asyncio.create_task(answer())
        return True


def opened(link: Link) -> Open:
    """The same node, whose session is open."""
    same = twisted(link, lambda do, result: result)
    return Open(link.name, same._saying, incarnation=same.incarnation)


async def test_nodes_with_an_open_session_are_seen_as_all_others_are(nodes: SomeNodes) -> None:
    nodes.add("iris", 1, 2)
    before = await nodes.view()
    links: dict[str, Link] = {**nodes.links, "iris": opened(nodes.links["iris"])}

    async def no_route(do: str, fields: JsonObject) -> JsonObject:
        raise NodeUnreachable("mute", "no route")

    view = await look({**links, "mute": Open("mute", no_route)})
    assert [(node.name, node.report.pending_count) for node in view.seen] == [
        (node.name, node.report.pending_count) for node in before.seen
    ]
    assert [(node.name, node.rule) for node in view.unseen] == [("mute", "unreachable")]


async def test_a_node_that_became_another_one_behind_an_open_session_is_met_anew(
    nodes: SomeNodes,
) -> None:
    """Seen to fail where what an open session says is believed whoever says it."""
    await nodes.view()
    iris = opened(nodes.links["iris"])
    iris.incarnation = "01J" + "7" * 23
    view = await look({**nodes.links, "iris": iris})
    assert iris.anew == 1
    assert [(node.name, node.rule) for node in view.unseen] == [("iris", "unreadable")]


async def test_a_clock_that_is_off_is_measured_and_believed_in_nothing(tmp_path: Path) -> None:
    with some_nodes(tmp_path, "iris") as nodes:
        nodes.machines["iris"].clock.off_s = 90.0
        view = await survey(nodes.links, roles={}, clock=FakeClock())
        assert view.seen[0].clock_off_s == pytest.approx(90.0, abs=0.01)


ASK: JsonObject = {"why": "stolen", "for": [{"node": "loom"}]}


async def test_a_queue_is_looked_into_with_counts_that_add_up(nodes: SomeNodes) -> None:
    nodes.add("iris", 1, 2)
    nodes.add("iris", 3, pinned=True)
    found = await look_into(nodes.links, ["iris", "forge"], ASK)
    iris, forge = found["iris"], found["forge"]
    assert isinstance(iris, Queue)
    assert [task.uid for task in iris.tasks] == [uid(2), uid(1)]
    assert (iris.eligible, dict(iris.kept), iris.total) == (2, {"pinned": 1}, 3)
    assert forge == Queue("forge")


@pytest.mark.parametrize(
    "change",
    [
        {"total": 9}, {"eligible": 0, "total": 0}, {"kept": {"pinned": -1}}, {"tasks": 7},
        {"tasks": [{"uid": uid(1), "subject": "x", "state": "RUNNING"}]}, {"eligible": 10**9},
    ],
)  # fmt: skip
async def test_an_answer_that_does_not_add_up_is_no_empty_queue(
    nodes: SomeNodes, change: dict[str, Any]
) -> None:
    nodes.add("iris", 1)
    await nodes.view()
    iris = twisted(nodes.links["iris"], lambda do, result: {**result, **change})
    found = (await look_into({"iris": iris}, ["iris"], ASK))["iris"]
    assert isinstance(found, QueueUnseen)
    assert found.rule == "unreadable"


def test_a_queue_that_does_not_answer_is_unseen_in_time() -> None:
    async def story() -> Any:
        return await look_into({"mute": silent_for("mute", 99)}, ["mute"], ASK, deadline_s=3)

    found, took_s = in_virtual_time(story())
    assert took_s == 3
    assert (found["mute"].rule, found["mute"].code) == ("silent", "ARC-SILENT")
