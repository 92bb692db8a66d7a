"""A node.toml that cannot be obeyed starts nothing; the queue is still read, and relieved."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.budget import Money
from agent_node.clock import SystemClock
from agent_node.desk import Session
from agent_node.door import ask
from agent_node.errors import BadSettings
from agent_node.home import Home, HomeLock
from agent_node.opening import opened
from agent_node.stand_in import STILL_ANSWERED
from tests.builders import NodeAtHand, a_task, uid
from tests.node.store.test_budgets import Rich
from tests.node.wire.golden import HUB
from tests.node.wire.talking import a_home, a_move

BROKEN = "name = iris\n"


@pytest.fixture
def broken(tmp_path: Path) -> Home:
    """iris, with a waiting task, whose settings somebody has just edited."""
    home = a_home(tmp_path / "iris")
    ask(home, {"do": "add", "tasks": [{"uid": uid(1), "subject": "a"}]})
    home.config.write_text(BROKEN)
    return home


def test_a_queue_is_read_whose_settings_cannot_be(broken: Home) -> None:
    """Seen to fail before: the hub could not even see what waited there."""
    listed: dict[str, Any] = ask(broken, {"do": "list"})
    assert [task["uid"] for task in listed["tasks"]] == [uid(1)]
    said: dict[str, Any] = ask(broken, {"do": "status"})
    assert (said["node"], said["idle"], said["counts"]) == ("iris", False, {"READY": 1})
    assert said["needs_you"][0].startswith(f"bad_settings: {broken.config}: is not TOML")


def test_its_tasks_can_be_moved_away(broken: Home) -> None:
    """Seen to fail before: they waited for whoever would mend the file."""
    hub = Session("hub")
    assert told(broken, hub, HUB)["node"] == "iris"
    away = {"do": "escrow", "to": "loom", "why": "stolen", "moves": [a_move(1)]}
    (given,) = told(broken, hub, away)["results"]
    assert given["outcome"] == "escrowed"
    assert ask(broken, {"do": "status"})["counts"] == {"ESCROW": 1}


@pytest.mark.parametrize("request_", [
    {"do": "add", "tasks": [{"uid": uid(2), "subject": "b"}]},
    {"do": "retry", "uids": [uid(1)], "by": "human:ada"},
])  # fmt: skip
def test_what_leans_on_settings_is_refused_by_their_fault(
    broken: Home, request_: dict[str, object]
) -> None:
    with pytest.raises(BadSettings, match=r"only read and relieved") as caught:
        ask(broken, request_)
    assert str(broken.config) in str(caught.value)
    assert len(ask(broken, {"do": "list"})["tasks"]) == 1  # type: ignore[arg-type]


def test_what_brings_work_here_is_not_among_what_is_answered() -> None:
    assert STILL_ANSWERED.isdisjoint({"add", "hold", "submit", "spawn", "reown", "bar", "resume"})


def test_the_journal_stays_as_it_is_until_somebody_can_ask_for_another(tmp_path: Path) -> None:
    """Seen to fail with the default in its place: reading turned the node's choice round."""
    home = a_home(tmp_path / "iris")
    home.config.write_text('journal = "truncate"\n' + home.config.read_text())
    ask(home, {"do": "list"})
    home.config.write_text(BROKEN)
    assert ask(home, {"do": "status"})["store"]["journal_mode"] == "truncate"  # type: ignore[index]


def test_a_home_without_a_queue_has_nothing_to_be_read(tmp_path: Path) -> None:
    home = a_home(tmp_path / "iris")
    home.config.write_text(BROKEN)
    with pytest.raises(BadSettings):
        ask(home, {"do": "list"})
    assert not home.database.exists()


def test_another_name_than_the_queues_is_no_fault_to_be_passed_over(broken: Home) -> None:
    """It may be the home of another node that was copied here."""
    broken.config.write_text('name = "loom"\n')
    with pytest.raises(BadSettings, match="belongs to iris"):
        ask(broken, {"do": "list"})


def test_a_queue_that_belongs_to_nobody_yet_is_no_node(broken: Home) -> None:
    with sqlite3.connect(broken.database) as db:
        db.execute("DELETE FROM node")
    db.close()
    with pytest.raises(BadSettings):
        ask(broken, {"do": "list"})


def told(home: Home, session: Session, request: dict[str, Any]) -> dict[str, Any]:
    lock = HomeLock.try_take(home)
    assert lock is not None
    with opened(home, lock) as answers:
        reply = json.loads(answers.answer(session, json.dumps({"id": 1, **request}).encode()))
    assert reply["ok"], reply
    result: dict[str, Any] = reply["result"]
    return result


@pytest.mark.parametrize("appended", ["", "oops = = 1\n"], ids=["good", "broken"])
def test_who_only_looks_in_frees_nothing_that_waits_for_money(
    tmp_path: Path, appended: str
) -> None:
    """Seen to fail: a node.toml that could not be read counted as no limit, and freed it for good;
    and of a good one each look wrote the reason anew, into the disk.
    """
    home = a_home(tmp_path / "iris")
    home.config.write_text('budget_usd = "10"\n' + home.config.read_text())
    node = NodeAtHand(Rich(Money("10")), home.root, clock=SystemClock())
    node.has(a_task(1, max_cost_usd="30"))
    node.claim()
    node.say(c.Wake())
    node.close()
    was = as_it_waits(home)
    assert was[0] == "PENDING"
    home.config.write_text(home.config.read_text() + appended)
    told(home, Session("hub"), HUB)
    assert as_it_waits(home) == was


def as_it_waits(home: Home) -> tuple[str, str]:
    with closing(sqlite3.connect(home.database)) as db:
        state, blocked = db.execute("SELECT state, blocked_by FROM task").fetchone()
    return str(state), str(blocked)
