"""Dead letters from the operator's side: found, shown whole, and decided about."""

from __future__ import annotations

from typing import Any

from agent_node import commands as c
from tests.builders import uid
from tests.hub.cli.desk import Desk


def dies(desk: Desk, node: str, *numbers: int, kind: str = "timeout", cost: str = "0.25",
         **fields: Any) -> list[str]:  # fmt: skip
    """Tasks that failed for good on a node; their uids."""
    for number in numbers:
        desk.runs(node, number, max_attempts=1, **fields)
        store = desk.nodes.machines[node].store
        result = c.Result("failed", error_kind=kind, message="it broke \x1b[31m", cost_usd=cost,
                          duration_s=2.0)  # fmt: skip
        store.apply(c.Finish(uid(number), 1, result))
    return [uid(number) for number in numbers]


def state(desk: Desk, task: str) -> str:
    return str(desk.arc("tasks", "show", task, "--json").data["task"]["state"])


def test_without_any_it_says_so(desk: Desk) -> None:
    assert desk.arc("dead").lines == ["no dead letters"]
    assert desk.arc("dead", "list", "--json").data["dead"] == []


def test_the_list_says_of_what_they_died_and_at_what_cost(desk: Desk) -> None:
    dies(desk, "iris", 1, 2, kind="timeout")
    dies(desk, "loom", 3, kind="auth_failure", cost="1.5")
    text, data = desk.both("dead", "list")
    assert [(one["node"], one["kind"]) for one in data["dead"]] == [
        ("iris", "timeout"), ("iris", "timeout"), ("loom", "auth_failure")]
    assert (data["count"], data["total_cost_usd"]) == (3, "2.00")
    assert text.lines[-1] == "3 dead letters: 2 timeout, 1 auth_failure; 2.00 USD"


def test_filters_leave_the_others_out(desk: Desk) -> None:
    dies(desk, "iris", 1, kind="timeout", domain="research")
    dies(desk, "iris", 2, kind="crash", skills=["x"])
    dies(desk, "loom", 3, kind="crash")

    def found(*words: str) -> list[str]:
        return [one["uid"] for one in desk.arc("dead", "list", *words, "--json").data["dead"]]

    assert found("--domain", "research") == [uid(1)]
    assert found("--skill", "x") == [uid(2)]
    assert found("--kind", "crash") == [uid(2), uid(3)]
    assert found("--kind", "crash", "--node", "loom") == [uid(3)]
    assert found("--poison") == []
    assert found("--since", "1h") == [uid(1), uid(2), uid(3)]
    desk.minutes_pass(90)
    assert found("--since", "1h") == []


def test_one_is_shown_with_every_attempt(desk: Desk) -> None:
    (task,) = dies(desk, "iris", 1)
    text, data = desk.both("dead", "show", task[-6:])
    (attempt,) = data["history"]
    assert (attempt["node"], attempt["error_kind"], attempt["cost_usd"]) == (
        "iris", "timeout", "0.25")
    assert data["total_cost_usd"] == "0.25"
    assert "\x1b" not in text.out
    assert "arc dead retry" in text.out


def test_a_task_that_lives_is_no_dead_letter(desk: Desk) -> None:
    desk.waits("iris", 1)
    ran = desk.arc("dead", "retry", uid(1))
    assert (ran.code, "no dead letter's uid" in ran.err) == (5, True)


def test_a_node_that_does_not_answer_is_never_without_dead_letters(desk: Desk) -> None:
    dies(desk, "iris", 1)
    desk.nodes.switch_off("loom")
    listed = desk.arc("dead", "list", "--json")
    assert (listed.code, listed.data["unread"]) == (3, ["loom"])
    assert desk.arc("dead", "show", "ZZZZ").code == 3


def test_retry_lets_it_run_again_and_remembers_who_and_why(desk: Desk) -> None:
    (task,) = dies(desk, "iris", 1)
    dry = desk.arc("dead", "retry", task, "--dry-run")
    assert (dry.code, "nothing was changed" in dry.out) == (0, True)
    assert state(desk, task) == "DEAD_LETTERED"

    assert desk.arc("dead", "retry", task, "--reason", "disk mended").code == 0
    assert state(desk, task) == "READY"
    (line,) = desk.arc("log", "--event", "dead_retried", "--json").data["lines"]
    assert line["fields"] == {"by": "human:ada", "reason": "disk mended"}
    assert desk.arc("dead", "retry", task).code == 5


