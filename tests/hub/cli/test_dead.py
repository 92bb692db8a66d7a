"""Dead letters from the operator's side: found, shown whole, and decided about."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from agent_node import commands as c
from arc.dead_answers import Meant
from arc.errors import StateBroken
from arc.hub import Hub
from arc.operations import dead, dead_awaited
from arc.text.dead import render_letter
from arc.text.look import Look
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


def test_why_says_of_what_it_died(desk: Desk) -> None:
    """Seen to fail with the state alone told."""
    dies(desk, "iris", 1, kind="timeout")
    text, data = desk.both("why", uid(1))
    assert data["failure_reason"].startswith("timeout: it broke")
    assert text.lines[3].startswith("  because: timeout: it broke")
    assert desk.arc("dead", "retry", uid(1)).code == 0
    assert desk.arc("why", uid(1), "--json").data["failure_reason"] is None


def test_a_new_body_that_is_typed_as_a_field_is_told_where_it_goes(desk: Desk) -> None:
    dies(desk, "iris", 1)
    said = desk.arc("dead", "edit", uid(1), "body=x")
    assert (said.code, "--body-file FILE" in said.err) == (2, True)


def test_what_was_decided_of_a_dead_letter_is_found_afterwards(desk: Desk) -> None:
    """Seen to fail before: whoever cancelled it took who, when and why out of everybody's sight."""
    dies(desk, "iris", 1, 2)
    desk.arc("dead", "review", uid(1), "--note", "the key had expired")
    desk.arc("dead", "cancel", uid(1), "--reason", "no longer wanted")
    assert [one["uid"] for one in desk.arc("dead", "list", "--json").data["dead"]] == [uid(2)]
    text, data = desk.both("dead", "list", "--resolved")
    assert [(one["uid"], one["state"]) for one in data["dead"]] == [
        (uid(1), "CANCELLED"), (uid(2), "DEAD_LETTERED")]
    decided = data["dead"][0]["resolution"]
    assert (decided["what"], decided["reason"]) == ("cancelled", "no longer wanted")
    assert data["dead"][0]["reviewed"]["note"] == "the key had expired"
    assert "cancelled by human:" in text.lines[1], text.out
    assert text.lines[-1].startswith("1 dead letter and 1 that was one: "), text.out
    shown, data = desk.both("dead", "show", uid(1))
    assert data["resolution"] == decided
    assert "  was a dead letter, is CANCELLED now" in shown.lines
    assert any("no longer wanted" in line for line in shown.lines)
    assert not any("arc dead retry" in line for line in shown.lines)
    for word in ("retry", "cancel"):  # only what is dead is decided about
        assert desk.arc("dead", word, uid(1), "--reason", "x").code == 5
        assert desk.arc("dead", word, "--all", "--reason", "x", "--dry-run", "--json"
                        ).data["results"][0]["uid"] == uid(2)  # fmt: skip


def test_a_task_that_ran_after_all_is_still_known_to_have_been_dead(desk: Desk) -> None:
    dies(desk, "iris", 1)
    assert desk.arc("dead", "retry", uid(1), "--reason", "the disk is back").code == 0
    shown, data = desk.both("dead", "show", uid(1))
    assert data["resolution"]["what"] == "retried"
    assert "  was a dead letter, is READY now" in shown.lines
    assert desk.arc("dead", "list").lines == ["no dead letters"]


def test_a_dead_letter_that_completed_after_all_died_of_what_it_died_of(desk: Desk) -> None:
    """Seen to fail: `died of completed`, at the moment of its good end."""
    dies(desk, "iris", 1, kind="timeout")
    died_at = desk.arc("dead", "show", uid(1), "--json").data["died_at"]
    assert desk.arc("dead", "retry", uid(1)).code == 0
    desk.minutes_pass(1)
    store = desk.nodes.machines["iris"].store
    assert isinstance(store.apply(c.Claim("iris")), c.Claimed)
    store.apply(c.Finish(uid(1), 2, c.Result("completed")))
    (was,) = desk.arc("dead", "list", "--resolved", "--kind", "timeout", "--json").data["dead"]
    assert (was["kind"], was["died_at"], was["state"]) == ("timeout", died_at, "COMPLETED")


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


