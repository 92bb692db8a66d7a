"""What may be spent and what was, from the operator's side; unknown is never nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent_node.budget import Money
from agent_node.clock import iso
from agent_node.strict import JsonObject
from agent_node.task import Task
from arc.allowance import set_allowance
from arc.operations.page_now import page_now
from arc.operations.why_waiting import holds_of
from arc.settings import FleetSettings
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies


def test_without_limits_it_says_so_and_what_was_heard_of_costs(desk: Desk) -> None:
    dies(desk, "iris", 1, cost="0.25")
    health = next(one for one in desk.hub.sensors if one.name == "fleet-health")
    asyncio.run(health.run(desk.hub, desk.clock.now()))
    text, data = desk.both("budget")
    assert data["scopes"] == []
    assert data["heard_today_usd"] == "0.25"
    assert {one["node"]: (one["spent_today_usd"], one["heard_today_usd"])
            for one in data["nodes"]} == {
        "iris": ("0.25", "0.25"), "loom": ("0", "0.00"), "spark": ("0", "0.00")}
    assert text.lines[0] == "no limit is set"


def test_what_was_heard_is_told_with_how_old_it_is(desk: Desk) -> None:
    """Seen to fail: a sum that may be minutes old, beside what nodes say now, and no word of it."""
    ages = {one["node"]: one["heard_s"] for one in desk.both("budget")[1]["nodes"]}
    assert ages == {"iris": None, "loom": None, "spark": None}
    desk.arc("sensors", "run", "fleet-health")
    desk.minutes_pass(3)
    text, data = desk.both("budget")
    (age,) = {one["heard_s"] for one in data["nodes"]}
    assert 180 <= age < 190
    assert next(line for line in text.lines if line.startswith("iris")).endswith("3m ago")


def test_a_file_that_is_refused_is_said_beside_the_limits_that_hold(desk: Desk) -> None:
    """Seen to fail: `no limit is set`, and not a word of the file that says one."""
    desk.hub.complaint = "line 2: budget.assume_usd should be an amount in USD"
    text = desk.arc("budget")
    assert (text.code, text.lines[0]) == (0, "no limit is set")
    assert ("fleet.yaml is refused as it stands now, so the hub runs on with what it knew, limits "
            "of money too: line 2: budget.assume_usd should be") in text.err
    assert "arc config check" in text.err
    desk.hub.complaint = ""
    assert desk.arc("budget").err == ""


def test_a_node_that_does_not_answer_is_unknown_and_not_without_a_limit(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    text, data = desk.both("budget")
    assert text.code == 3
    assert data["unread"] == ["loom"]
    assert "unknown" in text.out
    assert "where it could be seen; not loom" in text.lines[0]


def test_a_limit_is_shown_with_what_is_left(desk: Desk) -> None:
    asked: JsonObject = {"scope": "fleet", "limit_usd": "5", "urgent_overdraft": True}
    asyncio.run(desk.hub.inbox.ask("set_budget", asked))
    text, data = desk.both("budget")
    (scope,) = data["scopes"]
    assert (scope["store"], scope["scope"], scope["limit_usd"], scope["remaining_usd"]) == (
        "inbox", "fleet", "5", "5")
    assert "the fleet, a day" in text.out


def test_every_place_tells_what_the_fleets_limit_counts_and_since_when(desk: Desk) -> None:
    """Seen to fail: `SPENT 0 LEFT 1.9` above `spent today, as was heard: 1.80 USD`, and a page
    that said `$1.80 of $1.90 today`, for a limit that came in the middle of the day.
    """
    dies(desk, "iris", 1, cost="1.80")
    health = next(one for one in desk.hub.sensors if one.name == "fleet-health")
    asyncio.run(health.run(desk.hub, desk.clock.now()))
    desk.hub.settings = replace(desk.hub.settings, budget_per_day="1.9")
    asyncio.run(set_allowance(desk.hub))
    desk.arc("tasks", "add", "work", "--max-cost", "0.5")
    desk.arc("sensors", "run", "fleet-router")
    since = desk.hub.clock.now()
    text, data = desk.both("budget")
    (scope,) = data["scopes"]
    assert (scope["remaining_usd"], scope["counted_since"][:16]) == ("1.4", iso(since)[:16])
    assert ("the fleet, a day: what the hub's own queue gives out, counted since "
            f"{since:%H:%M} UTC, when the limit was set") in text.lines
    assert text.lines[1].split() == "the fleet, a day 1.90 0.00 0.50 1.40 0".split()
    assert "spent today, as was heard: 1.80 USD" in text.lines
    head = asyncio.run(page_now(desk.hub, {})).data["header"]
    assert isinstance(head, dict)
    assert (head["spent_today_usd"], head["budget_per_day_usd"]) == ("1.80", "1.9")
    assert head["fleet_day"] == {"limit_usd": "1.9", "spent_usd": "0", "reserved_usd": "0.5",
                                 "counted_usd": "0.5", "counted_since": scope["counted_since"]}


def limited(desk: Desk, usd: str | None) -> None:
    """What fleet.yaml says from now on, as a hub that runs follows it; then a minute passes."""
    desk.hub.settings = replace(desk.hub.settings, budget_per_day=usd)
    asyncio.run(set_allowance(desk.hub))
    desk.minutes_pass(1)


def told(desk: Desk) -> tuple[str, str]:
    """Since when the fleet's day is counted, and the line that says so."""
    (day,) = desk.arc("budget", "--json").data["scopes"]
    (line,) = [one for one in desk.arc("budget").lines if "counted since" in one]
    return str(day["counted_since"]), line.partition("counted since ")[2]


