"""What joined, was trusted anew or left stands in the log; what broke off says what it had done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node.errors import BadInput
from agent_node.strict import JsonObject
from arc.joining import trusting
from arc.joining.steps import Steps
from arc.joining.story import Here
from arc.operations.nodes_noted import nodes_noted
from arc.setup import init
from tests.hub.cli.desk import Desk, Ran

Outcome = type[BaseException] | None


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    init(tmp_path)
    yield made
    made.close()


def trusted(desk: Desk, monkeypatch: pytest.MonkeyPatch, *words: str, ends: Outcome = None) -> Ran:
    """`arc nodes trust iris`, of which only the step that pins the key is played."""

    async def trust(name: str, fingerprint: str, here: Here, steps: Steps) -> None:
        with steps.step("host key pinned") as step:
            step.changed = "" if steps.dry_run else "iris is trusted with another key"
        if ends is not None:
            raise ends("the disk is gone")

    monkeypatch.setattr(trusting, "trust", trust)
    return desk.arc("nodes", "trust", "iris", *words)


def events(desk: Desk) -> list[str]:
    return [one["event"] for one in desk.arc("log", "--json").data["lines"]]


def test_a_change_has_a_line_with_who_made_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail with `_note` doing nothing: nobody could say since when a key is trusted."""
    assert trusted(desk, monkeypatch).code == 0
    (line,) = desk.arc("log", "--event", "node_trusted", "--json").data["lines"]
    assert (line["node"], line["fields"]["by"]) == ("iris", "human:ada")


def test_a_dry_run_has_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trusted(desk, monkeypatch, "--dry-run").code == 0
    assert "node_trusted" not in events(desk)


@pytest.mark.parametrize("ends", [KeyboardInterrupt, ZeroDivisionError, OSError])
def test_whatever_breaks_off_says_what_had_been_changed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, ends: type[BaseException]
) -> None:
    """Seen to fail for all but Ctrl-C: what a fault of ours left behind was told by nobody."""
    ran = trusted(desk, monkeypatch, ends=ends)
    assert ran.code == (130 if ends is KeyboardInterrupt else 1)
    assert "changed so far: iris is trusted with another key" in ran.err
    assert "Traceback" not in ran.err


def test_nothing_else_is_noted_so_and_no_word_drives_a_terminal(desk: Desk) -> None:
    hub = desk.hub
    with pytest.raises(BadInput, match="should be one of node_joined"):
        asyncio.run(nodes_noted(hub, {"event": "run_done", "node": "iris"}))
    words: JsonObject = {"event": "node_removed", "node": "forge", "reason": "sold\x1b[2J"}
    asyncio.run(nodes_noted(hub, words))
    (line,) = hub.journal.runs.lines(limit=9)
    assert (line.event, line.node) == ("node_removed", "forge")
    assert line.fields["reason"] == "sold\\x1b[2J"