def dies_after(desk: Desk, tries: int) -> str:
    """One that failed so often before it was dead."""
    desk.runs("iris", 1, max_attempts=tries)
    store = desk.nodes.machines["iris"].store
    for n in range(1, tries + 1):
        failed = c.Result("failed", error_kind="crash", message=f"try {n}", duration_s=1.0)
        store.apply(c.Finish(uid(1), n, failed))
        if n < tries:
            desk.minutes_pass(10)
            store.apply(c.Wake())
            assert isinstance(store.apply(c.Claim("iris")), c.Claimed)
    return uid(1)


def test_attempts_beyond_the_last_hundred_are_had_page_by_page(desk: Desk) -> None:
    task = dies_after(desk, 5)

    def told(*words: str) -> tuple[list[str], object]:
        text, data = desk.both("dead", "show", task, *words)
        if data["next"] is not None:
            assert f"--after {data['next']}" in text.out
        return [one["message"] for one in data["history"]], data["next"]

    assert told("--attempts", "2") == (["try 4", "try 5"], None)
    assert told("--attempts", "2", "--after", "0") == (["try 1", "try 2"], 2)
    assert told("--attempts", "2", "--after", "2") == (["try 3", "try 4"], 4)
    assert told("--attempts", "2", "--after", "4") == (["try 5"], None)
    assert told("--after", "9") == ([], None)
    assert desk.arc("dead", "show", task, "--attempts", "1001").code == 2


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
    refused = desk.arc("dead", "edit", task, "subject=x")
    assert (refused.code, "dead edit: 'subject=x'" in refused.err) == (2, True), refused.err
    assert desk.arc("dead", "edit", task, "priority=1", "--dry-run").code == 0
    assert state(desk, task) == "DEAD_LETTERED"
    assert desk.arc("dead", "edit", task, "priority=1", "max_s=60", "--reason", "longer").code == 0
    shown = desk.arc("tasks", "show", task, "--json").data["task"]
    assert (shown["state"], shown["priority"], shown["max_s"]) == ("READY", 1, 60)


def test_what_somebody_else_retries_at_that_moment_is_not_done_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where the copy stays although the task that it stands for lives again."""
    (task,) = dies(desk, "iris", 1, body="old")
    async def then_retried(hub: Hub, meant: Meant) -> dead.Pile:
        pile = await dead.pile_of(hub, meant)
        desk.nodes.machines["iris"].store.apply(c.RetryNow(task))
        return pile

    monkeypatch.setattr("arc.operations.dead_change.pile_of", then_retried)
    ran = desk.arc("dead", "edit", task, "--body-file", "-", "--json", stdin=b"new")
    assert ran.code == 1
    _, _, copy = ran.data["results"]
    assert (copy["outcome"], copy["rule"], copy["replaces"]) == ("refused", "not_dead", task)
    assert (state(desk, task), state(desk, copy["uid"])) == ("READY", "CANCELLED")


def test_a_copy_whose_dead_one_could_not_be_told_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where the answer is that of the node that failed: nothing changed there, it says, and
    the copy, which runs, stands nowhere.
    """
    (task,) = dies(desk, "iris", 1, body="old")
    async def then_off(hub: Hub, meant: Meant) -> dead.Pile:
        pile = await dead.pile_of(hub, meant)
        desk.nodes.machines["iris"].off = True
        return pile

    with monkeypatch.context() as patch:
        patch.setattr("arc.operations.dead_change.pile_of", then_off)
        ran = desk.arc("dead", "edit", task, "--body-file", "-", "--json", stdin=b"new")
    assert ran.code == 3
    (copy,) = ran.data["results"]
    (unseen, warning) = ran.envelope["warnings"]
    assert unseen.startswith("iris did not say who waits: ")
    assert (copy["outcome"], warning.startswith(f"{copy['uid']} is in the hub's queue")) == (
        "added", True)
    desk.nodes.machines["iris"].off = False
    again = desk.arc("dead", "edit", task, "--body-file", "-", "--json", stdin=b"new")
    assert (again.code, [(one["uid"], one["outcome"]) for one in again.data["results"]]) == (
        0, [(copy["uid"], "exists"), (task, "changed")])


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


