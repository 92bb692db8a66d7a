"""Holds what moving ten tasks writes: each page is two calls, a sum, and bytes for the sync."""

from __future__ import annotations

import os
from pathlib import Path

from agent_node import moves as m
from agent_node.spec import hash_of, spec_of
from agent_node.store.database import PAGE
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.test_sqlite import Sqlite

BODY = "Look at the nightly figures, say what changed, and write it down. " * 3
BATCH, ROUNDS, PAGES_MAX = 10, 12, 67


def pages(*nodes: NodeAtHand) -> int:
    """What lies in their logs; nothing is checkpointed here while they are short."""
    return sum(os.stat(node.place / "queue.db-wal").st_size for node in nodes) // (PAGE + 24)


def move_ten(giver: NodeAtHand, taker: NodeAtHand, first: int) -> None:
    numbers = range(first, first + BATCH)
    moves = tuple(m.Move(xfer(number), uid(number), 1) for number in numbers)
    taken = giver.say(m.Escrow("loom", "stolen", 60.0, moves))
    offers = tuple(m.Offer(one.xfer, one.task, hash_of(spec_of(one.task)))
                   for one in taken if one.task is not None)  # fmt: skip
    taker.say(m.Hold("iris", "stolen", offers))
    giver.say(m.Commit(tuple(m.Settle(xfer(n), uid(n), "loom") for n in numbers)))
    arrived = taker.say(m.Activate(tuple(m.Settle(xfer(n), uid(n), "iris") for n in numbers)))
    assert [one.outcome for one in arrived] == ["activated"] * BATCH


def test_moving_ten_tasks_writes_few_pages(tmp_path: Path) -> None:
    """69 while each raised the node's row, and 95 before moves named their events and kept copies
    had row numbers; fails with those.
    """
    giver = NodeAtHand(Sqlite(), tmp_path / "iris", "iris")
    taker = NodeAtHand(Sqlite(), tmp_path / "loom", "loom")
    giver.has(*(a_task(number, body=BODY) for number in range(1, 1 + BATCH * ROUNDS)))
    before = pages(giver, taker)
    for turn in range(ROUNDS):
        move_ten(giver, taker, 1 + turn * BATCH)
    written = (pages(giver, taker) - before) / ROUNDS
    assert written <= PAGES_MAX, f"{written} pages a round"
    giver.close()
    taker.close()
