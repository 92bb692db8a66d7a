"""A running daemon takes work the moment it comes, within slots, needs and deadlines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, children_of, is_ready, until

AT_ONCE = {"strategy": "immediate"}


def test_work_starts_the_moment_it_comes(node: Node, bell: Bell) -> None:
    """The daemon sleeps up to 30 s between its reports; the program's own word comes sooner."""
    node.start()
    uid = node.add(f"echo started > {bell.path}")
    assert bell.hear(5) == "started"
    assert node.until(uid, "COMPLETED")["completed_at"] is not None


def test_an_idle_daemon_sleeps(node: Node) -> None:
    """No polling: with its reports written, it does not wake once in two seconds."""
    daemon = node.start()
    first = node.status_file()["written_at"]
    until(lambda: node.status_file()["written_at"] != first, "the report a second later")
    assert daemon.process.stderr is not None
    ear = daemon.process.stderr
    until(lambda: _does_not_wake(daemon.pid, ear, 0.2), "rest")
    assert _does_not_wake(daemon.pid, ear, 2.0)


def _does_not_wake(pid: int, ear: IO[bytes], seconds: float) -> bool:
    before = _wakings(pid)
    assert not is_ready(ear.fileno(), seconds)
    return _wakings(pid) == before


def _wakings(pid: int) -> int:
    """How often the daemon and its zygote gave up the processor: once for each time they woke."""
    lines = [line for one in (pid, *children_of(pid))
             for line in Path(f"/proc/{one}/status").read_text().splitlines()]  # fmt: skip
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def test_no_agent_runs_more_than_its_slots(make_node: MakeNode, bell: Bell, gate: Bell) -> None:
    agents = an_agent("ant", slots=2) + an_agent("bee", slots=1)
    node = make_node(agents=agents)
    node.start()
    script = f'echo "$AGENT_NAME" > {bell.path}; read x < {gate.path}'
    uids = [node.add(script) for _ in range(5)]
    assert sorted(bell.hear() for _ in range(3)) == ["ant", "ant", "bee"]
    status = node.cli("status")["data"]
    assert (status["running_count"], status["pending_count"], status["free_slots"]) == (3, 2, 0)
    assert bell.next(0.3) is None
    gate.ring(5)
    for uid in uids:
        node.until(uid, "COMPLETED")


def test_a_task_runs_only_where_its_needs_are_met(make_node: MakeNode, bell: Bell) -> None:
    node = make_node(agents=an_agent("ant") + an_agent("bee", skills=["gpu"]))
    node.start()
    script = f'echo "$AGENT_NAME" > {bell.path}'
    impossible = node.add(script, needs=["tape"])
    for _ in range(3):
        node.until(node.add(script, needs=["gpu"]), "COMPLETED")
        assert bell.hear() == "bee"
    assert node.show(impossible)["task"]["state"] == "READY"


def test_a_task_that_runs_too_long_is_stopped_as_a_timeout(node: Node) -> None:
    node.start()
    uid = node.add("sleep 60", max_s=0.3, max_attempts=1)
    task = node.until(uid, "DEAD_LETTERED")
    assert task["failure_reason"].startswith("timeout")
    (attempt,) = node.attempts(uid)
    assert attempt["error_kind"] == "timeout"
    assert 0.3 <= attempt["duration_s"] < 10


def test_cancelling_a_running_task_ends_its_whole_tree(node: Node, bell: Bell) -> None:
    node.start()
    uid = node.add(f"setsid sh -c 'echo $$ > {bell.path}; exec sleep 60' & wait")
    child = int(bell.hear())
    with node.one_talk() as talk:
        (said,) = talk.ask("cancel", uid=uid, reason="enough")["results"]
    assert said["outcome"] in {"stopping", "changed"}
    assert node.until(uid, "CANCELLED")["state"] == "CANCELLED"
    assert not Path(f"/proc/{child}").exists()


