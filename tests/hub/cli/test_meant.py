"""Whoever types another program's word, or a letter too few, is told the command that is meant."""

from __future__ import annotations

import pytest

from arc.cli.meant import _FIRST, _THEN
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_starting import commands


@pytest.mark.parametrize(("typed", "meant"), [
    ("graph", "dag"), ("grph", "dag"), ("node", "nodes"), ("task", "tasks"), ("add", "tasks add"),
    ("statsu", "status"), ("helo", "help"), ("drain", "nodes drain"), ("tasks ls", "list"),
    ("tasks lst", "list"), ("tasks craete", "add"), ("tasks rm", "cancel"), ("nodes rm", "remove"),
    ("nodes paus", "pause"), ("config lint", "check"), ("dag new", "submit"),
])  # fmt: skip
def test_the_near_command_is_named(desk: Desk, typed: str, meant: str) -> None:
    """Seen to fail: `No such command 'graph'.`, and nothing to type but the whole help."""
    text = desk.arc(*typed.split())
    asked, _, word = f"arc {typed}".rpartition(" ")
    said = f"error[ARC-USAGE]: {asked}: No such command '{word}'. Did you mean '{meant}'"
    assert (text.code, text.out) == (2, "")
    assert text.err.startswith(said), text.err
    machine = desk.arc(*typed.split(), "--json")
    assert (machine.code, machine.envelope["ok"]) == (2, False)
    assert f"Did you mean '{meant}'" in machine.envelope["error"]["message"]
    assert machine.envelope["error"]["hint"] == f"{asked} --help"


def test_what_is_like_nothing_is_given_no_guess(desk: Desk) -> None:
    assert "Did you mean" not in desk.arc("xyzzy").err


@pytest.mark.parametrize(("typed", "same"), [
    ("help", "--help"), ("help tasks", "tasks --help"), ("help tasks add", "tasks add --help"),
    ("tasks help", "tasks --help"), ("nodes help drain", "nodes drain --help"),
])  # fmt: skip
def test_help_is_help(desk: Desk, typed: str, same: str) -> None:
    """Seen to fail: `No such command 'help'.`"""
    ran = desk.arc(*typed.split())
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == desk.arc(*same.split()).out
    assert ran.out.startswith("Usage: arc ")


def test_help_of_what_is_none_is_wrong_use(desk: Desk) -> None:
    assert desk.arc("help", "bogus").code == 2


def test_each_habit_leads_to_a_command() -> None:
    known = {name.removeprefix("arc ") for name, _ in commands()}
    assert {one for one in _FIRST.values() if one != "help"} <= known
    assert not set(_FIRST) & known - {"help"}
    last = {name.rpartition(" ")[2] for name in known if " " in name}
    assert {one for means in _THEN.values() for one in means} <= last
