"""What had been moved to a machine that is off is owned again once, and never beside itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node.moves import Fenced
from agent_node.spec import hash_of, spec_of
from agent_node.strict import JsonObject
from arc.decisions.view import FleetView
from arc.errors import NodeUnreachable
from arc.fencing import Ends, FenceReport, fence, settle_uid
from arc.journal_ends import TaskEnd
from arc.links import Link
from arc.transfer import carry_out
from tests.builders import START, a_task, uid, xfer
from tests.hub_nodes import SomeNodes, some_nodes, twisted


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SomeNodes]:
    with some_nodes(tmp_path, "forge", "inbox", "iris", "loom") as found:
        yield found


async def fenced(nodes: SomeNodes, name: str, life: str, **how: Any) -> FenceReport:
    """A fence as the hub carries it out, and what it has to remember of it."""

    def remember(one: Fenced) -> None:
        nodes.fenced.add((one.node, one.incarnation))

    links: dict[str, Link] = how.pop("links", nodes.links)
    view: FleetView = how.pop("view", None) or await nodes.view()
    return await fence(links, view, Fenced(name, life), remember=remember, **how)


def told(report: FenceReport) -> list[tuple[str, str, str, str]]:
    return [(one.uid[-1], one.outcome, one.node, one.rule) for one in report.tasks]


async def moved_to_loom(nodes: SomeNodes, *numbers: int) -> str:
    """Tasks of iris that loom has now; under which incarnation it has them."""
    nodes.add("iris", *numbers)
    done = await carry_out([nodes.steal(n, "iris", "loom") for n in numbers], nodes.links)
    assert [one.outcome for one in done] == ["moved"] * len(numbers)
    return nodes.machines["loom"].incarnation()


async def test_what_had_moved_to_a_dead_machine_is_ready_at_its_giver(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1, 2)
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life)
    assert told(report) == [("1", "reowned", "iris", ""), ("2", "reowned", "iris", "")]
    assert report.remember == Fenced("loom", life)
    assert nodes.states(1) == nodes.states(2) == {"iris": "READY"}


async def test_the_machine_that_comes_back_is_quarantined_at_its_first_hello(
    nodes: SomeNodes,
) -> None:
    """Seen to fail with the fence not remembered: the task was READY in both places."""
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    await fenced(nodes, "loom", life)
    nodes.switch_on("loom")
    assert isinstance(nodes.machines["loom"].store.apply(c.Claim("loom")), c.NothingToClaim)
    view = await nodes.view()
    assert {node.name: node.report.state for node in view.seen}["loom"] == "quarantined"
    assert nodes.states(1) == {"iris": "READY", "loom": "READY"}
    assert isinstance(nodes.machines["loom"].store.apply(c.Claim("loom")), c.NothingToClaim)
    one = await settle_uid(nodes.links, view, uid(1))
    assert (one.outcome, one.node) == ("barred", "iris")
    assert nodes.states(1) == {"iris": "READY"}


async def test_a_fence_is_repeated_without_harm(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    await fenced(nodes, "loom", life)
    epoch = nodes.steal(1, "iris", "loom").task.epoch
    assert (await fenced(nodes, "loom", life)).tasks == ()
    assert nodes.steal(1, "iris", "loom").task.epoch == epoch


async def test_a_dry_run_says_the_same_and_changes_nothing(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life, dry_run=True)
    assert (told(report), report.dry_run) == ([("1", "reowned", "iris", "")], True)
    assert (nodes.states(1), nodes.fenced) == ({}, set())
    assert told(await fenced(nodes, "loom", life)) == [("1", "reowned", "iris", "")]


async def test_a_node_that_does_not_answer_forbids_the_fence_by_name(nodes: SomeNodes) -> None:
    """Seen to fail with `everybody` not looked at: a suspended node was not asked."""
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    nodes.switch_off("forge")
    report = await fenced(nodes, "loom", life, everybody=["spark"])
    assert (report.tasks, nodes.fenced) == ((), set())
    assert report.refused.startswith("forge, spark could not be asked")


async def test_a_node_that_is_fenced_already_is_not_waited_for(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    forge = Fenced("forge", nodes.machines["forge"].incarnation())
    nodes.switch_off("loom")
    nodes.switch_off("forge")
    report = await fenced(nodes, "loom", life, earlier=[forge])
    assert told(report) == [("1", "reowned", "iris", "")]


async def test_a_machine_that_came_back_from_a_fence_can_be_fenced_again(
    nodes: SomeNodes,
) -> None:
    """Seen to fail with both fences said to the nodes: who had heard of the second life refused
    every word, and nothing was owned again.
    """
    first = nodes.machines["loom"].incarnation()
    nodes.switch_off("loom")
    await fenced(nodes, "loom", first)
    nodes.switch_on("loom")
    await nodes.view()
    await nodes.links["loom"].ask("release", {"alone": True, "reason": "it is well again"})
    await nodes.view()
    second = await moved_to_loom(nodes, 1)
    assert second > first
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", second, earlier=[Fenced("loom", first)])
    assert told(report) == [("1", "reowned", "iris", "")]
    assert nodes.states(1) == {"iris": "READY"}


async def test_a_machine_that_answers_is_not_off(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    report = await fenced(nodes, "loom", life)
    assert "loom answers" in report.refused
    assert nodes.states(1) == {"loom": "READY"}


@pytest.mark.parametrize("fate", ["lost", "unheard", "hub_dies_after"])
@pytest.mark.parametrize("word", range(4))
async def test_a_fence_that_breaks_off_is_ended_by_the_next_one(
    nodes: SomeNodes, word: int, fate: str
) -> None:
    from tests.fleet.machines import HubDied

    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    nodes.will(*[""] * word, fate)
    try:
        await fenced(nodes, "loom", life)
    except HubDied:
        for name in nodes.links:
            nodes.link(name)._hub_life = nodes.weather.hub_life
    await fenced(nodes, "loom", life)
    assert nodes.states(1) == {"iris": "READY"}


async def test_a_copy_that_is_held_from_a_dead_giver_becomes_the_task(nodes: SomeNodes) -> None:
    life = nodes.machines["forge"].incarnation()
    task = a_task(1, epoch=3)
    offer = m.Offer(xfer(1), task, hash_of(spec_of(task)), life)
    nodes.machines["iris"].store.apply(m.Hold("forge", "stolen", (offer,)))
    nodes.switch_off("forge")
    assert told(await fenced(nodes, "forge", life)) == [("1", "reowned", "iris", "")]
    assert nodes.states(1) == {"iris": "READY"}


async def test_the_newest_copy_wins_and_the_older_are_barred(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    await carry_out([nodes.steal(1, "iris", "forge", x=1)], nodes.links)
    nodes.machines["forge"].store.apply(c.SetFields(uid(1), {"priority": 1}))
    await carry_out([nodes.steal(1, "forge", "loom", x=2)], nodes.links)
    life = nodes.machines["loom"].incarnation()
    nodes.switch_off("loom")
    assert told(await fenced(nodes, "loom", life)) == [("1", "reowned", "forge", "")]
    assert nodes.steal(1, "forge", "iris").task.priority == 1
    late = a_task(1, epoch=50)
    offer = m.Offer(xfer(9), late, hash_of(spec_of(late)), life)
    (said,) = nodes.machines["iris"].store.apply(m.Hold("loom", "stolen", (offer,)))
    assert said.outcome == "refused"


async def test_a_task_that_went_on_from_there_stays_where_it_is(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    await carry_out([nodes.steal(1, "loom", "forge", x=2)], nodes.links)
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life)
    assert told(report) == [("1", "lives", "forge", "")]
    assert nodes.states(1) == {"forge": "READY"}


async def test_a_task_whose_end_is_known_is_not_owned_again(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    settled = m.Settled((m.Settle(xfer(1), uid(1), "loom", life, "COMPLETED"),))
    nodes.machines["iris"].store.apply(settled)
    nodes.switch_off("loom")
    assert (await fenced(nodes, "loom", life)).tasks == ()


def ended(number: int, state: str = "COMPLETED") -> TaskEnd:
    return TaskEnd("loom", uid(number), state, START)


def heard(*ends: TaskEnd) -> Ends:
    known = {one.uid: one for one in ends}
    return lambda uids: {one: known[one] for one in uids if one in known}


@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_the_hub_heard_to_have_ended_there_is_not_owned_again(
    nodes: SomeNodes, dry_run: bool
) -> None:
    """Without `known_ends` looked at, both are READY at iris, and the first runs a second time."""
    life = await moved_to_loom(nodes, 1, 2)
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life, known_ends=heard(ended(1)), dry_run=dry_run)
    assert told(report) == [("1", "ended", "loom", ""), ("2", "reowned", "iris", "")]
    assert report.tasks[0].because.startswith("COMPLETED there at 2026-")
    assert nodes.states(1) == {}
    assert nodes.states(2) == ({} if dry_run else {"iris": "READY"})


async def test_its_giver_is_told_so_a_forgetful_hub_does_not_own_it_again_later(
    nodes: SomeNodes,
) -> None:
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    await fenced(nodes, "loom", life, known_ends=heard(ended(1)))
    assert (await fenced(nodes, "loom", life)).tasks == ()
    assert nodes.states(1) == {}


async def test_an_end_that_a_person_can_take_back_is_not_told_to_the_giver(
    nodes: SomeNodes,
) -> None:
    """A giver cannot be told otherwise later: retried on loom, the task would be lost with it."""
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life, known_ends=heard(ended(1, "CANCELLED")))
    assert told(report) == [("1", "ended", "loom", "")]
    assert told(await fenced(nodes, "loom", life)) == [("1", "reowned", "iris", "")]


async def test_a_giver_that_cannot_be_told_the_end_is_named(nodes: SomeNodes) -> None:
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    view = await nodes.view()

    def deaf(do: str, result: JsonObject) -> JsonObject:
        if do == "settled":
            raise NodeUnreachable("iris", "cut off")
        return result

    links = {**nodes.links, "iris": twisted(nodes.links["iris"], deaf)}
    report = await fenced(nodes, "loom", life, known_ends=heard(ended(1)), links=links, view=view)
    assert told(report) == [("1", "ended", "loom", "")]
    assert report.tasks[0].because.endswith("; its giver could not be told: iris: cut off")


async def test_an_attempt_that_may_live_elsewhere_keeps_the_task_from_running(
    nodes: SomeNodes,
) -> None:
    """It ran on forge, was taken back as unproved, and only then moved: nobody knows its end."""
    nodes.add("forge", 1)
    forge = nodes.machines["forge"].store
    got = forge.apply(c.Claim("forge"))
    assert isinstance(got, c.Claimed)
    forge.apply(c.Started(uid(1), got.n, 4242, 99, "boot"))
    forge.apply(c.Finish(uid(1), got.n, c.Result("unproved")))
    forge.apply(m.Reown((m.Target(uid(1), 2**21),), alone=True))
    await carry_out([nodes.steal(1, "forge", "iris", x=1)], nodes.links)
    await carry_out([nodes.steal(1, "iris", "loom", x=2)], nodes.links)
    life = nodes.machines["loom"].incarnation()
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life)
    assert told(report) == [("1", "refused", "iris", "attempt_not_fenced")]
    assert nodes.states(1) == {}


async def test_a_node_that_does_not_let_go_keeps_the_task_from_being_owned_again(
    nodes: SomeNodes,
) -> None:
    """Seen to fail with the answers to `bar` passed over: iris had it READY beside forge."""
    life = await moved_to_loom(nodes, 1)
    nodes.switch_off("loom")
    view = await nodes.view()
    no: JsonObject = {"uid": uid(1), "outcome": "refused",
                      "because": {"rule": "has_row", "text": "it is RUNNING here"}}  # fmt: skip
    forge = twisted(nodes.links["forge"],
                    lambda do, result: {"results": [no]} if do == "bar" else result)  # fmt: skip
    report = await fenced(nodes, "loom", life, links={**nodes.links, "forge": forge}, view=view)
    assert told(report) == [("1", "refused", "forge", "has_row")]
    assert nodes.states(1) == {}


async def test_a_quarantined_task_that_is_nowhere_else_runs_again_by_a_word(
    nodes: SomeNodes,
) -> None:
    nodes.add("iris", 1)
    nodes.machines["iris"].store.apply(m.Quarantine("restored"))
    view = await nodes.view()
    dry = await settle_uid(nodes.links, view, uid(1), dry_run=True)
    assert (dry.outcome, dry.node) == ("reowned", "iris")
    one = await settle_uid(nodes.links, view, uid(1))
    assert (one.outcome, one.node, one.epoch) == ("reowned", "iris", 1 + 2**20)
    await nodes.links["iris"].ask("release", {"alone": True, "reason": "all were decided upon"})
    assert nodes.machines["iris"].store.node_state() == "active"


async def test_a_word_on_a_task_that_no_node_has_is_refused(nodes: SomeNodes) -> None:
    one = await settle_uid(nodes.links, await nodes.view(), uid(1))
    assert (one.outcome, one.rule) == ("refused", "unknown_task")


async def parked(nodes: SomeNodes, name: str) -> None:
    """Task 1 ran there, and nobody can say how it ended."""
    store = nodes.machines[name].store
    claimed = store.apply(c.Claim(name))
    assert isinstance(claimed, c.Claimed)
    store.apply(c.Finish(uid(1), claimed.n, c.Result("unproved")))
    assert nodes.states(1) == {name: "PARKED"}


async def test_a_parked_task_of_a_healthy_node_runs_again_there_by_a_word(
    nodes: SomeNodes,
) -> None:
    """Where PARKED counts as a life of its own, the word does nothing."""
    nodes.add("iris", 1)
    await parked(nodes, "iris")
    view = await nodes.view()
    dry = await settle_uid(nodes.links, view, uid(1), dry_run=True)
    assert ((dry.outcome, dry.node), nodes.states(1)) == (("reowned", "iris"), {"iris": "PARKED"})
    one = await settle_uid(nodes.links, view, uid(1))
    assert (one.outcome, one.node, nodes.states(1)) == ("reowned", "iris", {"iris": "READY"})


async def test_a_parked_task_that_had_moved_runs_again_where_it_is_parked(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    await parked(nodes, "loom")
    one = await settle_uid(nodes.links, await nodes.view(), uid(1))
    assert (one.outcome, one.node, nodes.states(1)) == ("reowned", "loom", {"loom": "READY"})
    await carry_out([nodes.steal(1, "loom", "forge", x=2)], nodes.links)
    assert nodes.states(1) == {"forge": "READY"}, "it may move on from there"


async def test_a_fence_lets_nothing_run_again_that_is_parked_on_a_living_node(
    nodes: SomeNodes,
) -> None:
    """A fence names a machine, no task: what nobody can prove elsewhere stays a person's matter."""
    nodes.add("iris", 1)
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    await carry_out([nodes.steal(1, "loom", "forge", x=2)], nodes.links)
    await parked(nodes, "forge")
    view = await nodes.view()
    life = next(node.report.incarnation for node in view.seen if node.name == "loom")
    nodes.switch_off("loom")
    report = await fenced(nodes, "loom", life)
    assert [one.outcome for one in report.tasks] in ([], ["lives"])
    assert nodes.states(1) == {"forge": "PARKED"}


async def test_a_task_that_lives_is_left_where_it_is(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    one = await settle_uid(nodes.links, await nodes.view(), uid(1))
    assert (one.outcome, one.node, one.because) == ("lives", "iris", "it is READY at iris")


async def test_settling_one_task_needs_every_nodes_answer(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    nodes.machines["iris"].store.apply(m.Quarantine("restored"))
    nodes.switch_off("forge")
    one = await settle_uid(nodes.links, await nodes.view(), uid(1))
    assert (one.outcome, one.rule) == ("refused", "not_all_answer")
    assert nodes.states(1) == {"iris": "READY"}
