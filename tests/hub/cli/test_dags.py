"""`arc dag …`: a graph from a file to its end, in text and in JSON, with its exit codes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from agent_node.strict import JsonObject
from arc.errors import OutcomeUnknown
from arc.schedule import Schedule
from tests.builders import uid
from tests.hub.cli.desk import Desk, Ran
from tests.hub.cli.test_dead import dies
from tests.hub_nodes import twisted

NIGHTLY = b"""\
title: nightly
key: nightly-1
budget_usd: 5.10
tasks:
  fetch: {subject: fetch it}
  parse: {subject: parse it, after: [fetch]}
  mail: {subject: mail it, after: [{task: parse, on_failure: skip}]}
  ping: {subject: ping them}
"""


def submitted(desk: Desk, raw: bytes = NIGHTLY, *words: str) -> Ran:
    return desk.arc("dag", "submit", "-", *words, stdin=raw)


def dag_of(desk: Desk) -> str:
    return str(submitted(desk, NIGHTLY, "--json").data["dag"])


def test_a_graph_of_a_file_is_added_with_its_shape(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "nightly.yaml"
    file.write_bytes(NIGHTLY)
    ran = desk.arc("dag", "submit", str(file))
    assert ran.code == 0, ran.err
    assert ran.lines[0].endswith('added: 4 tasks  "nightly"')
    assert ran.lines[1] == "  critical path: fetch -> parse -> mail"
    assert ran.lines[2] == "  roots: fetch, ping"
    assert desk.arc("tasks", "count", "--state", "READY").out == "2\n"
    assert desk.arc("tasks", "count", "--state", "PENDING").out == "2\n"


def test_a_graph_is_said_to_be_routed_at_once_as_it_is(desk: Desk) -> None:
    """Seen to fail: "the router looks in 29m" stood there, and its roots were gone by then."""
    schedule = desk.hub.schedule = Schedule(desk.hub)
    in_a_while = desk.clock.now() + timedelta(minutes=29)
    with patch.object(schedule, "next_run", lambda name: in_a_while), patch.object(
        schedule, "soon"
    ) as soon:
        ran = submitted(desk)
    assert soon.called
    assert ran.lines[-1] == "the router gives it away at once, where a node is free for it"


def test_a_dry_run_adds_nothing_and_says_the_same_shape(desk: Desk) -> None:
    ran = submitted(desk, NIGHTLY, "--dry-run")
    assert ran.code == 0
    assert "would be added: 4 tasks" in ran.out
    assert desk.arc("dag", "list", "--all").out.startswith("no graphs")
    assert desk.arc("tasks", "count", "--state", "READY").out == "0\n"


def test_a_dry_run_names_no_id_that_the_graph_will_not_get(desk: Desk) -> None:
    """Seen to fail: it printed a uid, and what was added then had another one."""
    text, machine = (submitted(desk, NIGHTLY, "--dry-run", *json) for json in ((), ("--json",)))
    assert text.lines[0].startswith("a graph with an id of its own  would be added: 4 tasks")
    assert machine.data["dag"] is None
    named = b"id: " + uid(9).encode() + b"\n" + NIGHTLY
    assert submitted(desk, named, "--dry-run").lines[0].startswith(f"{uid(9)}  would be added")
    dag = dag_of(desk)
    there = submitted(desk, NIGHTLY, "--dry-run")
    assert there.lines[0].startswith(f"{dag}  is there already"), "its key says which it is"


def test_a_second_time_under_one_key_is_no_second_graph(desk: Desk) -> None:
    first = dag_of(desk)
    again = submitted(desk, NIGHTLY, "--json")
    assert (again.code, again.data["outcome"], again.data["dag"]) == (0, "exists", first)
    other = submitted(desk, NIGHTLY.replace(b"ping them", b"ring them"))
    assert other.code == 1
    assert other.out.startswith("refused: key_conflict")
    assert len(desk.arc("dag", "list", "--json").data["dags"]) == 1


def test_what_is_wrong_with_a_file_is_one_error_and_nothing_is_added(desk: Desk) -> None:
    ran = submitted(desk, NIGHTLY.replace(b"[fetch]", b"[mail]"))
    assert ran.code == 2
    assert ran.err.startswith("error[ARC-GRAPH]")
    assert ran.err.count("ARC-GRAPH]") == 1, ran.err
    assert "parse -> mail -> parse" in ran.err or "mail -> parse -> mail" in ran.err
    assert submitted(desk, b"{").code == 2
    said = submitted(desk, b'{"title": "x", "tasks": {"a": {"subject": "a", "after": ["b"]}}}')
    assert (said.code, "graph.tasks.a.after[0]" in said.err) == (2, True), said.err
    assert said.err.startswith("error[ARC-GRAPH]")
    both = submitted(desk, b'{"title": "x", "tasks": {"a": {"after": ["b"]}}}', "--json")
    assert [one["where"] for one in both.envelope["error"]["problems"]] == [
        "graph.tasks.a.subject", "graph.tasks.a.after[0]"]  # fmt: skip
    assert desk.arc("dag", "submit", "/nowhere/at/all").code == 2
    assert desk.arc("dag", "list", "--all", "--json").data["dags"] == []


def test_the_picture_has_levels_states_and_what_each_waits_for(desk: Desk) -> None:
    dag = dag_of(desk)
    text, data = desk.both("dag", "show", dag[-6:])
    assert text.code == 0
    assert text.lines[0] == f'{dag}  running  "nightly"'
    assert "of 5.10 USD" in text.out
    assert [(one["name"], one["level"]) for one in data["tasks"]] == [
        ("fetch", 1), ("ping", 1), ("parse", 2), ("mail", 3)]  # fmt: skip
    (mail,) = [line for line in text.lines if " mail " in line and "PENDING" in line]
    assert "parse:skip" in mail
    assert mail.lstrip().startswith("3")


def test_a_task_finds_its_graph_and_an_unknown_word_is_not_found(desk: Desk) -> None:
    dag = dag_of(desk)
    task = desk.arc("dag", "show", dag, "--json").data["tasks"][0]["uid"]
    assert desk.arc("dag", "show", task, "--json").data["id"] == dag
    assert desk.arc("dag", "show", uid(404)).code == 5
    assert desk.arc("dag", "show", "not/a/uid").code == 2


def test_a_graph_is_cancelled_with_a_reason_and_twice_is_the_same(desk: Desk) -> None:
    dag = dag_of(desk)
    assert desk.arc("dag", "cancel", dag).code == 7
    dry = desk.arc("dag", "cancel", dag, "--dry-run")
    assert dry.code == 0
    assert "would be cancelled: at home 4 would end and 0 would be told to stop, and 0" in dry.out
    assert desk.arc("dag", "show", dag, "--json").data["state"] == "running"
    ran = desk.arc("dag", "cancel", dag, "--reason", "wrong input")
    assert (ran.code, "cancelled: 4 cancelled" in ran.out) == (0, True), ran.out
    assert desk.arc("dag", "cancel", dag, "--reason", "again").code == 0
    assert desk.arc("tasks", "count", "--state", "CANCELLED").out == "4\n"
    assert desk.arc("dag", "list").out.startswith("no graphs that run or failed")
    assert desk.arc("dag", "list", "--all", "--json").data["dags"][0]["state"] == "cancelled"


def test_a_graph_that_did_not_complete_is_not_said_to_be_followed(desk: Desk) -> None:
    raw = NIGHTLY + b"then: {title: after it, tasks: {last: {subject: last}}}\n"
    dag = str(submitted(desk, raw, "--json").data["dag"])
    assert "  is followed by " in desk.arc("dag", "show", dag).out
    desk.arc("dag", "cancel", dag, "--reason", "not tonight")
    assert "  is not followed, as it did not complete, by " in desk.arc("dag", "show", dag).out


def test_a_task_in_no_graph_is_not_cancelled_as_one(desk: Desk) -> None:
    (task,) = desk.waits("loom", 5)
    assert desk.arc("dag", "cancel", task, "--reason", "x").code == 2
    assert "a task that is in no graph" in desk.arc("dag", "show", task).out


def test_a_node_that_does_not_answer_is_named(desk: Desk) -> None:
    dag_of(desk)
    desk.nodes.switch_off("iris")
    ran = desk.arc("dag", "list")
    assert ran.code == 3
    assert "iris" in ran.err
    assert len(desk.arc("dag", "list", "--json").data["dags"]) == 1


@pytest.mark.parametrize(("word", "how"), [("", "fail"), (":skip", "skip"), (":run", "run")])
def test_a_new_task_may_wait_for_one_by_a_part_of_its_uid(desk: Desk, word: str, how: str) -> None:
    (first,) = desk.waits("loom", 5)
    ran = desk.arc("tasks", "add", "then this", "--after", first[-6:].lower() + word, "--json")
    assert ran.code == 0, ran.out
    task = desk.arc("tasks", "show", ran.data["results"][0]["uid"], "--json").data["task"]
    (edge,) = task["depends_on"]
    assert (task["state"], edge["uid"]) == ("PENDING", first)
    assert edge.get("on_failure", "fail") == how
    text = desk.arc("why", task["uid"]).out
    assert "waits for" in text
    assert f"{first}  " in text


def test_what_nobody_has_or_knows_is_no_edge(desk: Desk) -> None:
    assert desk.arc("tasks", "add", "x", "--after", uid(404)).code == 5
    wrong = desk.arc("tasks", "add", "x", "--after", f"{uid(5)}:skp")
    assert wrong.code == 2
    assert "did you mean skip" in wrong.err


def test_a_task_may_be_added_to_a_graph(desk: Desk) -> None:
    dag = dag_of(desk)
    ran = desk.arc("tasks", "add", "one more", "--dag", dag[-6:], "--json")
    assert ran.code == 0, ran.out
    data = desk.arc("dag", "show", dag, "--json").data
    assert ran.data["results"][0]["uid"] in {one["uid"] for one in data["tasks"]}


def test_status_counts_graphs(desk: Desk) -> None:
    assert "graphs:" not in desk.arc("status").out
    dag_of(desk)
    assert "graphs: 1 running   (arc dag list)" in desk.arc("status").out


def test_a_hostile_title_cannot_drive_the_terminal(desk: Desk) -> None:
    raw = NIGHTLY.replace(b"title: nightly", b'title: "night\\e[2Jly"')
    ran = submitted(desk, raw)
    assert "\x1b" not in ran.out + ran.err
    assert "\x1b" not in desk.arc("dag", "list").out + desk.arc("dag", "show", "0").err


NOBODYS = b"""\
title: nobody's
tasks:
  build: {subject: build it, skills: [nosuch], needs: [gpu], domain: nope}
  check: {subject: check it, skills: [clarty], after: [build],
          validate: {kind: json-schema, schema: {}}}
  again: {subject: check again, needs: [gpu]}
