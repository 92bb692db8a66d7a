"""`arc tasks …`: every word about tasks, wherever they are, and what a node answered to it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pwd
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from agent_node import commands as c
from agent_node.clock import iso
from agent_node.narrowing import ANY
from agent_node.queries import ShowTask
from agent_node.strict import JsonObject
from agent_node.wire import listed_out
from arc.cli.around import Around
from arc.cli.running import run_command
from arc.decisions.limits import StealLimits
from arc.errors import NodeRefused, OutcomeUnknown
from arc.operations import dags_submit, tasks_change
from arc.operations.tasks import tasks_list
from arc.schedule import Schedule
from tests.builders import uid
from tests.hub.cli.desk import Desk, Ran
from tests.hub_nodes import ALink, twisted


def outcomes(ran: Ran) -> list[tuple[str, str]]:
    return [(one["uid"], one["outcome"]) for one in ran.data["results"]]


def test_a_task_is_added_to_the_hubs_queue_with_all_that_was_said_of_it(desk: Desk) -> None:
    added = desk.arc("tasks", "add", "rotate logs", "-p", "7", "--skill", "ops", "--skill", "a,b",
                     "--need", "gpu", "--tag", "night", "--body", "do it", "--key", "k1",
                     "--expected", "5m", "--max", "1h", "--max-attempts", "2", "--ref", "T-1",
                     "--not-before", "30m", "--deadline", "2026-03-11T00:00Z", "--pinned",
                     "--json")  # fmt: skip
    assert added.code == 0
    (result,) = added.data["results"]
    task = desk.arc("tasks", "show", result["uid"], "--json").data["task"]
    wanted = {"subject": "rotate logs", "priority": 7, "skills": ["a", "b", "ops"],
              "needs": ["gpu"], "tags": ["night"], "body": "do it", "key": "k1", "expected_s": 300,
              "max_s": 3600, "max_attempts": 2, "ref": "T-1", "pinned": True,
              "source": "human:ada", "origin": "human:ada",
              "not_before": "2026-03-10T04:15:00.000Z",
              "deadline": "2026-03-11T00:00:00.000Z"}  # fmt: skip
    assert {name: task[name] for name in wanted} == wanted


def test_a_task_says_what_it_is_given_what_it_may_cost_and_how_it_is_judged(desk: Desk) -> None:
    given = f"artifact:{'a' * 64}"
    added = desk.arc("tasks", "add", "write it up", "--context", given, "--model", "big,bigger",
                     "--fallback-model", "small", "--max-cost", "0.50", "--boost", "0",
                     "--heat", "-2.5", "--validate", '{"kind": "regex", "pattern": "^# "}',
                     "--json")  # fmt: skip
    assert added.code == 0, added.err
    uid = added.data["results"][0]["uid"]
    task = desk.arc("tasks", "show", uid, "--json").data["task"]
    wanted = {"context_refs": [given], "models": ["big", "bigger"], "fallback_models": ["small"],
              "max_cost_usd": "0.50", "boost_per_minute": 0, "heat": -2.5,
              "validate": {"kind": "regex", "pattern": "^# "}}  # fmt: skip
    assert {name: task[name] for name in wanted} == wanted


@pytest.mark.parametrize("option", ["--skill", "--need", "--tag", "--after", "--model",
                                    "--fallback-model"])
def test_an_option_with_nothing_behind_it_is_no_option_left_out(desk: Desk, option: str) -> None:
    """Seen to fail before: the task was added without it, and with `--after ""` it ran at once."""
    for nothing in ("", " , "):
        said = desk.both("tasks", "add", "deploy", option, nothing)[0]
        assert (said.code, f"{option}: nothing is behind it" in said.err) == (2, True), said
    assert desk.arc("tasks", "count").out == "0\n"


@pytest.mark.parametrize("option", ["--source", "--key", "--domain", "--to"])
def test_a_word_of_blanks_alone_is_refused_by_its_option(desk: Desk, option: str) -> None:
    """Seen to fail before: the task was added, with a source that nobody can read."""
    for blank in ("", "  ", "\t"):
        said = desk.both("tasks", "add", "deploy", option, blank)[0]
        assert (said.code, option in said.err, "says nothing" in said.err) == (2, True, True), said
    assert desk.arc("tasks", "list", "--source", " ").code == 2
    assert desk.arc("tasks", "count").out == "0\n"
    assert desk.arc("tasks", "add", "deploy", "--body", "  ").code == 0, "a body may be blank"


def test_the_seeds_own_spelling_works(desk: Desk) -> None:
    added = desk.arc("tasks", "add", "--subject", "S", "--priority", "3", "--skills", "a,b",
                     "--source", "cron:nightly", "--parent", uid(9).lower(), "--json")  # fmt: skip
    assert added.code == 0
    task = desk.arc("tasks", "show", added.data["results"][0]["uid"], "--json").data["task"]
    assert (task["priority"], task["skills"]) == (3, ["a", "b"])
    assert (task["source"], task["parent"]) == ("cron:nightly", uid(9))


def test_a_task_goes_straight_to_a_node_when_it_is_named(desk: Desk) -> None:
    text = desk.arc("tasks", "add", "here", "--to", "loom")
    assert text.code == 0
    assert text.lines[0] == "1 task added to loom"
    assert desk.arc("tasks", "count", "--state", "READY").out == "1\n"


def test_a_key_counts_in_the_queue_that_is_asked(desk: Desk) -> None:
    """As docs/commands.md says of `--key`: elsewhere it is another task."""
    for to, outcome in (("iris", "added"), ("iris", "exists"), ("loom", "added"), ("", "added")):
        said = desk.arc("tasks", "add", "S", "--key", "k", *(("--to", to) if to else ()), "--json")
        assert said.data["results"][0]["outcome"] == outcome


def test_adding_twice_under_one_key_adds_once_and_other_content_is_a_conflict(desk: Desk) -> None:
    desk.arc("tasks", "add", "S", "--key", "k")
    again = desk.arc("tasks", "add", "S", "--key", "k", "--json")
    assert again.data["results"][0]["outcome"] == "exists"
    other = desk.arc("tasks", "add", "other", "--key", "k")
    assert other.code == 1
    assert "refused  key_conflict" in other.out


def test_a_dry_run_adds_nothing_and_says_so(desk: Desk) -> None:
    text = desk.arc("tasks", "add", "S", "--dry-run")
    assert text.lines[0] == "1 task would be added to the hub's queue"
    assert text.lines[1].endswith("  would be added")
    assert len(text.lines) == 2, "nothing is there that a router might come to"
    assert desk.arc("tasks", "count").out == "0\n"


def test_a_task_that_could_only_start_after_its_deadline_is_warned_of(desk: Desk) -> None:
    words = ("tasks", "add", "S", "--dry-run", "--deadline", "2h", "--not-before")
    assert "may not start before the deadline" in desk.arc(*words, "3h").err
    assert desk.arc(*words, "1h").err == ""


def test_a_deadline_that_has_passed_is_warned_of_and_told_of_the_task(desk: Desk) -> None:
    """Seen to fail: it was taken without a word, and nothing told of it afterwards."""
    past = ("S", "--deadline", "2026-03-10T03:43:00Z", "--json")
    dry, added = desk.arc("tasks", "add", *past, "--dry-run"), desk.arc("tasks", "add", *past)
    assert dry.code == added.code == 0
    (warning,) = added.envelope["warnings"]
    assert dry.envelope["warnings"] == [warning]
    assert warning.startswith("1 task with a deadline that has passed already: ")
    (task,) = added.data["results"]
    text, data = desk.both("tasks", "show", task["uid"])
    assert "  deadline       2026-03-10T03:43:00.000Z (passed 2m ago)" in text.lines
    assert data["late_s"] == 120.0
    text, data = desk.both("why", task["uid"])
    assert ("  its deadline 2026-03-10T03:43:00.000Z passed 2m ago; it makes urgent and ends "
            "nothing") in text.lines  # fmt: skip
    assert data["late_s"] == 120.0


def test_a_task_that_is_not_taken_is_not_warned_of_as_if_it_ran_late(desk: Desk) -> None:
    """Seen to fail: "what comes late still runs", of a task that was refused or there before."""
    words = ("tasks", "add", "--deadline", "2026-03-10T03:43:00Z", "--key", "k", "--json", "S")
    assert len(desk.arc(*words).envelope["warnings"]) == 1
    again = desk.arc(*words)
    assert (again.data["results"][0]["outcome"], again.envelope["warnings"]) == ("exists", [])
    other = desk.arc(*words, "--body", "another")
    assert (other.data["results"][0]["outcome"], other.envelope["warnings"]) == ("refused", [])


def test_a_task_that_ended_behind_its_deadline_says_by_how_much(desk: Desk) -> None:
    uid = desk.runs("iris", 1, deadline="2026-03-10T03:46:00.000Z")
    assert desk.arc("tasks", "show", uid, "--json").data["late_s"] is None
    desk.minutes_pass(3)
    assert "passed 2m ago" in desk.arc("why", uid).out
    desk.nodes.machines["iris"].store.apply(c.Finish(uid, 1, c.Result("completed")))
    desk.minutes_pass(60)
    assert "(missed by 2m)" in desk.arc("tasks", "show", uid).out
    assert "missed by 2m" in desk.arc("why", uid).out


def test_one_task_alone_is_not_called_by_a_number(desk: Desk) -> None:
    assert "tasks[0]" not in desk.arc("tasks", "add", "S", "-p", "11").err


def test_a_body_comes_from_a_file_or_from_stdin(desk: Desk) -> None:
    (desk.place / "body").write_text("from a file")
    for words, stdin in ((("--body-file", str(desk.place / "body")), b""),
                         (("--body-file", "-"), b"from a file")):  # fmt: skip
        added = desk.arc("tasks", "add", "S", *words, "--json", stdin=stdin)
        shown = desk.arc("tasks", "show", added.data["results"][0]["uid"], "--json")
        assert shown.data["task"]["body"] == "from a file"


@pytest.mark.parametrize("words", [("add", "S", "--body-file"), ("import",)])
def test_a_file_without_an_end_is_read_no_further_than_it_may_be_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Fails where it is read whole before it is looked how long it is: no memory holds this one."""
    endless = desk.place / "endless"
    with endless.open("wb") as file:
        file.truncate(2**42)
    for module in ("drafting", "adding_words"):
        monkeypatch.setattr(f"arc.cli.{module}.FILE_MAX", 1000)
    ran = desk.arc("tasks", *words, str(endless))
    assert ran.code == 2, ran.err
    assert "bytes" in ran.err
    assert ran.err.count("error[") == 1
    assert desk.arc("tasks", "count").out == "0\n"


