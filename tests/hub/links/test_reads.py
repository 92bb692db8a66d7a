"""What the hub takes for a question is what a node answers without changing anything."""

from __future__ import annotations

from agent_node.replies import ASKS
from arc.links import READS

TAKEN_FOR_ONE = {"hello", "subscribe"}  # said anew with each session, whatever became of the last


def test_each_question_of_a_node_is_one_for_the_hub_and_nothing_else_is() -> None:
    """Seen to fail: `budget`, `tiers` and `dead` that nobody answered were told as `may have
    happened`, and waited for as long as a change.
    """
    assert {*ASKS, *TAKEN_FOR_ONE} == READS