def test_a_limit_in_the_place_of_another_goes_on_with_the_days_books(desk: Desk) -> None:
    """Seen to fail where every word begins the count: a limit that is raised would say that what
    was spent before did not count. One that comes back the same day goes on with them, too: seen to
    fail, with `counted since 08:13` above what was spent from 08:07 on.
    """
    begun = desk.hub.clock.now()
    limited(desk, "1")
    first, line = told(desk)
    limited(desk, "2")
    assert (told(desk), first[:16]) == ((first, line), iso(begun)[:16])
    assert line == f"{begun:%H:%M} UTC, when the limit was set"
    gone = desk.hub.clock.now()
    limited(desk, None)
    assert desk.arc("budget", "--json").data["scopes"] == []
    back = desk.hub.clock.now()
    limited(desk, "2")
    (day,) = desk.arc("budget", "--json").data["scopes"]
    assert [[str(at)[:16] for at in gap.values()] for gap in day["not_counted"]] == [
        [iso(gone)[:16], iso(back)[:16]]]  # fmt: skip
    between = f"{gone:%H:%M} to {back:%H:%M} UTC"
    assert told(desk) == (first, f"{line}; not counted while no limit was set, {between}")
    desk.minutes_pass(24 * 60)
    assert (told(desk)[0][11:], told(desk)[1]) == ("00:00:00.000Z", "midnight UTC")
    limited(desk, None)
    desk.minutes_pass(24 * 60)
    another = desk.hub.clock.now()
    limited(desk, "2")
    assert told(desk)[1] == f"{another:%H:%M} UTC, when the limit was set", "books of a new day"


def test_no_moment_is_told_that_a_clock_or_an_older_hub_did_not_keep(desk: Desk) -> None:
    """Seen to fail: `counted since` a moment that is still to come."""
    work, now = desk.hub.journal.work, desk.hub.clock.now()
    limited(desk, "1")
    ahead = now + timedelta(minutes=30)
    work.begin("budget", "fleet", "('1', False)", ahead, because=f"{iso(ahead)}/{iso(ahead)}")
    assert told(desk)[1] == "midnight UTC; not counted while no limit was set"
    work.begin("budget", "fleet", "(None, False)", now)
    back = desk.hub.clock.now()
    limited(desk, "2")
    said = (f"{now:%H:%M} UTC, when the limit was set; not counted while no limit was set, until "
            f"{back:%H:%M} UTC")  # fmt: skip
    assert told(desk) == (iso(now), said)


DEAR = b"""\
title: dear
budget_usd: 5
tasks:
  fetch: {subject: fetch it}
  build: {subject: build it, max_cost_usd: 10}
"""


def a_dear_graph(desk: Desk) -> tuple[str, str]:
    """A graph with less money than one of its tasks asks for, which the router met; both uids."""
    ran = desk.arc("dag", "submit", "-", "--json", stdin=DEAR)
    (build,) = (uid for uid, name in ran.data["names"].items() if name == "build")
    desk.arc("sensors", "run", "fleet-router")
    return ran.data["dag"], build


