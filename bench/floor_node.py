"""Is the floor's node: json.loads, one durable transaction, json.dumps, over stdin and stdout."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .floor_queue import connect

# No hashes, no fences, no leases, no records, no events: who asks twice gets what he deserves.
TABLE = "CREATE TABLE task (uid TEXT PRIMARY KEY, state TEXT, xfer TEXT, document TEXT)"
Talk = dict[str, Any]


def main(path: str) -> None:
    """Answer line after line until stdin ends."""
    db = connect(Path(path))
    db.execute(TABLE)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        db.execute("BEGIN IMMEDIATE")
        results = DOES[request["do"]](db, request)
        db.execute("COMMIT")
        reply = {"id": request["id"], "ok": True, "result": {"results": results}}
        sys.stdout.buffer.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
        sys.stdout.buffer.flush()


def add(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """Tasks come in; not measured."""
    rows = [(task["uid"], json.dumps(task, separators=(",", ":"))) for task in request["tasks"]]
    db.executemany("INSERT INTO task VALUES (?, 'READY', NULL, ?)", rows)
    return []


def escrow(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """Set aside, and hand over the documents."""
    found = []
    for move in request["moves"]:
        ((document,),) = db.execute(
            "UPDATE task SET state = 'ESCROW', xfer = ? WHERE uid = ? AND state = 'READY'"
            " RETURNING document",
            (move["xfer"], move["uid"]),
        ).fetchall()
        found.append({"xfer": move["xfer"], "outcome": "escrowed", "task": json.loads(document),
                      "sha256": ""})  # fmt: skip
    return found


def hold(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """Keep the copies."""
    rows = [(move["task"]["uid"], move["xfer"], json.dumps(move["task"], separators=(",", ":")))
            for move in request["moves"]]  # fmt: skip
    db.executemany("INSERT INTO task VALUES (?, 'HELD', ?, ?)", rows)
    return _each(request, "held")


def status(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """As many bytes as a report has."""
    return [{"report": "." * 1000}]


def candidates(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """The first tasks that wait, whole."""
    select = "SELECT document FROM task WHERE state = 'READY' LIMIT ?"
    found = db.execute(select, (request["limit"],))
    return [json.loads(document) for (document,) in found]


def commit(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """They are the other's now."""
    _change(db, request, "MOVED", "ESCROW")
    return _each(request, "committed")


def activate(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """They may run here."""
    _change(db, request, "READY", "HELD")
    return _each(request, "activated")


def settled(db: sqlite3.Connection, request: Talk) -> list[Talk]:
    """Nobody will ask again."""
    _change(db, request, "GONE", "MOVED")
    return _each(request, "settled")


def _change(db: sqlite3.Connection, request: Talk, new: str, old: str) -> None:
    rows = [(new, move["uid"], move["xfer"], old) for move in request["moves"]]
    db.executemany("UPDATE task SET state = ? WHERE uid = ? AND xfer = ? AND state = ?", rows)


def _each(request: Talk, outcome: str) -> list[Talk]:
    return [{"xfer": move["xfer"], "outcome": outcome} for move in request["moves"]]


DOES: dict[str, Callable[[sqlite3.Connection, Talk], list[Talk]]] = {
    "add": add,
    "escrow": escrow,
    "hold": hold,
    "commit": commit,
    "activate": activate,
    "settled": settled,
    "status": status,
    "candidates": candidates,
}

if __name__ == "__main__":
    main(sys.argv[1])
