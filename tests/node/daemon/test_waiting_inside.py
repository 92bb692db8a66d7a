"""Running tasks make others, wait for them, and are given what they left."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from contextlib import closing

from tests.node.daemon.living import ROOT, Node

NODE = f"PYTHONPATH={ROOT} {sys.executable} -m agent_node"
CHILD = """echo '{"output": {"found": 7}}' > $AGENT_ANSWER"""
GRAPH = {"title": "parts", "tasks": {
    "one": {"subject": "one", "body": CHILD},
    "two": {"subject": "two", "body": "cat $AGENT_CONTEXT", "context": ["one"]},
}}  # fmt: skip


def waiting(spawn: str) -> str:
    """A program that works in its folder, waits, and goes on where it was."""
    return (
        f"if [ $AGENT_TASK_ATTEMPT = 1 ]; then echo mine > notes\n{NODE} spawn --wait {spawn}\n"
        "else cat notes $AGENT_CONTEXT; fi"
    )


def test_a_task_is_put_back_until_what_it_made_has_ended(node: Node) -> None:
    """Its folder is kept, its attempt costs nothing, and it is told how its child ended."""
    node.start()
    uid = node.add(waiting(f"child --body {shlex.quote(CHILD)}"))
    task = node.until(uid, "COMPLETED")
    assert (task["failures"], task["interruptions"], task["pinned"]) == (0, 0, True)
    assert [one["outcome"] for one in node.attempts(uid)] == ["waiting", "completed"]
    notes, context = (node.folder(uid, 2) / "stdout.log").read_text().splitlines()
    assert notes == "mine"
    (outcome,) = json.loads(context).values()
    assert (outcome["state"], outcome["output"]) == ("COMPLETED", {"found": 7})


def test_a_whole_graph_is_made_and_waited_for(node: Node) -> None:
    node.start()
    uid = node.add(waiting(f"--graph - <<'END'\n{json.dumps(GRAPH)}\nEND"))
    node.until(uid, "COMPLETED")
    (graph,) = node.cli("dag", "list", "--all")["data"]["dags"]
    assert (graph["title"], graph["state"]) == ("parts", "completed")
    shown = node.cli("dag", "show", graph["id"])["data"]
    two = next(one["uid"] for one in shown["tasks"] if one["name"] == "two")
    (value,) = json.loads((node.folder(two) / "stdout.log").read_text()).values()
    assert value == {"found": 7}


def test_a_graph_is_allowed_more_on_a_node_that_has_no_hub(node: Node) -> None:
    """Fails where nothing there raises the limit of a graph, and the reason names what cannot."""
    node.start()
    dear = {"title": "dear", "budget_usd": "1", "tasks": {
        "one": {"subject": "one", "body": "true", "max_cost_usd": "5"}}}  # fmt: skip
    maker = node.add(f"{NODE} spawn --graph - <<'END'\n{json.dumps(dear)}\nEND")
    node.until(maker, "COMPLETED")
    (graph,) = node.cli("dag", "list")["data"]["dags"]
    (one,) = node.cli("dag", "show", graph["id"])["data"]["tasks"]
    (held,) = node.until(one["uid"], "PENDING")["blocked_by"]
    command = f"agent-node dag budget {graph['id']} 5"
    assert held["text"].endswith(f"it never starts with that, but with: {command}")
    said = node.cli(*command.split()[1:], "--dry-run")["data"]
    assert (said["was_usd"], said["limit_usd"], said["dry_run"], said["waiting"]) == (
        "1", "5", True, None)
    assert node.cli("show", one["uid"])["data"]["task"]["state"] == "PENDING"
    said = node.cli(*command.split()[1:])["data"]
    assert (said["waited"], said["waiting"], said["limit_usd"]) == (1, 0, "5")
    node.until(one["uid"], "COMPLETED")


def test_a_task_waits_for_another_and_a_person_may_skip_it(node: Node) -> None:
    node.start()
    first = node.add("exit 1", max_attempts=1)
    after = [node.cli("add", "later", "--body", "true", "--after", f"{first}{word}")
             for word in ("", ":skip", ":run")]  # fmt: skip
    uids = [one["data"]["results"][0]["uid"] for one in after]
    ends = [node.until(uid, "CANCELLED", "COMPLETED")["state"] for uid in uids]
    assert ends == ["CANCELLED", "CANCELLED", "COMPLETED"]


def test_the_file_of_what_others_left_is_for_its_own_user_alone(node: Node) -> None:
    node.start()
    first = node.add(CHILD)
    node.until(first, "COMPLETED")
    uid = node.add("true", context_refs=[f"task:{first}:output"])
    node.until(uid, "COMPLETED")
    file = node.folder(uid) / "context.json"
    assert json.loads(file.read_text()) == {f"task:{first}:output": {"found": 7}}
    assert file.stat().st_mode & 0o777 == 0o600
    given = json.loads((node.folder(uid) / "task.json").read_text())
    assert given["context"] == {f"task:{first}:output": {"found": 7}}


def test_an_attempt_that_would_be_given_a_changed_value_does_not_begin(node: Node) -> None:
    """Its task is parked for a person. Fails where the hash of what was left is not looked at."""
    daemon = node.start()
    first = node.add(CHILD)
    node.until(first, "COMPLETED")
    daemon.stop()
    with closing(sqlite3.connect(node.home / "queue.db")) as db, db:
        db.execute("UPDATE task SET output = '{\"found\":8}' WHERE uid = ?", (first,))
    node.start()
    uid = node.add("cat $AGENT_CONTEXT", context_refs=[f"task:{first}:output"])
    task = node.until(uid, "PARKED", "COMPLETED")
    assert task["state"] == "PARKED"
    assert f"{first}: its output is not what was told of it" in task["failure_reason"]
    assert not (node.folder(uid) / "stdout.log").exists()
