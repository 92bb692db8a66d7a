"""What `arc why` prints below a way by which a steal would move a task: typed, it does."""

from __future__ import annotations

import asyncio
import re
import shlex
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from arc.config import read_fleet
from arc.decisions.answers import Way
from arc.decisions.changes import Change
from arc.operations.why_typed import typed_in_one_line
from tests.hub.cli.desk import Desk

FLEET = """\
domains:
  protocol: {skills: [stacks-js, clarity]}
  research: {skills: [arc-research]}
  integrations: {skills: [ci]}
  infrastructure: {skills: [deploy]}
rebalance:  # as somebody wrote it
  idle_min: 2m
nodes:
  - {name: iris, local: true, home: iris, owns: [research]}
  - {name: loom, local: true, home: loom, owns: [integrations], also: [research]}
  - {name: spark, local: true, home: spark, owns: [protocol], never: [infrastructure]}
"""
INSTEAD = "  # in place of the rebalance: that is there"
RESEARCH, DEPLOY = ["arc-research"], ["deploy"]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """The desk lives by a fleet.yaml that can be edited."""
    file = desk.place / "fleet.yaml"
    file.write_text(FLEET)
    desk.hub.settings = replace(read_fleet(file), state=desk.hub.settings.state)
    return desk


def type_in(desk: Desk, command: str) -> None:
    """A command as it is printed; a line of fleet.yaml takes the place of the section there."""
    file = desk.place / "fleet.yaml"
    if command.startswith("arc "):
        done = desk.arc(*shlex.split(command)[1:])
        assert done.code == 0, done
    else:
        found = re.fullmatch(r"fleet\.yaml: (rebalance: \{.*\})  # in place of the .*", command)
        assert found, command
        section = re.compile(r"^rebalance:.*\n(?:  .*\n)*", re.MULTILINE)
        file.write_text(section.sub(f"{found[1]}\n", file.read_text(), count=1))
    asyncio.run(desk.hub.follow(read_fleet(file)))  # what a running hub does by itself


@pytest.mark.parametrize(("tasks", "to", "typed"), [
    ({"skills": DEPLOY}, "loom", ["arc nodes edit loom --also research,infrastructure"]),
    ({"skills": DEPLOY}, "spark", ["arc nodes edit spark --never ''",
                                   "arc nodes edit spark --also infrastructure"]),
    ({"skills": RESEARCH, "pinned": True}, "loom", ["arc tasks set LAST pinned=false"]),
    ({"skills": RESEARCH, "priority": 3}, "loom",
     ["fleet.yaml: rebalance: {idle_min: 2m, steal_from: P3}" + INSTEAD]),
    ({"skills": RESEARCH, "count": 4}, "loom",
     ["fleet.yaml: rebalance: {idle_min: 2m, busy_over: 3}" + INSTEAD]),
    ({"skills": DEPLOY, "count": 4, "priority": 2}, "loom",
     ["fleet.yaml: rebalance: {idle_min: 2m, steal_from: P2, busy_over: 3}" + INSTEAD,
      "arc nodes edit loom --also research,infrastructure"]),
])  # fmt: skip
def test_what_is_printed_below_a_way_moves_the_task_once_it_is_typed(
    desk: Desk, tasks: dict[str, Any], to: str, typed: list[str]
) -> None:
    """Of tasks that are alike the one that came last goes first; it is the one that is asked for.

    After each command but the last of a way it stays: none is printed that is not needed. Seen to
    fail: a line for each limit, which beside one another were `rebalance stands here twice`.
    """
    fields = {"priority": 6, **tasks}
    last = desk.waits("iris", *range(1, 1 + fields.pop("count", 7)), **fields)[-1]
    desk.minutes_pass(5)
    text, data = desk.both("why", last)
    (way,) = [one for one in data["ways"] if one["to"] == to]
    said = " and ".join(change["says"] for change in way["changes"])
    at = text.lines.index(f"  to {to} if {said}") + 1
    below = [line.strip() for line in takewhile(lambda one: one[:6].isspace(), text.lines[at:])]
    assert below == [command.replace("LAST", last) for command in typed]
    for command in below:
        assert moved_to(desk, last) is None, f"before {command}"
        type_in(desk, command)
    assert moved_to(desk, last) == to


@pytest.mark.parametrize(("there", "line"), [
    ("nodes: []\n", "rebalance: {steal_from: P3, busy_over: 3}"),
    (None, "rebalance: {steal_from: P3, busy_over: 3}"),  # nobody can read it
    ("nodes: []\nrebalance: {}\n", "rebalance: {steal_from: P3, busy_over: 3}" + INSTEAD),
    ("nodes: []\nrebalance:\n", "rebalance: {steal_from: P3, busy_over: 3}" + INSTEAD),
    ('nodes: []\nrebalance: {every: "5m",  # often\n  busy_over: 9, steal_from: 2}\n',
     'rebalance: {every: "5m", busy_over: 3, steal_from: P3}' + INSTEAD),
])  # fmt: skip
def test_a_line_of_fleet_yaml_has_all_that_its_section_says(
    tmp_path: Path, there: str | None, line: str
) -> None:
    """A key that changes stands in it once, all others as they were written."""
    file = tmp_path / "fleet.yaml"
    if there is not None:
        file.write_text(there)
    limits = tuple(
        Change("limit", name, 3, "", command="one of its own", setting=(name, shown))
        for name, shown in (("steal_from", "P3"), ("busy_over", "3"))
    )
    word = Change("state", "state", "active", "", "iris", command="arc nodes resume iris")

    (way,) = typed_in_one_line([Way((limits[0], word, limits[1]), "loom")], file)
    assert [one.command for one in way.changes] == [
        f"fleet.yaml: {line}", "arc nodes resume iris", ""]  # fmt: skip


def moved_to(desk: Desk, task: str) -> str | None:
    """Where the task goes in a cycle now; None: it stays."""
    report = desk.arc("sensors", "run", "fleet-rebalance", "--json").data
    return next((str(one["to"]) for one in report["moves"] if one["uid"] == task), None)
