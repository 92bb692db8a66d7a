"""Holds the pauses between tries, and that links cost nothing before they are used."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from arc.errors import NodeUnreachable
from arc.links.opening import open_links
from arc.links.pausing import (
    MOST_S,
    PATIENCE_S,
    REFUSED_MOST_S,
    STEADY_S,
    Pausing,
)
from arc.links.standing import CLOSE_S
from arc.links.talk import Talk
from arc.settings import NodeEntry
from tests.builders import a_clock
from tests.hub.links.places import a_link, nobody_is_fenced, settings_of, words
from tests.virtual_time import in_virtual_time


class DeadEnd:
    """A way that leads nowhere, and counts who tries."""

    stage = "looking for the way"

    def __init__(self) -> None:
        self.tries = 0

    async def open(self, talk: Talk) -> None:
        self.tries += 1
        raise NodeUnreachable("iris", f"try {self.tries}")

    async def close(self) -> None:
        return


def test_each_pause_is_longer_and_none_is_endless() -> None:
    clock = a_clock()
    pausing = Pausing(clock, random.Random(1))
    assert pausing.wait_s == 0
    waits = []
    for _ in range(12):
        pausing.failed()
        waits.append(pausing.wait_s)
    assert 0.125 <= waits[0] <= 0.25
    assert all(MOST_S / 2 <= wait <= MOST_S for wait in waits[8:])


def test_pauses_differ_between_nodes() -> None:
    waits = set()
    for seed in range(20):
        pausing = Pausing(a_clock(), random.Random(seed))
        pausing.failed()
        waits.add(pausing.wait_s)
    assert len(waits) == 20


@pytest.mark.parametrize(("lasted_s", "waits"), [(STEADY_S - 1, True), (STEADY_S, False)])
def test_a_session_that_did_not_last_counts_as_a_failure(lasted_s: float, *, waits: bool) -> None:
    pausing = Pausing(a_clock(), random.Random(1))
    pausing.ended(lasted_s)
    assert (pausing.wait_s > 0) is waits


async def test_who_asks_in_a_long_pause_gets_the_last_error_and_nobody_tries() -> None:
    clock, way = a_clock(), DeadEnd()
    link = a_link(way, clock=clock)
    while link._pausing.wait_s <= PATIENCE_S:
        with pytest.raises(NodeUnreachable):
            await link.ask("status")
        clock.advance(min(link._pausing.wait_s, PATIENCE_S) if link._pausing.wait_s < 1 else 0)
    tries = way.tries
    with pytest.raises(NodeUnreachable, match=f"try {tries}"):
        await link.ask("status")
    assert way.tries == tries
    with pytest.raises(NodeUnreachable):
        await link.meet()
    assert way.tries == tries + 1
    clock.advance(60)
    with pytest.raises(NodeUnreachable):
        await link.ask("status")
    assert way.tries == tries + 2
    await link.close()


class Hanging(DeadEnd):
    """A way that fails at once the first time, and then leads on for ever."""

    async def open(self, talk: Talk) -> None:
        if self.tries:
            await asyncio.sleep(3600)
        await super().open(talk)


def test_a_node_in_trouble_holds_whoever_asks_up_for_a_second_at_most() -> None:
    """Without `_troubled` every cycle waits for every machine that is away, each time anew."""

    async def story() -> float:
        link = a_link(Hanging())
        with pytest.raises(NodeUnreachable):
            await link.meet()
        began = asyncio.get_running_loop().time()
        with pytest.raises(NodeUnreachable, match="try 1"):
            await link.meet()
        waited = asyncio.get_running_loop().time() - began
        await link.close()
        return waited

    waited, _ = in_virtual_time(story())
    assert waited <= PATIENCE_S


class Endless(DeadEnd):
    """A way that leads on for ever, and leaves its opening only when it is told to for long."""

    def __init__(self, leaves: asyncio.Event | None = None) -> None:
        super().__init__()
        self.leaves = leaves

    async def open(self, talk: Talk) -> None:
        self.tries += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if self.leaves is not None:
                await self.leaves.wait()


def test_closing_ends_whoever_waits_for_an_opening_that_is_under_way() -> None:
    """Seen to hang for ever: the keeper took its own end for news of a link that could not be
    reached, and tried again; with it the hub hung that was to follow fleet.yaml.
    """

    async def story() -> BaseException | None:
        way = Endless()
        link = a_link(way)
        await link.listen(lambda node, event: None)
        asked = asyncio.create_task(link.ask("status"))
        await asyncio.sleep(0.1)
        assert way.tries == 1
        async with asyncio.timeout(60):
            await link.close()
        await asyncio.wait({asked}, timeout=60)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others
        return asked.exception()

    error, took_s = in_virtual_time(story())
    assert isinstance(error, NodeUnreachable)
    assert "closed this link" in str(error)
    assert took_s < 1


def test_closing_does_not_wait_for_an_opening_that_will_not_end() -> None:
    """Without a limit, a child that cannot be killed holds up whoever closes the link."""

    async def story() -> None:
        leaves = asyncio.Event()
        link = a_link(Endless(leaves))
        await link.listen(lambda node, event: None)
        asked = asyncio.create_task(link.ask("status", timeout_s=3600))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(60):
            await link.close()
        with pytest.raises(NodeUnreachable, match="closed this link"):
            await asked
        leaves.set()
        await asyncio.sleep(1)

    _, took_s = in_virtual_time(story())
    assert took_s <= CLOSE_S + 2


def test_who_gives_up_while_the_link_closes_has_given_up() -> None:
    """Without it a run that is cut off goes on as if a node had not answered."""

    async def story() -> bool:
        link = a_link(Endless())
        asked = asyncio.create_task(link.ask("status"))
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(link.close())
        asked.cancel()
        await asyncio.wait({asked, closing})
        return asked.cancelled()

    given_up, _ = in_virtual_time(story())
    assert given_up


def test_who_is_only_away_is_tried_again_soon_and_who_refused_us_seldom() -> None:
    away, refused = Pausing(a_clock(), random.Random(1)), Pausing(a_clock(), random.Random(1))
    for _ in range(12):
        away.failed()
        refused.failed(most_s=REFUSED_MOST_S)
    assert away.wait_s <= 8  # what was moved to a machine that rebooted waits for this
    assert refused.wait_s > 8


def test_every_node_has_a_link_but_the_suspended(tmp_path: Path) -> None:
    nodes = (NodeEntry("iris", host="h"), NodeEntry("arc", local=True), NodeEntry("loom", host="h"))
    links = open_links(
        settings_of(tmp_path, *nodes), words(), clock=a_clock(), rng=random.Random(1),
        is_fenced=nobody_is_fenced, skip=frozenset({"loom"}),
    )  # fmt: skip
    assert {name: link.name for name, link in links.items()} == {
        "inbox": "inbox", "iris": "iris", "arc": "arc",
    }  # fmt: skip
    assert not (tmp_path / "state" / "inbox").exists()


def test_a_fleet_on_one_machine_never_loads_asyncssh() -> None:
    code = "import arc.links.opening, arc.keys, sys; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
