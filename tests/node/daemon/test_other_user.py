"""An agent with a prefix: its shims and programs run as another user, and the node reads them."""

from __future__ import annotations

import json

import pytest

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import an_agent
from tools.tiers import AS_NOBODY, may_change_user

PROGRAM = "id -u; ls $AGENT_NODE_HOME 2>&1; echo '{\"output\": 42}' > $AGENT_ANSWER"


@pytest.fixture
def made(make_node: MakeNode) -> MakeNode:
    if not may_change_user():
        pytest.skip("needs other-user: root, setpriv, and a Python that others can start")
    return make_node


def test_a_program_runs_as_the_other_user_and_cannot_enter_the_home(made: MakeNode) -> None:
    """Seen to fail without `folder.share()`: the shim could write nothing and told nobody."""
    node = made(agents=an_agent("iris", more=f"prefix = {json.dumps(AS_NOBODY)}"))
    node.start()
    uid = node.add(PROGRAM)
    task = node.until(uid, "COMPLETED", "PARKED", "DEAD_LETTERED")
    assert (task["state"], task["output"]) == ("COMPLETED", 42)
    said = (node.folder(uid) / "stdout.log").read_text()
    assert said.startswith("65534\n")
    assert "Permission denied" in said


def test_the_node_ends_the_other_users_whole_tree(made: MakeNode) -> None:
    node = made(agents=an_agent("iris", more=f"prefix = {json.dumps(AS_NOBODY)}"))
    node.start()
    uid = node.add("setsid sleep 600 & sleep 600")
    node.until(uid, "RUNNING")
    with node.one_talk() as talk:
        talk.ask("cancel", uids=[uid], reason="enough")
    assert node.until(uid, "CANCELLED", "PARKED")["state"] == "CANCELLED"


def test_what_a_program_of_another_user_is_given_it_can_open(made: MakeNode) -> None:
    """Seen to fail with the folder of its files shared like a file: it could not be entered."""
    node = made(agents=an_agent("iris", more=f"prefix = {json.dumps(AS_NOBODY)}"))
    node.start()
    uid = node.add("echo seven rows > report.txt; echo '{\"artifacts\": [\"report.txt\"]}'"
                   " > $AGENT_ANSWER")  # fmt: skip
    reader = node.add("cat inputs/report.txt", depends_on=[{"uid": uid}],
                      context_refs=[f"task:{uid}:artifact:report.txt"])  # fmt: skip
    node.until(reader, "COMPLETED", "PARKED", "RETRYING")
    assert (node.folder(reader) / "stdout.log").read_text() == "seven rows\n"