class Endless(io.BytesIO):
    """As `yes |` before it; it is never asked for all that there is."""

    def read(self, most: int | None = -1, /) -> bytes:
        assert most is not None
        assert most >= 0
        return b"y\n" * (most // 2 + 1)


def test_a_pipe_without_an_end_is_read_no_further_than_it_may_be_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where stdin is asked for everything."""
    for module in ("drafting", "adding_words"):
        monkeypatch.setattr(f"arc.cli.{module}.FILE_MAX", 1000)
    out, err = io.StringIO(), io.StringIO()
    around = Around(environ=desk.environ, stdin=Endless(), stdout=out, stderr=err, ask=desk.ask,
                    clock=desk.clock, fleet=desk.place / "fleet.yaml")  # fmt: skip
    assert run_command(["tasks", "import", "-"], around) == 2, err.getvalue()
    assert "more than 1000 bytes" in err.getvalue()


@pytest.mark.parametrize("words", [
    (), ("",), ("S", "-p", "11"), ("S", "-p", "x"), ("S", "--body", "a", "--body-file", "b"),
    ("S", "--body-file", "/nowhere"), ("S", "--deadline", "soon"), ("S", "--max", "5"),
    ("S" * 501,), ("two\nlines",), ("S", "--parent", "nix"), ("S", "--context", "task:nix"),
    ("S", "--max-cost", "-1"), ("S", "--boost", "fast"), ("S", "--heat", "101"),
    ("S", "--validate", "{"), ("S", "--validate", '{"kind": "regex"}'),
])  # fmt: skip
def test_what_makes_no_task_is_wrong_use_and_adds_nothing(
    desk: Desk, words: tuple[str, ...]
) -> None:
    text = desk.arc("tasks", "add", *words)
    assert text.code == 2
    assert text.err.startswith("error[")
    assert desk.arc("tasks", "add", *words, "--json").code == 2
    assert desk.arc("tasks", "count").out == "0\n"


def test_a_task_that_would_wait_for_one_that_nobody_has_is_not_added(desk: Desk) -> None:
    text = desk.arc("tasks", "add", "S", "--after", uid(1))
    assert text.code == 5
    assert "it would wait for ever" in text.err
    assert desk.arc("tasks", "count").out == "0\n"


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
@pytest.mark.parametrize("what", ["output", "outcome", "artifact:x"])
def test_a_task_that_would_be_given_of_one_that_nobody_has_is_not_added(
    desk: Desk, what: str, words: tuple[str, ...]
) -> None:
    """Fails when only its edges are looked up: it is added, and waits for ever without a word."""
    text = desk.arc("tasks", "add", "S", "--context", f"task:{uid(1)}:{what}", *words)
    assert text.code == 5
    assert f"it would wait for ever for {uid(1)}" in text.err
    line = json.dumps({"subject": "S", "context_refs": [f"task:{uid(1)}:{what}"]})
    assert desk.arc("tasks", "import", "-", *words, stdin=line.encode()).code == 5
    assert desk.arc("tasks", "count").out == "0\n"


def test_more_are_looked_up_than_at_once_and_a_limit_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: 201 references in all were one too many, and called tasks that nobody has."""
    assert (dags_submit.PIECE, dags_submit.OUTSIDE_MAX) == (200, 10_000)
    monkeypatch.setattr(dags_submit, "PIECE", 2)
    monkeypatch.setattr(dags_submit, "OUTSIDE_MAX", 5)
    sources = [desk.arc("tasks", "add", f"s{n}", "--json").data["results"][0]["uid"]
               for n in range(6)]

    def imports(*uids: str) -> Ran:
        lines = [json.dumps({"subject": "S", "context_refs": [f"task:{one}:output"]})
                 for one in uids]  # fmt: skip
        return desk.arc("tasks", "import", "-", stdin="\n".join(lines).encode())

    assert imports(*sources[:5]).code == 0
    unknown = imports(*sources[:4], uid(1))
    assert (unknown.code, f"it would wait for ever for {uid(1)}" in unknown.err) == (5, True)
    many = imports(*sources)
    assert (many.code, many.err.startswith("error[ARC-USAGE]: ")) == (2, True), many.err
    assert "6 tasks outside of it are waited for or referred to; 5 at most" in many.err
    assert desk.arc("tasks", "count").out == "11\n"


def test_a_task_may_be_given_of_one_that_is_born_with_it(desk: Desk) -> None:
    lines = (f'{{"subject": "a", "uid": "{uid(1)}"}}\n'
             f'{{"subject": "b", "context_refs": ["task:{uid(1)}:output"]}}\n')  # fmt: skip
    assert desk.arc("tasks", "import", "-", stdin=lines.encode()).code == 0
    assert desk.arc("tasks", "add", "S", "--context", f"task:{uid(1)}:output").code == 0


def test_a_file_of_tasks_is_taken_whole(desk: Desk) -> None:
    lines = [{"subject": f"work {n}", "priority": 8} for n in range(3)]
    raw = "\n".join(map(json.dumps, lines)).encode()
    added = desk.arc("tasks", "import", "-", stdin=raw)
    assert added.code == 0
    assert added.lines[0] == "3 tasks added to the hub's queue"


def test_of_a_file_with_a_bad_line_nothing_is_taken_and_every_bad_line_is_named(desk: Desk) -> None:
    raw = b'{"subject": "good"}\nnonsense\n{"priority": 3}\n{"subject": "x", "priority": 99}\n'
    text = desk.arc("tasks", "import", "-", stdin=raw)
    assert text.code == 2
    assert "3 bad lines; nothing was added" in text.err
    assert [n for n in (1, 2, 3, 4) if f"-:{n}:" in text.err] == [2, 3, 4]
    assert desk.arc("tasks", "count").out == "0\n"


def test_a_misspelt_field_is_a_bad_line_where_that_is_asked_for(desk: Desk) -> None:
    raw = b'{"subject": "a"}\n{"subject": "b", "priorty": 1}'
    refused = desk.arc("tasks", "import", "-", "--strict", stdin=raw)
    assert refused.code == 2
    assert "stdin:2: priorty: no task has such a field" in refused.err.replace("-:2", "stdin:2")
    assert "priority" in refused.err
    assert desk.arc("tasks", "count").out == "0\n"
    assert desk.arc("tasks", "import", "-", stdin=raw).code == 0


def test_of_a_file_that_is_refused_in_part_nothing_is_taken_however_long_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arc.operations.tasks_change.BATCH_MAX", 2)
    desk.arc("tasks", "add", "S", "--key", "k")
    good = [{"subject": f"work {n}"} for n in range(4)]
    raw = "\n".join(map(json.dumps, [*good, {"subject": "other", "key": "k"}])).encode()
    refused = desk.arc("tasks", "import", "-", stdin=raw)
    assert refused.code == 1
    assert refused.lines[0] == "0 tasks added to the hub's queue"
    assert "key_conflict" in refused.out
    assert refused.out.count("whole: another task") == 4
    assert desk.arc("tasks", "count").out == "1\n"
    whole = "\n".join(map(json.dumps, good)).encode()
    assert desk.arc("tasks", "import", "-", stdin=whole).code == 0
    assert desk.arc("tasks", "count").out == "5\n"


def test_the_list_is_of_all_nodes_and_can_be_narrowed(desk: Desk) -> None:
    desk.waits("iris", 1, priority=2, skills=["a"])
    desk.waits("loom", 2, priority=8, domain="research")
    desk.waits("inbox", 3, priority=8)
    text, data = desk.both("tasks", "list")
    assert text.code == 0
    assert [one["node"] for one in data["tasks"]] == ["inbox", "iris", "loom"]
    for words, found in ((("--node", "iris"), [1]), (("-p", "8"), [3, 2]), (("--skill", "a"), [1]),
                         (("--domain", "research"), [2]), (("--state", "running"), []),
                         (("--limit", "2"), [3, 1])):  # fmt: skip
        listed = desk.arc("tasks", "list", *words, "--json").data["tasks"]
        assert [one["uid"] for one in listed] == [uid(n) for n in found], words
    assert desk.arc("tasks").out == text.out


def test_words_of_a_subject_are_looked_for_in_all_tasks_and_those_that_fit_are_counted(
    desk: Desk,
) -> None:
    """Fails where only a page of them is looked through."""
    desk.waits("iris", *range(1, 151))
    desk.waits("loom", 151, subject="Deploy the site")
    desk.waits("inbox", 152, subject="the deploy of work")
    listed = desk.arc("tasks", "list", "--subject", "deploy THE", "--limit", "1", "--json").data
    assert [one["uid"] for one in listed["tasks"]] == [uid(152)]
    assert (listed["total"], listed["more"]) == (2, True)
    some = desk.arc("tasks", "list", "--limit", "100").lines
    assert some[-1] == "these are 100 of 152: --limit N"
    assert desk.arc("tasks", "list", "--subject", "site work").out.startswith("no such tasks")
    assert desk.arc("tasks", "list", "--subject", "x" * 65).code == 2


def test_more_words_than_a_queue_is_looked_through_for_are_refused(desk: Desk) -> None:
    """By the hub, and by a node that is asked by another one."""
    desk.waits("iris", 1, subject="a b c d e f g h i")
    assert desk.arc("tasks", "list", "--subject", "a b c d e f g h").lines[1].split()[0]
    said = desk.arc("tasks", "list", "--subject", "a b c d e f g h i")
    assert (said.code, "subject: 9 words; at most 8 are looked for" in said.err) == (2, True)
    link = desk.hub.links["iris"]
    with pytest.raises(NodeRefused, match="9 words; at most 8"):
        asyncio.run(link.ask("list", {"subject": [*"abcdefghi"]}))


def test_a_later_page_has_the_same_total_and_one_that_nobody_knows_is_none(desk: Desk) -> None:
    """The first page counts. Fails where each counts anew: a node looks through its whole queue for
    it, also those whose tasks stood on earlier pages.
    """
    desk.waits("iris", 1, 2)
    desk.waits("loom", 3)
    first = asked(desk, {"limit": 2})
    heard: dict[str, list[JsonObject]] = {"iris": [], "loom": []}
    for name, link in ((name, desk.hub.links[name]) for name in heard):
        link.ask = listening(link.ask, heard[name])  # type: ignore[method-assign]
    then = asked(desk, {"limit": 2, "after": first["next"]})
    assert (first["total"], then["total"], then["next"]) == (3, 3, None)
    assert [one["uid"] for one in then["tasks"]] == [uid(3)]
    (loom,) = heard["loom"]
    assert loom["count"] is False
    assert all(one["count"] is False for one in heard["iris"])
    assert asked(desk, {"limit": 2, "after": "loom:0"})["total"] is None
    assert len(heard["iris"]) == 1, "what stood before loom is over"
    assert asked(desk, {"states": ["MOVED"]})["total"] is None
    desk.nodes.switch_off("loom")
    assert desk.arc("tasks", "list", "--json").data["total"] is None


def listening(ask: Any, heard: list[JsonObject]) -> Any:
    """The same, and what was asked for lists is noted."""

    async def listen(do: str, fields: JsonObject, **more: Any) -> Any:
        if do == "list":
            heard.append(fields)
        return await ask(do, fields, **more)

    return listen


def asked(desk: Desk, args: JsonObject) -> Any:
    return asyncio.run(tasks_list(desk.hub, args)).data


def test_the_few_that_fit_are_found_behind_many_that_do_not(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a node that is too old to narrow a list: it gives all of it, page by page."""
    monkeypatch.setattr("arc.operations.tasks.PAGE", 3)
    monkeypatch.setattr("arc.operations.tasks.PAGE_MIN", 3)
    desk.waits("iris", *range(1, 12), priority=9)
    desk.waits("iris", 12, priority=5)
    words = ("tasks", "list", "-p", "5", "--subject", "work", "--limit", "1", "--json")
    now = desk.arc(*words).data
    monkeypatch.setattr("agent_node.inquiries.narrowed_of", lambda _: ANY)
    monkeypatch.setattr("agent_node.inquiries.listed_out",
                        lambda listed, *more: listed_out(replace(listed, total=None), *more))
    before = desk.arc(*words).data
    assert [one["uid"] for one in now["tasks"]] == [uid(12)]
    assert before["tasks"] == now["tasks"]
    assert (now["total"], before["total"]) == (1, None)


def test_the_list_says_how_urgent_each_task_is_by_now_and_not_of_one_that_ended(
    desk: Desk,
) -> None:
    """Fails when the tier is made from the P that was typed: this task has waited."""
    (task,) = desk.waits("iris", 1, priority=9)
    (row,) = desk.arc("tasks", "list", "--json").data["tasks"]
    assert (row["tier"], row["effective"]) == ("Background", 85.0)
    desk.minutes_pass(300)
    text, data = desk.both("tasks", "list")
    assert data["tasks"][0]["tier"] == "Normal"
    assert text.lines[0].split()[:4] == ["TASK", "P", "TIER", "STATE"]
    assert text.lines[1].split()[1:4] == ["P9", "Normal", "READY"]
    assert desk.arc("tasks", "cancel", task).code == 0
    (row,) = desk.arc("tasks", "list", "--state", "CANCELLED", "--json").data["tasks"]
    assert row["tier"] is None


def test_the_list_says_why_each_task_is_still_where_it_is(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["deploy"])
    desk.arc("sensors", "run", "fleet-router")
    text, data = desk.both("tasks", "list")
    assert data["tasks"][0]["rule"]
    assert data["tasks"][0]["because"] in text.lines[1]


def test_no_tasks_is_not_said_of_nodes_that_were_not_asked(desk: Desk) -> None:
    assert desk.arc("tasks").out == "no such tasks; ended ones: arc tasks list --state COMPLETED\n"
    desk.nodes.switch_off("loom")
    text = desk.arc("tasks")
    assert text.code == 3
    assert text.out == (
        "no such tasks on the nodes that answered; not asked: loom; "
        "ended ones: arc tasks list --state COMPLETED\n")
    assert text.err.startswith("warning: loom: no route to it")


def test_the_count_is_a_bare_number(desk: Desk) -> None:
    desk.waits("iris", 1, 2)
    desk.runs("loom", 3)
    assert desk.arc("tasks", "count").out == "3\n"
    assert desk.arc("tasks", "count", "--state", "READY", "--json").data == {"count": 2}
    assert desk.both("tasks", "count", "--state", "NONE")[0].code == 2


def test_a_task_is_shown_with_its_whole_life(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"], body="line one\n\x1b[2Jline two")
    desk.arc("sensors", "run", "fleet-router")
    text, data = desk.both("tasks", "show", uid(1))
    assert data["node"] == "spark"
    assert data["copies"] == {"inbox": "MOVED", "spark": "READY"}
    assert "moved inbox -> spark" in text.out
    assert "task_arrived" in text.out
    assert "    \\x1b[2Jline two" in text.lines
    assert any("task_arrived  HELD -> READY  by fleet:" in line for line in text.lines)


def test_each_change_of_a_task_is_shown_with_its_states_who_made_it_and_why(desk: Desk) -> None:
    """Seen to fail where events were shown without `by`, `was` and `state`, and cut in silence."""
    desk.waits("iris", 1)
    by = desk.arc("tasks", "cancel", uid(1), "--json").envelope
    assert by["ok"]
    for _ in range(30):
        desk.arc("tasks", "retry", uid(1), "--reason", "once more")
        desk.arc("tasks", "cancel", uid(1))
    text, data = desk.both("tasks", "show", uid(1))
    who = data["events"][-1]["by"]
    assert f"task_retried  CANCELLED -> READY  by {who}  once more" in text.out
    assert f"task_cancelled  READY -> CANCELLED  by {who}  {who} gave no reason" in text.out
    assert f"  … and {len(data['events']) - 50} earlier events: --json" in text.lines


def test_fields_of_a_waiting_task_are_set(desk: Desk) -> None:
    desk.waits("iris", 1)
    text = desk.arc("tasks", "set", uid(1), "priority=2", "skills=a,b", "domain=research")
    assert text.code == 0
    task = desk.arc("tasks", "show", uid(1), "--json").data["task"]
    assert (task["priority"], task["skills"], task["domain"]) == (2, ["a", "b"], "research")
    for bad in ("priority=99", "priority=x", "pinned=maybe", "state=READY", "priority"):
        assert desk.both("tasks", "set", uid(1), bad)[0].code == 2


@pytest.mark.parametrize("field", ["type", "output_type"])
def test_a_word_that_no_rule_asks_for_is_kept_and_handed_on(desk: Desk, field: str) -> None:
    """As it came: to the hub's queue, a node, another one and who runs it; up to 64 letters."""
    word = f"inspection-{field}".ljust(64, "ä")
    line = json.dumps({"uid": uid(1), "subject": "look", field: word})
    assert desk.arc("tasks", "import", "-", stdin=line.encode()).code == 0
    for node in ("iris", "loom"):
        assert desk.arc("tasks", "move", uid(1), "--to", node, "--reason", "there").code == 0
        shown = desk.arc("tasks", "show", uid(1), "--json").data
        assert (shown["node"], shown["task"][field]) == (node, word)
    claimed = desk.nodes.machines["loom"].store.apply(c.Claim("loom"))
    assert isinstance(claimed, c.Claimed)
    assert getattr(claimed.task, field) == word
    line = json.dumps({"uid": uid(2), "subject": "look", field: word + "x"})
    refused = desk.arc("tasks", "import", "-", stdin=line.encode())
    assert (refused.code, field in refused.err) == (2, True)


def test_a_task_that_waits_says_for_what_and_how_urgent_it_is(desk: Desk) -> None:
    desk.waits("iris", 1, priority=5)
    desk.waits("iris", 2, priority=5, depends_on=[uid(1)], max_cost_usd="0.5")
    text, data = desk.both("tasks", "show", uid(2))
    assert data["order"] == {"effective": 45, "tier": "Normal"}
    assert text.lines[0].endswith("PENDING on iris, Normal 45.0")
    assert any(line.startswith("  held by        waits_for: ") for line in text.lines), text.out
    assert "  max_cost_usd   0.5" in text.lines
    rows = {one["uid"]: one for one in desk.arc("tasks", "list", "--json").data["tasks"]}
    assert rows[uid(2)]["rule"] == "waits_for"
    assert rows[uid(1)]["rule"] != "waits_for"


def test_each_attempt_of_a_task_that_moved_is_told_once(desk: Desk) -> None:
    """Seen to fail before: both nodes know the attempt, and each told it."""
    desk.runs("iris", 1, max_attempts=1)
    failed = c.Result("failed", error_kind="crash", message="exit 3")
    desk.nodes.machines["iris"].store.apply(c.Finish(uid(1), 1, failed))
    assert desk.arc("dead", "retry", uid(1)).code == 0
    assert desk.arc("tasks", "move", uid(1), "--to", "loom", "--reason", "quiet there").code == 0
    text, data = desk.both("tasks", "show", uid(1))
    assert [(one["n"], one["node"], one["on"]) for one in data["attempts"]] == [(1, "iris", "iris")]
    assert sum("  attempt 1 on iris" in line for line in text.lines) == 1


def test_a_person_says_how_urgent_a_task_is_and_why(desk: Desk) -> None:
    desk.waits("iris", 1)
    dry = desk.arc("tasks", "set", uid(1), "-p", "1", "--reason", "the client waits", "--dry-run")
    assert dry.code == 0
    assert desk.arc("tasks", "show", uid(1), "--json").data["task"]["priority"] != 1
    assert desk.arc("tasks", "set", uid(1), "-p", "1", "--reason", "the client waits").code == 0
    shown = desk.arc("tasks", "show", uid(1))
    assert desk.arc("tasks", "show", uid(1), "--json").data["task"]["priority"] == 1
    assert "the client waits" in shown.out
    for bad in (("-p", "11"), ("-p", "0"), ("-p", "x"), ()):
        assert desk.both("tasks", "set", uid(1), *bad)[0].code == 2


def test_a_waiting_task_is_cancelled_and_may_be_retried(desk: Desk) -> None:
    desk.waits("iris", 1)
    dry = desk.arc("tasks", "cancel", uid(1), "--dry-run")
    assert "  would be cancelled  then CANCELLED on iris (dry run: nothing was changed)" in dry.out
    assert desk.nodes.states(1) == {"iris": "READY"}
    cancelled = desk.arc("tasks", "cancel", uid(1), "--reason", "not needed")
    assert cancelled.code == 0
    assert "changed  now CANCELLED on iris" in cancelled.out
    assert outcomes(desk.arc("tasks", "retry", uid(1), "--json")) == [(uid(1), "changed")]
    assert desk.nodes.states(1) == {"iris": "READY"}
    again = desk.arc("tasks", "retry", uid(1))  # seen to fail: it told of a change
    assert (again.code, "already  now READY on iris" in again.out) == (0, True)


def test_a_task_that_is_retried_before_its_time_says_that_it_waits_for_it(desk: Desk) -> None:
    """Seen to fail: the dry run said `then READY` without a word, and it ran a day early."""
    task = desk.arc("tasks", "add", "tomorrow", "--not-before", "1d", "--json").data["results"][0]
    desk.arc("tasks", "cancel", task["uid"])
    set_it = f"at once with: arc tasks set {task['uid']} not_before="
    for words, word in ((["--dry-run"], "would be retried  then"), ([], "changed  now")):
        ran = desk.arc("tasks", "retry", task["uid"], *words)
        assert f"{word} PENDING on the hub  it waits for its time, and is READY from " in ran.out
        assert (ran.code, set_it in ran.out) == (0, True), ran.out
    desk.arc("sensors", "run", "fleet-router")
    shown = desk.arc("tasks", "show", task["uid"], "--json").data
    assert (shown["node"], shown["task"]["state"]) == ("inbox", "PENDING")
    assert desk.arc("tasks", "set", task["uid"], "not_before=").code == 0
    assert desk.arc("tasks", "show", task["uid"], "--json").data["task"]["state"] == "READY"


def test_a_task_that_waits_for_its_time_says_so_in_the_list(desk: Desk) -> None:
    """Seen to fail: its reason was empty, and `arc why` alone knew it."""
    desk.arc("tasks", "add", "tomorrow", "--not-before", "1d")
    (listed,) = desk.arc("tasks", "list", "--state", "PENDING", "--json").data["tasks"]
    ready = "it waits for its time, and is READY from 2026-03-11T03:45:00.000Z on"
    assert (listed["rule"], listed["because"]) == ("", ready)


def test_several_at_once_take_a_word(desk: Desk) -> None:
    desk.waits("iris", 1, 2)
    refused = desk.both("tasks", "cancel", uid(1), uid(2))[0]
    assert refused.code == 7
    asked = desk.arc("tasks", "cancel", uid(1), uid(2), typed=b"n\n")
    assert (asked.code, "cancel 2 tasks? [y/N]" in asked.err) == (7, True)
    assert desk.arc("tasks", "cancel", uid(1), uid(2), typed=b"y\n").code == 0
    assert desk.nodes.states(1) == {"iris": "CANCELLED"}


def test_a_word_about_a_task_that_is_nowhere_changes_none_of_the_others(desk: Desk) -> None:
    desk.waits("iris", 1)
    assert desk.arc("tasks", "cancel", uid(1), "ZZZZ", "--yes").code == 5
    assert desk.nodes.states(1) == {"iris": "READY"}


def test_what_a_node_refuses_is_said_with_its_rule(desk: Desk) -> None:
    running = desk.runs("iris", 1)
    text = desk.arc("tasks", "set", running, "priority=1")
    assert text.code == 1
    assert "refused  now RUNNING on iris  not_waiting" in text.out
    assert desk.arc("tasks", "set", running, "priority=1", "--json").code == 1
    assert desk.arc("tasks", "resolve", running, "--as", "done").code == 1
    assert desk.both("tasks", "resolve", running)[0].code == 2


def test_a_task_moves_by_hand_whatever_the_thresholds_say(desk: Desk) -> None:
    desk.waits("iris", 1, priority=1, skills=["arc-research"])
    dry = desk.arc("tasks", "move", uid(1), "--to", "spark", "--dry-run")
    assert dry.out.startswith("would move")
    assert desk.nodes.states(1) == {"iris": "READY"}
    moved = desk.arc("tasks", "move", uid(1), "--to", "spark", "--reason", "quiet there")
    assert moved.code == 0
    assert desk.nodes.states(1) == {"spark": "READY"}
    shown = desk.arc("tasks", "show", uid(1), "--json").data
    assert shown["hub_moves"][0]["because"] == "moved by hand by human:ada: quiet there"


def test_a_pinned_task_moves_only_with_a_word(desk: Desk) -> None:
    desk.waits("iris", 1, pinned=True)
    assert desk.both("tasks", "move", uid(1), "--to", "spark")[0].code == 7
    assert desk.arc("tasks", "move", uid(1), "--to", "spark", "--yes").code == 0
    assert desk.nodes.states(1) == {"spark": "READY"}


def test_a_node_that_refuses_leaves_the_task_where_it_was(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.arc("nodes", "pause", "loom", "--reason", "disk")
    text = desk.arc("tasks", "move", uid(1), "--to", "loom")
    assert text.code == 1
    assert text.out.startswith("kept")
    assert "paused" in text.out
    assert desk.nodes.states(1) == {"iris": "READY"}


def test_a_dry_move_says_what_both_nodes_would_say_and_leaves_no_trace(desk: Desk) -> None:
    """Seen to fail: it would move, whatever the node that was to have it thought of that."""
    desk.waits("iris", 1)
    before = desk.nodes.machines["iris"].store.read(ShowTask(uid(1)))
    desk.arc("nodes", "pause", "loom", "--reason", "disk")
    for _ in range(2):
        text = desk.arc("tasks", "move", uid(1), "--to", "loom", "--dry-run")
        assert text.code == 1
        assert text.out.startswith("would stay")
        assert "paused" in text.out
    said = desk.arc("tasks", "move", uid(1), "--to", "spark", "--dry-run", "--json").data
    assert [one["outcome"] for one in said["results"]] == ["moved"]
    assert said["dry_run"] is True
    assert desk.nodes.machines["iris"].store.read(ShowTask(uid(1))) == before
    shown = desk.arc("tasks", "show", uid(1), "--json").data
    assert (shown["hub_moves"], desk.nodes.states(1)) == ([], {"iris": "READY"})


@pytest.mark.parametrize(("words", "code"), [
    ((uid(1),), 2), ((uid(1), "--to", "nix"), 5), (("ZZZZ", "--to", "loom"), 5),
])  # fmt: skip
def test_a_move_that_makes_no_sense_moves_nothing(
    desk: Desk, words: tuple[str, ...], code: int
) -> None:
    desk.waits("iris", 1)
    assert desk.both("tasks", "move", *words)[0].code == code
    assert desk.nodes.states(1) == {"iris": "READY"}


def test_every_order_is_given_in_the_name_of_who_typed_it(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.arc("tasks", "cancel", uid(1), environ={"AGENT_TASK_UID": uid(9), "AGENT_NAME": "bot"})
    events = desk.arc("tasks", "show", uid(1), "--json").data["events"]
    assert "agent:bot" in json.dumps(events)


@pytest.mark.parametrize("words", [
    ("add", "S", "-p", "0"), ("add", "S", "--max-attempts", "0"), ("add", "S", "--to", ""),
    ("add", "S", "--priority-100", "-3"), ("list", "-p", "0"), ("list", "--limit", "0"),
    ("list", "--node", ""), ("add", "S", "--key", ""),
])  # fmt: skip
def test_a_nought_or_an_empty_word_was_said_and_is_answered(
    desk: Desk, words: tuple[str, ...]
) -> None:
    """Seen to fail with 0 taken for unsaid: the task got priority 5 and nobody was told."""
    assert desk.both("tasks", *words)[0].code in {1, 2}
    assert desk.arc("tasks", "count").out == "0\n"


def test_a_skill_that_is_the_name_of_a_domain_is_told_with_what_was_meant(desk: Desk) -> None:
    said = "1 task with the skill infrastructure, which is a domain and no skill of any"
    added = desk.arc("tasks", "add", "S", "--skill", "infrastructure")
    assert added.code == 0
    assert said in added.err
    assert "--domain infrastructure" in added.err
    for words in (("--skill", "infrastructure", "--domain", "research"), ("--skill", "ci")):
        assert "is a domain" not in desk.arc("tasks", "add", "T", *words).err


def test_a_misspelt_subject_is_told_with_the_word_that_stands_there(desk: Desk) -> None:
    raw = b'{"subjet": "S"}\n'
    assert "missing or empty; every task has one; is 'subjet' meant for it?" in desk.arc(
        "tasks", "import", "-", stdin=raw).err  # fmt: skip
    graph = b'{"title": "T", "tasks": {"a": {"subjet": "S"}}}'
    assert "is 'subjet' meant for it?" in desk.arc("dag", "submit", "-", stdin=graph).err


@pytest.mark.parametrize("verb", [("add", "S"), ("import", "-"), ("move", uid(1))])
def test_where_a_node_is_named_otherwise_that_is_said(desk: Desk, verb: tuple[str, ...]) -> None:
    said = desk.arc("tasks", *verb, "--node", "iris")
    assert said.code == 2
    assert "No such option: --node" in said.err
    assert "did you mean --to?" in said.err


@pytest.mark.parametrize(("words", "said"), [
    (("--domain", "reserch"),
     "domain reserch, which no node owns or takes also; it would wait; did you mean research?"),
    (("--domain", "xyzzy"), "there are integrations, protocol, research"),
    (("--skill", "clarty"),
     "skill clarty, which no domain has; it would wait; did you mean clarity?"),
    (("--pinned",), "1 task pinned to the hub's own queue, where nothing runs"),
    (("--need", "gpu"), "the need gpu, which no agent anywhere has; it would wait"),
    (("--need", "gpu", "--to", "iris"), "the need gpu, which no agent on iris has"),
])  # fmt: skip
def test_a_word_that_is_nobodys_here_is_told_with_the_near_one_and_the_task_is_taken(
    desk: Desk, words: tuple[str, ...], said: str
) -> None:
    """It was taken without a word, and waited for ever."""
    desk.arc("status")
    added = desk.arc("tasks", "add", "S", *words)
    assert added.code == 0
    assert said in added.err
    assert added.err.count("warning:") == 1
    machine = desk.arc("tasks", "add", "T", *words, "--json").envelope
    assert [said in one for one in machine["warnings"]] == [True]


def test_of_many_tasks_with_a_word_of_nobody_the_first_is_named(desk: Desk) -> None:
    raw = b'{"subject": "one", "domain": "nope"}\n{"subject": "two", "domain": "nope"}\n'
    for more in ((), ("--dry-run",)):
        said = desk.arc("tasks", "import", "-", *more, stdin=raw)
        assert '2 tasks ("one" and 1 more) with the domain nope, which no node owns' in said.err


def test_what_somebody_has_or_may_have_is_no_word_of_nobody(desk: Desk) -> None:
    """A node that does not answer may have what no other has."""
    desk.nodes.switch_off("loom")
    desk.arc("status")
    for words in (("--domain", "research"), ("--skill", "clarity", "--skill", "clarty"),
                  ("--need", "gpu"), ("--domain", "xyzzy", "--to", "iris")):  # fmt: skip
        assert "would wait" not in desk.arc("tasks", "add", "S", *words).err


def test_a_field_that_nobody_knows_is_kept_and_named_with_the_one_that_was_meant(
    desk: Desk
) -> None:
    raw = b'{"subject": "S", "prio": 1, "skils": ["a"]}\n{"subject": "T", "prio": 2}\n'
    added = desk.arc("tasks", "import", "-", stdin=raw)
    assert added.code == 0
    said = "2 tasks with an unknown field 'prio', kept in extra; did you mean priority?"
    assert said in added.err
    assert "did you mean skills?" in added.err
    again = desk.arc("tasks", "import", "-", "--json", stdin=raw)
    assert len(again.envelope["warnings"]) == 2


@pytest.mark.parametrize(("words", "meant"), [
    (("list", "--state", "RDY"), "READY"), (("set", uid(1), "prority=3"), "priority"),
])  # fmt: skip
def test_a_slip_of_the_pen_is_answered_with_the_word_that_was_meant(
    desk: Desk, words: tuple[str, ...], meant: str
) -> None:
    desk.waits("iris", 1)
    text = desk.arc("tasks", *words)
    assert (text.code, f"did you mean {meant}?" in text.err) == (2, True)


def test_the_list_needs_no_verb_also_when_it_is_narrowed(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.waits("loom", 2)
    listed = desk.arc("tasks", "list", "--node", "iris")
    assert desk.arc("tasks", "--node", "iris").out == listed.out
    assert "list" in desk.arc("tasks", "--help").out


def test_who_gives_an_order_has_the_name_of_its_user_also_without_an_environment(
    desk: Desk
) -> None:
    """Seen to fail with the bare number: `human:0` stood beside `human:root`."""
    del desk.environ["USER"]
    desk.waits("iris", 1)
    desk.arc("tasks", "cancel", uid(1))
    assert desk.asked[-1][0] == "tasks.cancel"
    name = pwd.getpwuid(os.getuid()).pw_name
    assert f"human:{name}" in json.dumps(desk.arc("log", "--json").data)


def test_who_adds_to_the_hubs_queue_hears_when_the_router_looks(desk: Desk) -> None:
    """Up to half an hour may pass; seen to fail with nothing said of it."""
    alone = desk.arc("tasks", "add", "one")
    assert alone.lines[-1] == "no hub runs: nothing moves by itself until `arc up` runs"

    schedule = desk.hub.schedule = Schedule(desk.hub)
    in_a_while = desk.clock.now() + timedelta(minutes=12, seconds=5)
    with patch.object(schedule, "next_run", lambda name: in_a_while):
        text = desk.arc("tasks", "add", "two")
        told = desk.arc("tasks", "add", "three", "--json").data["router"]
        straight = desk.arc("tasks", "add", "four", "--to", "iris")
        desk.arc("pause", "--reason", "audit")
        paused = desk.arc("tasks", "add", "five")
    assert text.lines[-1] == (
        "the router looks in 12m 5s; not to wait: arc sensors run fleet-router")
    assert (told["in_s"], told["at"]) == (725.0, iso(in_a_while))
    assert "router" not in straight.out
    assert paused.lines[-1] == "the fleet is paused: nothing moves until `arc resume`"
    disabled = desk.arc("tasks", "add", "six", "--json").data["router"]
    assert disabled["in_s"] is None


def test_under_swift_the_router_does_not_wait(tmp_path: Path) -> None:
    desk = Desk(tmp_path, steal=StealLimits(policy="swift"))
    desk.hub.schedule = Schedule(desk.hub)
    with patch.object(desk.hub.schedule, "next_run", lambda name: desk.clock.now()):
        assert "at once" in desk.arc("tasks", "add", "one").lines[-1]
    desk.close()


def test_what_was_refused_is_an_error_for_machines_too(desk: Desk) -> None:
    """Seen to fail before: `ok` was false, and there was no `error` that said why."""
    running = desk.runs("iris", 1)
    said = desk.arc("tasks", "set", running, "priority=1", "--json")
    error = said.envelope["error"]
    assert (said.code, said.envelope["ok"], error["code"]) == (1, False, "ARC-REFUSED")
    assert error["rule"] == "not_waiting"
    assert f"{running} is RUNNING" in error["message"]
    assert said.data["results"][0]["outcome"] == "refused"
    done = desk.arc("tasks", "count", "--json").envelope
    assert (done["ok"], "error" in done) == (True, False)
    assert desk.arc("sensors", "run", "fleet-health").code == 0  # who was never met is not fenced
    fenced = desk.arc("nodes", "fence", "iris", "--dry-run", "--json")
    assert (fenced.code, fenced.envelope["error"]["code"]) == (7, "ARC-REFUSED")
    assert "answers, so it is not off" in fenced.envelope["error"]["message"]


def test_what_was_resolved_so_before_is_told_as_no_change(desk: Desk) -> None:
    """Seen to fail before: a second `resolve` told of a change."""
    desk.runs("iris", 1, max_attempts=1)
    failed = c.Result("failed", error_kind="crash", message="exit 3")
    desk.nodes.machines["iris"].store.apply(c.Finish(uid(1), 1, failed))
    first = desk.arc("tasks", "resolve", uid(1), "--as", "done", "--json")
    again = desk.arc("tasks", "resolve", uid(1), "--as", "done", "--json")
    assert outcomes(first) + outcomes(again) == [(uid(1), "changed"), (uid(1), "already")]
    assert (first.code, again.code) == (0, 0)


def test_a_task_that_is_there_already_is_moved_a_second_time_without_an_error(desk: Desk) -> None:
    """Seen to fail before: a second `move` was wrong use (exit 2), and the others stayed for it."""
    desk.waits("iris", 1, 2)
    first = desk.arc("tasks", "move", uid(1), "--to", "loom", "--json")
    again = desk.arc("tasks", "move", uid(1), uid(2), "--to", "loom", "--json")
    assert (first.code, again.code) == (0, 0)
    assert sorted(outcomes(again)) == [(uid(1), "already"), (uid(2), "moved")]
    assert desk.nodes.states(2) == {"loom": "READY"}
    text = desk.arc("tasks", "move", uid(1), "--to", "loom")
    assert (text.code, " on loom  it is there, READY" in text.out) == (0, True), text.out


def test_words_of_which_some_were_refused_are_done_in_part(desk: Desk) -> None:
    """Seen to fail before: exit 1, as if nothing had been done; on the node itself it was 3."""
    running, waiting = desk.runs("iris", 1), desk.waits("iris", 2)[0]
    both = desk.arc("tasks", "retry", running, waiting, "--json")
    alone = desk.arc("tasks", "retry", running, "--json")
    assert sorted(outcomes(both)) == [(running, "refused"), (waiting, "already")]
    assert (both.code, both.envelope["ok"], alone.code) == (3, True, 1)


def without_an_answer(desk: Desk, node: str, lost: str) -> None:
    """From now on this is carried out there, and its answer never comes."""
    desk.arc("status")

    def twist(do: str, said: JsonObject) -> JsonObject:
        if do == lost:
            raise OutcomeUnknown(node, do, "the connection ended")
        return said

    desk.hub.links[node] = twisted(desk.hub.links[node], twist)


@pytest.mark.parametrize(("key", "again"), [((), "may add it twice"), (("--key", "k"), "is safe")])
def test_an_add_whose_answer_was_lost_names_the_task_to_look_for(
    desk: Desk, key: tuple[str, ...], again: str
) -> None:
    """Seen to fail: it had drawn a uid and told nobody, so who repeated it added another task."""
    without_an_answer(desk, "loom", "add")
    text = desk.arc("tasks", "add", "deploy", "--to", "loom", *key)
    (first,) = desk.arc("tasks", "list", "--json").data["tasks"]
    assert f"arc tasks show {first['uid']} says whether it was added; the same again {again}" in (
        text.err)  # fmt: skip
    error = desk.arc("tasks", "add", "deploy", "--to", "loom", *key, "--json").envelope["error"]
    assert error["code"] == "ARC-OUTCOME-UNKNOWN"
    assert f"arc tasks show {error['where']} says" in error["hint"]
    there = desk.arc("tasks", "list", "--json").data["tasks"]
    assert len(there) == (1 if key else 2)
    if not key:
        assert error["where"] in {one["uid"] for one in there} - {first["uid"]}


def test_an_import_whose_answer_was_lost_says_what_was_added_and_what_to_look_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three requests the first was answered, the second was not and the third never left."""
    monkeypatch.setattr(tasks_change, "BATCH_MAX", 2)
    desk.arc("status")
    link, real = desk.hub.links["loom"], list[JsonObject]()

    async def say(do: str, fields: JsonObject) -> JsonObject:
        said = await link.ask(do, fields)
        if do == "add" and not fields["dry_run"]:
            real.append(fields)
            if len(real) == 2:
                raise OutcomeUnknown("loom", do, "the connection ended")
        return said

    assert link.met is not None
    desk.hub.links["loom"] = ALink("loom", say, incarnation=link.met.incarnation)
    raw = b"".join(b'{"subject": "S"}\n' for _ in range(5))
    error = desk.arc("tasks", "import", "-", "--to", "loom", "--json", stdin=raw).envelope["error"]
    third: Any = real[1]["tasks"]
    assert error["where"] == third[0]["uid"]
    assert error["hint"].startswith(
        f"tasks 1 to 2 were added; arc tasks show {third[0]['uid']} says whether tasks 3 to 4 were,"
        " all of them or none, and of the 1 after them none was; the same again may add it twice")
    assert desk.arc("tasks", "count").out == "4\n"


def test_an_add_that_only_tries_names_no_task_to_look_for(desk: Desk) -> None:
    without_an_answer(desk, "loom", "add")
    text = desk.arc("tasks", "add", "deploy", "--to", "loom", "--dry-run")
    assert "ARC-OUTCOME-UNKNOWN" in text.err
    assert "arc tasks show" not in text.err


def test_a_subject_of_several_words_is_said_to_want_quotes(desk: Desk) -> None:
    """Seen to fail: `Got unexpected extra arguments (the logs)`, and the help as all there was."""
    ran = desk.arc("tasks", "add", "rotate", "the", "log's", "-p", "3")
    assert ran.code == 2
    (hint,) = [line for line in ran.err.splitlines() if line.startswith("hint: ")]
    typed = hint.removeprefix("hint: quote the subject: arc ")
    assert desk.arc(*shlex.split(typed), "-p", "3").code == 0
    (task,) = desk.arc("tasks", "list", "--json").data["tasks"]
    assert task["subject"] == "rotate the log's"
    assert desk.arc("tasks", "add", "one", "--nonsense").code == 2


def test_a_part_of_a_uid_that_many_tasks_share_names_ten_and_a_short_one_is_the_end(
    desk: Desk,
) -> None:
    """Seen to fail: every candidate was listed, and `m9` for `m93v` was only not there."""
    desk.waits("iris", *range(100, 113))
    said = desk.arc("why", uid(100)[:20])
    assert said.code != 0
    assert "  … and 3 more" in said.err
    assert sum(uid(number) in said.err for number in range(100, 113)) == 10
    gone = desk.arc("why", "zz")
    assert "short ids are the last letters of a uid: give them whole" in gone.err
