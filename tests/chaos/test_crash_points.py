"""Every named place meets death, a failing disk, a full one and a standstill; then the books."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from tests.chaos.conftest import MakeFleet
from tests.chaos.crash_table import (
    ACTIONS,
    ELSEWHERE,
    FILES_LEFT,
    HUB,
    NODE,
    OWN_QUEUE,
    REST,
    TOLD,
    UPGRADE,
    WORDS,
    Campaign,
    HubPoint,
    in_the_table,
    spelled_out,
)
from tests.chaos.fleet import _is_stopped
from tests.chaos.hub_cells import HubCells
from tests.chaos.node_cells import NodeCells, Pair
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import until
from tools.sources import ROOT, sources


def test_every_failpoint_stands_in_the_table() -> None:
    """Fails when a place in the code is tried by no case, and when a case names no place."""
    written = {match for source in sources("agent_node", "arc", "sensors")
               for match in re.findall(r'failpoint\(f?"([^"]+)"\)', source.text)}  # fmt: skip
    named = {name for one in written for name in spelled_out(one)}
    assert (named - in_the_table(), in_the_table() - named) == (set(), set())


def test_the_page_counts_the_places_of_the_table() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = {
        "a busy node, and an idle one that work comes to": f"{len(NODE)} each",
        "a node that is told a word": f"{len(WORDS.places)}: ",
        "a node on which a task left a file, or to which one comes": f"{len(FILES_LEFT.places)}, ",
        "a hub that tells a graph's home of an end": f"{len(TOLD.places)}, ",
        "an upgrade": f"{len(UPGRADE.places)} |", "the first start of a home": "1 |",
        "a node at rest that work comes to": f"{len(REST.places)} |",
    }  # fmt: skip
    assert [who for who, count in rows.items() if f"| {who} | {count}" not in page] == []


@pytest.mark.parametrize("campaign", ELSEWHERE, ids=lambda campaign: campaign.places[0])
def test_a_campaign_of_its_own_strikes_each_of_its_places_by_each_action(
    campaign: Campaign
) -> None:
    """Fails when a test of it goes to the soak, or leaves an action or a place out."""
    struck = {cell for test in campaign.tests for cell in cells_of(campaign, test)}
    assert struck == {(place, action) for place in campaign.places for action in ACTIONS}


def cells_of(campaign: Campaign, test: str) -> set[tuple[str, str]]:
    """What this test is told to strike; one that is told no place goes to all of them by itself."""
    marks = getattr(import_module(campaign.module), test).pytestmark
    assert not [mark for mark in marks if mark.name == "soak"], f"{test} is not in `make test`"
    told = {mark.args[0]: mark.args[1] for mark in marks if mark.name == "parametrize"}
    places = told.get("place", campaign.places)
    return {(place, action) for place in places for action in told["action"]}


def pairs(turn: int) -> list[Pair]:
    """Each place once, half of them at the busy node and half at the idle one; odd turns: the
    other way round, so that two turns are every cell.
    """
    here, there = (NODE[0::2], NODE[1::2]) if turn % 2 == 0 else (NODE[1::2], NODE[0::2])
    length = max(len(here), len(there))
    return [(here[n] if n < len(here) else None, there[n] if n < len(there) else None)
            for n in range(length)]  # fmt: skip


def test_each_place_of_a_node_meets_each_action(make_fleet: MakeFleet) -> None:
    """Fails when an attempt without a verdict counts as dead unproved."""
    with ThreadPoolExecutor(len(ACTIONS)) as at_once:
        done = list(at_once.map(partial(campaign, make_fleet), ACTIONS, range(len(ACTIONS))))
    assert sum(len(cells.reached) for cells in done) == len(ACTIONS) * len(NODE)


@pytest.mark.soak
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("action", ACTIONS)
def test_each_cell_of_a_node_by_itself(make_fleet: MakeFleet, action: str, turn: int) -> None:
    """Every place at the busy and at the idle node; the books are read after each of them."""
    for pair in pairs(turn):
        cells = NodeCells(make_fleet(f"cell {action} {turn} {pair}"), action)
        cells.step(pair)
        cells.end()
        assert len(cells.reached) == sum(point is not None for point in pair)


def campaign(make_fleet: MakeFleet, action: str, turn: int) -> NodeCells:
    """One action at each place, one after the other in the same fleet."""
    cells = NodeCells(make_fleet(f"cells {action}"), action)
    for pair in pairs(turn):
        cells.step(pair)
    cells.end()
    return cells


@pytest.mark.parametrize("action", ACTIONS)
def test_a_new_home_survives_every_fault_of_its_first_start(
    make_node: MakeNode, action: str
) -> None:
    node = make_node()
    daemon = node.start(failpoint=f"migrate.before_commit:{action}", ready=False)
    if action == "stop":
        until(lambda: _is_stopped(daemon.pid), "a daemon that stands still")
        daemon.signal(signal.SIGCONT)
        daemon.hear("node_started")
    else:
        code = daemon.ended()
        assert code == -signal.SIGKILL if action == "kill" else code > 0, (code, daemon.said)
        assert "Traceback" not in daemon.said
        assert (action == "kill") == (daemon.said == ""), daemon.said
        node.start()
    node.until(node.add("true"), "COMPLETED")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("place", REST.places)
def test_a_node_at_rest_survives_every_fault_of_what_it_keeps_ready(
    make_node: MakeNode, tmp_path: Path, place: str, action: str
) -> None:
    """Work comes to it: the program runs once, and does not read `idle`; one spare is left."""
    node, reached, printed = make_node(), tmp_path / "reached", tmp_path / "printed"
    node.env["ARC_FAILPOINT_SEEN"] = str(reached)
    daemon = node.start(failpoint=f"{place}:{action}")
    used = place in {"report.before_deny", "spare.before_rename"}  # when work comes
    if used:
        until(lambda: [*node.home.glob(".fleet-status.json.*")], "what takes idle back")
        until(lambda: [*node.home.glob("tasks/.next/1")], "a spare folder")
        uid = node.add(reads_idle(printed))
    until(reached.exists, place)
    if action == "stop":
        until(lambda: _is_stopped(daemon.pid), "a daemon that stands still")
        assert not printed.exists()
        daemon.signal(signal.SIGCONT)
    elif action == "kill":
        assert daemon.ended() == -signal.SIGKILL
        node.start()
    if not used:
        uid = node.add(reads_idle(printed))
    node.until(uid, "COMPLETED")
    assert "Traceback" not in daemon.said
    assert printed.read_text() == ' "idle": false,\n'
    until(lambda: [*node.home.glob("tasks/.next/1")], "a spare folder")
    assert [path.name for path in node.home.glob("tasks/.*")] == [".next"]


def reads_idle(printed: Path) -> str:
    """A script that writes down what the report says of its node."""
    return f'grep \'"idle":\' "$AGENT_NODE_HOME/fleet-status.json" >> {printed}'


def test_each_place_of_the_hub_meets_each_action(make_fleet: MakeFleet) -> None:
    """Fails when a commit is told without having heard `held`, and when a key is written in place:
    a hub that died over it would never start again.
    """
    with ThreadPoolExecutor(len(ACTIONS)) as at_once:
        done = list(at_once.map(partial(hub_campaign, make_fleet, HUB), ACTIONS))
    assert sum(done) == len(ACTIONS) * len(HUB)


@pytest.mark.soak
@pytest.mark.parametrize("action", ACTIONS)
def test_each_cell_of_the_hub_by_itself(make_fleet: MakeFleet, action: str) -> None:
    """The books are read after each of them."""
    for point in (*HUB, *OWN_QUEUE):
        assert hub_campaign(make_fleet, (point,), action) == 1


def hub_campaign(make_fleet: MakeFleet, points: Sequence[HubPoint], action: str) -> int:
    """How many places were reached; all else raises."""
    cells = HubCells(make_fleet(f"hub {action}"), action)
    try:
        for point in points:
            cells.cell(point)
        findings = cells.end()
    finally:
        cells.close()
    assert findings.clean, findings
    return len(cells.reached)
