"""Reads from the hub's own journal when it noticed something, and how long its cycles took.

Asking `arc status` again and again would measure the asking, too.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from statistics import mean
from typing import Any

from tests.ssh.fleet import SshFleet

_NOT_SEEN = "SELECT min(at) FROM sample WHERE node = ? AND state = 'unknown' AND at >= ?"
_SEEN = "SELECT min(at) FROM sample WHERE node = ? AND state = 'running' AND at >= ?"


def unseen_after(fleet: SshFleet, name: str, since: float) -> float | None:
    """How long after `since` (`time.time()`) the look began that first found the node unseen; None:
    not yet.
    """
    return _first(fleet, _NOT_SEEN, name, since)


def well_after(fleet: SshFleet, name: str, since: float) -> float | None:
    """How long after `since` it first found the node at work again; None: not yet."""
    return _first(fleet, _SEEN, name, since)


def _first(fleet: SshFleet, question: str, name: str, since: float) -> float | None:
    ((at,),) = _read(fleet, question, name, int(since * 1000))
    return None if at is None else float(at) / 1000 - since


def noticed(fleet: SshFleet, name: str, since: float, *, within_s: float) -> float:
    """When the look began that found the node unseen; by now it is over and written down.

    A look gives ten seconds to who stopped answering, and the next cycle waits for it. How soon
    a link itself is given up is held by tests/ssh/test_links.py.
    """
    return _in_time(fleet, lambda: unseen_after(fleet, name, since), f"{name} is unseen", within_s)


def well_again(fleet: SshFleet, name: str, since: float, *, within_s: float) -> float:
    """When the look began that found it at work again; such a look is over at once."""
    return _in_time(fleet, lambda: well_after(fleet, name, since), f"{name} is well", within_s)


def _in_time(
    fleet: SshFleet, when: Callable[[], float | None], told: str, within_s: float
) -> float:
    fleet.until(lambda: when() is not None, told)
    took = when() or 0.0
    assert took < within_s, f"{told} only after {took:.1f} s"
    return took


def cycles(fleet: SshFleet, sensor: str = "fleet-rebalance") -> list[tuple[float, float]]:
    """When each began, and how long it took."""
    found = _read(fleet, "SELECT at, took_s FROM run WHERE sensor = ? ORDER BY id", sensor)
    return [(datetime.fromisoformat(at).timestamp(), took) for at, took in found]


def next_cycles(fleet: SshFleet, count: int) -> list[float]:
    """How long so many more took."""
    marks = len(cycles(fleet))
    fleet.until(lambda: len(cycles(fleet)) >= marks + count, f"{count} cycles more")
    return [took for _, took in cycles(fleet)[marks : marks + count]]


def usual_gap(fleet: SshFleet, since: float, sensor: str) -> float:
    """The usual seconds from one run's begin to the next one's, of those after `since`."""
    began = [at for at, _ in cycles(fleet, sensor) if at >= since]
    return usual([later - earlier for earlier, later in pairwise(began)])


def usual(took: Sequence[float]) -> float:
    """The mean without the slowest: one hiccup of the machine is none of the hub's, two may be."""
    return mean(sorted(took)[:-1])


def _read(fleet: SshFleet, question: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(f"file:{fleet.state / 'journal.db'}?mode=ro", uri=True)) as db:
        return db.execute(question, values).fetchall()


def now() -> float:
    """By the clock that the hub's stamps are of."""
    return time.time()
