"""`arc nodes pause` and `arc pause` of what is paused already say so, and the log keeps both."""

from __future__ import annotations

import asyncio

import pytest

from agent_node import commands as c
from agent_node.clock import parse_iso
from agent_node.stood import stood_before
from agent_node.strict import JsonObject
from arc.journal_words import Word
from arc.owing import tell_owed
from arc.stood import word_before
from tests.hub.cli.desk import Desk
from tests.hub_nodes import twisted

AT = "2026-03-10T03:45:00.000Z"
ALREADY = f"it was paused already, by human:ada, since {AT}"


def log(desk: Desk, event: str) -> list[dict[str, str]]:
    lines = desk.arc("log", "--event", event, "--json").data["lines"]
    return [one["fields"] for one in lines]


def reason(desk: Desk, node: str) -> str:
    return str(desk.arc("nodes", "show", node, "--json").data["reason"])


def bob(desk: Desk) -> None:
    """Another person sits at the desk from now on."""
    desk.environ["USER"] = "bob"


def test_a_second_pause_of_a_node_says_who_paused_it_and_that_the_reason_is_replaced(
    desk: Desk
) -> None:
    """Seen to fail: `loom is paused: audit`, and the first reason was nowhere."""
    desk.arc("nodes", "pause", "loom", "--reason", "disk swap")
    bob(desk)
    would = desk.arc("nodes", "pause", "loom", "--reason", "audit", "--dry-run")
    assert "disk swap; that reason would be replaced" in would.out
    again = desk.arc("nodes", "pause", "loom", "--reason", "audit")
    assert again.lines == [
        "loom is paused: audit",
        f"{ALREADY}: disk swap; that reason is replaced",
    ]
    assert reason(desk, "loom") == "audit"
    first, second = log(desk, "node_paused")
    assert (first["reason"], first["by"]) == ("disk swap", "human:ada")
    assert (second["reason"], second["by"]) == ("audit", "human:bob")
    assert (second["was_reason"], second["was_by"]) == ("disk swap", "human:ada")


def test_a_second_pause_without_a_reason_leaves_the_first_one(desk: Desk) -> None:
    desk.arc("nodes", "pause", "loom", "--reason", "disk swap")
    bob(desk)
    text, data = desk.both("nodes", "pause", "loom")
    assert text.lines[0] == "loom is paused: disk swap"
    assert text.lines[1].endswith("disk swap; that stays as it is")
    assert (data["already"], data["reason"]) == (True, "disk swap")
    assert data["was"] == {
        "state": "paused", "reason": "disk swap", "by": "human:ada", "at": AT, "since": AT}


def test_the_log_has_the_reason_that_stands_when_a_second_word_comes_without_one(
    desk: Desk
) -> None:
    """Seen to fail: `was_reason=disk swap` and no `reason`, as if it were gone."""
    desk.arc("nodes", "pause", "loom", "--reason", "disk swap")
    bob(desk)
    desk.arc("nodes", "pause", "loom")
    again = log(desk, "node_paused")[-1]
    assert (again["by"], again["reason"], again["was_reason"]) == (
        "human:bob", "disk swap", "disk swap")
    desk.arc("nodes", "drain", "loom")
    assert log(desk, "node_draining")[-1]["reason"] == reason(desk, "loom") == ""
    desk.arc("pause", "--reason", "audit")
    desk.arc("pause")
    assert [one["reason"] for one in log(desk, "fleet_paused")] == ["audit", "audit"]


@pytest.mark.parametrize("agent", [(), ("--agent", "loom")], ids=["node", "agent"])
def test_a_node_that_is_resumed_twice_is_said_to_have_worked_already(
    desk: Desk, agent: tuple[str, ...]
) -> None:
    """Seen to fail: `loom is active`, both times."""
    who = "loom, agent loom" if agent else "loom"
    desk.arc("nodes", "pause", "loom", "--reason", "disk swap", *agent)
    first = desk.arc("nodes", "resume", "loom", *agent)
    assert first.lines == [f"{who} is active"]
    text, data = desk.both("nodes", "resume", "loom", *agent)
    assert text.lines == [f"{who} is active already"]
    assert (data["already"], "was" in data) == (True, False)
    would = desk.arc("nodes", "resume", "loom", "--dry-run", *agent)
    assert would.lines == [f"{who} is active already (dry run: nothing was changed)"]