def test_a_task_that_its_graph_cannot_pay_for_names_the_way_out(desk: Desk) -> None:
    """Seen to fail: the sums alone were told, and nothing at all raised the limit of a graph."""
    dag, build = a_dear_graph(desk)
    command = f"arc dag budget {dag} 10"
    text, data = desk.both("why", build)
    assert data["verdict"] == "CHANGE"
    assert data["by_hand"][0] == command
    assert f"it never starts with that, but with: {command}" in data["result"]
    assert f"  {command}" in text.lines
    assert command in desk.arc("tasks", "list", "--state", "PENDING").out
    assert command in desk.arc("tasks", "show", build).out
    assert f"1 task held back by graph {dag}: arc dag budget {dag} USD" in desk.arc("budget").lines
    assert "arc budget" in desk.arc("status").out


def test_a_graph_is_allowed_more_and_what_waited_for_it_goes_on(desk: Desk) -> None:
    dag, build = a_dear_graph(desk)
    dry = desk.arc("dag", "budget", dag[-6:], "10", "--dry-run")
    assert (dry.code, "would be allowed 10 USD, is allowed 5 USD" in dry.out) == (0, True), dry.out
    assert dry.out.endswith("(dry run: nothing was changed)\n"), "as of every other command"
    assert desk.arc("tasks", "show", build, "--json").data["task"]["state"] == "PENDING"
    ran = desk.arc("dag", "budget", dag[-6:], "10")
    assert ran.code == 0, ran.err
    assert ran.out.endswith("1 task READY again\n"), ran.out
    assert desk.arc("tasks", "show", build, "--json").data["task"]["state"] == "READY"
    assert "of 10 USD" in desk.arc("dag", "show", dag).out
    again = desk.arc("dag", "budget", build, "none", "--json").data
    assert (again["dag"], again["was_usd"], again["limit_usd"]) == (dag, "10", None)
    assert desk.arc("budget").lines[0] == "no limit is set"
    assert "of " not in desk.arc("dag", "show", dag).out.partition("money:")[2].partition("\n")[0]


def test_urgent_tasks_of_a_graph_may_go_on_beyond_its_budget(desk: Desk) -> None:
    """By a field of its document, or a person's word, which stays until it is said otherwise."""
    raw = DEAR.replace(b"tasks:", b"urgent_overdraft: true\npriority: 4\ntasks:")
    ran = desk.arc("dag", "submit", "-", "--json", stdin=raw)
    assert (ran.code, ran.envelope["warnings"]) == (0, []), "it starts all the same"
    dag = ran.data["dag"]
    scopes = desk.arc("budget", "--json").data["scopes"]
    assert [one["urgent_overdraft"] for one in scopes if one["scope"] == f"dag:{dag}"] == [True]

    def says(*words: str) -> tuple[str, bool]:
        told = desk.arc("dag", "budget", dag, *words)
        assert told.code == 0, told.err
        (line,) = told.lines
        return line.partition("allowed ")[2].partition(", was")[0], urgent()

    def urgent() -> bool:
        scopes = desk.arc("budget", "--json").data["scopes"]
        return any(one["urgent_overdraft"] for one in scopes if one["scope"] == f"dag:{dag}")

    assert says("6") == ("6 USD, P1 to P4 beyond it", True)
    assert says("6", "--no-urgent-overdraft") == ("6 USD", False)
    assert says("7") == ("7 USD", False)
    assert says("7", "--urgent-overdraft") == ("7 USD, P1 to P4 beyond it", True)
    assert says("none") == ("any sum", False)


@pytest.mark.parametrize("lie", [
    {"scope": "dag:$(reboot)"}, {"enough_usd": "1; reboot"}, {"enough_usd": 7}, {"scope": "hub"},
])  # fmt: skip
def test_what_a_node_says_of_money_is_a_command_only_where_it_could_be_one(
    lie: JsonObject
) -> None:
    """Seen to fail without the look at the graph's uid, and without that at the sum."""
    held: JsonObject = {"rule": "over_budget", "text": "5 of 5 USD", "scope": f"dag:{uid(1)}",
                        "enough_usd": "10", "comes_back": False}  # fmt: skip
    (true,), (false,) = (holds_of(replace(Task(uid=uid(2), subject="x"), blocked_by=[one]))
                         for one in (held, {**held, **lie}))  # fmt: skip
    assert (true.try_, true.for_good) == (f"arc dag budget {uid(1)} 10", True)
    assert (false.try_, false.for_good, false.because) == ("", False, true.because)


