"""Guards of the daemon: what it believes of attempts that it did not watch, and what it tells."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from agent_node.job import VERDICT_SCHEMA
from agent_node.ulid import fresh_ulid
from tests.node.daemon.living import Bell, Node, end_all, is_gone, until
from tests.node.processes.harness import a_mark, carrying


def test_no_program_starts_while_the_report_still_says_idle(node: Node, bell: Bell) -> None:
    """Fails when the report is told of a claim only after its program was started.

    The daemon stands still between the two, for as long as the program takes to look.
    """
    daemon = node.start(failpoint="dispatch.after_spawn:stop")
    until(lambda: node.status_file()["idle"], "an idle report")
    uid = node.add(f"cat {node.home}/fleet-status.json; echo seen > {bell.path}")
    bell.hear()
    daemon.signal(signal.SIGCONT)
    node.until(uid, "COMPLETED")
    seen = json.loads((node.folder(uid) / "stdout.log").read_text())
    assert (seen["idle"], seen["idle_since"]) == (False, None)


def test_a_cancel_that_comes_right_behind_its_task_stops_it(node: Node) -> None:
    """Fails when what an `add` claimed has not begun by the time it is told to stop.

    Both requests are answered in one turn: the task is CLAIMED, and no shim knows of it yet.
    """
    node.start()
    uid = fresh_ulid()
    task = {"uid": uid, "subject": "work", "body": "sleep 987"}
    with node.one_talk() as talk:
        talk.say_at_once({"do": "add", "tasks": [task]}, {"do": "cancel", "uid": uid})
        node.until(uid, "CANCELLED")


def test_a_drain_that_comes_right_behind_a_task_gives_it_back(node: Node) -> None:
    """Fails when what an `add` claimed has not begun when the deadline of the drain is there."""
    node.start()
    uid = fresh_ulid()
    task = {"uid": uid, "subject": "work", "body": "sleep 987"}
    drain = {"do": "drain", "reason": "off", "deadline_s": 0, "then": "requeue"}
    with node.one_talk() as talk:
        talk.say_at_once({"do": "add", "tasks": [task]}, drain)
        until(lambda: node.status_file()["state"] == "drained", "a drained node")
        assert node.show(uid)["task"]["state"] == "READY"


def test_a_verdict_that_nobody_watched_is_the_end_of_its_attempt(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Fails when adopted attempts are not looked at, or are called interrupted unread."""
    daemon = node.start()
    uid = node.add(f"echo up > {bell.path}; read x < {gate.path}")
    bell.hear()
    shim = node.shim(uid)
    daemon.kill()
    gate.ring()
    assert is_gone(shim)
    node.start()
    task = node.until(uid, "COMPLETED")
    assert [one["outcome"] for one in node.attempts(uid)] == ["completed"]
    assert task["interruptions"] == 0


def test_a_verdict_of_the_programs_own_making_does_not_count(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Fails when a verdict counts while a lock of its attempt is held."""
    daemon = node.start()
    script = f"echo up > {bell.path}; read x < {gate.path}; exit 7"
    uid = node.add(script, max_attempts=1)
    bell.hear()
    daemon.kill()
    forge_verdict(node, uid)
    node.start()
    gate.ring()
    assert node.until(uid, "COMPLETED", "DEAD_LETTERED")["state"] == "DEAD_LETTERED"


def forge_verdict(node: Node, uid: str) -> None:
    """What a program could write into its own folder: exit 0."""
    moment, nothing = "2026-03-10T03:45:00.000Z", {"bytes": 0, "dropped": 0}
    verdict = {
        "schema": VERDICT_SCHEMA, "uid": uid, "n": 1, "kind": "exited", "exit_code": 0,
        "signal": None, "started_at": moment, "ended_at": moment, "duration_s": 0.1,
        "stdout": nothing, "stderr": nothing, "leftovers_killed": 0, "survivors": 0,
        "because": "exit 0",
    }  # fmt: skip
    (node.folder(uid) / "verdict.json").write_text(json.dumps(verdict))


def test_an_attempt_starts_again_only_when_the_one_before_is_gone(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Fails when what a dead shim left behind counts as dead, or is left alone."""
    daemon = node.start()
    uid = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    first, shim = int(bell.hear()), node.shim(uid)
    daemon.kill()
    os.kill(shim, signal.SIGKILL)
    assert is_gone(shim)
    node.start()
    second = int(bell.hear())
    assert first != second
    assert is_gone(first, 0)
    gate.ring()
    node.until(uid, "COMPLETED")
    assert [one["outcome"] for one in node.attempts(uid)] == ["interrupted", "completed"]


@pytest.fixture
def mark() -> Iterator[str]:
    """Afterwards nobody carries it: what a daemon leaves alone, the test ends."""
    mark = a_mark()
    yield mark
    end_all(lambda: carrying(mark))


def test_a_dead_shims_orphans_end_that_carry_nothing_of_their_attempt(
    node: Node, bell: Bell, mark: str
) -> None:
    """No token, no lock, no session: only the kernel knows whose they were. Fails when the daemon
    is not the next to be given orphans, and when it does not end those that it is given.
    """
    node.start()
    hiding = f"exec 3>&- </dev/null >/dev/null 2>&1; /bin/sleep {mark} & /bin/sleep {mark}"
    uid = node.add(
        f"(env -i $(command -v setsid) /bin/sh -c '{hiding}' &)\necho up > {bell.path}; sleep 987",
        on_interrupt="park",
    )
    bell.hear()
    until(lambda: len(carrying(mark)) > 1, "its tree")
    os.kill(node.shim(uid), signal.SIGKILL)
    node.until(uid, "PARKED")
    until(lambda: not carrying(mark), "the end of its tree")
