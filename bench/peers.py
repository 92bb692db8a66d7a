"""Puts other people's SQLite queues beside ours, where they are installed, all durable alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from .floor_queue import CAN, CLAIM, COMPLETE, INDEX, OUTPUT, POWERS, TABLE, Plain, stamp
from .measuring import Place

FULL = "PRAGMA synchronous = FULL"


class Peer(Protocol):
    """What a peer has to do: take tasks, and claim and complete them durably one by one."""

    def add(self, tasks: Iterable[Plain]) -> None:
        """Take these in; not measured."""

    def claim_and_complete(self, pairs: int) -> None:
        """So many tasks, each claimed durably and then completed durably."""

    def close(self) -> None:
        """Let go of the database."""


def peers(place: Place, tasks: Sequence[Plain], name: str) -> dict[str, Peer]:
    """Those that this Python can import, each with these tasks in it."""
    found: dict[str, Peer] = {}
    for title, make in PEERS.items():
        with suppress(ModuleNotFoundError):
            peer = make(place.fresh(f"peer-{title}-{name}"))
            peer.add(tasks)
            found[title] = peer
    return found


class SqliteUtils:
    """The floor's own table and statements, through sqlite-utils."""

    def __init__(self, folder: Path) -> None:
        from sqlite_utils import Database

        self._db = Database(str(folder / "peer.db"))
        self._db.enable_wal()
        self._db.execute(FULL)
        for statement in (TABLE, INDEX, CAN, POWERS):
            self._db.execute(statement)

    def add(self, tasks: Iterable[Plain]) -> None:
        rows = ({**task._asdict(), "state": "READY"} for task in tasks)
        self._db.table("task").insert_all(rows)

    def claim_and_complete(self, pairs: int) -> None:
        for _ in range(pairs):
            with self._db.atomic():
                (row,) = self._db.query(CLAIM, ("iris", stamp(), "iris"))
            with self._db.atomic():
                self._db.execute(COMPLETE, (stamp(), json.dumps(OUTPUT), row["seq"]))

    def close(self) -> None:
        self._db.close()


class PersistQueue:
    """First in, first out; no needs and no priorities."""

    def __init__(self, folder: Path) -> None:
        self._queue: Any = import_module("persistqueue").SQLiteAckQueue(str(folder))
        for connection in {self._queue._getter, self._queue._putter}:
            connection.execute(FULL)

    def add(self, tasks: Iterable[Plain]) -> None:
        for task in tasks:
            self._queue.put(task._asdict())

    def claim_and_complete(self, pairs: int) -> None:
        for _ in range(pairs):
            self._queue.ack(self._queue.get(block=False))

    def close(self) -> None:
        self._queue.close()


class LiteQueue:
    """First in, first out; no needs and no priorities."""

    def __init__(self, folder: Path) -> None:
        module: Any = import_module("litequeue")
        self._queue = module.LiteQueue(str(folder / "peer.db"))
        self._queue.conn.execute(FULL)

    def add(self, tasks: Iterable[Plain]) -> None:
        for task in tasks:
            self._queue.put(json.dumps(task._asdict()))

    def claim_and_complete(self, pairs: int) -> None:
        for _ in range(pairs):
            self._queue.done(self._queue.pop().message_id)

    def close(self) -> None:
        self._queue.close()


class Huey:
    """Removes a task when it is taken: nothing is completed, and a crash loses it."""

    def __init__(self, folder: Path) -> None:
        module: Any = import_module("huey.storage")
        self._storage = module.SqliteStorage("peer", str(folder / "peer.db"), fsync=True)

    def add(self, tasks: Iterable[Plain]) -> None:
        for task in tasks:
            self._storage.enqueue(json.dumps(task._asdict()).encode(), -task.priority)

    def claim_and_complete(self, pairs: int) -> None:
        for _ in range(pairs):
            self._storage.dequeue()

    def close(self) -> None:
        self._storage.close()


PEERS: dict[str, Callable[[Path], Peer]] = {
    "sqlite-utils": SqliteUtils,
    "persist-queue": PersistQueue,
    "litequeue": LiteQueue,
    "huey, no complete": Huey,
}