def test_by_filter_it_takes_yes_and_a_reason_and_does_all_that_fit(desk: Desk) -> None:
    """Run once without the question: a filter that was typed wrongly retried everything."""
    dies(desk, "iris", 1, 2, kind="crash")
    dies(desk, "loom", 3, kind="timeout")
    assert desk.arc("dead", "retry", "--kind", "crash", "--reason", "mended").code == 7
    assert desk.arc("dead", "retry", "--kind", "crash", "--yes").code == 7
    assert desk.arc("dead", "retry").code == 2
    dry = desk.arc("dead", "retry", "--kind", "crash", "--dry-run", "--json")
    assert len(dry.data["results"]) == 2
    done = desk.arc("dead", "retry", "--kind", "crash", "--yes", "--reason", "mended", "--json")
    assert (done.code, [one["state"] for one in done.data["results"]]) == (0, ["READY"] * 2)
    assert state(desk, uid(3)) == "DEAD_LETTERED"
    again = desk.arc("dead", "retry", "--kind", "crash", "--yes", "--reason", "mended")
    assert (again.code, again.lines) == (0, ["no dead letter fits; nothing was changed"])


def test_cancel_takes_a_reason_which_stays_with_the_task(desk: Desk) -> None:
    (task,) = dies(desk, "iris", 1)
    assert desk.arc("dead", "cancel", task).code == 7
    assert desk.arc("dead", "cancel", task, "--reason", "no use").code == 0
    assert state(desk, task) == "CANCELLED"
    assert desk.arc("dead", "list", "--json").data["dead"] == []


def test_a_review_is_kept_and_the_letter_stays_dead(desk: Desk) -> None:
    dies(desk, "iris", 1, 2)
    assert desk.arc("dead", "review", uid(1), "--note", "bad key").code == 0
    data = desk.arc("dead", "show", uid(1), "--json").data
    assert (data["reviewed"]["by"], data["reviewed"]["note"]) == ("human:ada", "bad key")
    left = desk.arc("dead", "list", "--unreviewed", "--json").data["dead"]
    assert [one["uid"] for one in left] == [uid(2)]


def test_edit_sets_fields_and_lets_it_run(desk: Desk) -> None:
    (task,) = dies(desk, "iris", 1)
    assert desk.arc("dead", "edit", task).code == 2
    assert desk.arc("dead", "edit", task, "subject=x").code == 2
    assert desk.arc("dead", "edit", task, "priority=1", "--dry-run").code == 0
    assert state(desk, task) == "DEAD_LETTERED"
    assert desk.arc("dead", "edit", task, "priority=1", "max_s=60", "--reason", "longer").code == 0
    shown = desk.arc("tasks", "show", task, "--json").data["task"]
    assert (shown["state"], shown["priority"], shown["max_s"]) == ("READY", 1, 60)


def test_a_new_body_is_a_new_task_in_the_place_of_the_dead_one(desk: Desk) -> None:
    (task,) = dies(desk, "iris", 1, skills=["x"], body="old")
    ran = desk.arc("dead", "edit", task, "--body-file", "-", "--json", stdin=b"new")
    assert ran.code == 0, ran
    added, cancelled = ran.data["results"]
    assert (added["replaces"], cancelled["uid"], cancelled["state"]) == (task, task, "CANCELLED")
    shown = desk.arc("tasks", "show", added["uid"], "--json").data
    assert shown["node"] == "inbox"
    assert (shown["task"]["body"], shown["task"]["ref"], shown["task"]["skills"]) == (
        "new", task, ["x"])


def test_needs_you_counts_them_by_kind_and_names_the_command(desk: Desk) -> None:
    dies(desk, "iris", 1, 2, kind="timeout")
    dies(desk, "iris", 3, kind="auth_failure")
    (needs,) = [one for one in desk.arc("status", "--json").data["needs_you"]
                if "dead" in one["text"]]
    assert needs["try"] == "arc dead list"
    assert needs["text"].startswith("3 dead (2 timeout, 1 auth_failure): they failed for good")
