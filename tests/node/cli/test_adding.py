"""Claims about `add`: one task, or a whole file of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_node.cli import adding
from agent_node.cli.around import Request, Result
from agent_node.cli.shapes import objects
from agent_node.errors import BadInput
from agent_node.fields import moment
from agent_node.ulid import is_ulid
from tests.node.cli.desk import UID, Desk, added, refused


def test_add_sends_a_whole_task_with_a_uid_of_its_own(desk: Desk) -> None:
    desk.door.replies["add"] = added
    words = (
        "rotate logs -p P3 --skill ops --skill logs --need root --body x --key k1 --type chore "
        "--tag night --max-s 90 --not-before +2h --deadline 2026-03-11T00:00:00+01:00 --model big "
        "--pinned --on-interrupt park"
    ).split()
    ran = desk.run("add", " ".join(words[:2]), *words[2:])

    [request] = desk.door.requests
    [task] = request["tasks"]
    assert ran.code == 0
    assert is_ulid(task.pop("uid"))
    assert request["do"] == "add"
    assert task == {
        "subject": "rotate logs",
        "source": "human:ada",
        "origin": "human:ada",
        "priority": 3,
        "skills": ["ops", "logs"],
        "needs": ["root"],
        "body": "x",
        "key": "k1",
        "type": "chore",
        "tags": ["night"],
        "max_s": 90.0,
        "not_before": "2026-03-10T05:45:02.000Z",
        "deadline": "2026-03-10T23:00:00.000Z",
        "models": ["big"],
        "pinned": True,
        "on_interrupt": "park",
    }


def test_a_task_that_no_daemon_starts_is_added_with_a_warning(desk: Desk) -> None:
    """Seen to fail: `1 added`, and nothing happened for as long as nobody looked."""
    desk.door.replies["add"] = lambda request: {**added(request), "dispatcher": "stopped"}
    ran = desk.run("add", "rotate logs", "--json")
    (said,) = ran.envelope["warnings"]
    assert said.startswith("no daemon runs here, so nothing starts: ")
    assert said.endswith("agent-node start")
    desk.door.replies["add"] = added
    assert desk.run("add", "rotate logs").err == ""


def test_a_need_that_no_agent_here_has_is_warned_of_and_the_task_is_taken(desk: Desk) -> None:
    """Seen to fail: `1 added`, and it waited for as long as nobody looked."""
    unmet = [{"needs": ["gpu", "ru\x1bst"], "count": 2}]
    desk.door.replies["add"] = lambda request: {**added(request), "unmet_needs": unmet}
    ran = desk.run("add", "a", "--need", "gpu", "--json")
    (said,) = ran.envelope["warnings"]
    assert ran.code == 0
    assert said == ("2 tasks that no agent here may start, for none has: gpu, ru\\x1bst;"
                    " agent-node status")  # fmt: skip


def test_two_adds_are_two_tasks(desk: Desk) -> None:
    desk.door.replies["add"] = added
    desk.run("add", "a")
    desk.run("add", "a")
    uids = {request["tasks"][0]["uid"] for request in desk.door.requests}
    assert len(uids) == 2


def test_a_deadline_that_has_passed_is_warned_of_and_the_task_is_taken(desk: Desk) -> None:
    """Seen to fail: it was taken without a word."""
    desk.door.replies["add"] = added
    words = ("add", "a", "--deadline", "2026-03-10T03:45:01Z")
    ran, machine = desk.run(*words), desk.run(*words, "--dry-run", "--json")
    assert (ran.code, machine.code) == (0, 0)
    assert ran.out.startswith("1 added\n")
    assert ran.err.startswith("warning: 1 task with a deadline that has passed already: ")
    assert machine.envelope["warnings"] == [ran.err.removeprefix("warning: ").rstrip("\n")]
    assert desk.run("add", "a", "--deadline", "+1s").err == ""
    desk.door.replies["add"] = {"results": [{"uid": UID, "outcome": "exists"}]}
    assert desk.run(*words).err == "", "it is the one that was taken before"


def test_a_body_comes_from_a_file_or_from_stdin(desk: Desk, tmp_path: Path) -> None:
    desk.door.replies["add"] = added
    (tmp_path / "body").write_text("from a file", encoding="utf-8")
    desk.run("add", "a", "--body-file", str(tmp_path / "body"))
    desk.run("add", "a", "--body-file", "-", stdin="from stdin ü".encode())

    bodies = [request["tasks"][0]["body"] for request in desk.door.requests]
    assert bodies == ["from a file", "from stdin ü"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["x" * 501], "subject"),
        (["two\nlines"], "subject"),
        ([""], "subject"),
        (["a", "-p", "11"], "priority"),
        (["a", "--priority-100", "101"], "priority_100"),
        (["a", "--not-before", "2026-03-10T03:45:02"], "not_before"),
        (["a", "--deadline", "soon"], "deadline"),
        (["a", "--body", "x", "--body-file", "-"], "body"),
        (["a", "--body-file", "/nowhere/at/all"], "body"),
        (["a", "--max-s", "-1"], "max_s"),
        (["a", "--skill", "s" * 65], "skills"),
        ([], "subject"),
    ],
)
def test_a_bad_word_is_refused_by_its_field_before_anything_is_sent(
    desk: Desk, words: list[str], field: str
) -> None:
    ran = desk.run("add", *words, "--json")
    assert ran.code == 2
    assert ran.envelope["error"]["where"] == field
    assert desk.door.requests == []


def test_a_subject_of_ten_megabytes_is_one_short_error(desk: Desk) -> None:
    ran = desk.run("add", "x" * 10_000_000)
    assert ran.code == 2
    assert len(ran.err) < 500


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a\0b", b"x" * (256 * 1024 + 1)])
def test_a_body_that_is_no_text_or_too_long_is_refused(desk: Desk, body: bytes) -> None:
    ran = desk.run("add", "a", "--body-file", "-", "--json", stdin=body)
    assert ran.code == 2
    assert ran.envelope["error"]["where"] == "body"
    assert desk.door.requests == []


def test_a_refused_task_is_a_failure_with_its_rule(desk: Desk) -> None:
    desk.door.replies["add"] = {"results": [refused("key_conflict", "k1 is 7k3f")]}
    ran = desk.run("add", "a", "--key", "k1", "--json")
    assert ran.code == 1
    assert ran.envelope["error"] == {
        "code": "key_conflict",
        "message": f"{UID}: k1 is 7k3f",
        "rule": "key_conflict",
    }


def test_a_task_that_exists_is_told_and_is_no_failure(desk: Desk) -> None:
    desk.door.replies["add"] = {"results": [{"uid": UID, "outcome": "exists"}]}
    ran = desk.run("add", "a", "--key", "k1")
    assert ran.code == 0
    assert ran.out == f"1 exists\n  exists  6c1d  {UID}  a\n"


def test_an_agent_inside_a_task_is_named_as_the_source(desk: Desk) -> None:
    desk.environ.update(AGENT_TASK_UID=UID, AGENT_NAME="iris")
    desk.door.replies["add"] = added
    desk.run("add", "a")
    assert desk.door.requests[0]["tasks"][0]["source"] == "agent:iris"


# --- add --file -----------------------------------------------------------------------------------


def lines(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def test_a_file_is_added_in_one_request_all_of_it_or_nothing(desk: Desk) -> None:
    desk.door.replies["add"] = added
    raw = lines({"subject": "a"}, {"subject": "b", "uid": UID, "later": 1})
    ran = desk.run("add", "--file", "-", stdin=raw)

    [sent] = desk.door.requests
    assert sent["whole"] is True
    assert [task["subject"] for task in sent["tasks"]] == ["a", "b"]
    assert sent["tasks"][1]["later"] == 1
    assert sent["tasks"][1]["uid"] == UID
    assert ran.out.startswith("2 added\n")


def test_one_bad_line_keeps_the_whole_file_out_and_every_bad_line_is_named(desk: Desk) -> None:
    raw = lines({"subject": "good"}, {"subject": ""}) + b"\n{nonsense\n" + lines({"priority": 3})
    ran = desk.run("add", "--file", "-", stdin=raw)

    assert ran.code == 2
    assert desk.door.requests == []
    assert "nothing was added: 3 bad lines" in ran.err
    assert [line.split(":")[0] for line in ran.err.splitlines()[1:]] == [
        "  line 2",
        "  line 4",
        "  line 5",
    ]


def test_the_line_the_node_refused_is_named_and_those_it_kept_out_are_not(desk: Desk) -> None:
    desk.door.replies["add"] = {
        "results": [refused("whole", "another was refused"), refused("key_conflict", "k is taken")]
    }
    ran = desk.run("add", "--file", "-", stdin=lines({"subject": "a"}, {"subject": "b"}))

    assert ran.code == 1
    assert ran.err == (
        "error[file_refused]: nothing was added: 1 of 2 tasks refused\n"
        "  task 2 b: key_conflict: k is taken\n"
    )


def test_more_tasks_than_a_request_takes_are_refused_here(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "TASKS_MAX", 1)
    ran = desk.run("add", "--file", "-", stdin=lines({"subject": "a"}, {"subject": "b"}))
    assert ran.code == 2
    assert desk.door.requests == []


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_an_empty_file_is_wrong_use_as_it_is_for_the_hub(
    desk: Desk, more: tuple[str, ...]
) -> None:
    """It ended with 0, so that a file nobody had written counted as added."""
    ran = desk.run("add", "--file", "-", *more, stdin=b"\n\n")
    assert (ran.code, ran.out) == (2, "")
    assert "-: holds no task; nothing was added" in ran.err
    machine = desk.run("add", "--file", "-", *more, "--json", stdin=b"")
    assert (machine.code, json.loads(machine.out)["ok"]) == (2, False)
    assert desk.door.requests == []


def test_a_file_too_large_for_one_request_is_refused(desk: Desk) -> None:
    ran = desk.run("add", "--file", "-", stdin=b" " * (7 * 1024 * 1024 + 1))
    assert ran.code == 2
    assert desk.door.requests == []


def test_a_dry_run_of_add_changes_nothing_on_the_same_path(desk: Desk) -> None:
    desk.door.replies["add"] = added
    ran = desk.run("add", "a", "--dry-run")
    assert desk.door.requests[0]["dry_run"] is True
    assert ran.out.startswith("dry run, nothing changed: 1 added")


@pytest.mark.parametrize("part", [UID[:9], UID[-5:].lower()])
def test_what_is_waited_for_is_said_by_a_part_of_its_uid(desk: Desk, part: str) -> None:
    """Seen to fail: `after[0].uid: not a ULID`, where every other command takes a part."""
    desk.door.replies["list"] = {"tasks": [{"uid": UID, "subject": "first"}], "next": None}
    desk.door.replies["add"] = added
    assert desk.run("add", "second", "--after", f"{part}:skip").code == 0
    (task,) = desk.door.requests[-1]["tasks"]
    assert task["depends_on"] == [{"uid": UID, "on_failure": "skip"}]
    desk.door.replies["list"] = {"tasks": [], "next": None}
    ran = desk.run("add", "second", "--after", part)
    assert (ran.code, "agent-node list shows what is here" in ran.err) == (5, True)


def test_a_time_that_is_none_is_told_with_how_to_write_one(desk: Desk) -> None:
    """Seen to fail: `Invalid isoformat string: 'tomorrow'`."""
    ran = desk.run("add", "a", "--deadline", "tomorrow")
    assert ran.code == 2
    assert "deadline: 'tomorrow' is no time; write 2026-03-10T03:45:02Z or +90m" in ran.err
    with pytest.raises(BadInput, match="'tomorrow' is no time; write 2026-03-10T03:45:00Z"):
        moment("tomorrow", "deadline")


def test_what_was_cancelled_as_it_came_is_told_with_the_reason(desk: Desk) -> None:
    """Seen to fail: the line said "added" and no more."""
    because = {"rule": "dependency_failed", "text": f"{UID} ended badly, so it was cancelled"}

    def replied(request: Request) -> Result:
        (task,) = objects(added(request), "results")
        return {"results": [{**task, "because": because}]}

    desk.door.replies["add"] = replied
    ran = desk.run("add", "a", "--after", UID)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == (
        f"    dependency_failed: {UID} ended badly, so it was cancelled")


def test_a_field_of_a_file_that_no_node_knows_is_told_and_kept(desk: Desk) -> None:
    """Seen to fail: `prioritty` was kept in extra without a word, and the task came at P5."""
    desk.door.replies["add"] = added
    lines = b'{"subject": "a", "prioritty": 1}\n{"subject": "b", "priority": 2}\n'
    ran = desk.run("add", "--file", "-", "--json", stdin=lines)
    assert (ran.code, ran.envelope["warnings"]) == (0, [
        "1 task with an unknown field 'prioritty', kept in extra; did you mean priority?"])
    assert desk.door.requests[0]["tasks"][0]["prioritty"] == 1
    assert desk.run("add", "--file", "-", "--json",
                    stdin=lines.splitlines()[1]).envelope["warnings"] == []  # fmt: skip