def test_since_when_is_not_guessed_where_the_log_tells_it_no_more() -> None:
    """Seen to fail: after 30 days the last reason's time stood as that from which on it was so."""
    word = Word("", "audit", "human:bob", parse_iso(AT))
    was = word_before(word, "paused", since=None)
    assert was["was"] == {"state": "paused", "reason": "audit", "by": "human:bob", "at": AT,
                          "since": None}  # fmt: skip
    said = stood_before({"state": "paused", "already": True, **was}, dry_run=False)
    assert said == f"it was paused already, last by human:bob at {AT}: audit; that stays as it is"


@pytest.mark.parametrize("of", [("nodes", "pause", "loom"),
                                ("nodes", "pause", "loom", "--agent", "loom"), ("pause",)],
                         ids=["node", "agent", "fleet"])  # fmt: skip
def test_since_when_it_is_paused_outlives_another_reason(desk: Desk, of: tuple[str, ...]) -> None:
    """Seen to fail: the second reason's time stood as that from which on it was paused."""
    desk.arc(*of, "--reason", "disk swap")
    bob(desk)
    desk.minutes_pass(5)
    desk.arc(*of, "--reason", "audit")
    desk.minutes_pass(5)
    third = desk.arc(*of, "--reason", "power cut").out
    later = AT.replace("03:45", "03:50")
    assert f"it was paused already, since {AT}, last by human:bob at {later}: audit;" in third
    desk.arc(*("resume" if word == "pause" else word for word in of))
    desk.minutes_pass(5)
    desk.arc(*of, "--reason", "disk swap")
    assert desk.arc(*of, "--json").data["was"]["since"] == AT.replace("03:45", "04:00")


def test_the_log_keeps_a_reason_that_only_the_node_was_told(desk: Desk) -> None:
    """Said at the machine itself: the hub's log had never heard of it."""
    store = desk.nodes.machines["loom"].store
    store.apply(c.SetNode("paused", "new fan", c.Sender(by="human:eve")))
    desk.arc("nodes", "drain", "loom", "--reason", "off tonight")
    (line,) = log(desk, "node_draining")
    assert (line["was_state"], line["was_by"], line["was_reason"]) == (
        "paused", "human:eve", "new fan")


def test_an_older_node_says_nothing_of_what_was_and_is_paused_all_the_same(desk: Desk) -> None:
    def of_old(do: str, said: JsonObject) -> JsonObject:
        return {name: one for name, one in said.items() if name not in {"was", "already"}}

    desk.arc("status")
    desk.hub.links["loom"] = twisted(desk.hub.links["loom"], of_old)
    for _ in range(2):
        assert desk.arc("nodes", "pause", "loom", "--reason", "audit").lines == [
            "loom is paused: audit"]


# --- The whole fleet ------------------------------------------------------------------------------


def word(desk: Desk) -> tuple[str, str, str]:
    said = desk.arc("status", "--json").data["hub"]["paused"]
    return said["by"], said["reason"], said["at"]


