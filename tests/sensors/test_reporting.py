"""What a run says of itself in one line adds up."""

from __future__ import annotations

import re
from pathlib import Path

from arc.looking import Look, look
from arc.tally import Tally
from sensors.reporting import costs
from tests.fleet.machines import MachineClock
from tests.hub_builders import a_hub
from tests.hub_nodes import some_nodes


async def test_the_requests_of_a_run_are_as_many_as_its_parts(tmp_path: Path) -> None:
    """Seen to fail with the three commonest alone: they added up to 13 of 26."""
    with some_nodes(tmp_path / "nodes", "iris") as nodes:
        hub = a_hub(tmp_path, MachineClock(nodes.moment), links=nodes.links)
        seen: Look = await look(hub)
        tally: Tally = seen.tally
        for count, do in enumerate(("status", "escrow", "hold", "commit", "activate", "list"), 2):
            for _ in range(count):
                tally.note("iris", do, 0.0)
        (line,) = costs(seen)
        total, *parts = map(int, re.findall(r"\d+", line))
        assert total == sum(parts) == tally.requests
        assert "others" in line
        await hub.close()
