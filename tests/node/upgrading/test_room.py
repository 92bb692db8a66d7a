"""A new program is taken only where it fits, with the copy that its change of the tables needs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_node import __version__, upgrading
from agent_node.desk import Desk
from agent_node.home import Home
from agent_node.statement import Statement
from agent_node.upgrading import ROOM, NoRoom, Offer, check_offer
from tests.builders import FakeClock

CONTENT, TABLES = b"a program", 3_000_000


def check(place: Path, free: int, monkeypatch: pytest.MonkeyPatch, **said: Any) -> bytes:
    """What comes of an offer on a node with so much free and a database of so many bytes."""
    home = Home(place)
    home.database.write_bytes(bytes(TABLES))
    (place / "program").mkdir(exist_ok=True)
    desk = cast("Desk", SimpleNamespace(home=home, clock=FakeClock()))
    monkeypatch.setattr(upgrading, "free_bytes", lambda home: free)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    statement = Statement(sha256, __version__, "2020-01-01T00:00:00.000Z", **said)
    return check_offer(desk, Offer(b"{}", statement, b"", CONTENT), None)


@pytest.mark.parametrize("one_way", [False, True])
def test_a_program_that_may_change_the_tables_needs_room_for_their_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, one_way: bool
) -> None:
    """Seen to fail: it was taken on a disk where the new daemon could not copy its database."""
    needed = 2 * len(CONTENT) + ROOM + (2 * TABLES if one_way else 0)
    with pytest.raises(NoRoom, match=f"needs {needed} free") as said:
        check(tmp_path, needed - 1, monkeypatch, one_way=one_way)
    assert ("backups" in str(said.value)) == one_way
    assert check(tmp_path, needed, monkeypatch, one_way=one_way) == CONTENT
