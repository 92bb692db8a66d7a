"""Only what a node refused itself is remembered against it; all else is asked for again at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject, JsonValue
from arc.errors import (
    ArcError,
    HostKeyChanged,
    LoginRefused,
    NodeCannotServe,
    NodeRefused,
    NodeSilent,
    NodeUnreachable,
    NoNodeProgram,
    OtherHub,
    WrongNode,
)
from arc.links import Met
from tests.sensors_stage import Scene

REBALANCE = "fleet-rebalance"
MOVES = 3  # of one cycle, to one idle node

# Every error that a taker may bring at its step without having done anything.
ERRORS: tuple[tuple[ArcError, str], ...] = (
    (NodeUnreachable("loom", "no route to it"), "unreachable"),
    (HostKeyChanged("loom", "another host key"), "host_key"),
    (LoginRefused("loom", "the key was not taken"), "login"),
    (NoNodeProgram("loom", "no agent-node"), "no_node"),
    (NodeCannotServe("loom", "no home"), "cannot_serve"),
    (WrongNode("loom", "spark answered"), "wrong_node"),
    (NodeSilent("loom", "no answer within 10s"), "silent"),
    (OtherHub("loom: another hub speaks with term 7"), "other_hub"),
    (NodeRefused("loom", "old_term", "another hub has term 7"), "old_term"),
    (NodeRefused("loom", "other_incarnation", "it was meant for another one"),
     "other_incarnation"),
)  # fmt: skip


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Scene]:
    """Iris has more than it can do, and loom is idle."""
    scene = Scene(tmp_path)
    scene.has("iris", 13, priority=8)
    for node in ("forge", "spark"):
        scene.has(node, 1, priority=3)
        scene.works(node)
    scene.works("iris")
    scene.passes(300)
    yield scene
    scene.close()


Answer = Callable[[str, JsonObject], JsonObject | None]  # None: the node's own


def answers(night: Scene, patch: pytest.MonkeyPatch, node: str, say: Answer) -> None:
    """What a node does or says instead, before its own answer."""
    ask = night.hub.links[node].ask

    async def asked(
        do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        said = say(do, fields or {})
        return said if said is not None else await ask(do, fields, timeout_s=timeout_s)

    patch.setattr(night.hub.links[node], "ask", asked)


def kept(night: Scene, rule: str) -> set[str]:
    """The tasks that a cycle meant to move and did not, all by this rule."""
    report = night.run(REBALANCE)
    assert (report.decided, report.acted) == (MOVES, 0), report.summary
    assert {(one.outcome, one.rule) for one in report.moves} == {("kept", rule)}
    return {one.uid for one in report.moves}


def nobody_is_held_back(night: Scene, first: set[str]) -> None:
    """Nothing stands against loom, and the next cycle gives it the very same tasks."""
    assert night.hub.journal.nodes.refused(within_s=600) == {}
    report = night.run(REBALANCE)
    assert report.acted == MOVES
    assert {one.uid for one in report.moves if one.outcome == "moved"} == first
    assert "not_refused_lately" not in {one.rule for one in report.decisions}


def test_a_task_that_changed_at_its_giver_was_refused_by_nobody_else(
    night: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail while every `kept` counted: "loom refused it", which was never asked."""
    iris = night.fleet.machines["iris"].store

    def edited(do: str, fields: JsonObject) -> None:
        if do == "escrow":
            for one in named(fields):
                iris.apply(c.SetFields(str(one["uid"]), {"priority": 9}))

    with monkeypatch.context() as patch:
        answers(night, patch, "iris", edited)
        first = kept(night, "epoch_changed")
    nobody_is_held_back(night, first)


def named(fields: JsonObject) -> list[JsonObject]:
    moves = fields["moves"]
    assert isinstance(moves, list)
    return [one for one in moves if isinstance(one, dict)]