@pytest.mark.parametrize("words", [("--dry-run",), ()])
@pytest.mark.parametrize("tie", ["--after", "--context"])
def test_what_others_wait_for_keeps_its_body(
    desk: Desk, tie: str, words: tuple[str, ...]
) -> None:
    """Seen to fail: its copy ran, and what waited for it stayed cancelled without a word."""
    (dead,) = dies(desk, "iris", 1)
    what = f"task:{dead}:output" if tie == "--context" else dead
    behind = desk.arc("tasks", "add", "then this", tie, what, "--json").data["results"][0]["uid"]
    edit = ("dead", "edit", dead, "--body-file", "-", *words)
    for _ in range(2):  # before its queue was told of that end, and after it
        said = desk.arc(*edit, stdin=b"new")
        assert said.code == 2
        assert f"1 other task waits for {dead} and for no copy of it ({behind})" in said.err
        desk.arc("sensors", "run", "fleet-graphs")
    assert [one["uid"] for one in desk.arc("dead", "list", "--json").data["dead"]] == [dead]


def test_what_waits_for_it_is_seen_behind_more_cancelled_tasks_than_are_looked_at(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: both were one list, the oldest first, and whoever waits was left behind."""
    monkeypatch.setattr(dead_awaited, "PAGE", 1)
    monkeypatch.setattr(dead_awaited, "PAGES_MAX", 2)
    (dead,) = dies(desk, "iris", 1)
    for _ in range(3):
        one = desk.arc("tasks", "add", "no more", "--json").data["results"][0]["uid"]
        assert desk.arc("tasks", "cancel", one).code == 0
    edit = ("dead", "edit", dead, "--body-file", "-", "--dry-run")
    (warning,) = desk.arc(*edit, "--json", stdin=b"new").envelope["warnings"]
    assert warning == ("of inbox the first 2 cancelled tasks were looked at: what waits there for "
                       f"{dead} stays behind")  # fmt: skip
    desk.arc("tasks", "add", "then this", "--after", dead)
    said = desk.arc(*edit, stdin=b"new")
    assert (said.code, f"1 other task waits for {dead}" in said.err) == (2, True)


def test_what_waited_for_it_whatever_became_of_it_does_not_keep_its_body(desk: Desk) -> None:
    (dead,) = dies(desk, "iris", 1)
    assert desk.arc("tasks", "add", "then this", "--after", f"{dead}:run").code == 0
    desk.arc("sensors", "run", "fleet-graphs")
    ran = desk.arc("dead", "edit", dead, "--body-file", "-", "--json", stdin=b"new")
    assert (ran.code, ran.envelope["warnings"]) == (0, [])


def test_who_waits_on_a_node_that_does_not_answer_is_not_known_and_said(desk: Desk) -> None:
    (dead,) = dies(desk, "iris", 1)
    desk.nodes.switch_off("loom")
    ran = desk.arc("dead", "edit", dead, "--body-file", "-", "--json", stdin=b"new")
    (warning,) = ran.envelope["warnings"]
    assert warning.startswith("loom did not say who waits: ")
    assert warning.endswith(f"what waits there for {dead} stays behind")


def test_needs_you_counts_them_by_kind_and_names_the_command(desk: Desk) -> None:
    dies(desk, "iris", 1, 2, kind="timeout")
    dies(desk, "iris", 3, kind="auth_failure")
    (needs,) = [one for one in desk.arc("status", "--json").data["needs_you"]
                if "dead" in one["text"]]
    assert needs["try"] == "arc dead list"
    assert needs["text"].startswith("3 dead (2 timeout, 1 auth_failure): they failed for good")


def test_a_dead_letter_names_the_word_that_resolves_it_and_that_word_does(desk: Desk) -> None:
    """Seen to fail: NEEDS YOU said resolve, and `arc dead` has no such word."""
    (task,) = dies(desk, "iris", 1)
    shown = desk.arc("dead", "show", task).out
    assert f"done after all: arc tasks resolve {task} --as done" in shown
    assert desk.arc("tasks", "resolve", task, "--as", "done", "--reason", "by hand").code == 0
    assert desk.arc("dead", "list").out.startswith("no dead letters")


def test_attempts_that_are_not_told_any_more_are_said_to_be() -> None:
    """A node tells the last hundred: a list that begins at 51 must not look whole."""
    attempt: dict[str, Any] = {"n": 51, "node": "iris", "agent": "iris", "error_kind": "crash"}
    text = render_letter({"uid": uid(1), "history": [attempt]}, Look())
    assert "attempts 1 to 50 are not told here; ask with --after 0; the cost has them" in text
    text = render_letter({"uid": uid(1), "history": [attempt], "after": 40, "next": 51}, Look())
    assert "attempts 41 to 50 are not known there" in text
    assert "more: --after 51" in text
    assert f"what it wrote: arc nodes logs iris {uid(1)} --attempt 51 --stderr\n" in text
    attempt["n"] = 1
    assert "not told" not in render_letter({"uid": uid(1), "history": [attempt]}, Look())


@pytest.mark.parametrize("words", [
    ("dead", "show", "nope"), ("dead", "retry", "nope"), ("dag", "show", "nope"),
    ("tasks", "show", "nope"), ("why", "nope"), ("dead", "list", "--limit", "0"),
    ("dag", "list", "--limit", "0"), ("tasks", "list", "--limit", "0"), ("log", "--limit", "0"),
])  # fmt: skip
def test_what_nobody_could_mean_is_wrong_use_whichever_command_is_asked(
    desk: Desk, words: tuple[str, ...]
) -> None:
    """Seen to fail: no such dead letter where others said that no uid has an O; `bad_input`."""
    ran = desk.arc(*words)
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[ARC-USAGE]")


def test_a_kind_that_nothing_died_of_is_told_with_the_near_word(desk: Desk) -> None:
    """Seen to fail: a slip looked as if nothing of the kind were dead. A program may have a kind of
    its own, of which there is none any more: so it is a warning, and no error.
    """
    dies(desk, "iris", 1, kind="proxy_down")
    assert desk.arc("dead", "list", "--kind", "timeout", "--json").envelope["warnings"] == []
    assert desk.arc("dead", "list", "--kind", "proxy_down", "--json").envelope["warnings"] == []
    for words in (("list",), ("retry", "--yes", "--reason", "x")):
        ran = desk.arc("dead", *words, "--kind", "proxy-dwn")
        assert (ran.code, ran.lines[0].startswith("no dead letter")) == (0, True)
        assert "looked at died of 'proxy-dwn'; did you mean proxy_down?" in ran.err
    said = desk.arc("dead", "list", "--kind", "zzz", "--json").envelope["warnings"]
    assert said[0].endswith("looked at died of 'zzz'; known are auth_failure, "
                            "budget_exceeded, cancelled, crash, invalid_output, proxy_down, "
                            "rate_limit, stalled, timeout")


def test_a_domain_that_nobody_knows_is_told_where_nothing_fits(desk: Desk) -> None:
    """Seen to fail, of tasks that live too. A task may name any domain, so it is a warning."""
    dies(desk, "iris", 1, domain="elsewhere")
    for words in (("dead", "list"), ("tasks", "list")):
        assert desk.arc(*words, "--domain", "elsewhere", "--json").envelope["warnings"] == []
        ran = desk.arc(*words, "--domain", "reserch")
        assert (ran.code, "no domain is called reserch; did you mean research?" in ran.err) == (
            0, True)


def test_a_dead_letter_behind_all_that_is_looked_at_is_not_said_to_be_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: of a node with more than an answer looks at the newest "was no dead letter"."""
    dies(desk, "iris", 1, 2, 3)
    monkeypatch.setattr(dead, "LETTERS_MAX", 2)
    monkeypatch.setattr(dead, "PAGE", 1)
    for verb in (("show",), ("retry",), ("cancel", "--reason", "no use")):
        ran = desk.arc("dead", verb[0], uid(3), *verb[1:])
        assert ran.code == 3, ran.out
        assert "no dead letter that was looked at; iris has more than 2 dead letters" in ran.err
        assert "arc tasks show UID and arc tasks retry UID" in ran.err
    assert desk.arc("dead", "show", uid(1)).code == 0
    assert state(desk, uid(3)) == "DEAD_LETTERED"


def asks_of(desk: Desk, node: str, before: Any = None, after: Any = None) -> Any:
    """What happens at a node before it is asked, which may change the words, and once it is."""
    link, asked = desk.nodes.link(node), desk.nodes.link(node).ask

    async def around(do: str, args: Any, **more: Any) -> Any:
        said = await asked(do, before(do, args) if before else args, **more)
        if do == "retry" and not args.get("dry_run") and after:
            after()
        return said

    return patch.object(link, "ask", around)


def of_an_older_program(desk: Desk, node: str, after: Any = None) -> Any:
    """This node knows no word that keeps a retried task for its move."""
    def unknown(_do: str, args: Any) -> Any:
        return {name: value for name, value in args.items() if name != "not_here_s"}

    return asks_of(desk, node, unknown, after)


def claims(desk: Desk, node: str) -> bool:
    return isinstance(desk.nodes.machines[node].store.apply(c.Claim(node)), c.Claimed)


def test_the_node_that_failed_it_cannot_start_it_before_it_moves(desk: Desk) -> None:
    """Seen to fail: its free slot had the task again before the hub could set it aside, exit 3."""
    one, two = dies(desk, "iris", 1, 2)
    tried: list[bool] = []
    with asks_of(desk, "iris", after=lambda: tried.append(claims(desk, "iris"))):
        said = desk.arc("dead", "retry", one, two, "--to", "loom", "--yes", "--json")
    assert (said.code, tried) == (0, [False])
    assert [row["moved"] for row in said.data["results"]] == ["moved"] * 2
    assert not any("not_here_until" in row for row in said.data["results"])
    assert (claims(desk, "iris"), claims(desk, "loom")) == (False, True)


@pytest.mark.parametrize("cure", ["time", "word"])
def test_where_the_hub_ends_before_the_move_its_node_has_it_again_in_two_minutes(
    desk: Desk, cure: str
) -> None:
    """Nothing waits for a hub that does not come back, and a person need not wait at all."""
    (task,) = dies(desk, "iris", 1)
    class Dead(BaseException):
        """The hub is killed."""

    def die() -> None:
        raise Dead

    with asks_of(desk, "iris", after=die), pytest.raises(Dead):
        desk.arc("dead", "retry", task, "--to", "loom")
    assert state(desk, task) == "READY"
    held: Any = asyncio.run(desk.nodes.link("iris").ask("list", {"why": True}))["reasons"]
    assert held[task]["rule"] == "kept_for_move"
    assert "no agent here takes it: it is to run on another node" in held[task]["text"]
    why, data = desk.both("why", task)
    assert any(line.endswith(f"to run on another node; not to wait: arc tasks retry {task}")
               for line in why.lines), why.out  # fmt: skip
    assert (data["kept_here"]["rule"], "starts it itself" in why.out) == ("kept_for_move", False)
    status = asyncio.run(desk.nodes.link("iris").ask("status", {}))
    assert (status["unmet_count"], status["unmet_needs"], status["needs_you"]) == (0, [], [])
    if cure == "time":
        store = desk.nodes.machines["iris"].store
        desk.minutes_pass(2)
        store.apply(c.Wake())
        assert not claims(desk, "iris")
        desk.minutes_pass(0.1)
        store.apply(c.Wake())
    else:
        assert not claims(desk, "iris")
        assert desk.arc("tasks", "retry", task).code == 0
    assert "else iris starts it itself at once" in desk.arc("why", task).lines
    assert claims(desk, "iris")


def test_what_was_kept_for_a_move_is_free_where_it_came_to_and_where_it_comes_back(
    desk: Desk
) -> None:
    (task,) = dies(desk, "iris", 1)
    assert desk.arc("dead", "retry", task, "--to", "loom").code == 0
    assert desk.arc("tasks", "move", task, "--to", "iris").code == 0
    assert claims(desk, "iris")


def test_a_retry_may_send_them_on_to_a_healthy_node(desk: Desk) -> None:
    """Seen to fail: each came back to the node where it had died, and no word led elsewhere."""
    one, two = dies(desk, "iris", 1, 2)
    words = ("dead", "retry", one, two, "--to", "loom", "--yes", "--reason", "iris is broken")
    dry = desk.arc(*words, "--dry-run", "--json")
    assert [said["moved"] for said in dry.data["results"]] == ["would"] * 2
    assert "and would be moved to loom then" in desk.arc(*words, "--dry-run").out
    assert state(desk, one) == "DEAD_LETTERED"

    done = desk.arc(*words)
    assert (done.code, done.lines[-1]) == (0, "on loom: 2 of 2"), done
    assert done.lines[0].endswith("now on loom, moved from iris"), "not where it was"
    assert "may_start_first" not in done.out
    assert [said["node"] for said in desk.arc("tasks", "list", "--json").data["tasks"]] == (
        ["loom"] * 2)
    moved = desk.arc("log", "--event", "task_moved", "--json").data["lines"]
    assert {line["fields"]["because"] for line in moved} == {
        "moved by hand by human:ada: iris is broken"}


def test_a_node_that_may_be_faster_than_the_move_is_told_before_anything_is_done(
    desk: Desk
) -> None:
    """Seen to fail: only after the failing node had the task again was it said what keeps it off.
    A node that starts nothing is not warned of, nor one that keeps it for the move.
    """
    one, two = dies(desk, "iris", 1, 2)
    words, said = ("dead", "retry", one, two, "--to", "loom"), (
        "iris may start it first; to prevent that: arc nodes pause iris")
    dry = desk.arc(*words, "--dry-run", "--json").data
    assert (dry["may_start_first"], {"not_here_until" in row for row in dry["results"]}) == (
        [], {True})
    assert said not in desk.arc(*words, "--dry-run").lines
    with of_an_older_program(desk, "iris"):
        dry_run = desk.arc(*words, "--dry-run")
        assert dry_run.lines[-1] == said
        assert desk.arc(*words, "--dry-run", "--json").data["may_start_first"] == ["iris"]
        assert said in desk.arc(*words, typed=b"n\n").err.splitlines()
        assert [state(desk, task) for task in (one, two)] == ["DEAD_LETTERED"] * 2
        assert said not in desk.arc("dead", "retry", one, "--to", "iris", "--dry-run").lines
        desk.nodes.machines["iris"].store.apply(c.SetNode("paused", "it fails"))
        assert said not in desk.arc(*words, "--dry-run").lines
        assert said not in desk.arc(*words, typed=b"y\n").err.splitlines()


def test_a_retry_whose_move_is_refused_is_done_in_part_and_says_why(desk: Desk) -> None:
    """Seen to fail with the exit code of the retry alone: 0, and the task was where it died."""
    desk.nodes.machines["loom"].store.apply(c.SetNode("draining", "disk swap"))
    (task,) = dies(desk, "iris", 1)
    text = desk.arc("dead", "retry", task, "--to", "loom")
    assert (text.code, state(desk, task)) == (3, "READY")
    assert "now READY on iris  not moved to loom: " in text.out
    assert "; iris is not to start it before 2026-" in text.out
    assert f"Z, or once you say: arc tasks retry {task}" in text.out
    assert "on loom: 0 of 1" in text.lines
    (pinned,) = dies(desk, "spark", 3, pinned=True)
    said = desk.arc("dead", "retry", pinned, "--to", "iris", "--json")
    assert (said.code, said.data["to"]) == (3, "iris")
    (row,) = said.data["results"]
    assert (row["moved"], "--yes" in row["move_because"]) == ("kept", True)
    assert claims(desk, "spark"), "nothing of it moves, so its node may start it at once"


def test_what_its_node_starts_before_it_could_move_is_said_to_run_there(desk: Desk) -> None:
    """A node of an older program, which knows no word that keeps it."""
    (task,) = dies(desk, "iris", 1)
    tried: list[bool] = []
    with of_an_older_program(desk, "iris", lambda: tried.append(claims(desk, "iris"))):
        text = desk.arc("dead", "retry", task, "--to", "loom")
    assert (text.code, tried) == (3, [True])
    assert "is CLAIMED on iris; only waiting tasks move; arc nodes pause iris" in text.out


def test_a_move_that_the_hub_could_not_write_down_is_not_said_to_have_stayed(desk: Desk) -> None:
    """Seen to fail: `not moved to loom`, of a task that was there."""
    (task,) = dies(desk, "iris", 1)
    broken = StateBroken("the journal cannot be used")
    with patch.object(desk.hub.journal.runs, "add_moves", side_effect=broken):
        text = desk.arc("dead", "retry", task, "--to", "loom")
    assert text.code == 3
    assert "its move to loom is in doubt: the journal cannot be used" in text.out
    assert [one["node"] for one in desk.arc("tasks", "list", "--json").data["tasks"]] == ["loom"]


@pytest.mark.parametrize(("to", "code"), [("nowhere", 5), ("spark", 3)])
def test_nothing_is_retried_for_a_node_that_could_not_have_it(
    desk: Desk, to: str, code: int
) -> None:
    (task,) = dies(desk, "iris", 1)
    desk.nodes.switch_off("spark")
    said = desk.arc("dead", "retry", task, "--to", to)
    assert (said.code, state(desk, task)) == (code, "DEAD_LETTERED"), said
    assert desk.arc("dead", "cancel", task, "--to", "loom").code == 2


def test_a_retry_to_where_it_is_already_is_a_retry(desk: Desk) -> None:
    (task,) = dies(desk, "iris", 1)
    assert desk.arc("dead", "retry", task, "--to", "iris").code == 0
    assert state(desk, task) == "READY"


def test_a_move_of_what_does_not_wait_says_what_would_help(desk: Desk) -> None:
    """Seen to fail: `arc why`, which for a dead letter named no way to another node."""
    (task,) = dies(desk, "iris", 1)
    said = desk.arc("tasks", "move", task, "--to", "loom")
    assert (said.code, f"hint: arc dead retry {task} --to loom\n" in said.err) == (2, True)
    desk.runs("iris", 2, max_attempts=3)
    desk.nodes.machines["iris"].store.apply(
        c.Finish(uid(2), 1, c.Result("failed", error_kind="crash")))  # fmt: skip
    assert state(desk, uid(2)) == "RETRYING"
    said = desk.arc("tasks", "move", uid(2), "--to", "loom")
    assert f"hint: arc tasks retry {uid(2)}, which lets it wait at once; then" in said.err
    desk.runs("spark", 3)
    assert "hint: arc why " in desk.arc("tasks", "move", uid(3), "--to", "loom").err


@pytest.mark.parametrize("answer", [b"n\n", b"", b"y\n"])
def test_whoever_is_asked_about_several_is_shown_each_first(desk: Desk, answer: bytes) -> None:
    """Seen to fail: `retry all of these dead letters?` below nothing, and an error after a no."""
    one, two = dies(desk, "iris", 1, 2)
    said = desk.arc("dead", "retry", one, two, typed=answer)
    shown = said.err.splitlines()
    assert shown[0] == "retry: 2 dead letters"
    assert [line.split() for line in shown[1:3]] == [
        [f"000{n}", '"work', f'{n}"', "on", "iris"] for n in (1, 2)]  # fmt: skip
    asked = "retry all of these dead letters? [y/N] "
    if answer.startswith(b"y"):
        assert (said.code, shown[3]) == (0, asked)
    else:
        assert (said.code, shown[3]) == (7, f"{asked}nothing was changed")
        assert "error" not in said.err
    assert state(desk, one) == ("READY" if answer.startswith(b"y") else "DEAD_LETTERED")


def test_what_was_shown_as_refused_has_not_come_after_the_question(desk: Desk) -> None:
    """Seen to fail: it was said to have come later, and why it is refused was not told."""
    dies(desk, "iris", 1, 2)
    ask = desk.ask

    def refusing(around: Any, op: str, args: Any, *, timeout_s: float) -> Any:
        told: Any = ask(around, op, args, timeout_s=timeout_s)
        if args.get("dry_run"):
            told.data["results"][0]["outcome"] = "refused"
        return told

    with patch.object(desk, "ask", refusing):
        said = desk.arc("dead", "retry", "--all", "--reason", "again", typed=b"y\n")
    assert (said.lines[-1], "came after" in said.err) == ("retry: 2 of 2", False)


@pytest.mark.parametrize("verb", ["retry", "cancel", "review"])
def test_a_yes_is_about_those_that_were_shown_and_no_others(desk: Desk, verb: str) -> None:
    """Seen to fail: what died between the question and the yes was decided about unseen."""
    one, two = dies(desk, "iris", 1, 2)
    ask = desk.ask

    def meanwhile(around: Any, op: str, args: Any, *, timeout_s: float) -> Any:
        told = ask(around, op, args, timeout_s=timeout_s)
        if args.get("dry_run"):
            desk.nodes.machines["iris"].store.apply(c.Resolve(two, "done"))
            dies(desk, "loom", 3)
        return told

    with patch.object(desk, "ask", meanwhile):
        said = desk.arc("dead", verb, "--all", "--reason", "no use", typed=b"y\n")
    assert (said.code, said.lines[-1]) == (0, f"{verb}: 1 of 1")
    assert (state(desk, one) == "DEAD_LETTERED") is (verb == "review")
    assert (state(desk, two), state(desk, uid(3))) == ("COMPLETED", "DEAD_LETTERED")
    assert desk.arc("dead", "show", uid(3), "--json").data["reviewed"] is None
    assert "1 dead letter came after the question" in said.err
    assert "1 of those that were shown could not be found as dead letters any more" in said.err