then: {title: after it, tasks: {mail: {subject: mail it, domain: nope}}}
"""


def test_a_word_that_is_nobodys_here_is_told_of_a_graph_with_its_first_task(desk: Desk) -> None:
    """It was added without a word, and its tasks waited for ever."""
    desk.arc("status")
    meant = ("task build and 1 more with the domain nope, which no node owns or takes also",
             "task check with the skill clarty, which no domain has; it would wait",
             "task build and 1 more with the need gpu, which no agent anywhere has; it would wait",
             "task check with the need json-schema, which no agent anywhere has; it would wait"
             )  # fmt: skip
    for words in (("--dry-run",), ()):
        machine = submitted(desk, NOBODYS, *words, "--json")
        assert machine.code == 0
        assert len(machine.envelope["warnings"]) == len(meant)
        text = submitted(desk, NOBODYS, *words)
        assert [(one in text.err, one in "\n".join(machine.envelope["warnings"]))
                for one in meant] == [(True, True)] * len(meant), text.err  # fmt: skip
    assert submitted(desk).err == ""


def test_a_graph_is_warned_of_a_deadline_that_has_passed(desk: Desk) -> None:
    """Seen to fail: it was taken without a word."""
    raw = b"""\
title: late
tasks:
  build: {subject: build it, deadline: "2026-03-10T03:43:00Z"}
  check: {subject: check it, after: [build], deadline: "2026-03-11T03:43:00Z"}
