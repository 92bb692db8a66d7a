"""What became of an upgrade is told as far as it is known."""

from __future__ import annotations

from agent_node.strict import JsonObject
from arc.text.look import Look
from arc.text.upgrading import render_upgrade


def test_a_node_that_has_it_and_cannot_be_reached_is_not_called_without_it() -> None:
    """Such a one said that it has it, and nothing went back: seen to say that it had not."""
    because = "it said that it was upgraded, and now: iris: nobody listens"
    data: JsonObject = {"version": "0.2.0", "program": "ab" * 32, "nodes": [
        {"node": "iris", "was": "0.1.0", "outcome": "failed", "because": because}]}  # fmt: skip
    said = render_upgrade(data, Look())
    assert "0 of 1 node have it" in said
    assert "is not known to run it" in said
    assert because in said
