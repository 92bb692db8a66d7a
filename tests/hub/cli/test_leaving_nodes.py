"""A node that leaves is given nothing, and then asked once more: nothing comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_node.strict import JsonObject
from arc.operations import operation
from tests.hub.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


async def leaves(desk: Desk) -> JsonObject:
    return (await operation("nodes.leave")(desk.hub, {"node": "loom", "by": "human:ada"})).data


def leave(desk: Desk) -> JsonObject:
    return asyncio.run(leaves(desk))


def test_it_is_suspended_for_ten_minutes_and_says_how_it_is(desk: Desk) -> None:
    desk.waits("loom", 1, 2)
    told = leave(desk)
    assert (told["seen"], told["was_suspended"]) == (True, False)
    assert isinstance(told["counts"], dict)
    assert told["counts"]["READY"] == 2
    assert "loom" not in desk.hub.links
    word = desk.hub.journal.words.suspended()["loom"]
    assert (word.by, word.reason) == ("human:ada", "it leaves the fleet")
    desk.minutes_pass(11)
    assert "loom" not in desk.hub.journal.words.suspended()


def test_what_was_on_its_way_to_it_has_arrived_when_it_is_asked(desk: Desk) -> None:
    """Seen to fail when the node is asked before `hub.moving` is free."""

    async def story() -> JsonObject:
        async with desk.hub.moving:
            leaving = asyncio.create_task(leaves(desk))
            for _ in range(20):  # turns of the loop: enough to come as far as it can
                await asyncio.sleep(0)
            assert not leaving.done()
            await desk.hub.links["loom"].ask("add", {"tasks": [{"subject": "moved"}]})
        return await leaving

    counts = asyncio.run(story())["counts"]
    assert isinstance(counts, dict)
    assert counts["READY"] == 1


def test_who_looks_after_it_has_no_way_to_it(desk: Desk) -> None:
    """A cycle that waited for the same lock plans without it. Seen to fail when its link stays."""

    async def story() -> bool:
        leaving = asyncio.create_task(leaves(desk))
        await asyncio.sleep(0)  # one turn of the loop, in which it takes the lock
        assert desk.hub.moving.locked()
        async with desk.hub.moving:
            found = "loom" in desk.hub.links
        await leaving
        return found

    assert asyncio.run(story()) is False


def test_a_node_that_is_out_of_reach_is_told_as_such(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    told = leave(desk)
    assert told["seen"] is False
    assert told["reason"]
    assert "loom" in desk.hub.journal.words.suspended()


def test_the_word_about_a_node_that_is_gone_can_be_taken_back(desk: Desk) -> None:
    leave(desk)
    others = tuple(one for one in desk.hub.settings.nodes if one.name != "loom")
    desk.hub.settings = replace(desk.hub.settings, nodes=others)
    assert desk.arc("nodes", "resume", "loom").code == 0
    assert "loom" not in desk.hub.journal.words.suspended()
    assert desk.arc("nodes", "resume", "loom").code == 5
