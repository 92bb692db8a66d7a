"""Every awaited task has its turn at being looked up, however many there are."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from agent_node.strict import JsonObject
from agent_node.ulid import new_ulid
from arc.decisions.view import FleetView
from arc.errors import NodeUnreachable
from arc.looking_up import LATE_S, REQUESTS_MAX, look_up
from tests.builders import a_clock


class Asked:
    """A link to a node that does not answer just now; it remembers what it was asked."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self.name, self._asked = name, asked

    async def ask(self, do: str, fields: JsonObject) -> JsonObject:
        self._asked.append(str(fields["match"]))
        raise NodeUnreachable(self.name, "not now")


def a_look(links: int, asked: list[str]) -> Any:
    """A fleet of so many nodes, and a hub that remembers nothing yet."""
    ends = SimpleNamespace(note=lambda ends: None)
    hub = SimpleNamespace(clock=a_clock(), awaited={}, parts={}, circling=False,
                          journal=SimpleNamespace(ends=ends))  # fmt: skip
    names = [f"n{number}" for number in range(links)]
    return SimpleNamespace(hub=hub, whole=FleetView(hub.clock.now()),
                           links={name: Asked(name, asked) for name in names})  # fmt: skip


async def test_every_awaited_task_is_looked_up_in_its_turn() -> None:
    """Seen to fail: of a hundred awaited tasks those that came first in the set had every turn."""
    asked: list[str] = []
    seen, rng = a_look(50, asked), random.Random(3)
    uids = [new_ulid(number, rng.randbytes(10)) for number in range(100)]
    before, turns = 0, dict.fromkeys(uids, 0)
    for _ in range(24 * 60):
        await look_up(seen, frozenset(uids))
        assert len(asked) - before <= REQUESTS_MAX
        for uid in set(asked[before:]):
            turns[uid] += 1
        before = len(asked)
        seen.hub.clock.advance(60)
    assert min(turns.values()) >= max(turns.values()) - 1
    assert min(turns.values()) >= (24 * 3600 - LATE_S) // (26 * 60)


async def test_a_run_sends_a_bounded_number_of_requests_however_large_the_fleet() -> None:
    """Seen to fail: one task was looked for on every one of five hundred nodes in one run. It is
    looked up when all of them have been asked, and not before.
    """
    asked: list[str] = []
    seen, uids = a_look(500, asked), {new_ulid(number, bytes(10)) for number in range(2)}
    said: list[tuple[int, int]] = []
    for _ in range(10 + 7):
        before = len(asked)
        found = await look_up(seen, uids)
        said.append((len(asked) - before, len(found.owners)))
        assert not found.owners or len(found.silent) == 500
        seen.hub.clock.advance(60)
    assert said[:10] == [(0, 0)] * 10
    assert said[10:] == [(200, 0), (200, 0), (100, 1), (200, 0), (200, 0), (100, 1), (0, 0)]
