"""Claims about the commands that look: `list`, `show`, `log` and `status`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_node.cli.around import Request, Result
from agent_node.errors import Refused
from tests.node.cli.desk import OTHER_UID, UID, Desk, a_task


def test_an_empty_list_says_what_it_looked_for(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": [], "next": None}
    assert desk.run("list").out == "no tasks here\n"
    assert desk.run("list", "--state", "parked").out == "no tasks in PARKED here\n"


def test_list_passes_its_limits_on(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": [a_task()], "next": 17}
    ran = desk.run(*"list --state ready --state RUNNING --limit 1 --after 4 --match 6c1d".split())
    assert desk.door.requests == [
        {"do": "list", "limit": 1, "why": True, "states": ["READY", "RUNNING"], "after": 4,
         "match": "6C1D"}
    ]  # fmt: skip
    same = "--state READY --state RUNNING"
    assert ran.out.splitlines()[-1] == f"more: agent-node list --after 17 {same}"


@pytest.mark.parametrize("words", [["--state", "REDY"], ["--limit", "0"], ["--limit", "1001"]])
def test_a_list_nobody_could_give_is_refused_here(desk: Desk, words: list[str]) -> None:
    assert desk.run("list", *words).code == 2
    assert desk.door.requests == []


def test_list_is_not_cut_when_no_terminal_reads_along(desk: Desk) -> None:
    desk.environ["COLUMNS"] = "40"
    desk.door.replies["list"] = {"tasks": [a_task(subject="s" * 300)]}
    assert "s" * 300 in desk.run("list").out


def test_a_list_says_behind_each_subject_why_the_task_is_where_it_is(desk: Desk) -> None:
    """Seen to fail: why a task waits stood in `show` alone, one task at a time."""
    reasons = {UID: {"rule": "paused", "text": "iris is paused (\x1b[2J)"},
               OTHER_UID: {"rule": "", "text": "again at 03:46:02, attempt 2 of 3"}}  # fmt: skip
    third = "01JNXQ5B2MBBBBBBBBBBBBBBBB"
    desk.door.replies["list"] = {"tasks": [a_task(UID), a_task(OTHER_UID), a_task(third)],
                                 "reasons": reasons}  # fmt: skip
    head, *lines = desk.run("list").out.splitlines()[1:]
    at = head.index("REASON")
    assert [line[at:] for line in lines] == [
        "paused: iris is paused (\\x1b[2J)", "again at 03:46:02, attempt 2 of 3", ""
    ]  # fmt: skip
    assert desk.run("list", "--json").envelope["data"]["reasons"] == reasons
    del desk.door.replies["list"]["reasons"]  # type: ignore[union-attr]
    assert desk.run("list").code == 0, "a daemon of an earlier program does not say it"


def test_short_uids_differ_within_a_list(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": [a_task(UID), a_task(OTHER_UID)]}
    ran = desk.run("list")
    assert [line.split()[0] for line in ran.out.splitlines()[2:]] == ["w6c1d", "a6c1d"]


def test_show_tells_the_task_its_attempts_and_its_body(desk: Desk) -> None:
    desk.door.replies["show"] = {
        "task": a_task(body="line one\nline two", progress="half"),
        "attempts": [{"n": 1, "agent": "iris", "outcome": "failed", "duration_s": 95.5}],
        "moves": [],
    }
    ran = desk.run("show", UID)
    assert f"{UID} READY P8" in ran.out
    assert "attempt          1, agent iris, outcome failed, duration 1m 35s" in ran.out
    assert ran.out.endswith("line one\nline two\n")


def test_show_tells_each_change_with_its_states_who_and_why_and_how_many_it_leaves_out(
    desk: Desk,
) -> None:
    """Seen to fail where the states were not shown, and the earlier ones cut in silence."""
    event = {"at": "2026-03-10T03:45:02Z", "event": "task_cancelled", "was": "READY",
             "state": "CANCELLED", "by": "human:ada", "because": "no"}  # fmt: skip
    desk.door.replies["show"] = {"task": a_task(), "events": [event] * 15}
    ran = desk.run("show", UID)
    assert "… and 3 earlier: --json" in ran.out
    assert ran.out.count("task_cancelled READY -> CANCELLED by human:ada: no") == 12


@pytest.mark.parametrize("part", ["01jnxq5b2m7", "w6c1d", "01JNXQ5B2M7Z8K4V3T9R0W6C1"])
def test_a_part_of_a_uid_is_enough(desk: Desk, part: str) -> None:
    desk.door.replies["list"] = {"tasks": [a_task()]}
    desk.door.replies["show"] = {"task": a_task()}
    assert desk.run("show", part).code == 0
    assert desk.door.requests[0] == {"do": "list", "match": part.upper(), "limit": 20}
    assert desk.door.requests[1] == {"do": "show", "uid": UID}


def test_a_part_two_tasks_share_is_exit_2_with_the_candidates(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": [a_task(UID), a_task(OTHER_UID)]}
    ran = desk.run("cancel", "6c1d")
    assert ran.code == 2
    assert UID in ran.err
    assert OTHER_UID in ran.err
    assert [request["do"] for request in desk.door.requests] == ["list"]


def test_a_part_that_many_tasks_share_names_ten_of_them_and_says_how_many_more(desk: Desk) -> None:
    """Seen to fail: all of them were listed, and what to type stood above the screen."""
    uids = [f"01JNXQ5B2M7Z8K4V3T9R0W6C{n:02}" for n in range(20)]
    for many, more in ((12, "  … and 2 more"), (20, "  … and at least 10 more")):
        desk.door.replies["list"] = {"tasks": [a_task(one) for one in uids[:many]]}
        lines = desk.run("show", "01JNX").err.splitlines()
        assert (sum("  01JNXQ5B2M" in line for line in lines), lines[11]) == (10, more)
        assert lines[-1].endswith("give more of the uid")


def test_a_part_no_task_has_is_exit_5(desk: Desk) -> None:
    desk.door.replies["list"] = {"tasks": []}
    ran = desk.run("show", "zzzz")
    assert ran.code == 5
    assert "short ids are the last letters of a uid: give them whole" in ran.err


def test_a_part_in_the_middle_of_a_uid_is_not_enough(desk: Desk) -> None:
    """Shown once without the check on our side: a node that matches loosely then chose for us."""
    desk.door.replies["list"] = {"tasks": [a_task()]}
    assert desk.run("cancel", "8K4V").code == 5


def test_what_is_no_part_of_a_uid_is_wrong_use(desk: Desk) -> None:
    assert desk.run("show", "li%").code == 2
    assert desk.door.requests == []


# --- log ------------------------------------------------------------------------------------------


def pieces(text: str, size: int) -> Callable[[Request], Result]:
    def reply(request: Request) -> Result:
        offset = int(str(request["offset"]))
        piece = text[offset : offset + size]
        return {"text": piece, "next": offset + len(piece), "attempt": 2, "size": len(text)}

    return reply


def test_log_reads_to_the_end_and_prints_safely(desk: Desk) -> None:
    desk.door.replies["log"] = pieces("one\ntwo\x1b[2J\nthree\n", 5)
    ran = desk.run("log", UID, "--attempt", "2", "--stderr")
    assert ran.out == "one\ntwo\\x1b[2J\nthree\n"
    assert desk.door.requests[0]["attempt"] == 2
    assert desk.door.requests[0]["stream"] == "stderr"


def test_an_empty_log_says_so(desk: Desk) -> None:
    desk.door.replies["log"] = {"text": "", "next": 0}
    assert desk.run("log", UID).out == "nothing was written\n"


def test_a_program_that_wrote_only_to_stderr_is_said_to_have(desk: Desk) -> None:
    def log(request: Request) -> Result:
        size = 9 if request.get("stream") == "stderr" else 0
        return {"text": "", "next": 0, "size": size}

    desk.door.replies["log"] = log
    ran = desk.run("log", UID)
    assert (ran.out.strip(), ran.err) == ("", "nothing on stdout; 9 bytes on stderr: --stderr\n")


def test_follow_looks_once_more_after_the_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown once with the order turned round: what came just before the end was then lost."""
    written, states = ["a"], ["RUNNING", "COMPLETED"]

    def show(_: Request) -> Result:
        state = states.pop(0)
        if state == "COMPLETED":
            written.append(" tail")
        return {"task": a_task(state=state)}

    def log(request: Request) -> Result:
        return pieces("".join(written), 100)(request)

    monkeypatch.setattr("agent_node.cli.reading.FOLLOW_EVERY_S", 0.0)
    desk.door.replies["show"] = show
    desk.door.replies["log"] = log
    ran = desk.run("log", UID, "--follow")
    assert ran.code == 0
    assert ran.out == "a tail"


