"""Files of tasks that run as another user: taken from that user's home, and brought into it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.ssh.lab import Lab
from tests.ssh.two_users import TwoUsers

SHA256 = hashlib.sha256(b"seven rows\n").hexdigest()
LEAVES = "umask 077; echo 'seven rows' > report.txt\n"
ENDED = ("COMPLETED", "PARKED", "DEAD_LETTERED", "RETRYING")


@pytest.fixture(params=("agent", "root"))
def two(lab: Lab, request: pytest.FixtureRequest) -> TwoUsers:
    """Once with a node that has to ask sudo, and once with one that is root and gives it up."""
    made = TwoUsers(lab.start(1)[0], request.param)
    made.start()
    return made


def says(*artifacts: object) -> str:
    """The last line of a script: its answer names these files."""
    return f"cat > $AGENT_ANSWER <<'END'\n{json.dumps({'artifacts': artifacts})}\nEND\n"


def taken(two: TwoUsers, uid: str) -> Any:
    task = two.until(uid, *ENDED)
    assert task["state"] == "COMPLETED", (task, two.said())
    return task["artifacts"]


def test_a_private_file_is_taken_and_the_next_task_reads_its_own_copy(two: TwoUsers) -> None:
    """The copy is read-only, lies with what is its user's, and is gone when the task has ended."""
    uid = two.add(LEAVES + says("report.txt"))
    assert taken(two, uid) == [{"name": "report.txt", "sha256": SHA256, "size": 11}]
    shelf = f"{two.home.path}/artifacts/{SHA256[:2]}/{SHA256}"
    assert two.node.read(shelf) == b"seven rows\n"
    reads = "pwd; ls -l ../inputs; cat ../inputs/report.txt"
    context: list[object] = [f"task:{uid}:artifact:report.txt"]
    (reader,) = two.add_all([(reads, {"context_refs": context})])
    assert two.until(reader, *ENDED)["state"] == "COMPLETED", two.said()
    said = two.file(reader, "stdout.log")
    assert said.splitlines()[-1] == "seven rows"
    assert "-r--r--r--" in said
    given = json.loads(two.file(reader, "context.json"))[context[0]]
    place = f"/home/arc-run/.agent-node-run/{reader}-1"
    assert given["path"] == f"{place}/inputs/report.txt"
    two.wait(lambda: b"inputs" not in two.node.exec(["ls", place], user="arc-run").stdout,
             "the end of its copies")  # fmt: skip


def test_what_a_hostile_task_names_is_not_taken_and_costs_the_others_nothing(
    two: TwoUsers,
) -> None:
    """Seen to fail with a warden that follows links: a file of that user's from elsewhere came.

    What is the node's no warden could open anyway: it is that user.
    """
    database = f"{two.home.path}/queue.db"
    hostile = (
        f"ln -s {database} link; mkfifo pipe; echo x > one; ln one twin; mkdir folder\n"
        f"ln -s {two.home.path} out; echo secret > ../secret; ln -s ../secret near\n"
        "ln -s .. up; ln -s /proc/self/environ proc; : > 'two\nlines'\n"
    )
    names = ["link", "pipe", "twin", "folder", "out/queue.db", database, "../secret", "near",
             "up/secret", "proc", "two\nlines", "gone", 7]  # fmt: skip
    ways = [{"path": "two\nlines", "name": "in one line"}, "report.txt"]
    found = taken(two, two.add(LEAVES + hostile + says(*names, *ways)))
    assert [("sha256" in one) for one in found] == [False] * len(names) + [True, True], found
    assert all(one["because"] and "\n" not in one["name"] for one in found[: len(names)])
    assert found[-1]["sha256"] == SHA256


COPIES = 8
ANSWERS_READS = """\
cd $(cat ~/place); exec {python} - <<'END'
import ctypes, os, struct
MEANS = {{0x20: b"o", 0x1: b"a", 0x2: b"m", 0x10: b"c"}}  # opened, read, written, closed
ends = os.open("big", os.O_WRONLY | os.O_APPEND)
eyes = ctypes.CDLL(None).inotify_init()
ctypes.CDLL(None).inotify_add_watch(eyes, b"big", sum(MEANS))
order = os.open(os.path.expanduser("~/order"), os.O_WRONLY | os.O_CREAT, 0o600)
while True:
    seen = struct.iter_unpack("iIII", os.read(eyes, 1 << 16))
    letters = b"".join(MEANS[mask] for _, mask, _, _ in seen)
    os.write(order, letters)
    if b"a" in letters:
        os.write(ends, b"more")
END
"""


def test_a_file_that_another_task_of_the_account_goes_on_writing_is_not_taken(
    two: TwoUsers,
) -> None:
    """The kernel says in which order the file was read and written, however loaded the machine is.

    A copy was surely overtaken when two writings were told between two of its reads: the second
    of them began after the copy's first look at the file. Seen to fail without a second look.
    """
    wait = "until [ -s ~/place ]; do sleep 0.05; done\n"
    writer = two.add(wait + ANSWERS_READS.format(python=two.node.python))
    two.until(writer, "RUNNING")
    leaves = "head -c 4000000 /dev/zero > big; pwd > ~/place\n"
    leaves += "until [ -e ~/order ]; do sleep 0.05; done\n"
    names = [{"path": "big", "name": str(number)} for number in range(COPIES)]
    found = taken(two, two.add(leaves + says(*names)))

    def order() -> str:
        return two.node.read("/home/arc-run/order").decode()

    two.wait(lambda: order().count("c") == COPIES, "the writer's word on every copy")
    overtaken = ["amama" in copy for copy in order().split("o")[1:]]
    assert any(overtaken), order()
    for one in (one for one, was in zip(found, overtaken, strict=True) if was):
        assert "changed while it was copied" in one.get("because", ""), (one, order())


def test_a_large_file_arrives_whole_while_the_node_answers(two: TwoUsers) -> None:
    uid = two.add("head -c 4000000 /dev/zero > big; chmod 0 big\n" + says("big"))
    (denied,) = taken(two, uid)
    assert "cannot be read by the user that its task ran as" in denied["because"]
    (found,) = taken(two, two.add("head -c 4000000 /dev/zero > big\n" + says("big")))
    assert (found["size"], found["sha256"]) == (
        4_000_000, hashlib.sha256(bytes(4_000_000)).hexdigest())  # fmt: skip
