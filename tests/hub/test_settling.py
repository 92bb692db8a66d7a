"""Whatever a move left half done is ended from the nodes' own doubts, or waits with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node.queries import Doubt
from agent_node.spec import hash_of, spec_of
from arc import endings
from arc.asking import read_given
from arc.endings import Endings
from arc.errors import NodeUnreachable
from arc.settling import Settlement, settle
from arc.transfer import carry_out
from tests.builders import a_task, uid, xfer
from tests.hub_nodes import SomeNodes, some_nodes


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SomeNodes]:
    with some_nodes(tmp_path, "iris", "loom", "forge") as found:
        found.add("iris", 1)
        yield found


async def moved_as_far_as(nodes: SomeNodes, step: str, *, number: int = 1) -> None:
    """The first steps of a move from iris to loom, said by nobody who goes on."""
    await nodes.view()
    iris, loom = nodes.machines["iris"], nodes.machines["loom"]
    lives = (iris.incarnation(), loom.incarnation())
    x, task = xfer(number), uid(number)
    epoch = nodes.steal(number, "iris", "loom").task.epoch
    move = m.Move(x, task, epoch, lives[1])
    (taken,) = iris.store.apply(m.Escrow("loom", "stolen", 60, (move,)))
    assert taken.task is not None
    if step == "escrow":
        return
    offer = m.Offer(x, taken.task, hash_of(spec_of(taken.task)), lives[0])
    loom.store.apply(m.Hold("iris", "stolen", (offer,)))
    if step == "hold":
        return
    kind = m.Abort if step == "abort" else m.Commit
    iris.store.apply(kind((m.Settle(x, task, "loom", lives[1]),)))
    if step == "activate":
        loom.store.apply(m.Activate((m.Settle(x, task, "iris", lives[0]),)))


@pytest.mark.parametrize(
    ("step", "doubts", "where"),
    [
        ("escrow", {"iris": ["ESCROW"]}, "iris"),
        ("hold", {"iris": ["ESCROW"], "loom": ["HELD"]}, "loom"),
        ("commit", {"iris": ["MOVED"], "loom": ["HELD"]}, "loom"),
        ("abort", {"iris": ["ABORTED"], "loom": ["HELD"]}, "iris"),
        ("activate", {"iris": ["MOVED"]}, "loom"),
    ],
)
async def test_every_pair_of_doubts_has_one_end(
    nodes: SomeNodes, step: str, doubts: dict[str, list[str]], where: str
) -> None:
    await moved_as_far_as(nodes, step)
    assert await nodes.doubts() == doubts
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.now, done.giver, done.taker) == ("settled", where, "iris", "loom")
    assert nodes.states(1) == {where: "READY"}
    assert await nodes.doubts() == {}
    assert await settle(nodes.links, await nodes.view()) == ()


@pytest.mark.parametrize(
    ("step", "because"),
    [
        ("escrow", "iris would have it back"), ("hold", "iris would give it up"),
        ("commit", "iris gave it up"), ("abort", "iris has it back"),
        ("activate", "iris gave it up"),
    ],
)  # fmt: skip
async def test_a_dry_run_says_the_same_and_changes_nothing(
    nodes: SomeNodes, step: str, because: str
) -> None:
    """Seen to fail with any of the steps said in earnest, and with what was only tried told to be
    over: the giver refused that.
    """
    await moved_as_far_as(nodes, step)
    doubts, states = await nodes.doubts(), nodes.states(1)
    stores = [machine.store for machine in nodes.machines.values()]
    before = ["\n".join(store._db.iterdump()) for store in stores]
    (said,) = await settle(nodes.links, await nodes.view(), dry_run=True)
    assert ["\n".join(store._db.iterdump()) for store in stores] == before
    assert (await nodes.doubts(), nodes.states(1)) == (doubts, states)
    (done,) = await settle(nodes.links, await nodes.view())
    assert said == replace(done, because=because)
    assert nodes.states(1) == {done.now: "READY"}


async def test_a_dry_run_says_what_would_wait_for_a_person(nodes: SomeNodes) -> None:
    """The node whose word that takes is asked, too."""
    iris, life = nodes.machines["iris"].store, nodes.machines["loom"].incarnation()
    iris.apply(m.Escrow("loom", "stolen", 60, (m.Move(xfer(1), uid(1), 1, life),)))
    iris.apply(m.Commit((m.Settle(xfer(1), uid(1), "loom", life),)))
    (said,) = await settle(nodes.links, await nodes.view(), dry_run=True)
    (done,) = await settle(nodes.links, await nodes.view())
    assert (said, said.outcome) == (done, "needs_person")


async def test_an_escrow_that_was_called_off_is_never_held_afterwards(nodes: SomeNodes) -> None:
    """The drop is written down at the taker though it knows nothing: the hold may be late."""
    await moved_as_far_as(nodes, "escrow")
    await settle(nodes.links, await nodes.view())
    task = a_task(1, epoch=1)
    life = nodes.machines["iris"].incarnation()
    offer = m.Offer(xfer(1), task, hash_of(spec_of(task)), life)
    (said,) = nodes.machines["loom"].store.apply(m.Hold("iris", "stolen", (offer,)))
    assert said.outcome == "dropped"
    assert nodes.states(1) == {"iris": "READY"}


async def test_a_doubt_whose_peer_does_not_answer_is_left_with_the_reason(nodes: SomeNodes) -> None:
    await moved_as_far_as(nodes, "commit")
    nodes.switch_off("loom")
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.rule) == ("left", "peer_unseen")
    assert "loom could not be asked" in done.because
    assert await nodes.doubts() == {"iris": ["MOVED"]}


async def test_a_doubt_about_a_node_that_the_fleet_has_not_is_left(nodes: SomeNodes) -> None:
    move = m.Move(xfer(1), uid(1), 1, None)
    nodes.machines["iris"].store.apply(m.Escrow("gone", "stolen", 60, (move,)))
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.rule) == ("left", "peer_unseen")
    assert "no node gone" in done.because


async def test_a_move_that_is_under_way_is_left_alone(nodes: SomeNodes) -> None:
    await moved_as_far_as(nodes, "hold")
    (done,) = await settle(nodes.links, await nodes.view(), leave={xfer(1)})
    assert (done.outcome, done.rule) == ("left", "under_way")
    assert nodes.states(1) == {"iris": "ESCROW", "loom": "HELD"}


async def test_an_old_view_does_no_harm(nodes: SomeNodes) -> None:
    """What was seen as an escrow without a copy has been committed since: it is carried on."""
    await moved_as_far_as(nodes, "escrow")
    view = await nodes.view()
    iris, loom = nodes.machines["iris"], nodes.machines["loom"]
    lives = (iris.incarnation(), loom.incarnation())
    task = a_task(1, epoch=1)
    offer = m.Offer(xfer(1), task, hash_of(spec_of(task)), lives[0])
    loom.store.apply(m.Hold("iris", "stolen", (offer,)))
    iris.store.apply(m.Commit((m.Settle(xfer(1), uid(1), "loom", lives[1]),)))
    (done,) = await settle(nodes.links, view)
    assert (done.outcome, nodes.states(1)) == ("settled", {"loom": "READY"})


async def test_moved_with_nothing_at_the_other_end_waits_for_a_person(nodes: SomeNodes) -> None:
    """Seen to fail with `unknown` taken for an end: the giver then forgot the only copy."""
    iris = nodes.machines["iris"]
    life = nodes.machines["loom"].incarnation()
    iris.store.apply(m.Escrow("loom", "stolen", 60, (m.Move(xfer(1), uid(1), 1, life),)))
    iris.store.apply(m.Commit((m.Settle(xfer(1), uid(1), "loom", life),)))
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.rule) == ("needs_person", "unknown")
    assert "loom answers activate with unknown" in done.because
    assert await nodes.doubts() == {"iris": ["MOVED"]}


async def test_a_copy_whose_giver_knows_nothing_of_it_waits_for_a_person(nodes: SomeNodes) -> None:
    life = nodes.machines["iris"].incarnation()
    task = a_task(7, epoch=1)
    offer = m.Offer(xfer(7), task, hash_of(spec_of(task)), life)
    nodes.machines["loom"].store.apply(m.Hold("iris", "stolen", (offer,)))
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.rule) == ("needs_person", "unknown")
    assert nodes.states(7) == {"loom": "HELD"}


async def test_a_taker_that_came_back_as_another_one_keeps_nothing_that_was_only_held(
    nodes: SomeNodes,
) -> None:
    """The giver decides: what it had not given up is READY there, and the copy stays parked."""
    await moved_as_far_as(nodes, "hold")
    nodes.machines["loom"].store.apply(m.Quarantine("restored"))
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.now) == ("settled", "iris")
    assert nodes.states(1) == {"iris": "READY", "loom": "PARKED"}


async def test_a_taker_that_came_back_with_what_was_given_up_waits_for_a_person(
    nodes: SomeNodes,
) -> None:
    await moved_as_far_as(nodes, "commit")
    nodes.machines["loom"].store.apply(m.Quarantine("restored"))
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, done.rule) == ("needs_person", "quarantined")
    assert nodes.states(1) == {"loom": "PARKED"}


async def test_a_record_that_aged_out_at_the_taker_is_settled(nodes: SomeNodes) -> None:
    await moved_as_far_as(nodes, "activate")
    loom = nodes.machines["loom"].store
    got = loom.apply(c.Claim("loom"))
    assert isinstance(got, c.Claimed)
    loom.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    nodes.moment.seconds += 40 * 86_400
    assert loom.apply(c.Forget()) > 0
    (done,) = await settle(nodes.links, await nodes.view())
    assert (done.outcome, await nodes.doubts()) == ("settled", {})


async def test_one_transfer_that_is_said_to_be_of_two_tasks_is_touched_by_nobody(
    nodes: SomeNodes,
) -> None:
    await moved_as_far_as(nodes, "commit")
    view = await nodes.view()
    lie = Doubt(xfer(1), uid(2), 2, "taker", "HELD", "iris", None, 1.0)
    seen = tuple(
        replace(node, report=node.report._replace(doubts=(lie,))) if node.name == "loom" else node
        for node in view.seen
    )
    done = await settle(nodes.links, replace(view, seen=seen))
    assert {(one.outcome, one.rule) for one in done} == {("needs_person", "two_tasks")}
    assert nodes.states(1) == {"loom": "HELD"}


async def test_many_doubts_of_one_pair_cost_three_requests(nodes: SomeNodes) -> None:
    nodes.add("iris", *range(2, 21))
    for number in range(1, 21):
        await moved_as_far_as(nodes, "commit", number=number)
    view = await nodes.view()
    before = sum(link.requests for link in nodes.links.values())
    done = await settle(nodes.links, view)
    assert sum(link.requests for link in nodes.links.values()) - before == 2
    assert [one.outcome for one in done] == ["settled"] * 20


async def test_a_pair_that_fails_in_the_middle_is_left_and_ended_by_the_next_cycle(
    nodes: SomeNodes,
) -> None:
    await moved_as_far_as(nodes, "hold")
    view = await nodes.view()
    nodes.will("", "unheard")
    (done,) = await settle(nodes.links, view)
    assert (done.outcome, done.rule) == ("left", "silent")
    (again,) = await settle(nodes.links, await nodes.view())
    assert (again.outcome, nodes.states(1)) == ("settled", {"loom": "READY"})


async def test_givers_are_told_how_the_tasks_ended_that_had_left_them(nodes: SomeNodes) -> None:
    ends = Endings()
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    assert (await ends.tell(nodes.links, await nodes.view())).told == 0
    loom = nodes.machines["loom"].store
    got = loom.apply(c.Claim("loom"))
    assert isinstance(got, c.Claimed)
    loom.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    assert (await ends.tell(nodes.links, await nodes.view())).told == 1
    assert (await ends.tell(nodes.links, await nodes.view())).told == 0
    given, _ = read_given("iris", await nodes.links["iris"].ask("moved", {}))
    assert [one.ended for one in given] == ["COMPLETED"]


async def test_copies_of_tasks_that_never_end_do_not_hide_those_behind_them(
    nodes: SomeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a page's end kept for the next call, the second call asks the first task again."""
    monkeypatch.setattr(endings, "ENDS_MAX", 1)
    nodes.add("iris", 2)
    ends = Endings()
    await carry_out([nodes.steal(n, "iris", "loom") for n in (1, 2)], nodes.links)
    loom = nodes.machines["loom"].store
    got = [loom.apply(c.Claim("loom")) for _ in range(2)]
    last = max((one for one in got if isinstance(one, c.Claimed)), key=lambda one: one.task.uid)
    loom.apply(c.Finish(last.task.uid, last.n, c.Result("completed")))
    told = [(await ends.tell(nodes.links, await nodes.view())).told for _ in range(2)]
    assert told == [0, 1]


async def test_a_node_that_cannot_say_an_end_is_named(
    nodes: SomeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    view = await nodes.view()
    silent = AsyncMock(side_effect=NodeUnreachable("loom", "switched off"))
    monkeypatch.setattr(nodes.links["loom"], "ask", silent)
    said = await Endings().tell(nodes.links, view)
    assert said.told == 0
    assert {str(error).partition(":")[0] for error in said.failed} == {"loom"}


def test_a_settlement_names_both_ends() -> None:
    one = Settlement("x", "u", "iris", "loom", "left", rule="peer_unseen")
    assert (one.giver, one.taker, one.now) == ("iris", "loom", "")
