"""Makes the tasks that both sides are given: the same words, needs and priorities."""

from __future__ import annotations

import random
from collections.abc import Iterator

from agent_node.task import Task, task_from
from agent_node.ulid import new_ulid

from .floor_queue import Plain

BODY = "Look at the nightly figures, say what changed, and write it down. " * 3
RARE_EVERY = 1000
_WALL_MS = 1_773_114_300_000


def mixed(count: int, seed: int) -> Iterator[Plain]:
    """Seven of ten need nothing, two what the agent can do, one what it cannot."""
    chance = random.Random(seed)
    for number in range(count):
        need = "gpu" if number % 10 == 9 else "python" if number % 10 >= 7 else ""
        yield Plain(_uid(chance, number), chance.randint(1, 10), need, f"task {number}", BODY)


def rare(count: int, seed: int) -> Iterator[Plain]:
    """One of a thousand can be claimed, and it is the least urgent of all."""
    chance = random.Random(seed)
    for number in range(count):
        mine = number % RARE_EVERY == RARE_EVERY - 1
        need, priority = ("python", 10) if mine else ("gpu", chance.randint(1, 9))
        yield Plain(_uid(chance, number), priority, need, f"task {number}", BODY)


def claimable(count: int, seed: int) -> Iterator[Plain]:
    """What fills a queue up again to the size that is measured."""
    chance = random.Random(seed)
    for number in range(count):
        yield Plain(_uid(chance, number), chance.randint(1, 10), "", f"more {number}", BODY)


def _uid(chance: random.Random, number: int) -> str:
    return new_ulid(_WALL_MS + number, chance.randbytes(10))


def as_task(plain: Plain) -> Task:
    """The same task as the store takes it."""
    return task_from(
        {
            "uid": plain.uid,
            "subject": plain.subject,
            "body": plain.body,
            "priority": plain.priority,
            "needs": [plain.need] if plain.need else [],
        }
    )