"""
    for words in (("--dry-run",), ()):
        ran = submitted(desk, raw, *words, "--json")
        assert ran.code == 0
        (warning,) = ran.envelope["warnings"]
        assert warning.startswith("1 task with a deadline that has passed already: ")
    keyed = b"key: once\n" + raw
    assert len(submitted(desk, keyed, "--json").envelope["warnings"]) == 1
    assert submitted(desk, keyed, "--json").envelope["warnings"] == [], "it is there already"


def test_a_graph_of_many_words_of_nobody_is_warned_of_in_few_lines(desk: Desk) -> None:
    desk.arc("status")
    lines = "\n".join(f"  t{n}: {{subject: S, skills: [nosuch{n}], needs: [gpu]}}"
                      for n in range(300))  # fmt: skip
    told = submitted(desk, f"title: many\ntasks:\n{lines}\n".encode(), "--json").envelope
    assert len(told["warnings"]) == 21
    assert "task t0 and 299 more with the need gpu" in told["warnings"][-1]


def added_after(desk: Desk, *words: str) -> tuple[Ran, Any]:
    """A new task that waits so, as text, and the same with `--json`: its one result."""
    ran = desk.arc("tasks", "add", "then this", *words)
    again = desk.arc("tasks", "add", "then this", *words, "--json")
    assert ran.code == again.code == 0, ran.err
    return ran, again.data["results"][0]


def test_a_task_after_one_that_died_here_is_told_to_be_cancelled_and_why(desk: Desk) -> None:
    """Seen to fail: "added", and that the router gives it away at once; it was cancelled."""
    (first,) = desk.waits("inbox", 5)
    assert desk.arc("tasks", "cancel", first, "--reason", "no").code == 0
    ran, result = added_after(desk, "--after", first)
    task = desk.arc("tasks", "show", result["uid"], "--json").data["task"]
    assert (task["state"], result["state"], result["rule"]) == (
        "CANCELLED", "CANCELLED", "dependency_failed")
    assert f"added and cancelled  dependency_failed: {first} is CANCELLED in the hub's" in ran.out
    assert f"arc tasks retry {first}" in result["because"]
    assert f"--after {first}:run" in result["because"]
    assert "router" not in ran.out
    assert desk.arc("tasks", "retry", first).code == 0
    assert desk.arc("tasks", "show", result["uid"], "--json").data["task"]["state"] == "PENDING"


def test_a_task_after_one_that_died_elsewhere_is_told_what_is_to_come(desk: Desk) -> None:
    (dead,) = dies(desk, "iris", 1)
    ran, result = added_after(desk, "--after", dead, "--dry-run")
    assert "would be added and cancelled" in ran.out
    ran, result = added_after(desk, "--after", f"{dead[-6:]}:skip")
    assert (result["state"], result["rule"]) == ("PENDING", "skipped")
    assert f"{dead} is DEAD_LETTERED on iris, and that leaves out what waits for it" in ran.out
    assert "its queue is told by the next run of fleet-graphs" in ran.out
    ran, result = added_after(desk, "--after", f"{dead}:run")
    assert (result["rule"], result.get("state")) == ("", None)
    assert "cancelled" not in ran.out


def test_an_edge_that_cannot_be_read_is_the_refusal_of_its_task_alone(desk: Desk) -> None:
    """Seen to fail without the care for it: no `data`, and no word of the other task."""
    (dead,) = dies(desk, "iris", 1)
    lines = (f'{{"subject": "a", "depends_on": ["{dead}"]}}\n'
             f'{{"subject": "b", "uid": "{uid(12)}", "depends_on": ["{uid(12)}"]}}\n')
    ran = desk.arc("tasks", "import", "-", "--json", stdin=lines.encode())
    assert [one["rule"] for one in ran.data["results"]] == ["whole", "bad_task"]
    assert ran.code == 1


def test_of_a_file_each_task_that_falls_is_told_and_the_others_go_on(desk: Desk) -> None:
    (dead,) = dies(desk, "iris", 1)
    lines = (f'{{"subject": "a", "uid": "{uid(11)}", "depends_on": ["{dead}"]}}\n'
             f'{{"subject": "b", "uid": "{uid(12)}", "depends_on": ["{uid(11)}"]}}\n'
             f'{{"subject": "c", "uid": "{uid(13)}"}}\n')  # fmt: skip
    ran = desk.arc("tasks", "import", "-", "--json", stdin=lines.encode())
    assert [one["rule"] for one in ran.data["results"]] == [
        "dependency_failed", "dependency_failed", ""]  # fmt: skip
    assert ran.data["results"][1]["because"].startswith(f"{uid(11)}, which it waits for, is")


@pytest.mark.parametrize("words", [("--dry-run",), ()])
def test_a_graph_after_a_task_that_died_is_told_who_of_it_never_runs_and_what_to_type(
    desk: Desk, words: tuple[str, ...]
) -> None:
    """Seen to fail: "added: 2 tasks", and the graph had failed before anybody looked."""
    (dead,) = dies(desk, "iris", 1)
    tasks = {
        "last": {"subject": "c", "after": ["ship"]}, "ship": {"subject": "b", "after": [dead]},
        "alone": {"subject": "a"},
    }  # fmt: skip
    raw = json.dumps({"title": "T", "key": "k", "tasks": tasks}).encode()
    ran = submitted(desk, raw, *words, "--json")
    assert ran.code == 0
    (warning,) = ran.envelope["warnings"]
    never = "would never run" if words else "never run"
    assert warning.startswith(
        f"2 of 3 tasks {never}: ship waits for {dead}, DEAD_LETTERED on iris. ")
    assert f"arc tasks retry {dead};" in warning
    if words:
        return
    assert submitted(desk, raw, "--json").envelope["warnings"] == [], "it is there already"
    assert counts_after_a_run(desk) == {"CANCELLED": 2, "READY": 1}, "as it was told"
    assert desk.arc("tasks", "retry", dead).code == 0
    assert counts_after_a_run(desk) == {"PENDING": 2, "READY": 1}, "what was to be typed helps"


def counts_after_a_run(desk: Desk) -> Any:
    desk.arc("sensors", "run", "fleet-graphs")
    (seen,) = desk.arc("dag", "list", "--json").data["dags"]
    return seen["counts"]


def test_a_graph_that_runs_whatever_became_of_a_task_is_not_warned_of(desk: Desk) -> None:
    (dead,) = dies(desk, "iris", 1)
    edge = {"task": dead, "on_failure": "run"}
    raw = json.dumps({"title": "T", "tasks": {"a": {"subject": "a", "after": [edge]}}}).encode()
    assert submitted(desk, raw, "--json").envelope["warnings"] == []


def test_what_is_to_be_given_of_a_dead_task_is_cancelled_at_once_and_says_so(desk: Desk) -> None:
    """Fails when only edges are judged: nothing is said of a task that never runs."""
    (dead,) = dies(desk, "iris", 1)
    _, result = added_after(desk, "--context", f"task:{dead}:output")
    assert result["rule"] == "dependency_failed"
    assert f"{dead} is DEAD_LETTERED on iris" in result["because"]


@pytest.mark.parametrize("words", [("--dry-run",), ()])
def test_an_edge_under_another_name_is_refused_and_nothing_runs_too_early(
    desk: Desk, words: tuple[str, ...]
) -> None:
    """Seen to fail: with `aftr` nothing held the second task back, and a warning alone said so."""
    typo = {"title": "T", "tasks": {"build": {"subject": "b"},
                                    "test": {"subject": "t", "aftr": ["build"]}},
            "then": {"title": "N", "tasks": [{"name": "x", "subject": "l", "contxt": ["x"]}]}}
    said = desk.arc("dag", "submit", "-", *words, stdin=json.dumps(typo).encode())
    assert said.code == 2
    assert "graph.tasks.test.aftr: no task has such a field" in said.err
    assert "did you mean after?" in said.err
    assert "graph.then.tasks[0].contxt: no task has such a field" in said.err
    assert desk.arc("dag", "list", "--json").data["dags"] == []


@pytest.mark.parametrize("edge", ["build", ["build"], ["new", "build"], [{"task": "build"}],
                                  ["build.outcome"], [uid(7)], [f"task:{uid(7)}:output"]])
def test_whatever_names_a_task_under_such_a_name_is_refused(desk: Desk, edge: Any) -> None:
    typo = {"title": "T", "tasks": [{"name": "build", "subject": "b"},
                                    {"name": "test", "subject": "t", "aftr": edge}]}
    said = desk.arc("dag", "submit", "-", stdin=json.dumps(typo).encode())
    assert (said.code, "graph.tasks[1].aftr: no task has such" in said.err) == (2, True)


@pytest.mark.parametrize("word", [
    "depends", "dependsOn", "depend_on", "requires", "deps", "dependencies", "waits_for",
    "wait-for", "needs_tasks", "parents", "upstream", "follows", "run_after", "prerequisites",
    "blockedBy"])
def test_another_tools_word_for_an_edge_is_refused(desk: Desk, word: str) -> None:
    """Seen to fail: it was taken in with a warning, and nothing held the second task back."""
    typo = {"title": "T", "tasks": {"first": {"subject": "f"},
                                    "second": {"subject": "s", word: ["first"]}}}
    said = desk.arc("dag", "submit", "-", stdin=json.dumps(typo).encode())
    assert said.code == 2
    assert f"graph.tasks.second.{word}: in a graph this is said as `after`" in said.err
    assert desk.arc("dag", "list", "--json").data["dags"] == []


@pytest.mark.parametrize("value", ["first", "third, first", [{"uid": uid(7)}], [{"task": "first"}],
                                   {"first": {"condition": "ended"}}, uid(7)])
def test_whatever_names_a_task_under_another_tools_word_is_refused(desk: Desk, value: Any) -> None:
    typo = {"title": "T", "tasks": [{"name": "first", "subject": "f"},
                                    {"name": "second", "subject": "s", "depends": value}]}
    said = desk.arc("dag", "submit", "-", stdin=json.dumps(typo).encode())
    assert (said.code, "tasks[1].depends: in a graph this is said" in said.err) == (2, True)


@pytest.mark.parametrize(("field", "value"), [("depends", ["elsewhere"]), ("requires", "a lamp"),
                                              ("depends_on_it", 7), ("upstream", {"a": 1})])
def test_a_warning_of_a_graph_never_names_a_field_that_the_graph_refuses(
    desk: Desk, field: str, value: Any
) -> None:
    """Seen to fail: `did you mean depends_on?`, which was refused in turn."""
    own = {"title": "T", "tasks": {"first": {"subject": "f"},
                                   "second": {"subject": "s", field: value}}}
    said = desk.arc("dag", "submit", "-", stdin=json.dumps(own).encode())
    assert (said.code, f"unknown field '{field}', kept in extra" in said.err) == (0, True)
    assert "did you mean depends_on?" not in said.err
    assert field not in {"depends", "requires", "upstream"} or "did you mean after?" in said.err


@pytest.mark.parametrize("text", [
    '{"title": "T", "tasks": {"a": {"subject": ""}, "test": {"afer": ["a"], "subject": 7}}}',
    "title: T\ntasks:\n  a: {subject: ''}\n  test: {subject: 7, afer: [a]}\n",
], ids=["json", "yaml"])
def test_a_misspelt_edge_is_told_with_all_other_faults(desk: Desk, text: str) -> None:
    """Seen to fail: it was told only once the rest was mended, and of YAML without its line."""
    said = desk.arc("dag", "submit", "-", "--json", stdin=text.encode())
    assert said.code == 2
    problems = said.envelope["error"]["problems"]
    assert len(problems) == 3
    (edge,) = (one for one in problems if "did you mean after?" in one["message"])
    assert edge["where"] in {"graph.tasks.test.afer", "stdin:4:28"}


def test_a_misspelt_edge_behind_twenty_other_faults_is_counted(desk: Desk) -> None:
    tasks: dict[str, Any] = {f"t{n}": {"subject": ""} for n in range(21)}
    tasks["last"] = {"subject": "l", "afer": ["t0"]}
    said = desk.arc("dag", "submit", "-", stdin=json.dumps({"title": "T", "tasks": tasks}).encode())
    assert (said.code, "… and 2 more" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [("content", "a text. build it"), ("contents", ["intro", 7]), ("later", 7), ("alter", []),
     ("contexts", {"a": 1}), ("later", None), ("content", "build.md")],
)
def test_a_field_of_a_users_own_is_kept_though_its_name_is_near_an_edges(
    desk: Desk, field: str, value: Any
) -> None:
    """Fails where the name alone decides: what was promised to be kept was refused, and a graph
    that had been taken in could not be submitted again.
    """
    own = {"title": "T", "key": "k", "tasks": {"build": {"subject": "b"},
                                               "test": {"subject": "t", field: value}}}
    for outcome in ("added", "exists"):
        said = desk.arc("dag", "submit", "-", "--json", stdin=json.dumps(own).encode())
        assert (said.code, said.data["outcome"]) == (0, outcome)
        assert f"1 task with an unknown field '{field}', kept in extra" in said.err + said.out


def test_a_field_that_no_task_of_a_graph_has_is_warned_of(desk: Desk) -> None:
    typo = {"title": "T", "tasks": {"build": {"subject": "b"},
                                    "test": {"subject": "t", "owner": ["build"]}},
            "then": {"title": "N", "tasks": [{"name": "last", "subject": "l", "prioritty": 1}]}}
    for words in (("--dry-run",), ()):
        said = desk.arc("dag", "submit", "-", *words, stdin=json.dumps(typo).encode())
        assert said.code == 0
        assert "1 task with an unknown field 'owner', kept in extra" in said.err
        assert "'prioritty', kept in extra; did you mean priority?" in said.err
    good = json.dumps({"title": "T", "tasks": [{"name": "a", "subject": "b", "after": []}]})
    assert "unknown field" not in desk.arc("dag", "submit", "-", stdin=good.encode()).err


@pytest.mark.parametrize(("raw", "again"), [
    (NIGHTLY, "is safe"), (NIGHTLY.replace(b"key: nightly-1\n", b""), "may add it twice")])
def test_a_graph_whose_answer_was_lost_is_named(desk: Desk, raw: bytes, again: str) -> None:
    """Seen to fail: its id was told to nobody, so who submitted it again made a second one."""
    desk.arc("status")
    real = desk.hub.inbox

    def lost(do: str, said: JsonObject) -> JsonObject:
        if do == "submit":
            raise OutcomeUnknown("inbox", do, "the connection ended")
        return said

    with patch.object(desk.hub, "inbox", twisted(real, lost)):
        error = submitted(desk, raw, "--json").envelope["error"]
    (one,) = desk.arc("dag", "list", "--json").data["dags"]
    assert (error["code"], error["where"]) == ("ARC-OUTCOME-UNKNOWN", one["id"])
    look = f"arc dag show {one['id']} says whether it was added; the same again {again}"
    assert error["hint"].startswith(look)


def test_a_file_that_is_not_there_is_told_with_what_is_read(desk: Desk) -> None:
    said = desk.arc("dag", "submit", "nofile.yaml")
    assert said.code == 2
    assert "nofile.yaml: cannot be read: No such file or directory" in said.err
    assert "a YAML or JSON file, or with - from stdin" in said.err