def test_following_a_task_that_was_only_just_claimed_waits_for_its_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = ["CLAIMED", "RUNNING", "COMPLETED"]

    def log(request: Request) -> Result:
        if len(states) == 2:
            raise Refused("not_found", "no attempt of this task has run here")
        return pieces("done", 100)(request)

    monkeypatch.setattr("agent_node.cli.reading.FOLLOW_EVERY_S", 0.0)
    desk.door.replies["show"] = lambda _: {"task": a_task(state=states.pop(0))}
    desk.door.replies["log"] = log
    ran = desk.run("log", UID, "--follow", "--json")
    assert ran.out.splitlines()[0] == '{"text": "done"}'
    assert json.loads(ran.out.splitlines()[-1])["data"] == {"uid": UID, "ended": True}


def test_a_task_that_never_ran_has_no_log_to_follow(desk: Desk) -> None:
    desk.door.replies["show"] = {"task": a_task()}
    desk.door.replies["log"] = Refused("not_found", "no attempt of this task has run here")
    assert desk.run("log", UID, "--follow").code == 5


# --- status ---------------------------------------------------------------------------------------


def test_status_is_a_count_then_lines(desk: Desk) -> None:
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
        "folders_kept": {"count": 2, "folders": []},
    }
    assert desk.run("status").out.splitlines() == [
        "iris: paused, daemon running, 1 of 5 slots running, 12 ready",
        "  because  new disk",
        "  NEEDS YOU  2 parked: what became of them is not known; resolve them",
        f"  doubt    {UID} HELD with loom, for 1m 15s",
        "  agent    iris available, 1 of 5 slots running, skills none, last heartbeat never",
        "  counts   READY 12, RUNNING 1",
        "  disk     5.0 GiB free",
        "  folders  of 2 old tasks cannot be removed: agent-node doctor",
    ]


