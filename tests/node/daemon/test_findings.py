"""Faults that were found in a running node: each has its test, so that it does not come back."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from agent_node.processes import descendants, process_table
from agent_node.spec import hash_of, spec_of
from agent_node.task import task_from, to_wire
from tests.builders import a_task, uid, xfer
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, is_gone, until

HERE = '"$AGENT_NODE_HOME/tasks/$AGENT_TASK_UID/$AGENT_TASK_ATTEMPT"'
EARLIER = "01LQQM00000000000000000000"


def change(node: Node, sql: str) -> None:
    """Write into the queue of a node that does not run, as no command of ours does."""
    with closing(sqlite3.connect(node.home / "queue.db")) as db, db:
        assert db.execute(sql).rowcount == 1


def works(node: Node) -> None:
    """A task that comes now is done."""
    node.until(node.add("true"), "COMPLETED")


# After a boot.


def test_a_lease_of_an_earlier_boot_ends_when_a_daemon_starts(node: Node) -> None:
    """Fails when neither the Wake of `_set_up` nor the 0 of `next_lease` ends it: it would wait
    until the new boot is as old as the earlier one was.
    """
    daemon = node.start()
    node.cli("pause")
    task = node.add("true")
    with node.one_talk() as talk:
        moves = [{"xfer": xfer(), "uid": task, "epoch": 1}]
        given = talk.ask("escrow", to="loom", why="moved", moves=moves)["results"]
        assert given[0]["outcome"] == "escrowed", given
        talk.ask("resume")
    daemon.kill()
    change(node, "UPDATE transfer SET lease_boot = 'another', lease_until = 1e12")
    node.start()
    node.until(task, "COMPLETED")


def test_a_started_attempt_is_interrupted_by_a_power_cut(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Its record came back empty. Fails when that alone says that it never started."""
    daemon = node.start()
    task = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program, shim = int(bell.hear()), node.shim(task)
    node.until(task, "RUNNING")
    daemon.kill()
    for pid in (shim, program):
        os.kill(pid, signal.SIGKILL)
        assert is_gone(pid)
    os.truncate(node.folder(task) / "shim.json", 0)
    change(node, "UPDATE life SET boot_id = '00000000-0000-4000-8000-000000000000'")
    node.start()
    bell.hear()
    gate.ring()
    assert node.until(task, "COMPLETED")["interruptions"] == 1


def test_a_program_that_hides_its_start_is_interrupted_all_the_same(node: Node) -> None:
    """Fails when an empty record makes it look as if it never started: it would run for ever."""
    node.start()
    task = node.add(f"cd {HERE}; : > shim.json; rm tree.lock; kill -9 $PPID; sleep 600")
    assert node.until(task, "PARKED", "DEAD_LETTERED")["interruptions"] == 3


# Draining.


def test_a_drain_that_was_called_off_stops_nothing(node: Node, bell: Bell, gate: Bell) -> None:
    """Fails when the timer of a deadline does not ask whether the node still drains."""
    node.start()
    task = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    node.cli("drain", "--deadline-s", "0.5", "--then", "requeue")
    node.cli("resume")
    assert not is_gone(program, 1.0)
    gate.ring()
    node.until(task, "COMPLETED")
    assert len(node.attempts(task)) == 1


@pytest.mark.parametrize("later", [["--deadline-s", "60", "--then", "requeue"], []])
def test_a_later_drain_replaces_the_deadline_of_an_earlier_one(
    node: Node, bell: Bell, gate: Bell, later: list[str]
) -> None:
    """Fails when the timer of each deadline acts by itself."""
    node.start()
    task = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    with node.one_talk() as talk:
        talk.ask("drain", deadline_s=0.5, then="requeue")
    node.cli("drain", *later)
    assert not is_gone(program, 1.0)
    gate.ring()
    node.until(task, "COMPLETED")


def test_a_drain_said_again_with_a_nearer_deadline_counts(node: Node, bell: Bell) -> None:
    """Fails when the second word is taken for a repeat of the first."""
    node.start()
    task = node.add(f"echo $$ > {bell.path}; sleep 600")
    program = int(bell.hear())
    for seconds in ("600", "0.2"):
        node.cli("drain", "--deadline-s", seconds, "--then", "requeue")
    assert is_gone(program)
    node.until(task, "READY")