def test_a_sum_that_is_none_and_a_task_without_a_graph_change_nothing(desk: Desk) -> None:
    dag, _ = a_dear_graph(desk)
    (task,) = desk.waits("loom", 5)
    assert desk.arc("dag", "budget", dag, "ten").code == 2
    assert desk.arc("dag", "budget", task, "10").code == 2
    assert desk.arc("dag", "budget", "0404040404", "10").code == 5
    assert "of 5 USD" in desk.arc("dag", "show", dag).out


def test_a_graph_that_cannot_pay_for_a_task_is_warned_of_as_it_is_handed_in(desk: Desk) -> None:
    for words in (("--dry-run",), ()):
        ran = desk.arc("dag", "submit", "-", *words, stdin=DEAR)
        assert ran.code == 0
        assert ("task build may cost more than the 5 USD of the whole graph, and never starts with "
                "that: raise its budget_usd (10 is enough for all once), or say ") in ran.err
    assert ran.err.strip().endswith(" 10")
    typed = ran.err.strip().rpartition("or say arc ")[2].split()
    assert desk.arc(*typed).code == 0, "what it says to type is typed as it stands"
    fits = DEAR.replace(b"max_cost_usd: 10", b"max_cost_usd: 5")
    assert desk.arc("dag", "submit", "-", stdin=fits).err == ""


def a_day_has(desk: Desk, usd: str) -> None:
    """What the hub does by itself when it reads fleet.yaml, which a desk does not."""
    desk.hub.settings = replace(desk.hub.settings, budget_per_day=usd)
    asked: JsonObject = {"scope": "fleet", "limit_usd": usd}
    asyncio.run(desk.hub.inbox.ask("set_budget", asked))


def test_a_task_that_no_whole_day_pays_for_says_so_and_which_key_does(desk: Desk) -> None:
    """Seen to fail: `WAIT`, until a midnight that brings no more than the limit."""
    a_day_has(desk, "1")
    (small, dear) = (desk.arc("tasks", "add", "work", "--max-cost", usd, "--json").data["results"]
                     for usd in ("0.5", "5"))  # fmt: skip
    desk.arc("sensors", "run", "fleet-router")
    key = 'budget.per_day: "5.5" in fleet.yaml'
    text, data = desk.both("why", dear[0]["uid"])
    assert (data["verdict"], data["by_hand"][0]) == ("CHANGE", key), small
    assert f"it never starts with that, but with: {key}; or cancel it" in data["result"]
    assert f"0.5 reserved at {desk.hub.clock.now():%Y-%m-%dT%H:}" in data["result"]
    assert key in text.out
    assert "1 wait for money (over_budget) and never start before their limit is raised" in (
        desk.arc("status").out)
    held = '1 task held back by the fleet, a day: budget.per_day: "USD" in fleet.yaml'
    assert held in desk.arc("budget").lines
    a_day_has(desk, "5.5")
    assert desk.arc("tasks", "show", dear[0]["uid"], "--json").data["task"]["state"] == "READY"


def test_what_another_day_pays_for_waits_and_names_the_key_too(desk: Desk) -> None:
    a_day_has(desk, "1")
    for usd in ("0.5", "1"):
        last = desk.arc("tasks", "add", "work", "--max-cost", usd, "--json").data["results"][0]
    desk.arc("sensors", "run", "fleet-router")
    _, data = desk.both("why", last["uid"])
    assert (data["verdict"] == "CHANGE", "never starts" in data["result"]) == (False, False)
    assert data["by_hand"][0] == 'budget.per_day: "1.5" in fleet.yaml'
    assert "raise a limit, or wait for midnight UTC" in desk.arc("status").out


