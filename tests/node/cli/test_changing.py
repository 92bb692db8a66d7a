"""Claims about a person's or a running task's word: on tasks, on the node, on itself."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest

from agent_node.cli.around import Result
from tests.builders import uid
from tests.node.cli.desk import CHANGED, OTHER_UID, UID, Desk, refused


def test_set_sends_each_field_in_its_type(desk: Desk) -> None:
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
def test_a_field_that_cannot_be_set_so_is_refused_here(desk: Desk, word: str) -> None:
    assert desk.run("set", UID, word).code == 2
    assert desk.door.requests == []


def test_a_field_that_always_has_a_value_cannot_be_cleared(desk: Desk) -> None:
    assert "priority: cannot be cleared" in desk.run("set", UID, "priority=").err


def test_a_field_given_twice_is_refused(desk: Desk) -> None:
    assert desk.run("set", UID, "priority=1", "priority=2").code == 2


def test_a_mistyped_field_is_suggested(desk: Desk) -> None:
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
def test_a_persons_word_carries_who_and_why(desk: Desk, words: list[str], more: Result) -> None:
    desk.door.replies[words[0]] = {"results": [CHANGED]}
    ran = desk.run(words[0], UID, *words[1:], "--reason", "no use")
    assert ran.code == 0
    assert desk.door.requests == [
        {"do": words[0], "uids": [UID], "reason": "no use", "by": "human:ada", **more}
    ]


def test_one_refused_task_of_two_is_exit_3_with_both_told(desk: Desk) -> None:
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


def test_what_was_so_before_is_told_as_no_change(desk: Desk) -> None:
    """Seen to fail before: `cancel` of a cancelled task said `changed`, as if it had done so."""
    other = {**CHANGED, "uid": OTHER_UID, "already": True}
    desk.door.replies["cancel"] = {"results": [CHANGED, other]}
    ran = desk.run("cancel", UID, OTHER_UID)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "cancel: 1 of 2 done, 1 already"
    assert ran.out.splitlines()[2].startswith("  already  ")
    told = desk.run("cancel", UID, OTHER_UID, "--json").envelope["data"]["results"]
    assert [one["outcome"] for one in told] == ["changed", "already"]


@pytest.mark.parametrize("do", ["cancel", "retry"])
def test_a_dry_run_says_what_it_would_do_and_not_what_was_done(desk: Desk, do: str) -> None:
    """Seen to fail: `cancel: 2 of 4 done`, and `changed` on the line of each task."""
    some = [CHANGED, {**CHANGED, "uid": uid(3), "outcome": "stopping"},
            {**CHANGED, "uid": uid(4), "already": True}, refused("in_transfer", "no", OTHER_UID)]
    desk.door.replies[do] = {"results": some}
    ran = desk.run(do, UID, uid(3), uid(4), OTHER_UID, "--dry-run")
    assert ran.code == 3
    head, first, second, third, last = ran.out.splitlines()
    assert head == f"dry run, nothing changed: {do}: 2 of 4 would be done, 1 already"
    assert first == f"  would be changed  {UID} READY rotate logs"
    assert second.startswith(f"  would be told to stop  {UID}")
    assert third.startswith("  already  ")
    assert last == f"  would be refused  {OTHER_UID} in_transfer: no"
    told = desk.run(do, UID, uid(3), uid(4), OTHER_UID, "--dry-run", "--json").envelope["data"]
    assert told["dry_run"] is True
    assert [one["outcome"] for one in told["results"]] == [
        "changed", "stopping", "already", "refused"]  # fmt: skip


def test_a_task_that_is_retried_before_its_time_says_that_it_waits_for_it(desk: Desk) -> None:
    """Seen to fail: `PENDING`, without a word of when and why."""
    later = "2026-03-11T00:00:00.000Z"
    task = {"uid": UID, "state": "PENDING", "subject": "x", "not_before": later, "blocked_by": []}
    desk.door.replies["retry"] = {"results": [{**CHANGED, "task": task}]}
    ran = desk.run("retry", UID, "--dry-run")
    assert f"(it waits for its time, {later}; at once with: agent-node set {UID} not_before=)" in (
        ran.out)


def test_a_task_named_twice_is_asked_for_once(desk: Desk) -> None:
    desk.door.replies["cancel"] = {"results": [CHANGED]}
    desk.run("cancel", UID, UID.lower())
    assert desk.door.requests[0]["uids"] == [UID]


@pytest.mark.parametrize(("rule", "code"), [("not_ended", 1), ("unknown_task", 5)])
def test_a_refusal_of_all_of_them_is_a_failure(desk: Desk, rule: str, code: int) -> None:
    desk.door.replies["retry"] = {"results": [refused(rule, "no")]}
    ran = desk.run("retry", UID, "--json")
    assert ran.code == code
    assert ran.envelope["error"]["rule"] == rule


def test_fewer_results_than_tasks_are_not_taken_for_done(desk: Desk) -> None:
    desk.door.replies["cancel"] = {"results": []}
    assert desk.run("cancel", UID).code == 1


def test_release_without_a_task_frees_the_node(desk: Desk) -> None:
    desk.door.replies["release"] = {"state": "active", "reason": ""}
    ran = desk.run("release", "--alone", "--reason", "restored on purpose")
    assert desk.door.requests == [
        {"do": "release", "reason": "restored on purpose", "by": "human:ada", "alone": True}
    ]
    assert ran.out == "the node is now active\n"


# --- pause, resume, drain -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "soon"])
def test_a_deadline_that_is_no_length_of_time_is_wrong_use(desk: Desk, text: str) -> None:
    """Seen to fail: `nan` was told as a fault of agent-node, and that it may have happened."""
    ran = desk.run("drain", "--deadline-s", text, "--json")
    assert (ran.code, desk.door.requests) == (2, [])
    assert ran.envelope["error"]["code"] == "usage"
    assert f"invalid seconds value: '{text}'" in ran.envelope["error"]["message"]


def test_drain_passes_its_limits_on(desk: Desk) -> None:
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


def test_a_dry_pause_says_what_would_be(desk: Desk) -> None:
    desk.door.replies["pause"] = {"state": "paused"}
    ran = desk.run("pause", "--dry-run")
    assert desk.door.requests[0]["dry_run"] is True
    assert ran.out == "dry run, nothing changed: the node would be paused\n"


@pytest.mark.parametrize("words", [[], ["--dry-run"], ["--agent", "iris"]])
def test_what_works_already_is_not_said_to_work_now(desk: Desk, words: list[str]) -> None:
    """Seen to fail: `the node is now active`, as if it had been paused."""
    desk.door.replies["resume"] = {"state": "active", "reason": "", "already": True}
    desk.door.replies["status"] = {"agents": []}
    who = "agent iris" if "--agent" in words else "the node"
    assert desk.run("resume", *words).out == f"{who} is active already; nothing was changed\n"
    desk.door.replies["resume"] = {"state": "active", "reason": "new disk in", "already": True}
    said = f"{who} is active already, because new disk in; nothing was changed\n"
    assert desk.run("resume", *words).out == said


WAS = {"state": "paused", "reason": "disk swap", "by": "human:eve", "at": "2026-03-10T03:45:00Z"}
BEGAN = "2026-03-01T00:00:00Z"
REWORDED = f"it was paused already, since {BEGAN}, last by human:eve at {WAS['at']}: disk swap"
BEFORE = f"it was paused already, last by human:eve at {WAS['at']}: disk swap"  # no more is known
EVER_SINCE = f"it was paused already, by human:eve, since {WAS['at']}: disk swap"


@pytest.mark.parametrize(("words", "reply", "said"), [
    ([], {"reason": "audit"}, f"{BEFORE}; that reason is replaced"),
    (["--dry-run"], {"reason": "audit"}, f"{BEFORE}; that reason would be replaced"),
    ([], {"reason": "disk swap", "already": True}, f"{BEFORE}; that stays as it is"),
    (["--dry-run"], {"reason": "disk swap", "already": True},
     f"{BEFORE}; that would stay as it is"),
    ([], {"reason": "audit", "was": {**WAS, "state": "draining", "by": None, "at": None}},
     "it was draining: disk swap; that is over"),
    ([], {"reason": "audit", "was": {**WAS, "reason": ""}},
     f"{BEFORE.removesuffix(': disk swap')}, without a reason"),
    ([], {"reason": "audit", "was": {**WAS, "since": WAS["at"]}},
     f"{EVER_SINCE}; that reason is replaced"),
    ([], {"reason": "audit", "was": {**WAS, "since": BEGAN}},
     f"{REWORDED}; that reason is replaced"),
    ([], {"reason": "audit", "was": {**WAS, "reason": "disk\x1b[2J swap"}},
     f"{BEFORE.replace('disk', 'disk' + chr(92) + 'x1b[2J')}; that reason is replaced"),
])  # fmt: skip
def test_a_pause_of_what_is_paused_says_what_becomes_of_the_first_word(
    desk: Desk, words: list[str], reply: dict[str, Any], said: str
) -> None:
    """Seen to fail: the first reason, and who gave it, were gone without a word."""
    desk.door.replies["pause"] = {"state": "paused", "was": WAS, **reply}
    ran = desk.run("pause", *words)
    assert ran.out.splitlines()[1:] == [said]
    data = desk.run("pause", *words, "--json").envelope["data"]
    assert data["was"] == reply.get("was", WAS)


# --- heartbeat, progress, spawn -------------------------------------------------------------------


def inside(desk: Desk) -> None:
    desk.environ.update(
        AGENT_TASK_UID=UID, AGENT_TASK_ATTEMPT="2", AGENT_ATTEMPT_TOKEN="t0", AGENT_NAME="iris"
    )


def test_a_running_task_speaks_of_itself(desk: Desk) -> None:
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


def test_a_running_task_is_warned_of_a_deadline_that_has_passed(desk: Desk) -> None:
    """Seen to fail: it was taken without a word."""
    inside(desk)
    desk.door.replies["spawn"] = {"uid": OTHER_UID, "outcome": "added"}
    ran = desk.run("spawn", "follow up", "--deadline", "2026-03-10T03:45:01Z")
    assert (ran.code, ran.out) == (0, f"added {OTHER_UID}\n")
    assert ran.err.startswith("warning: 1 task with a deadline that has passed already")
    desk.door.replies["spawn"] = {"uid": OTHER_UID, "outcome": "exists"}
    assert desk.run("spawn", "follow up", "--deadline", "2026-03-10T03:45:01Z").err == ""


def test_a_task_that_waits_for_what_it_spawned_is_told_so_in_one_line(desk: Desk) -> None:
    inside(desk)
    desk.door.replies["spawn"] = {"uid": OTHER_UID, "outcome": "added"}
    said = desk.run("spawn", "follow up", "--wait").out
    assert said.startswith(f"added {OTHER_UID}; this task waits for it")
    assert "x0a" not in said


def test_a_task_that_was_given_it_already_is_told_that_it_does_not_wait(desk: Desk) -> None:
    inside(desk)
    desk.door.replies["spawn"] = {"uid": OTHER_UID, "outcome": "exists", "waits": False}
    assert "there is nothing to wait for" in desk.run("spawn", "follow up", "--wait").out


@pytest.mark.parametrize("command", [["heartbeat"], ["progress", "x"], ["spawn", "x"]])
@pytest.mark.parametrize("gone", ["AGENT_TASK_UID", "AGENT_TASK_ATTEMPT", "AGENT_ATTEMPT_TOKEN"])
def test_outside_a_task_they_say_so(desk: Desk, command: list[str], gone: str) -> None:
    inside(desk)
    del desk.environ[gone]
    ran = desk.run(*command)
    assert ran.code == 2
    assert ran.err.startswith("error[not_inside_a_task]")
    assert desk.door.requests == []


def test_a_person_without_an_environment_is_named_as_the_machine_names_them(desk: Desk) -> None:
    """It was the user's number: human:0."""
    del desk.environ["USER"]
    desk.door.replies["cancel"] = {"results": [CHANGED]}
    desk.run("cancel", UID, "--reason", "no use")
    assert desk.door.requests[-1]["by"] == f"human:{pwd.getpwuid(os.getuid()).pw_name}"