def test_the_deadline_of_one_agent_leaves_that_of_another(make_node: MakeNode, bell: Bell) -> None:
    """Fails when the node counts drains without asking whose they are."""
    node = make_node(agents=an_agent("ant", skills=["dig"]) + an_agent("bee", skills=["fly"]))
    node.start()
    task = node.add(f"echo $$ > {bell.path}; sleep 600", needs=["dig"])
    program = int(bell.hear())
    with node.one_talk() as talk:
        talk.ask("drain", agent="ant", deadline_s=0.5, then="requeue")
        talk.ask("drain", agent="bee", deadline_s=600, then="requeue")
    assert is_gone(program)
    node.until(task, "READY")


# What comes from elsewhere.


def offered(n: int, x: str) -> dict[str, Any]:
    """A task that was tried so often elsewhere, as another node would offer it."""
    tried = {"n": n, "node": "forge", "incarnation": EARLIER, "agent": "forge",
             "ended_at": "2026-03-10T03:00:00.000Z", "outcome": "interrupted"}  # fmt: skip
    task = a_task(body="true", attempts=[])
    document = {**to_wire(task), "attempts": [tried]}
    return {"xfer": x, "task": document, "sha256": hash_of(spec_of(task_from(to_wire(task))))}


def test_an_attempt_number_that_no_folder_can_have_is_refused_at_the_door(node: Node) -> None:
    """Fails when the history of a task is taken unread: its next attempt would end the daemon."""
    node.start()
    with node.one_talk() as talk:
        asked = {"from": "forge", "why": "moved"}
        for number, n in enumerate((0, 900_000_001, 2**62), 2):
            (held,) = talk.ask("hold", moves=[offered(n, xfer(number))], **asked)["results"]
            assert held["outcome"] == "refused"
            assert held["because"]["rule"] == "bad_task"
        (held,) = talk.ask("hold", moves=[offered(899_999_999, xfer())], **asked)["results"]
        assert held["outcome"] == "held", held
        settle = {"xfer": xfer(), "uid": uid(), "peer": "forge"}
        talk.ask("activate", moves=[settle])
    node.until(uid(), "COMPLETED")
    assert [one["n"] for one in node.attempts(uid())][-1] == 900_000_000
    works(node)


# What a program does in its own folder, and to its shim.


def test_a_lock_that_its_program_made_a_link_stops_no_other_task(node: Node) -> None:
    """Fails when the error of looking at it leaves `_close`: daemon after daemon would end."""
    daemon = node.start()
    task = node.add(f"cd {HERE}; ln -sf /dev/null tree.lock")
    daemon.hear("evidence_unreadable")
    works(node)
    daemon.kill()
    node.start().hear("evidence_unreadable")
    works(node)
    (node.folder(task) / "tree.lock").unlink()
    assert node.until(task, "COMPLETED", "PARKED")["failures"] == 0


def test_a_heartbeat_that_is_a_link_to_itself_is_no_heartbeat(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Fails when looking at it raises: every beat is recorded just before a report is written."""
    node.start()
    script = f"ln -sfn heartbeat {HERE}/heartbeat; echo on > {bell.path}; read x < {gate.path}"
    task = node.add(script)
    bell.hear()
    node.cli("pause", "--reason", "so that a report is due")
    until(lambda: node.status_file()["reason"].startswith("so that"), "the next report")
    gate.ring()
    node.until(task, "COMPLETED")


def test_a_program_that_stops_its_shim_is_cancelled_all_the_same(node: Node, bell: Bell) -> None:
    """Fails when the shim gets TERM alone: a stopped process never hears it."""
    node.start()
    task = node.add(f"kill -STOP $PPID; echo on > {bell.path}; sleep 600")
    bell.hear()
    node.cli("cancel", task)
    node.until(task, "CANCELLED")


def test_a_starter_that_was_stopped_with_its_work_in_hand_goes_on(node: Node) -> None:
    """It holds the lock and has not said who it is. Its lock names it, so it was followed, and
    waited for; and its start, which it reported late, was never written down.
    """
    daemon = node.start(failpoint="shim.before_entry:stop")
    uid = node.add("true")
    node.until(uid, "COMPLETED")
    assert "starters_woken" in daemon.hear("starters_woken")
    told = [one["event"] for one in node.show(uid)["events"]]
    assert [name for name in told if name in ("task_started", "task_completed")] == [
        "task_started", "task_completed"]  # fmt: skip


def test_starters_that_a_program_stopped_go_on_with_the_next_task(node: Node) -> None:
    """Seen to fail without `wake`: what is handed to a stopped shim waits there, and its slot with
    it, for ever.
    """
    daemon = node.start()
    works(node)
    until(lambda: len(descendants([daemon.pid], process_table())) == 3, "a zygote, two spares")
    for pid in descendants([daemon.pid], process_table()):
        os.kill(pid, signal.SIGSTOP)
    works(node)
    assert "starters_woken" in daemon.hear("starters_woken")
