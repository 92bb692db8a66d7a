"""A hub whose place another one has taken says so, without anything being ordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_node.strict import JsonObject
from tests.hub_processes import a_hub, answer, run, until_said
from tests.sensors_stage import rows

FLEET = """\
version: 1
health: {{every: 1s}}
rebalance: {{every: 1d, enabled: false}}
router: {{every: 1d, enabled: false}}
nodes:
  - {{name: iris, local: true, home: {place}/iris}}
  - {{name: loom, local: true, home: {place}/loom}}
"""


@pytest.fixture
def hubs(tmp_path: Path) -> tuple[Path, Path]:
    """Two hubs of one fleet of two nodes; nothing waits there, and nothing moves."""
    for node in ("iris", "loom"):
        run(tmp_path, "agent_node", "init", "--name", node, "--run", "true", node=node)
    for name in ("first", "second"):
        (tmp_path / name).mkdir(mode=0o700)
        run(tmp_path, "arc", "init", str(tmp_path / name))
        (tmp_path / name / "fleet.yaml").write_text(FLEET.format(place=tmp_path))
    return tmp_path / "first", tmp_path / "second"


def test_a_displaced_hub_says_so_and_what_to_type(hubs: tuple[Path, Path]) -> None:
    """Its sessions stand all the while, and it orders nothing. Seen to fail with the term of the
    nodes' reports not looked at: it was as well as ever.
    """
    first, second = hubs
    with a_hub(first) as hub:
        assert "other_hub" not in until_said(hub, "fleet-health")
        assert outranked(answer(first, "status")) == []
        run(second, "arc", "up", "--once", "--take-over")
        # A look in the middle of the other's first round meets a node before and one after it.
        line = until_said(hub, "2 other_hub").splitlines()[-1]
        assert "iris, loom: it obeys another hub" in line
        assert "arc up --take-over" in line
        (need,) = outranked(answer(first, "status"))
        assert "obeyed by iris, loom" in str(need["text"])
        assert "has seen term 2 of hub arc; this one says 1" in str(need["text"])
        said = run(first, "arc", "status")
        assert said.index("another hub is obeyed by iris, loom") < said.index("arc up --take-over")
        checks = rows(answer(first, "doctor", "--node", "iris", ends=6), "checks")
        assert [one["hint"] for one in checks if "another hub" in str(one["text"])] == [
            "arc up --take-over"]
        run(first, "arc", "nodes", "pause", "iris", "--reason", "a word", ends=8)
    run(first, "arc", "up", "--once", "--take-over")
    assert outranked(answer(first, "status")) == []


def test_a_hub_that_comes_back_too_late_is_told_so_by_its_first_hello(
    hubs: tuple[Path, Path]
) -> None:
    """Its nodes said so to nobody but `arc doctor` before. Where no hub runs, the question itself
    says hello.
    """
    first, second = hubs
    run(first, "arc", "up", "--once")
    run(second, "arc", "up", "--once", "--take-over")
    assert len(outranked(answer(first, "status"))) == 1
    assert "2 other_hub" in run(first, "arc", "up", "--once")


def outranked(status: JsonObject) -> list[JsonObject]:
    return [one for one in rows(status, "needs_you") if one["try"] == "arc up --take-over"]
