"""A running task speaks for itself, and a person speaks to the node while it works."""

from __future__ import annotations

import json
import sys

import pytest

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import ROOT, Bell, Node, an_agent

NODE = f"PYTHONPATH={ROOT} {sys.executable} -m agent_node"


def test_a_task_tells_how_far_it_is(node: Node, bell: Bell, gate: Bell) -> None:
    node.start()
    uid = node.add(f"{NODE} progress '3 of 7'; echo $? > {bell.path}; read x < {gate.path}")
    assert bell.hear() == "0"
    task = node.show(uid)["task"]
    assert task["progress"] == "3 of 7"
    assert task["claim"]["heartbeat_at"] is not None
    gate.ring()
    node.until(uid, "COMPLETED")


def test_a_task_says_that_it_is_alive(node: Node, bell: Bell, gate: Bell) -> None:
    node.start()
    uid = node.add(f"{NODE} heartbeat; echo $? > {bell.path}; read x < {gate.path}")
    assert bell.hear() == "0"
    assert node.show(uid)["task"]["claim"]["heartbeat_at"] is not None
    gate.ring()
    node.until(uid, "COMPLETED")


def test_a_task_may_queue_another(node: Node) -> None:
    node.start()
    uid = node.add(f"{NODE} spawn 'a child' --body 'echo child' --json")
    node.until(uid, "COMPLETED")
    said = json.loads((node.folder(uid) / "stdout.log").read_text())
    child = said["data"]["uid"]
    assert node.until(child, "COMPLETED")["parent"] == uid


def test_an_attempt_that_is_over_can_say_nothing_more(node: Node, bell: Bell) -> None:
    """It has the right uid and number, and its token; what it belongs to has ended."""
    node.start()
    uid = node.add(f"echo $AGENT_ATTEMPT_TOKEN > {bell.path}")
    token = bell.hear()
    node.until(uid, "COMPLETED")
    node.env |= {"AGENT_TASK_UID": uid, "AGENT_TASK_ATTEMPT": "1", "AGENT_ATTEMPT_TOKEN": token}
    assert node.cli("progress", "still here", code=1)["error"]["code"] == "not_your_attempt"


def test_a_paused_node_starts_nothing_until_it_is_resumed(node: Node, bell: Bell) -> None:
    node.start()
    node.cli("pause", "--reason", "new disk")
    uid = node.add(f"echo on > {bell.path}")
    assert bell.next(0.3) is None
    status = node.cli("status")["data"]
    assert (status["state"], status["reason"], status["idle"]) == ("paused", "new disk", False)
    node.cli("resume")
    assert bell.hear() == "on"
    node.until(uid, "COMPLETED")


def test_a_paused_agent_stands_still_alone(make_node: MakeNode, bell: Bell) -> None:
    node = make_node(agents=an_agent("ant") + an_agent("bee"))
    node.start()
    node.cli("pause", "--agent", "ant")
    uids = [node.add(f"echo $AGENT_NAME > {bell.path}") for _ in range(3)]
    assert [bell.hear() for _ in range(3)] == ["bee"] * 3
    for uid in uids:
        node.until(uid, "COMPLETED")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_drain_puts_back_what_still_runs_at_its_deadline(
    node: Node, bell: Bell, gate: Bell, restarted: bool
) -> None:
    """It costs the task neither a try nor an interruption; a new daemon keeps the deadline."""
    daemon = node.start()
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    node.cli("drain", "--deadline-s", "1", "--then", "requeue")
    if restarted:
        daemon.kill()
        node.start()
    task = node.until(uid, "READY")
    assert (task["failures"], task["interruptions"]) == (0, 0)
    assert node.cli("status")["data"]["state"] == "drained"
    assert bell.next(0.2) is None
    node.cli("resume")
    assert bell.hear() == "on"
    gate.ring()
    node.until(uid, "COMPLETED")


def test_a_drain_that_waits_lets_what_runs_finish(node: Node, bell: Bell, gate: Bell) -> None:
    node.start()
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    node.cli("drain")
    assert node.cli("status")["data"]["state"] == "draining"
    gate.ring()
    node.until(uid, "COMPLETED")
    assert node.cli("status")["data"]["state"] == "drained"


def test_whoever_subscribed_hears_what_happens(node: Node, bell: Bell, gate: Bell) -> None:
    node.start()
    talk = node.talk()
    talk.ask("subscribe", events=[])
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    talk.hear("task_started")
    talk.hear("busy")
    gate.ring()
    for event in ("task_finished", "free_slot", "idle"):
        talk.hear(event)
    with node.one_talk() as other:
        other.ask("pause")
    talk.hear("state_changed")
    node.add("true")
    talk.hear("task_ready")
    events = talk.ask("events", limit=1000)["events"]
    told = [one["event"] for one in events if one.get("uid") == uid]
    assert told == ["task_added", "task_claimed", "task_started", "task_completed"]
    assert [one["seq"] for one in events] == sorted({one["seq"] for one in events})


def test_a_subscriber_hears_only_what_it_asked_for(node: Node) -> None:
    node.start()
    talk = node.talk()
    talk.ask("subscribe", events=["task_finished"])
    for _ in range(3):
        node.until(node.add("true"), "COMPLETED")
    talk.hear("task_finished")
    assert set(talk.news) == {"task_finished"}
