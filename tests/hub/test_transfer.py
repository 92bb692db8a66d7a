"""A move is whole, or the task stays where it was; whatever breaks on the way can be settled."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node import commands as c
from agent_node import graph_words as g
from agent_node import queries as q
from agent_node.graph_document import read_graph
from agent_node.graphs import Derived, Graph
from agent_node.spec import hash_of, spec_of
from agent_node.strict import JsonObject
from agent_node.task import to_wire
from arc.settling import settle
from arc.transfer import SETTLE_AFTER_S, Outcome, carry_out
from tests.builders import a_task, uid
from tests.fleet.machines import HubDied
from tests.hub_nodes import SomeNodes, some_nodes, twisted

STEPS = ("escrow", "hold", "commit", "activate", "settled")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SomeNodes]:
    with some_nodes(tmp_path, "iris", "loom", "forge") as found:
        yield found


def told(outcomes: tuple[Outcome, ...]) -> list[tuple[str, str]]:
    return [(one.outcome, one.rule) for one in outcomes]


async def test_a_batch_moves_whole_in_five_requests_however_many_tasks(nodes: SomeNodes) -> None:
    nodes.add("iris", *range(1, 8), body="all of it", tags=["t"])
    steals = [nodes.steal(number, "iris", "loom") for number in range(1, 8)]
    done = await carry_out(steals, nodes.links)

    assert told(done) == [("moved", "")] * 7
    assert all(one.settled for one in done)
    assert [one.steal for one in done] == steals
    assert all(nodes.states(number) == {"loom": "READY"} for number in range(1, 8))
    assert nodes.links["iris"].requests + nodes.links["loom"].requests == 5
    assert await nodes.doubts() == {}


async def test_the_giver_is_told_that_it_is_over_a_little_later(nodes: SomeNodes) -> None:
    """Meanwhile the taker starts the program, often on the giver's own machine."""
    at: dict[str, float] = {}

    def noted(do: str, answer: JsonObject) -> JsonObject:
        at[do] = asyncio.get_running_loop().time()
        return answer

    nodes.add("iris", 1)
    await nodes.view()
    links = {name: twisted(link, noted) for name, link in nodes.links.items()}
    (done,) = await carry_out([nodes.steal(1, "iris", "loom")], links)
    assert done.settled
    assert at["settled"] - at["activate"] >= SETTLE_AFTER_S


async def test_a_moved_task_keeps_what_this_hub_is_too_old_to_know(nodes: SomeNodes) -> None:
    nodes.add("iris", 1, body="b", extra={"tint": "blue"}, colour="green")
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    (body,) = nodes.machines["loom"].store._db.execute("SELECT spec FROM task").fetchone()
    assert '"tint":"blue"' in body
    assert '"colour":"green"' in body


def effective(nodes: SomeNodes, name: str, number: int) -> float:
    """What the task is worth there at this moment."""
    shown = nodes.machines[name].store.read(q.ShowTask(uid(number)))
    assert shown is not None
    return float(str(shown.order["effective"]))


def a_chain() -> Graph:
    """Of four tasks, one after the other; its first weighs 15 points."""
    tasks: JsonObject = {
        f"t{n}": {"uid": uid(n), "subject": "x", "after": [f"t{n - 1}"] if n > 1 else []}
        for n in range(1, 5)
    }
    document: JsonObject = {"id": "01DAG000000000000000000001", "title": "chain", "tasks": tasks}
    return read_graph(document, mint=Derived("01DAG000000000000000000001", "tasks"))


@pytest.mark.parametrize("way", ["at once", "one by one"])
async def test_what_waits_behind_a_task_draws_it_wherever_it_goes(
    nodes: SomeNodes, way: str
) -> None:
    """Over two moves, given back in between, and home again. Seen to fail where `escrow` does not
    tell the weight, where the hub does not hand it on, and where `hold` does not keep it.
    """
    nodes.machines["iris"].store.apply(g.Submit(a_chain()))
    nodes.add("iris", 9)
    numbers = (1, 9) if way == "at once" else (1,)
    plain, drawn = effective(nodes, "iris", 9), effective(nodes, "iris", 1)
    assert (plain, drawn) == (45.0, 30.0)
    for place, (busy, idle) in enumerate((("iris", "loom"), ("loom", "forge"), ("forge", "iris"))):
        nodes.machines[idle].store.apply(c.SetNode("paused", "an upgrade"))
        steals = [nodes.steal(n, busy, idle, x=40 + 40 * place + n) for n in numbers]
        assert told(await carry_out(steals, nodes.links)) == [("kept", "paused")] * len(numbers)
        assert effective(nodes, busy, 1) == drawn
        nodes.machines[idle].store.apply(c.SetNode("active", "done"))
        steals = [nodes.steal(n, busy, idle, x=60 + 40 * place + n) for n in numbers]
        assert told(await carry_out(steals, nodes.links)) == [("moved", "")] * len(numbers)
        assert effective(nodes, idle, 1) == drawn
    assert numbers == (1,) or effective(nodes, "iris", 9) == plain


