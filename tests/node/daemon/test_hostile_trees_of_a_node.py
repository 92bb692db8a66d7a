"""Claims that the daemon itself ends whatever a program started, when its shim is killed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.node.daemon.living import Node, end_all, until
from tests.node.processes.harness import a_mark, carrying
from tests.node.processes.test_hostile_trees import TREES, nobody_carries, the_script

# How many sleep, or say yes, when a tree is whole; of all others two do.
WHOLE = {
    "a daemon by double fork": 3,
    "forking and forking": 31,
    "free of lock, token and session": 3,
}


def sleepers(mark: str) -> int:
    """How many have it as a word of its own; shells and Pythons, in whose script it stands, not."""
    found = 0
    for pid in carrying(mark):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found += mark.encode() in words
    return found


@pytest.mark.parametrize("kind", TREES)
def test_a_node_leaves_nobody_of_a_tree_whose_shim_is_killed(node: Node, kind: str) -> None:
    """Fails where the daemon neither ends what still tells whose it is, nor what has become its
    own child because the shim died: each of the two finds most of a tree.
    """
    mark = a_mark()
    node.start()
    try:
        uid = node.add(the_script(kind, mark), on_interrupt="park")
        until(lambda: sleepers(mark) >= WHOLE.get(kind, 2), "a whole tree")
        os.kill(node.shim(uid), signal.SIGKILL)
        node.until(uid, "PARKED")
        until(partial(nobody_carries, mark), "the end of all survivors")
    finally:
        end_all(partial(carrying, mark))
    assert [one["outcome"] for one in node.attempts(uid)] == ["interrupted"]
    assert node.cli("status")["data"]["counts"] == {"PARKED": 1}
