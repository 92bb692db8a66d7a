"""`arc config`, `arc explain`, `arc init` and bare `arc` need no hub and make no guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from arc.config import parse_fleet
from arc.config_settings import document_of
from arc.text.config import render_config
from arc.text.look import Look
from tests.hub.cli.desk import Desk

GOOD = """\
fleet: arc0
domains: {research: {skills: [arc-research], words: [paper]}}
nodes:
  - {name: iris, local: true, owns: [research]}
"""


def write(desk: Desk, text: str) -> Path:
    file = desk.place / "fleet.yaml"
    file.write_text(text)
    return file


def test_a_file_without_findings_is_exit_0(desk: Desk) -> None:
    file = write(desk, GOOD)
    text, data = desk.both("config", "check")
    assert (text.code, text.out) == (0, f"{file}: no findings\n")
    assert data["findings"] == []
    assert desk.arc("config").out == text.out


def test_findings_are_exit_6_each_with_its_line_and_a_caret(desk: Desk) -> None:
    write(desk, GOOD.replace("owns: [research]", "also: [research]"))
    text, data = desk.both("config", "check")
    assert text.code == 6
    assert "warning[ARC-CFG-NO-OWNER]" in text.out
    assert "^^^" in text.out
    assert data["findings"][0]["line"] == 2


def test_what_cannot_be_obeyed_is_exit_2_with_every_fault_at_once(desk: Desk) -> None:
    write(desk, GOOD + "nodez: 1\nrouter: {every: 30}\n")
    text, error = desk.both("config", "check")
    assert text.code == 2
    assert {one["code"] for one in error["problems"]} >= {"ARC-CFG-UNKNOWN"}
    assert len(error["problems"]) == 2
    assert "did you mean 'nodes'?" in text.err


def test_the_settings_that_count_are_shown_as_a_file_that_means_the_same(desk: Desk) -> None:
    write(desk, GOOD)
    text, data = desk.both("config", "show")
    assert data["rebalance"]["idle_min"] == "2m"
    again = parse_fleet(text.out, desk.place / "fleet.yaml")
    assert render_config(document_of(again), Look()) + "\n" == text.out


def test_the_schema_is_one_document(desk: Desk) -> None:
    write(desk, GOOD)
    text, data = desk.both("config", "schema")
    assert text.code == 0
    assert data["title"] == "fleet.yaml"


@pytest.mark.parametrize("word", ["idle_min", "ARC-SSH-HOSTKEY", "exit-codes", "no_such_word"])
def test_a_word_is_explained_or_answered_with_where_to_look(desk: Desk, word: str) -> None:
    text, said = desk.both("explain", word)
    if word == "no_such_word":
        assert text.code == 2
        assert said["hint"] == "arc explain without a word lists them all"
    else:
        assert text.code == 0
        assert said["text"] in text.out


def test_without_a_word_all_that_can_be_explained_are_listed(desk: Desk) -> None:
    text, data = desk.both("explain")
    assert {one["kind"] for one in data["pages"]} >= {"key", "rule", "error"}
    assert all(f"\n  {one['word']}\n" in f"{text.out}\n" for one in data["pages"])


def test_a_new_fleet_is_made_once_and_the_next_step_is_said(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    dry = desk.arc("init", str(folder), "--dry-run")
    assert "would create fleet.yaml" in dry.out
    assert not folder.exists()
    made = desk.arc("init", str(folder))
    assert made.code == 0
    assert (folder / "fleet.yaml").exists()
    assert made.lines[-1] == (
        "next: arc nodes add USER@HOST --name NAME for each machine, then: arc up")
    again = desk.arc("init", str(folder), "--json").data
    assert again["made"] == []
    assert again["fingerprint"] in made.out


def test_who_starts_a_fleet_hears_that_a_variable_leads_elsewhere(
    desk: Desk, tmp_path: Path
) -> None:
    """The demo's folder is gone, and the terminal that looked at it still means it."""
    folder, left = tmp_path / "own", tmp_path / "arc-demo-x" / "fleet.yaml"
    for words in (("init", str(folder), "--dry-run"), ("init", str(folder))):
        told = desk.arc(*words, environ={"ARC_FLEET": str(left)})
        assert (told.code, told.err.count("\n")) == (0, 1), told
        assert f"warning: $ARC_FLEET leads every command to {left}, and not to {folder}" in told.err
        assert "unset ARC_FLEET" in told.err
    (said,) = desk.arc("init", str(folder), "--json", environ={"ARC_FLEET": str(left)}
                       ).envelope["warnings"]  # fmt: skip
    assert str(left) in said
    for led in ({}, {"ARC_FLEET": ""}, {"ARC_FLEET": str(folder / "fleet.yaml")}):
        assert desk.arc("init", str(folder), environ=led).err == ""


def test_a_fleet_is_not_made_where_others_may_change_it(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    text, error = desk.both("init", str(folder))
    assert text.code == 1
    assert error["code"] == "ARC-INIT"
    assert [*folder.iterdir()] == []


def test_arc_alone_without_a_fleet_says_what_to_do_first(desk: Desk) -> None:
    (desk.place / "fleet.yaml").unlink(missing_ok=True)
    text, error = desk.both()
    assert text.code == 2
    assert error["code"] == "ARC-NO-FLEET"
    for first in ("arc demo", "arc init", "arc --fleet FILE"):
        assert first in text.err


def test_arc_alone_with_a_fleet_shows_its_commands(desk: Desk) -> None:
    write(desk, GOOD)
    text = desk.arc()
    assert text.code == 0
    assert "status " in text.out
