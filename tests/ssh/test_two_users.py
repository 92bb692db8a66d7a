"""The queue belongs to one user and tasks run as another: what a task can reach, and what not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_node.ulid import fresh_ulid
from tests.ssh import forbidden
from tests.ssh.lab import Lab
from tests.ssh.two_users import TwoUsers

OWNERS = ("agent", "root")
PROGRAM = "/home/forbidden.py"
WAITS = "echo secret; sleep 600"


@pytest.fixture(params=OWNERS)
def two(lab: Lab, request: pytest.FixtureRequest) -> TwoUsers:
    """Once with a node that has to ask sudo, and once with one that is root and gives it up."""
    made = TwoUsers(lab.start(1)[0], request.param)
    made.start()
    return made


def test_a_task_runs_as_the_other_user_and_its_private_answer_is_taken(two: TwoUsers) -> None:
    """The node could not read it: the shim, who is that user, hands it in."""
    uid = two.add("id -un; echo $HOME; pwd; umask 077; echo '{\"output\": 42}' > $AGENT_ANSWER")
    task = two.until(uid, "COMPLETED", "PARKED", "DEAD_LETTERED")
    assert (task["state"], task["output"]) == ("COMPLETED", 42)
    assert two.file(uid, "stdout.log").splitlines() == [
        "arc-run", "/home/arc-run", f"/home/arc-run/.agent-node-run/{uid}-1/work"]


@pytest.mark.parametrize("put", ["ln -s /etc/passwd", "mkfifo", "mkdir", "ln -f mine"])
def test_what_is_no_plain_file_is_no_answer(lab: Lab, put: str) -> None:
    two = TwoUsers(lab.start(1)[0])
    two.start()
    uid = two.add(f"echo '{{}}' > mine; {put} $AGENT_ANSWER")
    task = two.until(uid, "COMPLETED", "PARKED", "DEAD_LETTERED", "RETRYING")
    assert task["output"] is None
    assert "answer.json" in json.dumps(two.show(uid))


def test_sixteen_forbidden_deeds_are_refused_to_a_task_and_possible_to_the_owner(
    two: TwoUsers,
) -> None:
    """Run once with shims that do not hide from debuggers: the last two were done."""
    node, home = two.node, two.home.path
    keys = str(Path(home).parent / ".ssh")
    two.node.exec(["mkdir", "-p", "-m", "700", keys], user=two.owner)
    for name in (f"{home}/operators", f"{keys}/authorized_keys", f"{keys}/hub_key"):
        node.write(name, b"secret\n", mode=0o600, user=two.owner)
    node.write(PROGRAM, forbidden.HERE.read_bytes(), mode=0o644)
    other = two.add(WAITS)
    two.until(other, "RUNNING")
    folder = f"{home}/tasks/{other}/1"
    shim = json.loads(two.file(other, "shim.json"))["pid"]
    daemon = node.read(f"{home}/lock").decode().strip()
    words = [node.python, PROGRAM, home, keys, folder, daemon, str(shim)]
    uid = two.add(" ".join(words))
    two.until(uid, "COMPLETED")
    said = json.loads(two.file(uid, "stdout.log"))
    assert {name: how for name, how in said.items() if how not in ("EACCES", "EPERM")} == {}
    assert len(said) == 16
    as_owner = json.loads(node.exec([*words[:-1], daemon], user=two.owner).stdout)
    may = {name: how for name, how in as_owner.items() if "trace" not in name}
    assert set(may.values()) == {"done"}, may


def test_a_task_speaks_for_itself_at_the_socket_of_its_attempt(two: TwoUsers) -> None:
    uid = two.add("agent-node progress '3 of 7' && agent-node heartbeat"
                  " && agent-node spawn 'a child' --body 'echo child' --json")  # fmt: skip
    task = two.until(uid, "COMPLETED", "DEAD_LETTERED", "RETRYING")
    assert (task["state"], task["progress"]) == ("COMPLETED", "3 of 7"), two.file(uid, "stderr.log")
    child = json.loads(two.file(uid, "stdout.log"))["data"]["uid"]
    assert two.until(child, "COMPLETED")["parent"] == uid


def test_a_wrong_token_and_that_of_another_attempt_are_refused_by_name(two: TwoUsers) -> None:
    """Also with everything right but the socket: one attempt's is no way in for another."""
    other = two.add("echo $AGENT_ATTEMPT_TOKEN > ~/token; echo $AGENT_NODE_SOCKET > ~/door;"
                    " sleep 600")  # fmt: skip
    two.until(other, "RUNNING")
    two.node.exec(["sh", "-c", "until [ -s ~/door ]; do sleep 0.05; done"], user="arc-run")
    uid = two.add(
        "try() { agent-node progress no --json; }\n"
        "AGENT_ATTEMPT_TOKEN=wrong try\n"
        "AGENT_ATTEMPT_TOKEN=$(cat ~/token) try\n"
        f"AGENT_ATTEMPT_TOKEN=$(cat ~/token) AGENT_TASK_UID={other} try\n"
        f"AGENT_TASK_UID={fresh_ulid()} try\n"
        "AGENT_NODE_SOCKET=$(cat ~/door) try\n"
        "AGENT_NODE_SOCKET= try\n"
        "agent-node status --json; exit 0"
    )
    two.until(uid, "COMPLETED")
    said = [json.loads(line)["error"]["code"] for line in two.file(uid, "stdout.log").splitlines()]
    assert said[:5] == ["not_your_attempt"] * 5
    assert set(said[5:]) == {"home_missing"}, "without its socket it finds no door at all"
    assert two.show(other)["task"]["progress"] is None


@pytest.mark.parametrize("do", ["status", "add", "escrow", "resolve", "hello", "upgrade", "list"])
def test_a_tasks_socket_takes_nothing_but_what_it_says_of_itself(lab: Lab, do: str) -> None:
    two = TwoUsers(lab.start(1)[0])
    two.start()
    request = json.dumps({"id": 1, "do": do, "tasks": [], "uids": [], "moves": []})
    uid = two.add(
        f"{two.node.python} - <<'END'\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\n"
        "s.connect(os.environ['AGENT_NODE_SOCKET'])\n"
        f"s.sendall({request!r}.encode() + b'\\n')\nprint(s.recv(65536).decode())\nEND"
    )
    two.until(uid, "COMPLETED", "DEAD_LETTERED", "RETRYING")
    assert json.loads(two.file(uid, "stdout.log"))["error"]["code"] == "local_only"
