"""A task that is no node's work stands under NEEDS YOU; what `arc why` says to type sends it."""

from __future__ import annotations

import asyncio
import re
import shlex
from dataclasses import replace

import pytest

from arc.decisions.nobodys_work import NobodysWork
from arc.decisions.view import NodeUnseen
from arc.looking import look
from arc.operations import nobodys_now
from arc.operations.page_now import page_now
from arc.text.columns import objects
from tests.hub.cli.desk import Desk, RealFleet
from tools.sources import ROOT

README = ROOT / "README.md"
BECAUSE = "no domain of fleet.yaml has one of its skills: ops"


def needs(desk: Desk | RealFleet) -> list[tuple[str, str, str]]:
    said = desk.arc("status", "--json").data["needs_you"]
    return [(one["node"], one["text"], one["try"]) for one in said if one["node"] == "inbox"]


def test_the_first_task_of_a_newcomer_is_sent_by_the_lines_that_why_names(real: RealFleet) -> None:
    """Seen to fail: it waited for ever, `arc status` was silent, and `arc why` named no change."""
    added = real.arc("tasks", "add", "rotate the logs", "--skill", "ops", "--json")
    task = added.data["results"][0]["uid"]
    assert needs(real) == [("inbox", f"1 READY, but {BECAUSE}", f"arc why {task}")]
    way = next(one for one in real.arc("why", task, "--json").data["ways"] if one["to"] == "iris")
    line, edit = (change["command"] for change in way["changes"])
    text = real.arc("why", task).out
    assert f"to iris if {way['changes'][0]['says']} and iris owned ops" in text
    assert line in text
    assert edit in text
    where, _, written = line.partition(": ")
    assert where == "fleet.yaml"
    real.file.write_text(f"{real.file.read_text()}{written}\n")
    assert real.arc(*edit.split()[1:]).code == 0
    assert real.arc("config", "show").code == 0
    assert needs(real) == []
    real.arc("sensors", "run", "fleet-router")
    real.iris.until(task, "COMPLETED")


def test_the_tasks_of_the_readme_go_as_it_tells_them(real: RealFleet) -> None:
    """Seen to fail: the only task that it added stayed with the hub for ever."""
    fleet = README.read_text(encoding="utf-8").split("## A fleet of your own")[1].split("\n## ")[0]
    typed = [shlex.split(line, comments=True)[1:] for block in fleet.split("```sh")[1:]
             for line in block.split("```")[0].splitlines()
             if line.startswith(("arc tasks", "arc sensors", "arc status", "arc why"))]  # fmt: skip
    assert [words[0] for words in typed] == ["tasks", "sensors", "tasks", "status", "why"]
    uids: list[str] = []
    for words in typed:
        ran = real.arc(*(uids[-1] if word == "UID" else word for word in words))
        assert ran.code == 0, (words, ran)
        if words[0] == "tasks":
            uids += re.findall(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", ran.out)
        if words[0] == "sensors":
            real.iris.until(uids[0], "COMPLETED")
        if words[0] == "status":
            assert f"1 READY, but {BECAUSE}" in ran.out
    assert "to iris if fleet.yaml had a domain ops with the skill ops and iris owned" in ran.out


def test_many_are_one_line_by_fleet_yaml_alone_and_on_the_page_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    uids = desk.waits("inbox", 1, 2, 3, skills=["ops"])
    desk.waits("inbox", 4, skills=["stacks-js"])
    line = ("inbox", f"3 READY, but {BECAUSE}", f"arc why {uids[0]}")
    assert needs(desk) == [line]
    with monkeypatch.context() as few:
        few.setattr(nobodys_now, "LOOKED_AT", 2)
        assert needs(desk) == [(line[0], f"2 or more READY, but {BECAUSE}", line[2])]
    assert needs(desk) == [line]
    page = asyncio.run(page_now(desk.hub, {})).data
    assert {"node": line[0], "text": line[1], "try": line[2]} in objects(page, "needs_you")
    desk.nodes.switch_off("spark")  # who is silent still has its role
    assert needs(desk) == [line]
    desk.hub.settings = replace(
        desk.hub.settings, route=replace(desk.hub.settings.route, fallback="loom"))
    assert needs(desk) == []


def test_a_queue_that_could_not_be_asked_takes_nothing_back(desk: Desk) -> None:
    """Seen to fail: while it could not be seen, nothing in it was nobody's work."""
    desk.waits("inbox", 1, skills=["ops"])
    assert needs(desk)
    said = desk.hub.beside.nobodys
    assert said

    async def unseen() -> tuple[NobodysWork, ...]:
        gone = NodeUnseen("inbox", "silent", "no answer")
        return await nobodys_now.ask_inbox(replace(await look(desk.hub), inbox=gone))

    assert asyncio.run(unseen()) == said


def test_where_a_fallback_gets_what_is_left_no_queue_is_read_for_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: each `arc status` read a thousand tasks, of which nothing could be said."""
    desk.waits("inbox", 1, skills=["ops"])
    desk.hub.settings = replace(
        desk.hub.settings, route=replace(desk.hub.settings.route, fallback="loom"))

    def never(*_: object) -> None:
        pytest.fail("the hub's queue was read")

    monkeypatch.setattr(nobodys_now, "read_listed", never)
    assert needs(desk) == []
