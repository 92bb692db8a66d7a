"""Which model a program is told to use, from the task to the event of its end."""

from __future__ import annotations

from typing import Any

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Node, an_agent

ASKED = 'printf "%s" "$AGENT_TASK_MODEL"; test "$AGENT_TASK_ATTEMPT" -ge 3'
AT_ONCE = {"strategy": "immediate", "jitter": 0}


def events(node: Node, uid: str, name: str) -> list[dict[str, Any]]:
    return [one for one in node.show(uid)["events"] if one["event"] == name]


def used(node: Node, uid: str, tries: int) -> list[str]:
    """What the program itself saw, try by try."""
    return [(node.folder(uid, n) / "stdout.log").read_text() for n in range(1, tries + 1)]


def test_from_the_second_try_on_the_fallbacks_have_their_turn(make_node: MakeNode) -> None:
    """Seen to fail with results that do not name their model."""
    node = make_node(agents=an_agent("iris", more='models = ["theirs"]'))
    node.start()
    uid = node.add(ASKED, models=["first", "second"], fallback_models=["spare", "last"],
                   max_attempts=3, retry=AT_ONCE)  # fmt: skip
    node.until(uid, "COMPLETED", "DEAD_LETTERED")
    assert used(node, uid, 3) == ["first", "spare", "last"]
    assert [one["data"]["model"] for one in events(node, uid, "task_failed")] == ["first", "spare"]
    (done,) = events(node, uid, "task_completed")
    assert (done["n"], done["data"]["model"]) == (3, "last")


def test_a_task_that_names_none_is_told_its_agents(make_node: MakeNode) -> None:
    node = make_node(agents=an_agent("iris", more='models = ["theirs", "other"]'))
    node.start()
    uid = node.add(ASKED, max_attempts=3, retry=AT_ONCE)
    node.until(uid, "COMPLETED", "DEAD_LETTERED")
    assert used(node, uid, 3) == ["theirs", "other", "other"]


def test_each_step_of_a_task_says_why_in_a_sentence(make_node: MakeNode) -> None:
    node = make_node(agents=an_agent("iris", more='models = ["opus"]'))
    node.start()
    uid = node.add("true", priority=4)
    later = node.add("true", depends_on=[{"uid": uid}])
    node.until(later, "COMPLETED")
    why = {one["event"]: str(one.get("because")) for one in node.show(uid)["events"]}
    assert why["task_added"] == "nothing holds it: an agent here may claim it"
    assert why["task_claimed"] == "P4: the first of all READY ones that iris may run"
    assert why["task_started"] == "its program runs with model opus"
    assert why["task_completed"].startswith("its program ended well after ")
    (held,) = events(node, later, "task_added")
    assert held["because"].startswith(("it waits for other tasks", "nothing holds it"))


def test_where_no_model_is_named_none_is_told(node: Node) -> None:
    node.start()
    uid = node.add(ASKED + ' || test "$AGENT_TASK_MODEL" = ""')
    node.until(uid, "COMPLETED", "DEAD_LETTERED", "RETRYING")
    assert used(node, uid, 1) == [""]
    (started,) = events(node, uid, "task_started")
    assert started["because"] == "its program runs"
    (done,) = events(node, uid, "task_completed")
    assert "model" not in done["data"]
