"""Who gives a task to a node on which nothing starts is told so: since when, and what to type."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.moves import Quarantine
from arc.looking import look
from tests.builders import uid
from tests.hub.cli.desk import Desk

ADD = ("tasks", "add", "rotate logs", "--to", "iris")


def warned(desk: Desk, *words: str) -> list[str]:
    """What the envelope warns of, which the text has on stderr; either way it is done."""
    ran = desk.arc(*words, "--json")
    assert ran.code == 0, ran
    said: list[str] = ran.envelope["warnings"]
    return said


def told(desk: Desk, word: c.SetNode) -> None:
    """By `agent-node` on the machine itself: no line of the hub's log has it."""
    desk.nodes.machines["iris"].store.apply(word)


def test_a_task_for_a_paused_node_is_taken_with_a_warning(desk: Desk) -> None:
    """Seen to fail: `1 task added to iris`, and nothing happened for as long as the pause."""
    desk.arc("nodes", "pause", "iris", "--reason", "disk swap")
    desk.minutes_pass(5)
    says = ("iris is paused since 2026-03-10T03:45:00.000Z (disk swap): nothing starts there until "
            "arc nodes resume iris")  # fmt: skip
    assert warned(desk, *ADD) == [says]
    text = desk.arc(*ADD)
    assert (text.code, says in text.err, "1 task added to iris" in text.out) == (0, True, True)
    assert warned(desk, *ADD, "--dry-run") == [says]
    desk.arc("nodes", "resume", "iris")
    assert warned(desk, *ADD) == []


def test_the_words_to_the_whole_fleet_count_too(desk: Desk) -> None:
    desk.arc("pause", "--reason", "audit")
    desk.minutes_pass(5)
    (said,) = warned(desk, *ADD)
    assert said == ("iris is paused since 2026-03-10T03:45:00.000Z (audit): nothing starts there"
                    " until arc resume"), "seen to fail: arc nodes resume iris"
    desk.arc("resume")
    assert warned(desk, *ADD) == []


def test_a_node_that_was_paused_by_its_own_command_is_paused_since_a_look_found_it(
    desk: Desk,
) -> None:
    told(desk, c.SetNode("paused", reason="by hand"))
    assert warned(desk, *ADD) == [
        "iris is paused (by hand): nothing starts there until arc nodes resume iris"]
    desk.minutes_pass(1)
    asyncio.run(look(desk.hub))
    desk.minutes_pass(9)
    asyncio.run(look(desk.hub))
    (said,) = warned(desk, *ADD)
    assert said.startswith("iris is paused since 2026-03-10T03:46:00.000Z (by hand)")


def test_an_old_word_is_not_since_when_where_a_look_found_it_otherwise(desk: Desk) -> None:
    desk.arc("nodes", "pause", "iris")
    told(desk, c.SetNode("active", ""))
    desk.minutes_pass(1)
    asyncio.run(look(desk.hub))
    told(desk, c.SetNode("paused", ""))
    desk.minutes_pass(1)
    asyncio.run(look(desk.hub))
    (said,) = warned(desk, *ADD)
    assert said.startswith("iris is paused since 2026-03-10T03:47:00.000Z:")


def test_a_task_that_is_refused_is_not_said_to_wait_there(desk: Desk) -> None:
    """Seen to fail without the look at what was refused."""
    assert desk.arc(*ADD, "--key", "k").code == 0
    desk.arc("nodes", "pause", "iris")
    ran = desk.arc(*ADD, "--key", "k", "--body", "another", "--json")
    assert (ran.data["results"][0]["outcome"], ran.envelope["warnings"]) == ("refused", [])


