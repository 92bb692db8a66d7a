"""Opens the node's queue for one request where no daemon runs, under the node's lock."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from .clock import Clock
from .errors import Starting
from .home import Home, HomeLock, connect, holder_of

if TYPE_CHECKING:
    from .replies import Answers
    from .store import Store

PATIENCE_S = 5.0
CROWD_S = 30.0  # for commands that come and go, each for a moment, before a daemon that starts
LOOK_EVERY_S = 0.02


def daemon_of(home: Home, *, timeout_s: float = 30) -> socket.socket | None:
    """A connection to the daemon; None when none listens here. `Starting`: it lets nobody in."""
    try:
        return connect(home, timeout_s=timeout_s)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except TimeoutError as error:
        raise Starting(
            f"{home.root}: process {holder_of(home) or '?'} listens and let nobody in for"
            f" {timeout_s:g} s: it is stopped, or has too much to do; nothing was asked, ask again"
        ) from error


def daemon_or_lock(
    home: Home, *, patience_s: float = PATIENCE_S, timeout_s: float = 30, crowd_s: float = 0
) -> socket.socket | HomeLock:
    """Whichever comes first: the daemon's ear, or the right to open the queue oneself.

    Whoever holds the lock and does not listen is a daemon that starts or ends, or another one
    like us. `Starting` when that goes on for longer than our patience, or a crowd of them, each
    for a moment, for longer than `crowd_s`.
    """
    began, holder = time.monotonic(), None
    until = began + patience_s
    while True:
        found = daemon_of(home, timeout_s=timeout_s)
        if found is not None:
            return found
        _load()
        lock = HomeLock.try_take(home)
        if lock is not None:
            return lock
        before, holder = holder, holder_of(home)
        if holder != before:
            until = max(until, min(time.monotonic() + patience_s, began + crowd_s))
        if time.monotonic() >= until:
            raise Starting(
                f"{home.root}: process {holder_of(home) or '?'} holds the lock and does not listen"
                " yet; nothing was done, ask again"
            )
        select.select([], [], [], LOOK_EVERY_S)  # libfaketime lets no `time.sleep` be


def _load() -> None:
    """Read in what answering takes before the lock is ours: a crowd waits behind whoever holds it,
    and most of a short request is that.
    """
    from . import desk, replies, report, stand_in  # noqa: F401
    from .store import generation, sqlite  # noqa: F401


@contextmanager
def opened(
    home: Home, lock: HomeLock, clock: Clock | None = None, *, distrust: str = ""
) -> Iterator[Answers]:
    """Answers from the queue itself; on leaving it is closed, reported, and the lock is free.

    Leases that ended while nobody was here end first. `distrust` is why it has to be quarantined,
    where the caller knows it to be a copy.
    """
    # Loaded only here: who finds a daemon has no use for any of it.
    from .clock import SystemClock
    from .commands import Wake
    from .desk import NoDaemon
    from .queries import Facts
    from .replies import Answers
    from .report import report_or_withdraw, says_stopped
    from .stand_in import settings_or_stand_in
    from .store.generation import machine_id
    from .store.sqlite import open_store

    clock = clock or SystemClock()
    with lock:
        settings, name, fault = settings_or_stand_in(home)
        store = open_store(
            home.root,
            name=name,
            clock=clock,
            journal=settings.journal,
            queue_max=settings.queue_max,
        )
        try:
            if not fault:
                store.spend_within(settings.money, from_now_on=False)
            if distrust:
                store.settle_in(machine=machine_id(), unknown_attempts=[], distrust=distrust)
            woken = store.apply(Wake())
            host = NoDaemon(home)
            settings = settings if name else replace(settings, name=store.read(Facts()).name)
            answers = Answers(
                store, home=home, settings=settings, clock=clock, host=host, fault=fault
            )
            yield answers
            if not store.broken and (host.wrote or woken.readied or not says_stopped(home)):
                report_or_withdraw(home, answers.desk.report())
        finally:
            let_go(store, home)


def let_go(store: Store, home: Home) -> None:
    """Close it; where its disk failed, no report stays that somebody may believe."""
    try:
        store.close()
    finally:
        if store.broken:  # maybe just now: closing may write, too
            from .report import withdraw

            withdraw(home)  # no report is not an idle node
