"""Advice about a node on this machine names its home: it works as it is pasted, on that node."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_node.moves import Quarantine
from agent_node.strict import JsonObject
from arc.decisions.domains import Role
from arc.joining.left_behind import what_stays
from tests.builders import uid
from tests.hub.cli.desk import Desk, RealFleet
from tests.node.daemon.living import PATIENCE_S, ROOT

HOME = "/far away/iris"


def at_home(desk: Desk) -> None:
    """fleet.yaml says where iris keeps its queue."""
    nodes = tuple(replace(one, home=HOME) if one.name == "iris" else one
                  for one in desk.hub.settings.nodes)  # fmt: skip
    desk.hub.settings = replace(desk.hub.settings, nodes=nodes)


def pasted(line: str, place: Path) -> str:
    """What a shell shows after this line, where `agent-node` is on PATH and no home is named."""
    program = place / "bin" / "agent-node"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agent_node "$@"\n')
    program.chmod(0o700)
    environ = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(place),
               "PYTHONPATH": str(ROOT)}  # fmt: skip
    ran = subprocess.run(["/bin/sh", "-c", line], env=environ, capture_output=True, text=True,
                         timeout=PATIENCE_S, check=False)  # fmt: skip
    assert ran.returncode == 0, (line, ran)
    return ran.stdout


def test_what_a_removal_says_of_the_queue_it_leaves_works_as_it_is_pasted(
    real: RealFleet, tmp_path: Path
) -> None:
    """Seen to fail: `there: agent-node list`, which asked a home that is none of any node."""
    assert real.arc("tasks", "add", "left behind", "--to", "loom").code == 0
    left = real.arc("nodes", "remove", "loom", "--yes", "--reason", "it moves out")
    assert left.code == 0, left
    lines = re.findall(r"there: ((?:\S+=\S+ )?agent-node list)", left.out + left.err)
    assert lines, left
    assert "left behind" in pasted(lines[0], tmp_path)


def test_an_upgrade_by_hand_stops_and_starts_the_node_of_that_home(desk: Desk) -> None:
    """Seen to fail: both words went to the usual home."""
    at_home(desk)
    said = desk.arc("nodes", "upgrade", "iris", "--dry-run", "--json").data["nodes"][0]
    assert said["outcome"] == "by_hand"
    assert said["because"].endswith(
        f"then: AGENT_NODE_HOME='{HOME}' agent-node stop; AGENT_NODE_HOME='{HOME}' agent-node start"
    )


def test_the_word_that_ends_a_quarantine_is_said_to_the_node_of_that_home(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.nodes.machines["iris"].store.apply(Quarantine("an old copy"))
    at_home(desk)
    assert f"On iris: AGENT_NODE_HOME='{HOME}' agent-node release" in desk.arc("why", uid(1)).out


@pytest.mark.parametrize("state", ["working", "paused", "stopped", "unseen"])
def test_whatever_its_state_no_word_for_a_node_that_leaves_goes_to_another_home(state: str) -> None:
    told: JsonObject = {"seen": state != "unseen", "state": state, "counts": {"READY": 2}}
    there, usual = (what_stays("iris", told, role) for role in (Role(home=HOME), Role()))
    verbs = len(re.findall(r"agent-node [a-z]", usual))
    assert verbs == there.count(f"AGENT_NODE_HOME='{HOME}' agent-node ") > 0
    assert "AGENT_NODE_HOME" not in usual