@pytest.mark.parametrize(
    ("fields", "said", "late"),
    [
        ({}, "2026-03-10T03:43:02.000Z (passed 2m ago)", 120.0),
        ({"state": "COMPLETED", "completed_at": "2026-03-10T03:44:02.000Z"},
         "2026-03-10T03:43:02.000Z (missed by 1m)", 60.0),
        ({"state": "COMPLETED", "completed_at": "2026-03-10T03:43:02.000Z"},
         "2026-03-10T03:43:02.000Z", None),
    ],
)
def test_show_says_that_a_deadline_has_passed(
    desk: Desk, fields: dict[str, Any], said: str, late: float | None
) -> None:
    """Seen to fail: a task that missed its deadline looked like one that met it."""
    task = a_task(deadline="2026-03-10T03:43:02.000Z", **fields)
    desk.door.replies["show"] = {"task": task}
    assert f"  deadline         {said}" in desk.run("show", UID).out.splitlines()
    assert desk.run("show", UID, "--json").envelope["data"] == {"task": task, "late_s": late}


def test_show_says_who_looked_at_a_dead_letter_and_who_decided(desk: Desk) -> None:
    """Seen to fail: only --json had it."""
    desk.door.replies["show"] = {"task": a_task(state="CANCELLED"), "care": {
        "poison": True, "total_cost_usd": "0.75",
        "reviewed": {"by": "human:ada", "at": "2026-03-10T03:45:00Z", "note": "a bad\x1b disk"},
        "resolution": {"what": "cancel", "by": "human:bob", "at": "2026-03-10T04:00:00Z",
                       "reason": ""}}}  # fmt: skip
    lines = [" ".join(line.split()) for line in desk.run("show", UID).out.splitlines()]
    assert "poison it failed wherever it was tried" in lines
    assert "reviewed by human:ada 2026-03-10T03:45:00Z: a bad\\x1b disk" in lines
    assert "resolution cancel by human:bob 2026-03-10T04:00:00Z" in lines
    assert "cost in all 0.75 USD" in lines


def test_show_of_a_task_that_never_died_says_nothing_of_that(desk: Desk) -> None:
    desk.door.replies["show"] = {"task": a_task(), "care": {
        "poison": False, "reviewed": None, "resolution": None, "total_cost_usd": None}}  # fmt: skip
    out = desk.run("show", UID).out
    assert not any(word in out for word in ("poison", "reviewed", "resolution", "cost in all"))
