"""A file goes from one real daemon to another by way of the hub, over pipes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node.strict import JsonObject
from tests.node.daemon.conftest import all_gone
from tests.node.daemon.living import ROOT, Node, an_agent, until
from tests.node.daemon.test_artifacts import CONTENT, LEAVES, READS, SHA256
from tests.sensors_stage import rows

LIMIT_S = 30.0
ROUNDS_MAX = 12
FLEET = """\
version: 1
rebalance: {every: 1d}
nodes:
  - {name: iris, local: true, home: ../iris}
  - {name: loom, local: true, home: ../loom}
"""
GRAPH: JsonObject = {
    "title": "over the river",
    "tasks": {
        "a": {"subject": "a", "body": LEAVES, "needs": ["writing"]},
        "b": {"subject": "b", "body": READS, "needs": ["reading"],
              "context": ["a.artifact:report.txt"]},
    },
}  # fmt: skip


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, Node]]:
    """Two daemons: one can only write, the other can only read."""
    made = {
        name: Node(tmp_path / name, name, agents=an_agent(name, skills=[skill]))
        for name, skill in (("iris", "writing"), ("loom", "reading"))
    }
    yield made
    for node in made.values():
        node.clean_up()
    until(lambda: all_gone([*made.values()]), "the end of all who carry a home of theirs")


def arc(place: Path, *words: str, stdin: str = "") -> Any:
    """One command of the hub: the data of its envelope, the last where it writes several."""
    ran = subprocess.run(
        [sys.executable, "-m", "arc", *words, "--json"], cwd=place, input=stdin, text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(place)},
        capture_output=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 3), (words, ran.returncode, ran.stdout, ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])["data"]


def test_what_one_daemon_left_is_read_by_another(tmp_path: Path, nodes: dict[str, Node]) -> None:
    place = tmp_path / "hub"
    place.mkdir(mode=0o700)
    arc(place, "init", str(place))
    (place / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    for node in nodes.values():
        node.start()
    dag = arc(place, "dag", "submit", "-", stdin=json.dumps(GRAPH))["dag"]
    for _ in range(ROUNDS_MAX):
        arc(place, "up", "--once")
        shown = arc(place, "dag", "show", dag)
        if shown["state"] == "completed":
            break
    assert shown["state"] == "completed", shown
    (read,) = [task for task in rows(shown, "tasks") if task["name"] == "b"]
    task = nodes["loom"].show(str(read["uid"]))["task"]
    assert task["output"] == "seven rows"
    for home in (nodes["iris"].home, nodes["loom"].home, place / ".arc"):
        assert (home / "artifacts" / SHA256[:2] / SHA256).read_bytes() == CONTENT
