"""A daemon at rest keeps one attempt's folder ready, and never more than one."""

from __future__ import annotations

import os
from pathlib import Path

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, until


def spares(node: Node) -> list[int]:
    """The inodes of what lies ready, whole: none, or one."""
    tasks = node.home / "tasks"
    assert len([name for name in os.listdir(tasks) if name.startswith(".")]) <= 1
    return [os.lstat(path).st_ino for path in tasks.glob(".next/1")]


def a_spare(node: Node) -> int:
    return until(lambda: spares(node), "a spare folder")[0]


def inode(path: Path) -> int:
    return os.lstat(path).st_ino


def test_work_that_comes_to_a_node_at_rest_runs_in_the_folder_that_lay_ready(
    node: Node, gate: Bell
) -> None:
    """Seen to fail when no timer makes one, and when none is taken."""
    node.start()
    first = a_spare(node)
    uid = node.add(f"echo it ran; read x < {gate.path}")
    node.until(uid, "RUNNING")
    assert inode(node.folder(uid)) == first
    other = node.add("true")
    node.until(other, "COMPLETED")
    assert spares(node) == []
    gate.ring()
    node.until(uid, "COMPLETED")
    assert (node.folder(uid) / "stdout.log").read_text() == "it ran\n"
    second = a_spare(node)
    last = node.add("true")
    node.until(last, "COMPLETED")
    assert inode(node.folder(last)) == second
    assert node.attempts(last)[0]["n"] == 1


def test_the_spare_of_a_daemon_that_was_killed_is_replaced_and_never_used(node: Node) -> None:
    daemon = node.start()
    a_spare(node)
    mark = node.home / "tasks" / ".next" / "1"
    mark.chmod(0o711)
    daemon.kill()
    node.start()
    until(lambda: spares(node) and mark.stat().st_mode & 0o777 == 0o700, "a spare of its own")
    node.until(node.add("true"), "COMPLETED")
    a_spare(node)


def test_a_spare_that_holds_something_is_left_and_work_goes_on(node: Node) -> None:
    node.start()
    a_spare(node)
    planted = node.home / "tasks" / ".next" / "1" / "answer.json"
    planted.write_text('{"output": "planted"}')
    for _ in range(2):
        uid = node.add("true")
        assert node.until(uid, "COMPLETED").get("output") is None
        assert planted.exists()
    (told,) = [one for one in node.cli("doctor", code=None)["data"]["checks"]
               if one["check"] == "spare folder"]  # fmt: skip
    assert str(node.home / "tasks" / ".next") in told["text"]


def test_a_home_with_another_journal_and_another_users_way_has_one_too(
    make_node: MakeNode,
) -> None:
    """What a starter's shim needs of the folder is given to it after it was taken."""
    agent = an_agent("iris", more='prefix = ["/usr/bin/env"]')
    node = make_node(agents=agent, journal="truncate")
    node.start()
    spare = a_spare(node)
    uid = node.add("pwd")
    node.until(uid, "COMPLETED")
    assert inode(node.folder(uid)) == spare
    assert node.folder(uid).stat().st_mode & 0o777 == 0o777
    assert node.folder(uid).parent.stat().st_mode & 0o777 == 0o700