def test_a_second_pause_of_the_fleet_says_who_paused_it_and_that_the_reason_is_replaced(
    desk: Desk
) -> None:
    """Seen to fail: `3 nodes told`, and the first reason stood nowhere but in the log."""
    desk.arc("pause", "--reason", "audit")
    bob(desk)
    desk.minutes_pass(1)
    would = desk.arc("pause", "--reason", "power cut", "--dry-run").lines
    assert would[1].endswith("audit; that reason would be replaced")
    assert word(desk) == ("human:ada", "audit", AT)
    again = desk.arc("pause", "--reason", "power cut")
    assert again.lines == [
        "3 nodes told",
        f"the fleet: {ALREADY}: audit; that reason is replaced",
        "  iris is paused", "  loom is paused", "  spark is paused",
    ]  # fmt: skip
    assert word(desk)[:2] == ("human:bob", "power cut")
    second = log(desk, "fleet_paused")[-1]
    assert (second["reason"], second["was_reason"], second["was_by"]) == (
        "power cut", "audit", "human:ada")


def test_a_second_pause_of_the_fleet_without_a_reason_leaves_the_first_word(desk: Desk) -> None:
    """Seen to fail: the fleet was paused by another one, for no reason."""
    desk.arc("pause", "--reason", "audit")
    bob(desk)
    desk.minutes_pass(1)
    text, data = desk.both("pause")
    assert text.lines[1].endswith("audit; that stays as it is")
    assert (data["already"], data["reason"], data["was"]["by"]) == (True, "audit", "human:ada")
    assert word(desk) == ("human:ada", "audit", AT)
    assert {reason(desk, node) for node in ("iris", "loom", "spark")} == {"audit"}


def kept(desk: Desk, word: str) -> dict[str, str]:
    nodes = desk.arc(word, "--json").data["nodes"]
    return {one["node"]: one["state"] for one in nodes if one.get("kept")}


def states(desk: Desk) -> tuple[str, ...]:
    """What iris, loom and spark are."""
    nodes = {one["node"]: one["state"] for one in desk.arc("nodes", "--json").data["nodes"]}
    return tuple(nodes[name] for name in ("iris", "loom", "spark"))


def test_a_drain_and_a_pause_of_one_node_outlive_a_pause_of_the_fleet(desk: Desk) -> None:
    """Seen to fail: both were active, and the machine that was being emptied took work again."""
    desk.arc("nodes", "drain", "loom", "--reason", "disk swap")
    desk.arc("nodes", "pause", "iris")
    would = desk.arc("pause", "--dry-run").lines
    assert would[0] == "1 node would be told (dry run: nothing was changed)"
    paused = desk.arc("pause")
    assert paused.lines == [
        "1 node told",
        "  iris was paused already; that stays, also after arc resume",
        "  loom drains already: disk swap; that stays, also after arc resume",
        "  spark is paused",
    ]  # fmt: skip
    assert kept(desk, "pause") == {"iris": "paused", "loom": "draining"}  # and again
    assert states(desk) == ("paused", "drained", "paused")
    assert "iris stays paused" in desk.arc("resume", "--dry-run").out
    resumed = desk.arc("resume")
    assert (resumed.code, resumed.lines) == (0, [
        "1 node told",
        "  iris stays paused; that was said to it alone: arc nodes resume iris",
        "  loom stays draining: disk swap; that was said to it alone: arc nodes resume loom",
        "  spark is active",
    ])  # fmt: skip
    assert kept(desk, "resume") == {"iris": "paused", "loom": "draining"}  # and again
    assert states(desk) == ("paused", "drained", "idle")
    desk.arc("nodes", "resume", "iris")
    desk.arc("pause")
    desk.arc("resume")
    assert states(desk) == ("idle", "drained", "idle")


def test_a_word_to_one_node_while_the_fleet_is_paused_outlives_that_pause(desk: Desk) -> None:
    desk.arc("pause", "--reason", "audit")
    desk.arc("nodes", "drain", "loom", "--yes")
    desk.arc("nodes", "pause", "iris", "--reason", "disk swap")
    desk.arc("pause", "--reason", "power cut")
    assert reason(desk, "iris") == "disk swap"
    assert kept(desk, "resume") == {"iris": "paused", "loom": "draining"}
    assert states(desk) == ("paused", "drained", "idle")