async def test_who_knew_a_weight_keeps_it_where_an_older_node_has_dropped_it(
    nodes: SomeNodes,
) -> None:
    """Seen to fail where the taker goes by what it is told alone."""
    nodes.machines["iris"].store.apply(g.Submit(a_chain()))
    await nodes.view()

    def older(do: str, answer: JsonObject) -> JsonObject:
        for one in cast("list[JsonObject]", answer.get("results", [])):
            one.pop("weight", None)
        return answer

    links = {**nodes.links, "loom": twisted(nodes.links["loom"], older)}
    await carry_out([nodes.steal(1, "iris", "loom", x=1)], links)
    await carry_out([nodes.steal(1, "loom", "iris", x=2)], links)
    assert effective(nodes, "iris", 1) == 30.0


async def test_each_node_names_whom_it_means_on_both_ends(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    await nodes.view()
    lives = {name: machine.incarnation() for name, machine in nodes.machines.items()}
    iris, loom = (
        twisted(nodes.links[name], lambda do, result: result) for name in ("iris", "loom")
    )
    await carry_out([nodes.steal(1, "iris", "loom")], {"iris": iris, "loom": loom})
    for link, peer in ((iris, "loom"), (loom, "iris")):
        for do, fields in link.asked:
            assert fields["incarnation"] == lives[link.name], do
            moves: Any = fields["moves"]
            said = fields.get("peer_incarnation") or moves[0]["peer_incarnation"]
            assert said == lives[peer], do


async def test_what_the_taker_refuses_is_given_back_at_once_with_its_reason(
    nodes: SomeNodes,
) -> None:
    """Seen to fail with the abort taken out: the task stayed in ESCROW."""
    nodes.add("iris", 1, 2)
    nodes.machines["loom"].store.apply(c.SetNode("paused", "an upgrade"))
    done = await carry_out([nodes.steal(n, "iris", "loom") for n in (1, 2)], nodes.links)
    assert told(done) == [("kept", "paused")] * 2
    assert {one.refused_by for one in done} == {"loom"}
    assert "an upgrade" in done[0].because
    assert (nodes.states(1), await nodes.doubts()) == ({"iris": "READY"}, {})


async def test_what_the_giver_refuses_stays_and_the_rest_moves(nodes: SomeNodes) -> None:
    nodes.add("iris", 1, 2)
    nodes.add("iris", 3, pinned=True)
    steals = [nodes.steal(number, "iris", "loom") for number in (1, 2, 3)]
    nodes.machines["iris"].store.apply(c.SetFields(uid(1), {"priority": 1}))
    done = await carry_out(steals, nodes.links)
    assert told(done) == [("kept", "epoch_changed"), ("moved", ""), ("kept", "pinned")]
    assert [one.refused_by for one in done] == ["iris", "", "iris"]


async def test_a_pinned_task_moves_on_a_persons_word(nodes: SomeNodes) -> None:
    nodes.add("iris", 1, pinned=True)
    done = await carry_out([nodes.steal(1, "iris", "loom")], nodes.links, even_if_pinned=True)
    assert told(done) == [("moved", "")]


async def test_what_one_answer_cannot_hold_stays_for_the_next_cycle(nodes: SomeNodes) -> None:
    nodes.add("iris", *range(1, 46), body="x" * 200_000)
    done = await carry_out([nodes.steal(n, "iris", "loom") for n in range(1, 46)], nodes.links)
    became = [one.outcome for one in done]
    assert 0 < became.count("kept") < 45
    assert became.count("moved") + became.count("kept") == 45
    assert {one.rule for one in done if one.outcome == "kept"} == {"batch_full"}
    assert {one.refused_by for one in done} == {""}
    assert await nodes.doubts() == {}


@pytest.mark.parametrize(("node", "left"), [("iris", "ESCROW"), ("loom", "HELD")])
async def test_a_disk_that_fails_behind_a_step_leaves_the_move_in_doubt(
    nodes: SomeNodes, monkeypatch: pytest.MonkeyPatch, node: str, left: str
) -> None:
    """Seen to fail: it was told as kept, nothing changed; yet the task was set aside, or held."""
    nodes.add("iris", 1)
    steal = nodes.steal(1, "iris", "loom")
    await nodes.view()  # hello raises the generation, too

    def broken(mark: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as disk:
        disk.setattr(nodes.machines[node].store._file, "write", broken)
        (done,) = await carry_out([steal], nodes.links)
    assert nodes.states(1)[node] == left
    assert (done.outcome, "may have happened" in done.because) == ("in_doubt", True)
    nodes.machines[node].restart()  # as its daemon ends at once, and another one starts
    await settle(nodes.links, await nodes.view())
    assert list(nodes.states(1).values()) == ["READY"]


async def test_pairs_do_not_wait_for_each_other_and_one_that_is_off_stops_only_itself(
    nodes: SomeNodes,
) -> None:
    nodes.add("iris", 1, 2)
    steals = [nodes.steal(1, "iris", "loom"), nodes.steal(2, "iris", "forge")]
    nodes.switch_off("forge")
    assert told(await carry_out(steals, nodes.links)) == [("moved", ""), ("kept", "unreachable")]


async def test_a_node_without_a_link_is_asked_nothing(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    links = {"iris": nodes.links["iris"]}
    assert told(await carry_out([nodes.steal(1, "iris", "loom")], links)) == [("kept", "no_link")]
    assert nodes.links["iris"].requests == 0


@pytest.mark.parametrize("fate", ["lost", "unheard", "late", "doubled", "node_dies_after"])
@pytest.mark.parametrize("step", range(5), ids=STEPS)
async def test_trouble_at_any_step_ends_in_exactly_one_ready_task(
    nodes: SomeNodes, step: int, fate: str
) -> None:
    """The outcome may be in doubt; settling, with the nodes' own doubts, ends it."""
    nodes.add("iris", 1)
    nodes.will(*[""] * step, fate)
    (done,) = await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    if fate != "doubled":
        assert done.outcome == ("moved" if step == 4 else "in_doubt")
    nodes.weather.deliver_late()
    settled = await settle(nodes.links, await nodes.view())
    while nodes.weather.bag:
        nodes.weather.deliver_late()
    settled += await settle(nodes.links, await nodes.view())
    assert all(one.outcome == "settled" for one in settled)
    assert list(nodes.states(1).values()) == ["READY"]
    assert await nodes.doubts() == {}


@pytest.mark.parametrize("moment", ["hub_dies_before", "hub_dies_after"])
@pytest.mark.parametrize("step", range(5), ids=STEPS)
async def test_a_hub_that_dies_at_any_step_leaves_what_the_next_one_settles(
    nodes: SomeNodes, step: int, moment: str
) -> None:
    nodes.add("iris", 1)
    nodes.will(*[""] * step, moment)
    with pytest.raises(HubDied):
        await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    for name in nodes.links:
        nodes.link(name)._hub_life = nodes.weather.hub_life
    await settle(nodes.links, await nodes.view())
    assert list(nodes.states(1).values()) == ["READY"]
    assert await nodes.doubts() == {}


async def test_a_lease_that_ends_before_the_commit_leaves_the_task_with_its_giver(
    nodes: SomeNodes,
) -> None:
    nodes.add("iris", 1)
    nodes.will("", "", "slow")
    done = await carry_out([nodes.steal(1, "iris", "loom")], nodes.links, lease_s=10)
    assert told(done) == [("kept", "lease_ended")]
    assert (nodes.states(1), await nodes.doubts()) == ({"iris": "READY"}, {})


def first(result: JsonObject) -> dict[str, Any]:
    found: Any = result["results"]
    return dict(found[0])


LIES: dict[str, Any] = {
    "a foreign transfer": lambda one: [{**one, "xfer": "00XFER00000000000000000099"}],
    "the same one twice": lambda one: [one, one],
    "nothing at all": lambda one: [],
    "another task": lambda one: [
        {**one, "task": to_wire(a_task(9)), "sha256": hash_of(spec_of(a_task(9)))}
    ],
    "another epoch": lambda one: [{**one, "task": {**one["task"], "epoch": 7}}],
    "another hash": lambda one: [{**one, "sha256": "0" * 64}],
    "a changed body": lambda one: [{**one, "task": {**one["task"], "body": "rm -rf"}}],
    "an outcome that is none": lambda one: [{**one, "outcome": "fine"}],
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_in_the_answer_to_escrow_goes_no_further(nodes: SomeNodes, lie: str) -> None:
    """Seen to fail with the hash, and with the uid, no longer looked at."""
    nodes.add("iris", 1)
    await nodes.view()
    iris = twisted(
        nodes.links["iris"],
        lambda do, result: {"results": LIES[lie](first(result))} if do == "escrow" else result,
    )
    done = await carry_out([nodes.steal(1, "iris", "loom")], {**nodes.links, "iris": iris})
    assert told(done) == [("in_doubt", "unreadable")]
    assert [do for do, _ in iris.asked] == ["escrow"]
    assert nodes.links["loom"].requests == 1  # the look before
    await settle(nodes.links, await nodes.view())
    assert nodes.states(1) == {"iris": "READY"}


async def test_a_lie_about_the_hold_commits_nothing(nodes: SomeNodes) -> None:
    nodes.add("iris", 1)
    await nodes.view()
    loom = twisted(nodes.links["loom"], lambda do, result: {"results": []})
    done = await carry_out([nodes.steal(1, "iris", "loom")], {**nodes.links, "loom": loom})
    assert told(done) == [("in_doubt", "unreadable")]
    assert nodes.states(1)["iris"] == "ESCROW"


async def test_a_node_that_came_back_as_another_one_takes_nothing_meant_for_the_earlier(
    nodes: SomeNodes,
) -> None:
    from agent_node.moves import Quarantine

    nodes.add("iris", 1)
    await nodes.view()
    nodes.machines["loom"].store.apply(Quarantine("restored"))
    done = await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    assert told(done) == [("kept", "other_incarnation")]
    assert nodes.states(1) == {"iris": "READY"}
