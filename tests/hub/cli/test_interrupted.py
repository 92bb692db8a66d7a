"""Ctrl-C: who asked for a change hears that it may have happened, who looked hears nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arc import door
from arc.cli import main

CHANGES = [
    ["tasks", "add", "x", "--to", "iris"], ["nodes", "pause", "iris", "--reason", "new disk"],
    ["tasks", "cancel", "01J0000000000000000000000", "--reason", "not now"],
]  # fmt: skip
LOOKS = [["status"], ["tasks", "list"], ["nodes", "pause", "iris", "--reason", "x", "--dry-run"]]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub that is asked, and never answers before Ctrl-C."""

    def interrupted(*words: object, **more: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "fleet.yaml").write_text("nodes: []\n")
    monkeypatch.setattr(door, "ask", interrupted)
    return ["--fleet", str(tmp_path / "fleet.yaml")]


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_an_interrupted_change_may_have_happened(
    fleet: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen to fail: nothing was said, with --json either."""
    assert main([*fleet, *words]) == 130
    out, err = capsys.readouterr()
    assert (out, "was asked and may have happened" in err) == ("", True)
    assert err.startswith("error[ARC-INTERRUPTED]: interrupted: ")
    assert main([*fleet, "--json", *words]) == 130
    out, err = capsys.readouterr()
    assert (json.loads(out)["error"]["code"], err) == ("ARC-INTERRUPTED", "")


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_who_only_looked_hears_nothing(
    fleet: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*fleet, *words]) == 130
    assert main([*fleet, "--json", *words]) == 130
    assert capsys.readouterr() == ("", "")