def test_a_word_that_is_said_again_changes_no_since_when(desk: Desk) -> None:
    """Seen to fail: it was paused since the second word, and since the first by `arc nodes pause`;
    or since an agent of it was paused.
    """
    desk.arc("nodes", "pause", "iris", "--agent", "iris")
    desk.minutes_pass(1)
    desk.arc("nodes", "pause", "iris", "--reason", "disk swap")
    desk.minutes_pass(1)
    again = desk.arc("nodes", "pause", "iris", "--json").data
    assert again["was"]["at"] == "2026-03-10T03:46:00.000Z"
    (said,) = warned(desk, *ADD)
    assert said.startswith("iris is paused since 2026-03-10T03:46:00.000Z (disk swap)")
    desk.minutes_pass(1)
    desk.arc("nodes", "drain", "iris")
    (said,) = warned(desk, *ADD)
    assert said.startswith("iris is drained since 2026-03-10T03:48:00.000Z")


def test_of_a_quarantined_node_the_word_is_told_that_ends_that(desk: Desk) -> None:
    """Seen to fail: `arc nodes resume`, which such a node refuses, and since it was paused."""
    desk.waits("iris", 1)
    desk.arc("nodes", "pause", "iris")
    desk.nodes.machines["iris"].store.apply(Quarantine("an old copy"))
    (said,) = warned(desk, "tasks", "move", uid(1), "--to", "iris")
    assert said == ("iris is quarantined (an old copy): nothing starts there until a person "
                    "decided. On iris: agent-node release")


def test_a_task_for_a_node_without_a_daemon_is_taken_with_how_to_start_it(desk: Desk) -> None:
    desk.nodes.machines["iris"].dispatches(running=False)
    desk.minutes_pass(1)
    asyncio.run(look(desk.hub))
    desk.minutes_pass(1)
    (said,) = warned(desk, *ADD)
    assert said == (
        "iris's daemon does not run since 2026-03-10T03:46:00.000Z: nothing starts there until it "
        "does: on iris: agent-node start")  # fmt: skip


def test_a_task_for_a_node_that_drains_goes_elsewhere(desk: Desk) -> None:
    desk.arc("nodes", "drain", "iris")
    (said,) = warned(desk, *ADD)
    assert said.startswith("iris is drained since 2026-03-10T03:45:00.000Z: it starts nothing new")


def test_a_task_for_a_node_whose_agents_are_all_paused_waits_for_one_of_them(desk: Desk) -> None:
    told(desk, c.SetNode("paused", "", agent="iris"))
    (said,) = warned(desk, *ADD)
    assert said.endswith("until one is resumed: arc nodes resume iris --agent iris")
    desk.waits("loom", 1)
    (said,) = warned(desk, "tasks", "move", uid(1), "--to", "iris")
    assert said.startswith("every agent of iris is paused")
    assert desk.nodes.states(1) == {"iris": "READY"}


def test_a_move_to_where_it_is_already_says_that_nothing_starts_there(desk: Desk) -> None:
    """Of others a node that is paused says no itself, with the reason, and they stay."""
    desk.waits("iris", 1)
    desk.waits("loom", 2)
    desk.arc("nodes", "pause", "iris")
    (said,) = warned(desk, "tasks", "move", uid(1), "--to", "iris")
    assert said.startswith("iris is paused since ")
    stays = desk.arc("tasks", "move", uid(2), "--to", "iris", "--json")
    assert (stays.code, stays.data["results"][0]["rule"]) == (1, "paused")
    assert stays.envelope["warnings"] == []


@pytest.mark.parametrize("words", [(*ADD,), ("tasks", "add", "x"), (*ADD, "--dry-run")])
def test_a_node_that_works_and_the_hubs_own_queue_are_not_warned_of(
    desk: Desk, words: tuple[str, ...]
) -> None:
    assert warned(desk, *words) == []


def test_a_node_that_falls_silent_then_is_told_of_as_it_was_seen_last(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.arc("nodes", "pause", "iris")
    asyncio.run(look(desk.hub))
    link = desk.hub.links["iris"]
    ask = link.ask

    async def then_off(do: str, *more: Any, **how: Any) -> Any:
        said = await ask(do, *more, **how)
        desk.nodes.machines["iris"].off = do == "add"
        return said

    monkeypatch.setattr(link, "ask", then_off)
    (said,) = warned(desk, *ADD)
    assert said.startswith("as it was seen 0s ago, iris is paused since ")
    desk.nodes.machines["iris"].off = False