def test_a_drain_that_was_said_at_the_machine_itself_outlives_the_fleets_pause(
    desk: Desk
) -> None:
    store = desk.nodes.machines["loom"].store
    desk.arc("pause")
    store.apply(c.SetNode("draining", "new fan", c.Sender(by="human:eve")))
    assert kept(desk, "resume") == {"loom": "draining"}


@pytest.mark.parametrize("why", ["", "new fan"])
def test_a_pause_that_was_said_at_the_machine_itself_outlives_the_fleets_pause(
    desk: Desk, why: str
) -> None:
    """Seen to fail: it worked again with the fleet, while somebody had its case open."""
    store = desk.nodes.machines["loom"].store
    desk.arc("pause", "--reason", "audit")
    store.apply(c.SetNode("paused", why, c.Sender(by="human:eve")))
    assert kept(desk, "pause") == {"loom": "paused"}
    assert reason(desk, "loom") == (why or "audit")
    assert kept(desk, "resume") == {"loom": "paused"}
    assert states(desk) == ("idle", "paused", "idle")
    store.apply(c.SetNode("active", "", c.Sender(by="human:eve")))
    desk.arc("pause")
    assert kept(desk, "resume") == {}


def test_a_node_with_a_word_of_its_own_that_was_away_keeps_it(desk: Desk) -> None:
    """Seen to fail: told of the pause when it was back, it was resumed with all others."""
    desk.arc("nodes", "pause", "loom", "--reason", "disk swap")
    desk.nodes.switch_off("loom")
    desk.arc("pause", "--reason", "audit")
    desk.nodes.switch_on("loom")
    desk.arc("nodes", "show", "loom")
    assert asyncio.run(tell_owed(desk.hub)) == 1
    assert reason(desk, "loom") == "disk swap"
    desk.nodes.switch_off("loom")
    assert desk.arc("resume").code == 3
    desk.nodes.switch_on("loom")
    desk.arc("nodes", "show", "loom")
    assert asyncio.run(tell_owed(desk.hub)) == 1
    assert states(desk) == ("idle", "paused", "idle")


def test_a_node_that_missed_the_resume_is_resumed_with_the_next_one(desk: Desk) -> None:
    """Fails where whoever is paused before the fleet counts as paused by a word of its own."""
    desk.arc("pause")
    desk.nodes.switch_off("loom")
    assert desk.arc("resume").code == 3
    desk.nodes.switch_on("loom")
    assert kept(desk, "pause") == {}
    assert kept(desk, "resume") == {}
    assert states(desk) == ("idle", "idle", "idle")


def test_a_node_that_an_older_hub_paused_with_the_fleet_is_resumed_with_it(desk: Desk) -> None:
    """Fails where only what was noted counts: the fleet sleeps on behind an upgrade."""
    desk.arc("pause")
    for name in ("iris", "loom", "spark"):
        desk.hub.journal.words.say_whose(name, None)
    assert kept(desk, "pause") == {}
    for name in ("iris", "loom", "spark"):
        desk.hub.journal.words.say_whose(name, None)
    assert kept(desk, "resume") == {}
    assert states(desk) == ("idle", "idle", "idle")


def test_a_word_that_changed_nothing_on_a_node_is_no_line_about_that_node(desk: Desk) -> None:
    """Seen to fail without the look at `already`: a line a node for each repeat."""
    for _ in range(2):
        desk.arc("pause", "--reason", "audit")
    assert log(desk, "node_paused") == []


def test_a_node_that_missed_both_words_is_told_the_reason_that_stands(desk: Desk) -> None:
    """Seen to fail: the second word, which had no reason, was all that it was told."""
    desk.nodes.switch_off("loom")
    desk.arc("pause", "--reason", "audit")
    bob(desk)
    desk.arc("pause")
    desk.nodes.switch_on("loom")
    desk.arc("nodes", "show", "loom")
    assert asyncio.run(tell_owed(desk.hub)) == 1
    assert reason(desk, "loom") == "audit"
