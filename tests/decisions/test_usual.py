"""How long runs have gone on is read out of what waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent_node.clock import iso
from agent_node.reports import AgentReport
from arc.decisions.usual import run_for_s

from ..builders import START
from ..fleet_builders import a_report

ONE = AgentReport("iris", "full", 1, 1)


def ended(seconds_ago: float) -> dict[str, Any]:
    return {"last_task": {"ended_at": iso(START - timedelta(seconds=seconds_ago))}}


@pytest.mark.parametrize(("fields", "seconds"), [
    ({}, 50.0),
    (ended(20), 20.0),
    (ended(90), 50.0),
    (ended(-5), 0.0),
    ({"oldest_ready_s": None}, 0.0),
    ({"running_count": 0, "free_slots": 0}, 0.0),
    ({"slots": 2}, 0.0),
    ({"slots": 2, "running_count": 2}, 50.0),
    ({"unmet_count": 1}, 0.0),
    ({"agents": (ONE, ONE._replace(name="gpu"))}, 0.0),
    ({"last_task": {"ended_at": "lately"}}, 0.0),
    ({"last_task": {"ended_at": "2026-01-01T00:00:00"}}, 0.0),
])  # fmt: skip
def test_all_has_run_there_since_one_waits_and_none_has_ended(
    fields: dict[str, Any], seconds: float
) -> None:
    """Of a node with a free slot, or where no agent can run what waits, nothing follows, nor of
    several agents, where one waits for another; a stamp that is none, or has no zone, says nothing
    either.
    """
    known = {"pending_count": 3, "running_count": 1, "oldest_ready_s": 50.0}
    assert run_for_s(a_report("iris", **known | fields)) == seconds
