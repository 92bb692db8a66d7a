"""Claims about the commands that add tasks, look at them and change them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_node.cli import adding, reading
from agent_node.cli.around import Request, Result
from agent_node.errors import Refused
from agent_node.ulid import is_ulid
from tests.node.cli.desk import OTHER_UID, UID, Desk, a_task

CHANGED: Result = {"uid": UID, "outcome": "changed", "task": a_task()}


def added(request: Request) -> Result:
    tasks = request["tasks"]
    assert isinstance(tasks, list)
    return {"results": [{"uid": task["uid"], "outcome": "added"} for task in tasks]}


def refused(rule: str, text: str, uid: str = UID) -> Result:
    return {"uid": uid, "outcome": "refused", "because": {"rule": rule, "text": text}}


# --- add -----------------------------------------------------------------------------------------


def test_add_sends_a_whole_task_with_a_uid_of_its_own(desk: Desk):
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


def test_two_adds_are_two_tasks(desk: Desk):
    desk.door.replies["add"] = added
    desk.run("add", "a")
    desk.run("add", "a")
    uids = {request["tasks"][0]["uid"] for request in desk.door.requests}
    assert len(uids) == 2


def test_a_body_comes_from_a_file_or_from_stdin(desk: Desk, tmp_path: Path):
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
):
    ran = desk.run("add", *words, "--json")
    assert ran.code == 2
    assert ran.envelope["error"]["where"] == field
    assert desk.door.requests == []


def test_a_subject_of_ten_megabytes_is_one_short_error(desk: Desk):
    ran = desk.run("add", "x" * 10_000_000)
    assert ran.code == 2
    assert len(ran.err) < 500


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a\0b", b"x" * (256 * 1024 + 1)])
def test_a_body_that_is_no_text_or_too_long_is_refused(desk: Desk, body: bytes):
    ran = desk.run("add", "a", "--body-file", "-", "--json", stdin=body)
    assert ran.code == 2
    assert ran.envelope["error"]["where"] == "body"
    assert desk.door.requests == []


def test_a_refused_task_is_a_failure_with_its_rule(desk: Desk):
    desk.door.replies["add"] = {"results": [refused("key_conflict", "k1 is 7k3f")]}
    ran = desk.run("add", "a", "--key", "k1", "--json")
    assert ran.code == 1
    assert ran.envelope["error"] == {
        "code": "key_conflict",
        "message": f"{UID}: k1 is 7k3f",
        "rule": "key_conflict",
    }


def test_a_task_that_exists_is_told_and_is_no_failure(desk: Desk):
    desk.door.replies["add"] = {"results": [{"uid": UID, "outcome": "exists"}]}
    ran = desk.run("add", "a", "--key", "k1")
    assert ran.code == 0
    assert ran.out == f"1 exists\n  exists  6c1d  {UID}  a\n"


def test_an_agent_inside_a_task_is_named_as_the_source(desk: Desk):
    desk.environ.update(AGENT_TASK_UID=UID, AGENT_NAME="iris")
    desk.door.replies["add"] = added
    desk.run("add", "a")
    assert desk.door.requests[0]["tasks"][0]["source"] == "agent:iris"


# --- add --file ----------------------------------------------------------------------------------


def lines(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def test_a_file_is_added_in_one_request_all_of_it_or_nothing(desk: Desk):
    desk.door.replies["add"] = added
    raw = lines({"subject": "a"}, {"subject": "b", "uid": UID, "later": 1})
    ran = desk.run("add", "--file", "-", stdin=raw)

    [sent] = desk.door.requests
    assert sent["whole"] is True
    assert [task["subject"] for task in sent["tasks"]] == ["a", "b"]
    assert sent["tasks"][1]["later"] == 1
    assert sent["tasks"][1]["uid"] == UID
    assert ran.out.startswith("2 added\n")


def test_one_bad_line_keeps_the_whole_file_out_and_every_bad_line_is_named(desk: Desk):
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


def test_the_line_the_node_refused_is_named_and_those_it_kept_out_are_not(desk: Desk):
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
):
    monkeypatch.setattr(adding, "TASKS_MAX", 1)
    ran = desk.run("add", "--file", "-", stdin=lines({"subject": "a"}, {"subject": "b"}))
    assert ran.code == 2
    assert desk.door.requests == []


def test_an_empty_file_says_so(desk: Desk):
    ran = desk.run("add", "--file", "-", stdin=b"\n\n")
    assert (ran.code, ran.out) == (0, "-: holds no task; nothing was added\n")
    assert desk.door.requests == []


def test_a_file_too_large_for_one_request_is_refused(desk: Desk):
    ran = desk.run("add", "--file", "-", stdin=b" " * (7 * 1024 * 1024 + 1))
    assert ran.code == 2
    assert desk.door.requests == []


def test_a_dry_run_of_add_changes_nothing_on_the_same_path(desk: Desk):
    desk.door.replies["add"] = added
    ran = desk.run("add", "a", "--dry-run")
    assert desk.door.requests[0]["dry_run"] is True
    assert ran.out.startswith("dry run, nothing changed: 1 added")


# --- list and show -------------------------------------------------------------------------------


def test_an_empty_list_says_what_it_looked_for(desk: Desk):
    desk.door.replies["list"] = {"tasks": [], "next": None}
    assert desk.run("list").out == "no tasks here\n"
    assert desk.run("list", "--state", "parked").out == "no tasks in PARKED here\n"


def test_list_passes_its_limits_on(desk: Desk):
    desk.door.replies["list"] = {"tasks": [a_task()], "next": 17}
    ran = desk.run(*"list --state ready --state RUNNING --limit 1 --after 4 --match 6c1d".split())
    assert desk.door.requests == [
        {"do": "list", "limit": 1, "states": ["READY", "RUNNING"], "after": 4, "match": "6C1D"}
    ]
    assert ran.out.splitlines()[-1] == "more: agent-node list --after 17"


@pytest.mark.parametrize("words", [["--state", "REDY"], ["--limit", "0"], ["--limit", "1001"]])
def test_a_list_nobody_could_give_is_refused_here(desk: Desk, words: list[str]):
    assert desk.run("list", *words).code == 2
    assert desk.door.requests == []


def test_list_is_not_cut_when_no_terminal_reads_along(desk: Desk):
    desk.environ["COLUMNS"] = "40"
    desk.door.replies["list"] = {"tasks": [a_task(subject="s" * 300)]}
    assert "s" * 300 in desk.run("list").out


def test_short_uids_differ_within_a_list(desk: Desk):
    desk.door.replies["list"] = {"tasks": [a_task(UID), a_task(OTHER_UID)]}
    ran = desk.run("list")
    assert [line.split()[0] for line in ran.out.splitlines()[2:]] == ["w6c1d", "a6c1d"]


def test_show_tells_the_task_its_attempts_and_its_body(desk: Desk):
    desk.door.replies["show"] = {
        "task": a_task(body="line one\nline two", progress="half"),
        "attempts": [{"n": 1, "agent": "iris", "outcome": "failed"}],
        "moves": [],
    }
    ran = desk.run("show", UID)
    assert f"{UID} READY P8" in ran.out
    assert "attempt          n=1 agent=iris outcome=failed" in ran.out
    assert ran.out.endswith("line one\nline two\n")


@pytest.mark.parametrize("part", ["01jnxq5b2m7", "w6c1d", "01JNXQ5B2M7Z8K4V3T9R0W6C1"])
def test_a_part_of_a_uid_is_enough(desk: Desk, part: str):
    desk.door.replies["list"] = {"tasks": [a_task()]}
    desk.door.replies["show"] = {"task": a_task()}
    assert desk.run("show", part).code == 0
    assert desk.door.requests[0] == {"do": "list", "match": part.upper(), "limit": 20}
    assert desk.door.requests[1] == {"do": "show", "uid": UID}


def test_a_part_two_tasks_share_is_exit_2_with_the_candidates(desk: Desk):
    desk.door.replies["list"] = {"tasks": [a_task(UID), a_task(OTHER_UID)]}
    ran = desk.run("cancel", "6c1d")
    assert ran.code == 2
    assert UID in ran.err
    assert OTHER_UID in ran.err
    assert [request["do"] for request in desk.door.requests] == ["list"]


def test_a_part_no_task_has_is_exit_5(desk: Desk):
    desk.door.replies["list"] = {"tasks": []}
    assert desk.run("show", "zzzz").code == 5


def test_a_part_in_the_middle_of_a_uid_is_not_enough(desk: Desk):
    """Shown once without the check on our side: a node that matches loosely then chose for us."""
    desk.door.replies["list"] = {"tasks": [a_task()]}
    assert desk.run("cancel", "8K4V").code == 5


def test_what_is_no_part_of_a_uid_is_wrong_use(desk: Desk):
    assert desk.run("show", "li%").code == 2
    assert desk.door.requests == []


# --- log -----------------------------------------------------------------------------------------


def pieces(text: str, size: int):
    def reply(request: Request) -> Result:
        offset = int(str(request["offset"]))
        piece = text[offset : offset + size]
        return {"text": piece, "next": offset + len(piece), "attempt": 2, "size": len(text)}

    return reply


def test_log_reads_to_the_end_and_prints_safely(desk: Desk):
    desk.door.replies["log"] = pieces("one\ntwo\x1b[2J\nthree\n", 5)
    ran = desk.run("log", UID, "--attempt", "2", "--stderr")
    assert ran.out == "one\ntwo\\x1b[2J\nthree\n"
    assert desk.door.requests[0]["attempt"] == 2
    assert desk.door.requests[0]["stream"] == "stderr"


def test_an_empty_log_says_so(desk: Desk):
    desk.door.replies["log"] = {"text": "", "next": 0}
    assert desk.run("log", UID).out == "nothing was written\n"


def test_follow_looks_once_more_after_the_end(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    """Shown once with the order turned round: what came just before the end was then lost."""
    written = ["a"]

    def show(_: Request) -> Result:
        ended = "tail" in "".join(written)
        return {"task": a_task(state="COMPLETED" if ended else "RUNNING")}

    def log(request: Request) -> Result:
        return pieces("".join(written), 100)(request)

    monkeypatch.setattr(reading.time, "sleep", lambda _: written.append(" tail"))
    desk.door.replies["show"] = show
    desk.door.replies["log"] = log
    ran = desk.run("log", UID, "--follow")
    assert ran.code == 0
    assert ran.out == "a tail"


def test_following_a_task_that_was_only_just_claimed_waits_for_its_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    states = ["CLAIMED", "RUNNING", "COMPLETED"]

    def log(request: Request) -> Result:
        if len(states) == 2:
            raise Refused("not_found", "no attempt of this task has run here")
        return pieces("done", 100)(request)

    monkeypatch.setattr(reading.time, "sleep", lambda _: None)
    desk.door.replies["show"] = lambda _: {"task": a_task(state=states.pop(0))}
    desk.door.replies["log"] = log
    ran = desk.run("log", UID, "--follow", "--json")
    assert ran.out.splitlines()[0] == '{"text": "done"}'
    assert json.loads(ran.out.splitlines()[-1])["data"] == {"uid": UID, "ended": True}


def test_a_task_that_never_ran_has_no_log_to_follow(desk: Desk):
    desk.door.replies["show"] = {"task": a_task()}
    desk.door.replies["log"] = Refused("not_found", "no attempt of this task has run here")
    assert desk.run("log", UID, "--follow").code == 5


# --- set, cancel, retry, resolve, release --------------------------------------------------------


def test_set_sends_each_field_in_its_type(desk: Desk):
    desk.door.replies["set"] = {"results": [CHANGED]}
    words = (
        "priority=P3 skills=ops,logs models=[] max_s=90 pinned=true domain=5 deadline= "
        "not_before=+1h tags="
    ).split()
    ran = desk.run("set", UID, *words, "--reason", "night shift")

    assert ran.code == 0
    [request] = desk.door.requests
    assert request == {
        "do": "set",
        "uids": [UID],
        "reason": "night shift",
        "by": "human:ada",
        "fields": {
            "priority": 3,
            "skills": ["logs", "ops"],
            "models": [],
            "max_s": 90,
            "pinned": True,
            "domain": "5",
            "deadline": None,
            "not_before": "2026-03-10T04:45:02.000Z",
            "tags": [],
        },
    }


@pytest.mark.parametrize(
    "word",
    "priority=11 priority= priorty=3 subject=x pinned=maybe priority deadline=x".split(),
)
def test_a_field_that_cannot_be_set_so_is_refused_here(desk: Desk, word: str):
    assert desk.run("set", UID, word).code == 2
    assert desk.door.requests == []


def test_a_field_that_always_has_a_value_cannot_be_cleared(desk: Desk):
    assert "priority: cannot be cleared" in desk.run("set", UID, "priority=").err


def test_a_field_given_twice_is_refused(desk: Desk):
    assert desk.run("set", UID, "priority=1", "priority=2").code == 2


def test_a_mistyped_field_is_suggested(desk: Desk):
    assert 'did you mean "priority"?' in desk.run("set", UID, "priorty=3").err


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["cancel"], {}),
        (["retry"], {}),
        (["release"], {}),
        (["release", "--alone"], {"alone": True}),
        (["resolve", "--as", "done"], {"as": "done"}),
        (["resolve", "--as", "ready", "--alone"], {"as": "ready", "alone": True}),
    ],
)
def test_a_persons_word_carries_who_and_why(desk: Desk, words: list[str], more: Result):
    desk.door.replies[words[0]] = {"results": [CHANGED]}
    ran = desk.run(words[0], UID, *words[1:], "--reason", "no use")
    assert ran.code == 0
    assert desk.door.requests == [
        {"do": words[0], "uids": [UID], "reason": "no use", "by": "human:ada", **more}
    ]


def test_one_refused_task_of_two_is_exit_3_with_both_told(desk: Desk):
    gone = refused("in_transfer", "it is on its way to loom", OTHER_UID)
    desk.door.replies["cancel"] = {"results": [CHANGED, gone]}
    ran = desk.run("cancel", UID, OTHER_UID, "--json")
    assert ran.code == 3
    assert ran.envelope["ok"] is True
    message = f"{OTHER_UID}: it is on its way to loom"
    assert ran.envelope["partial"] == [
        {"uid": OTHER_UID, "error": {"code": "in_transfer", "message": message}}
    ]
    assert desk.run("cancel", UID, OTHER_UID).out == (
        "cancel: 1 of 2 done\n"
        f"  changed  {UID} READY rotate logs\n"
        f"  refused  {OTHER_UID} in_transfer: it is on its way to loom\n"
    )


def test_a_task_named_twice_is_asked_for_once(desk: Desk):
    desk.door.replies["cancel"] = {"results": [CHANGED]}
    desk.run("cancel", UID, UID.lower())
    assert desk.door.requests[0]["uids"] == [UID]


@pytest.mark.parametrize(("rule", "code"), [("not_ended", 1), ("unknown_task", 5)])
def test_a_refusal_of_all_of_them_is_a_failure(desk: Desk, rule: str, code: int):
    desk.door.replies["retry"] = {"results": [refused(rule, "no")]}
    ran = desk.run("retry", UID, "--json")
    assert ran.code == code
    assert ran.envelope["error"]["rule"] == rule


def test_fewer_results_than_tasks_are_not_taken_for_done(desk: Desk):
    desk.door.replies["cancel"] = {"results": []}
    assert desk.run("cancel", UID).code == 1


def test_release_without_a_task_frees_the_node(desk: Desk):
    desk.door.replies["release"] = {"state": "active", "reason": ""}
    ran = desk.run("release", "--alone", "--reason", "restored on purpose")
    assert desk.door.requests == [
        {"do": "release", "reason": "restored on purpose", "by": "human:ada", "alone": True}
    ]
    assert ran.out == "the node is now active\n"


# --- pause, resume, drain ------------------------------------------------------------------------


def test_drain_passes_its_limits_on(desk: Desk):
    desk.door.replies["drain"] = {"state": "draining", "reason": "new disk"}
    words = "--agent iris --deadline-s 60 --then requeue --reason".split()
    ran = desk.run("drain", *words, "new disk")
    assert desk.door.requests == [
        {
            "do": "drain",
            "reason": "new disk",
            "by": "human:ada",
            "agent": "iris",
            "deadline_s": 60.0,
            "then": "requeue",
        }
    ]
    assert ran.out == "agent iris is now draining, because new disk\n"


def test_a_dry_pause_says_what_would_be(desk: Desk):
    desk.door.replies["pause"] = {"state": "paused"}
    ran = desk.run("pause", "--dry-run")
    assert desk.door.requests[0]["dry_run"] is True
    assert ran.out == "dry run, nothing changed: the node would be paused\n"


# --- heartbeat, progress, spawn ------------------------------------------------------------------


def inside(desk: Desk) -> None:
    desk.environ.update(
        AGENT_TASK_UID=UID, AGENT_TASK_ATTEMPT="2", AGENT_ATTEMPT_TOKEN="t0", AGENT_NAME="iris"
    )


def test_a_running_task_speaks_of_itself(desk: Desk):
    inside(desk)
    desk.door.replies["spawn"] = {"uid": OTHER_UID, "outcome": "added"}
    assert desk.run("heartbeat").code == 0
    assert desk.run("progress", "half done").code == 0
    ran = desk.run("spawn", "follow up", "-p", "2")

    itself = {"uid": UID, "attempt": 2, "token": "t0"}
    beat, progress, spawned = desk.door.requests
    assert beat == {"do": "heartbeat", **itself}
    assert progress == {"do": "progress", **itself, "text": "half done"}
    assert {name: spawned[name] for name in ("do", *itself)} == {"do": "spawn", **itself}
    assert spawned["task"]["parent"] == UID
    assert spawned["task"]["source"] == "agent:iris"
    assert ran.out == f"added {OTHER_UID}\n"


@pytest.mark.parametrize("command", [["heartbeat"], ["progress", "x"], ["spawn", "x"]])
@pytest.mark.parametrize("gone", ["AGENT_TASK_UID", "AGENT_TASK_ATTEMPT", "AGENT_ATTEMPT_TOKEN"])
def test_outside_a_task_they_say_so(desk: Desk, command: list[str], gone: str):
    inside(desk)
    del desk.environ[gone]
    ran = desk.run(*command)
    assert ran.code == 2
    assert ran.err.startswith("error[not_inside_a_task]")
    assert desk.door.requests == []


# --- status --------------------------------------------------------------------------------------


def test_status_is_a_count_then_lines(desk: Desk):
    desk.door.replies["status"] = {
        "node": "iris",
        "state": "paused",
        "reason": "new disk",
        "dispatcher": "running",
        "running_count": 1,
        "slots": 5,
        "pending_count": 12,
        "idle_since": None,
        "counts": {"READY": 12, "RUNNING": 1, "HELD": 0},
        "agents": [{"name": "iris", "state": "available", "slots": 5, "running": 1}],
        "doubts": [{"uid": UID, "state": "HELD", "peer": "loom", "age_s": 75.4}],
        "needs_you": ["2 parked: what became of them is not known; resolve them"],
        "disk_free_bytes": 5 * 2**30,
    }
    assert desk.run("status").out.splitlines() == [
        "iris: paused, dispatcher running, 1 of 5 slots running, 12 ready",
        "  because  new disk",
        "  NEEDS YOU  2 parked: what became of them is not known; resolve them",
        f"  doubt    {UID} HELD with loom, for 1m 15s",
        "  agent    iris available, 1 of 5 slots running, skills none, last heartbeat never",
        "  counts   READY 12, RUNNING 1",
        "  disk     5.0 GiB free",
    ]