def refusing(do: str, rule: str) -> Answer:
    """Each move of this step is refused by this rule, and nothing is changed."""

    def say(asked: str, fields: JsonObject) -> JsonObject | None:
        results: list[JsonValue] = [
            {"xfer": one["xfer"], "outcome": "refused",
             "because": {"rule": rule, "text": "a test says so"}} for one in named(fields)
        ] if asked == do else []  # fmt: skip
        return {"results": results} if asked == do else None

    return say


def test_what_did_not_fit_into_the_givers_answer_is_asked_for_again(
    night: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail while every `kept` counted, in spite of what `batch_full` says of itself."""
    with monkeypatch.context() as patch:
        answers(night, patch, "iris", refusing("escrow", "batch_full"))
        first = kept(night, "batch_full")
    nobody_is_held_back(night, first)


def test_a_lease_that_ended_is_no_refusal(night: Scene) -> None:
    """Seen to fail while every `kept` counted: loom held the copies, and gave them back."""
    night.fleet.weather.aimed["commit"] = "slow"
    night.fleet.weather.time_passes = lambda seconds: in_75_seconds(night, seconds)
    first = kept(night, "lease_ended")
    night.passes(300)  # loom is idle again
    nobody_is_held_back(night, first)


def in_75_seconds(night: Scene, seconds: float) -> None:
    night.fleet.moment.seconds += seconds
    for machine in night.fleet.machines.values():
        machine.wake()


@pytest.mark.parametrize(("error", "rule"), ERRORS, ids=[rule for _, rule in ERRORS])
def test_an_error_at_the_takers_step_is_no_refusal_of_the_tasks(
    night: Scene, monkeypatch: pytest.MonkeyPatch, error: ArcError, rule: str
) -> None:
    """Seen to fail by six of them, which the list of those that are none did not have."""

    def broken(do: str, fields: JsonObject) -> None:
        if do == "hold":
            raise error

    with monkeypatch.context() as patch:
        answers(night, patch, "loom", broken)
        first = kept(night, rule)
    nobody_is_held_back(night, first)


@pytest.mark.parametrize("node", ["iris", "loom"])
def test_a_node_that_cannot_be_met_has_refused_nothing(
    night: Scene, monkeypatch: pytest.MonkeyPatch, node: str
) -> None:
    """Both ends are met before the first step. Seen to fail while every `kept` counted."""
    looked = list[str]()
    iris, meet = night.hub.links["iris"], night.hub.links[node].meet
    ask = iris.ask

    async def asked(
        do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        said = await ask(do, fields, timeout_s=timeout_s)
        looked.append(do)
        return said

    async def cannot(*, anew: bool = False) -> Met:
        if "candidates" in looked:
            raise NodeCannotServe(node, "no home")
        return await meet(anew=anew)

    with monkeypatch.context() as patch:
        patch.setattr(iris, "ask", asked)
        patch.setattr(night.hub.links[node], "meet", cannot)
        first = kept(night, "cannot_serve")
    nobody_is_held_back(night, first)


def test_a_taker_in_quarantine_wrote_no_refusal_down(
    night: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own report says so to the next cycle; once it is let go it may have the task at once.

    Seen to fail with the list of what is refused unrecorded emptied.
    """
    with monkeypatch.context() as patch:
        answers(night, patch, "loom", refusing("hold", "quarantined"))
        first = kept(night, "quarantined")
    nobody_is_held_back(night, first)


@pytest.mark.parametrize("rule", ["paused", "no_room", "already_here", "key_taken"])
def test_what_the_taker_itself_refused_is_remembered_of_it_alone(
    night: Scene, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    with monkeypatch.context() as patch:
        answers(night, patch, "loom", refusing("hold", rule))
        first = kept(night, rule)
    refused = night.hub.journal.nodes.refused(within_s=600)
    assert refused.keys() == {(uid, "loom") for uid in first}
    assert not {one.uid for one in night.run(REBALANCE).moves} & first