def test_a_task_that_keeps_failing_is_dead_lettered_after_its_last_try(node: Node) -> None:
    node.start()
    uid = node.add("echo broken >&2; exit 7", retry=AT_ONCE)
    task = node.until(uid, "DEAD_LETTERED")
    assert [(one["n"], one["outcome"], one["exit_code"]) for one in node.attempts(uid)] == [
        (1, "failed", 7), (2, "failed", 7), (3, "failed", 7),
    ]  # fmt: skip
    assert task["failure_reason"].startswith("crash")
    assert node.cli("log", uid, "--stderr")["data"]["text"] == "broken\n"


def test_a_failed_task_waits_for_its_next_try(node: Node) -> None:
    node.start()
    uid = node.add("exit 1", retry={"strategy": "fixed", "initial_s": 3600})
    task = node.until(uid, "RETRYING")
    assert task["retry_at"] > task["started_at"]


def test_a_task_that_may_not_start_yet_starts_when_its_time_comes(node: Node) -> None:
    node.start()
    soon = node.cli("add", "later", "--body", "true", "--not-before", "+1s")["data"]
    uid = soon["results"][0]["uid"]
    task = node.until(uid, "COMPLETED")
    assert task["started_at"] >= task["not_before"]


def test_a_program_that_cannot_be_started_is_a_failure_that_says_so(make_node: MakeNode) -> None:
    agent = '[[agent]]\nname = "iris"\nrun = ["./at-all"]\n'
    node = make_node(agents=agent)
    node.start()
    task = node.until(node.add(max_attempts=1), "DEAD_LETTERED")
    assert "could not start" in task["failure_reason"]


def test_a_program_sees_who_it_is_and_nothing_of_the_daemon(make_node: MakeNode) -> None:
    node = make_node(agents=an_agent("iris", more='env = ["NAMED"]'))
    node.env |= {"NAMED": "yes", "SECRET": "no"}
    node.start()
    uid = node.add("env", subject="look around", models=["opus"])
    node.until(uid, "COMPLETED")
    said = (node.folder(uid) / "stdout.log").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in said if "=" in line)
    assert seen["AGENT_TASK_UID"] == uid
    assert (seen["AGENT_TASK_ATTEMPT"], seen["AGENT_TASK_SUBJECT"]) == ("1", "look around")
    assert (seen["AGENT_TASK_MODEL"], seen["AGENT_NAME"], seen["NAMED"]) == ("opus", "iris", "yes")
    assert seen["AGENT_NODE_HOME"] == str(node.home)
    assert "SECRET" not in seen
    assert "PYTHONPATH" not in seen


def test_the_task_stands_on_stdin_and_never_in_the_arguments(make_node: MakeNode) -> None:
    show = "cat; tr '\\\\0' ' ' < /proc/$$/cmdline"
    agent = f'[[agent]]\nname = "iris"\nrun = ["sh", "-c", "{show}"]\n'
    node = make_node(agents=agent)
    node.start()
    uid = node.add("a secret body")
    node.until(uid, "COMPLETED")
    said, _, arguments = (node.folder(uid) / "stdout.log").read_text().partition("\n")
    assert json.loads(said)["body"] == "a secret body"
    assert "secret" not in arguments


def test_urgent_work_goes_first_and_equals_in_the_order_they_came(
    node: Node, bell: Bell
) -> None:
    script = f'echo "$AGENT_TASK_SUBJECT" > {bell.path}'
    node.configure(agents=an_agent("iris", slots=1))
    daemon = node.start()
    with node.one_talk() as talk:
        talk.ask("pause", reason="gather")
    for subject, priority in (("c", 8), ("a", 2), ("d", 8), ("b", 5)):
        node.add(script, subject=subject, priority=priority)
    with node.one_talk() as talk:
        talk.ask("resume")
    assert [bell.hear() for _ in range(4)] == ["a", "b", "c", "d"]
    assert daemon.stop() == 0
