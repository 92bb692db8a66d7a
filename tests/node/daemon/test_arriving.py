"""What comes by a move is claimed in the transaction that brings it, where nothing else waited."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from agent_node.spec import hash_of, spec_of
from agent_node.task import to_wire
from tests.builders import a_task, uid, xfer
from tests.node.daemon.living import Node, Talk

AT_ACTIVATE = "activate.after:kill"  # behind its commit, and before the loop looks for free slots


def held(talk: Talk, *numbers: int, needs: list[str] | None = None) -> list[dict[str, str]]:
    """Copies of these tasks lie there; the words that activate them."""
    tasks = [a_task(number, body="true", needs=needs or []) for number in numbers]
    moves = [{"xfer": xfer(number), "task": to_wire(task), "sha256": hash_of(spec_of(task))}
             for number, task in zip(numbers, tasks, strict=True)]  # fmt: skip
    said = talk.ask("hold", **{"from": "loom"}, why="stolen", moves=moves)
    assert [one["outcome"] for one in said["results"]] == ["held"] * len(numbers)
    return [{"xfer": xfer(number), "uid": uid(number), "peer": "loom"} for number in numbers]


def states(node: Node) -> dict[str, str]:
    """As they are on the disk, whoever has died."""
    with closing(sqlite3.connect(node.home / "queue.db")) as db:
        return dict(db.execute("SELECT uid, state FROM task"))


def test_a_stolen_task_is_claimed_as_it_comes(node: Node) -> None:
    """One commit instead of two lies between the word and the program."""
    daemon = node.start(failpoint=AT_ACTIVATE)
    talk = node.talk()
    words = held(talk, 1, 2, 3)
    with pytest.raises(ConnectionResetError):
        talk.ask("activate", moves=words)
    daemon.ended()
    assert sorted(states(node).values()) == ["CLAIMED", "CLAIMED", "READY"]  # of two slots
    node.start()
    for number in (1, 2, 3):
        node.until(uid(number), "COMPLETED")


def test_where_tasks_wait_that_nobody_can_do_the_answer_does_not_wait(node: Node) -> None:
    daemon = node.start(failpoint=AT_ACTIVATE)
    node.add(needs=["tape"])
    talk = node.talk()
    words = held(talk, 1)
    with pytest.raises(ConnectionResetError):
        talk.ask("activate", moves=words)
    daemon.ended()
    assert states(node)[uid(1)] == "READY"
    node.start()
    node.until(uid(1), "COMPLETED")


def test_a_trial_of_it_claims_nothing(node: Node) -> None:
    node.start()
    talk = node.talk()
    words = held(talk, 1)
    (would,) = talk.ask("activate", moves=words, dry_run=True)["results"]
    assert would["outcome"] == "activated"
    assert states(node)[uid(1)] == "HELD"
    (done,) = talk.ask("activate", moves=words)["results"]
    assert done["outcome"] == "activated"
    node.until(uid(1), "COMPLETED")