def test_the_sum_that_is_advised_lets_this_very_task_go(desk: Desk) -> None:
    """Seen to fail: each of four tasks said `budget.per_day: "4.4"`, of the moment when it was set
    aside; with that one of them went, and the three others went on to advise it.
    """
    a_day_has(desk, "3.4")
    ran = [desk.arc("tasks", "add", f"work {n}", "--max-cost", "1.1", "--json") for n in range(7)]
    held = [one.data["results"][0]["uid"] for one in ran]
    desk.arc("sensors", "run", "fleet-router")
    going = [uid for uid in held if state_of(desk, uid) != "PENDING"]
    left = [uid for uid in held if uid not in going]

    def sums() -> list[str]:
        advised = [desk.arc("why", uid, "--json").data["by_hand"][0] for uid in left]
        return [one.partition('"')[2].partition('"')[0] for one in advised]

    assert (len(going), sums()) == (3, ["4.4", "5.5", "6.6", "7.7"])
    a_day_has(desk, "4.4")
    desk.arc("sensors", "run", "fleet-router")
    going.append(left.pop(0))
    assert (state_of(desk, going[-1]) != "PENDING", sums()) == (True, ["5.5", "6.6", "7.7"])
    said = desk.arc("why", left[-1], "--json").data["result"]
    assert "4.4 reserved" in said
    assert "this asks for 1.1, what waits before it for 2.2" in said
    assert "what waits before it" in desk.arc("tasks", "show", left[-1]).out
    a_day_has(desk, sums()[-1])
    desk.arc("sensors", "run", "fleet-router")
    assert [state_of(desk, uid) for uid in left].count("PENDING") == 0


def state_of(desk: Desk, uid: str) -> str:
    return str(desk.arc("tasks", "show", uid, "--json").data["task"]["state"])


def test_a_task_that_no_whole_day_pays_for_is_warned_of_as_it_is_added(
    desk: Desk, tmp_path: Path
) -> None:
    """Seen to fail: it was added without a word. A limit that is not known is not warned of."""
    add = ("tasks", "add", "work", "--max-cost", "5")
    assert "may cost more" not in desk.arc(*add).err
    a_day_has(desk, "1")
    said = ("1 task may cost more than the fleet has for a whole day, 1 USD: such a task never "
            'starts with that, but with a smaller max cost, or with: budget.per_day: "5" in '
            "fleet.yaml")  # fmt: skip
    for words in ((), ("--dry-run",)):
        ran = desk.arc(*add, *words)
        assert (ran.code, said in ran.err) == (0, True), ran.err
    lines = tmp_path / "tasks.jsonl"
    lines.write_text('{"subject": "one", "max_cost_usd": "2"}\n'
                     '{"subject": "two", "max_cost_usd": "7"}\n{"subject": "three"}\n')
    ran = desk.arc("tasks", "import", str(lines))
    assert (ran.code, '2 tasks ("one" and 1 more) may cost' in ran.err) == (0, True), ran.err
    assert 'budget.per_day: "7"' in ran.err
    assert "may cost more" not in desk.arc("tasks", "add", "work", "--max-cost", "1").err
    assert "than the fleet has for a whole day" in desk.arc("dag", "submit", "-", stdin=DEAR).err
    once = (*add, "--key", "once")
    assert said in desk.arc(*once).err
    assert "may cost more" not in desk.arc(*once).err  # it was added before, with that warning
    urgent = (*add, "-p", "4")
    assert said in desk.arc(*urgent).err
    settings: FleetSettings = replace(desk.hub.settings, urgent_overdraft=True)
    desk.hub.settings = settings
    assert "may cost more" not in desk.arc(*urgent).err


def test_of_a_task_for_a_node_that_nodes_limit_counts(desk: Desk) -> None:
    """Seen to fail: it was added without a word, and waited for every midnight in turn."""
    a_day_has(desk, "1")
    desk.nodes.machines["iris"].store.spend_within(Money("3"))
    add = ("tasks", "add", "work", "--to")
    ran = desk.arc(*add, "iris", "--max-cost", "5", "--json")
    key = 'budget_usd = "5" in node.toml, and its daemon restarted'
    (said,) = (one for one in ran.envelope["warnings"] if "may cost" in one)
    assert (ran.code, "than iris has for a whole day, 3 USD" in said, key in said) == (
        0, True, True), said
    assert "may cost more" not in desk.arc(*add, "iris", "--max-cost", "3").err
    assert "may cost more" not in desk.arc(*add, "loom", "--max-cost", "5").err


def test_a_limit_that_is_no_money_makes_no_error_of_what_was_added(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the task was there, and the answer was an error."""
    link = desk.hub.links["iris"]
    ask = link.ask

    async def odd(do: str, *args: object, **more: object) -> object:
        if do == "budget":
            return {"scopes": [{"scope": "node", "limit_usd": "lots"}]}
        return await ask(do, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(link, "ask", odd)
    ran = desk.arc("tasks", "add", "work", "--to", "iris", "--max-cost", "5")
    assert (ran.code, "may cost more" in ran.err) == (0, False), ran.err
