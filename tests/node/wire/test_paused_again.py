"""A node that is paused or drained again tells what had been said to it, and loses none of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.node.wire.talking import Talk

ADA: dict[str, Any] = {"by": "human:ada", "reason": "disk swap"}
BOB: dict[str, Any] = {"by": "human:bob", "reason": "audit"}


def said(talk: Talk) -> list[tuple[str, str, str]]:
    """Every word that changed how the node stands, as its events keep them."""
    return [(one["state"], one["by"], one["because"])
            for one in talk.ask("events")["events"] if one["event"] == "state_changed"]  # fmt: skip


def reason(talk: Talk) -> str:
    return str(talk.ask("status")["reason"])


@pytest.mark.parametrize("of", [{}, {"agent": "iris"}], ids=["node", "agent"])
def test_another_reason_takes_the_place_of_the_first_one_which_is_told(
    iris: Talk, of: dict[str, Any]
) -> None:
    """Seen to fail: nobody was told that it was paused already, by whom and why."""
    at = iris.clock.now().isoformat()[:19]
    assert "was" not in iris.ask("pause", **ADA, **of)
    iris.clock.advance(60)
    again = iris.ask("pause", **BOB, **of)
    was = again["was"]
    assert (again["state"], again["reason"], again.get("already")) == ("paused", "audit", None)
    assert (was["state"], was["reason"], was["by"]) == ("paused", "disk swap", "human:ada")
    assert was["at"].startswith(at)
    assert said(iris) == [("paused", "human:ada", "disk swap"), ("paused", "human:bob", "audit")]


@pytest.mark.parametrize("of", [{}, {"agent": "iris"}], ids=["node", "agent"])
def test_a_word_without_a_reason_leaves_the_first_one_and_who_said_it(
    iris: Talk, of: dict[str, Any]
) -> None:
    """Seen to fail: the reason was gone."""
    iris.ask("pause", **ADA, **of)
    bare: dict[str, Any] = {"by": "human:bob"}
    for words in (bare, {**bare, "reason": "disk swap"}):
        again = iris.ask("pause", **words, **of)
        assert (again["reason"], again["already"]) == ("disk swap", True)
        assert again["was"]["by"] == "human:ada"
    assert len(said(iris)) == 1
    assert of or reason(iris) == "disk swap"


@pytest.mark.parametrize("of", [{}, {"agent": "iris"}], ids=["node", "agent"])
def test_another_reason_does_not_change_since_when_it_is_paused(
    iris: Talk, of: dict[str, Any]
) -> None:
    """Seen to fail: the second reason's time stood as that from which on it was paused."""
    began = iris.clock.now().isoformat()[:19]
    iris.ask("pause", **ADA, **of)
    for reason in ("audit", "power cut"):
        iris.clock.advance(60)
        was = iris.ask("pause", by="human:bob", reason=reason, **of)["was"]
        assert was["since"].startswith(began)
    assert was["at"] > was["since"]
    iris.ask("resume", **of)
    iris.clock.advance(60)
    anew = iris.clock.now().isoformat()[:19]
    iris.ask("pause", **ADA, **of)
    assert iris.ask("pause", **of)["was"]["since"].startswith(anew)


def test_a_pause_of_what_drained_begins_with_the_pause(iris: Talk) -> None:
    iris.ask("drain", **ADA)
    iris.clock.advance(60)
    at = iris.clock.now().isoformat()[:19]
    iris.ask("pause", **BOB)
    assert iris.ask("pause")["was"]["since"].startswith(at)


def test_a_first_reason_is_given_to_a_pause_that_has_none(iris: Talk) -> None:
    iris.ask("pause", by="human:ada")
    again = iris.ask("pause", **BOB)
    assert (again["was"]["reason"], reason(iris)) == ("", "audit")


def test_a_pause_ends_a_drain_and_says_what_it_ended(iris: Talk) -> None:
    iris.ask("drain", deadline_s=60, then="requeue", **ADA)
    again = iris.ask("pause", by="human:bob")
    assert (again["state"], again["reason"]) == ("paused", "")
    assert (again["was"]["state"], again["was"]["reason"]) == ("draining", "disk swap")


def test_a_drain_with_a_deadline_begins_anew_and_keeps_its_reason(iris: Talk) -> None:
    iris.ask("drain", **ADA)
    again = iris.ask("drain", deadline_s=5, then="requeue", by="human:bob")
    assert (again["reason"], again.get("already")) == ("disk swap", None)
    assert iris.host.told[-1] == ("drain", 5.0, "requeue", None)
    assert [by for _, by, _ in said(iris)] == ["human:ada", "human:bob"]


def test_a_dry_run_says_the_same_and_changes_nothing(iris: Talk) -> None:
    iris.ask("pause", **ADA)
    would = iris.ask("pause", **BOB, dry_run=True)
    assert (would["reason"], would["was"]["by"]) == ("audit", "human:ada")
    assert iris.ask("pause", dry_run=True)["already"] is True
    assert (reason(iris), len(said(iris))) == ("disk swap", 1)


def test_an_agent_that_is_paused_by_name_is_no_word_of_the_node(iris: Talk) -> None:
    iris.ask("pause", agent="iris", **ADA)
    assert "was" not in iris.ask("pause", **BOB)
    assert iris.ask("pause", agent="iris")["was"]["by"] == "human:ada"


def test_its_owners_pause_of_what_a_hub_had_paused_is_a_word_of_its_own(iris: Talk) -> None:
    """Seen to fail: nothing was written down of it, and no hub could know whose pause it was."""
    began = iris.clock.now().isoformat()[:19]
    iris.ask("pause", session=iris.hub, **BOB)
    assert "here" not in iris.ask("pause", session=iris.hub, dry_run=True)["was"]
    iris.clock.advance(60)
    again = iris.ask("pause", by="human:ada")
    assert (again["reason"], again.get("already")) == ("audit", None)
    was = iris.ask("pause", session=iris.hub, dry_run=True)["was"]
    assert (was["by"], was["here"], was["since"][:19]) == ("human:ada", True, began)
    assert iris.ask("pause", by="human:ada")["already"] is True
    assert [by for _, by, _ in said(iris)] == ["human:bob", "human:ada"]
    iris.ask("pause", agent="iris", by="human:ada")
    iris.ask("resume", by="human:ada")
    iris.ask("pause", session=iris.hub, **BOB)
    assert "here" not in iris.ask("pause", session=iris.hub)["was"]
