"""The faults of the fleet router that this one learned from: each with what must happen instead.

Its log has 56 cycles with idle and busy agents, and not one move. Those of its faults that a plan
alone can have are in tests/decisions/; docs/reliability.md lists all of them with their tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.asking import read_report
from arc.errors import AnswerUnreadable
from arc.operations.nodes_steer import nodes_suspend
from arc.settling import settle
from arc.survey import survey
from arc.transfer import carry_out
from tests.builders import uid
from tests.fleet.machines import MemoryLink
from tests.hub_builders import a_hub
from tests.hub_nodes import SomeNodes, some_nodes, twisted
from tests.sensors_stage import Scene, rows, within
from tests.virtual_time import LoopClock

Scenes = Callable[..., Scene]
OTHER = "01J0000000000000000000000B"
REBALANCE, ROUTER, HEALTH = "fleet-rebalance", "fleet-router", "fleet-health"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SomeNodes]:
    with some_nodes(tmp_path, "iris", "loom") as found:
        yield found


def others_work(scene: Scene) -> None:
    """Loom alone is idle, and has been for five minutes."""
    for node in ("forge", "spark"):
        scene.has(node, 1, priority=3)
        scene.works(node)
    scene.passes(300)


@contextmanager
def a_second_hub(scene: Scene, place: Path) -> Iterator[None]:
    """Another hub of the same fleet and term, with the same table of nodes, on one of them."""
    words = replace(scene.fleet.words, instance=OTHER)
    links = {name: MemoryLink(machine, words, scene.fleet.weather)
             for name, machine in scene.fleet.machines.items()}  # fmt: skip
    first, scene.hub = scene.hub, a_hub(place, LoopClock(scene.loop), links=links)
    yield
    scene.loop.run_until_complete(scene.hub.close())
    scene.hub = first


# --- What was hidden, and looked like nothing -----------------------------------------------------


def test_fault_twenty_urgent_tasks_hid_every_one_that_could_be_stolen(scene: Scene) -> None:
    """`ORDER BY priority LIMIT 20`, then "P5 and less urgent": in a long queue none was left."""
    urgent: list[JsonObject] = [{"subject": f"urgent {n}", "priority": 1} for n in range(60)]
    scene.asks("iris", "add", tasks=[*urgent, *({"subject": f"{n}", "priority": 9}
                                                for n in range(3))])  # fmt: skip
    others_work(scene)
    report = scene.run(REBALANCE)
    assert [one.priority for one in report.moves] == [9, 9, 9]


def test_fault_the_router_took_an_empty_node_for_a_full_one(scene: Scene) -> None:
    """`parseInt(count) || 999`: zero was read as missing, and the empty node got nothing, ever."""
    scene.asks("inbox", "add", tasks=[{"subject": "s", "skills": ["clarity"]}])
    assert scene.waiting("spark") == 0
    assert [(one.busy, one.idle) for one in scene.run(ROUTER).moves] == [("inbox", "spark")]


def test_fault_a_node_that_had_begun_to_work_still_called_itself_idle(scene: Scene) -> None:
    """The flag was written at the end of a cycle and not taken back at the start of the next."""
    scene.has("iris", 13, priority=8)
    scene.has("loom", 1, priority=8)
    others_work(scene)
    scene.works("loom")
    report = scene.run(REBALANCE)
    assert (report.moves, report.skipped) == ((), "no idle")


async def test_fault_a_stamp_without_a_zone_was_360_minutes_off(nodes: SomeNodes) -> None:
    """Stamps in UTC were read as local ones: "-360m ago" stood on the dashboards."""
    said = await nodes.links["iris"].ask("status")
    naive = {**said, "written_at": str(said["written_at"]).rstrip("Z")}
    with pytest.raises(AnswerUnreadable, match="written_at"):
        read_report("iris", None, naive)
    hours_ahead = {**said, "written_at": "2031-01-01T06:00:00.000Z"}
    links = {"iris": twisted(nodes.links["iris"], lambda do, result: hours_ahead)}
    view = await survey(links, roles={}, clock=nodes.machines["loom"].clock)
    assert [one.age_s for one in view.seen] == [0.0]  # by the hub's own receipt


# --- What a move lost -----------------------------------------------------------------------------


async def test_fault_a_stolen_task_came_without_its_body_its_parent_and_its_attempts(
    nodes: SomeNodes,
) -> None:
    """Routing cut the text at 500 characters, stealing dropped it, and neither carried the rest."""
    before = {
        "body": "é" * 4000, "parent": uid(77), "skills": ["ci", "stacks-js"], "needs": ["gpu"],
        "domain": "research", "priority": 6, "tags": ["nightly"], "key": "build-7",
        "not_before": "2026-03-01T00:00:00.000Z", "max_attempts": 5, "extra": {"theirs": 1},
    }  # fmt: skip
    nodes.add("iris", 1, **before)
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    task = within(await nodes.links["loom"].ask("show", {"uid": uid(1)}), "task")
    assert isinstance(task, dict)
    assert {name: task[name] for name in before} == before


def test_fault_skills_were_a_list_by_one_way_and_a_text_by_the_other(scene: Scene) -> None:
    """One path sent JSON, the other commas: what was routed could not be stolen by its skills."""
    skills = ["clarity", "of two, one"]
    scene.asks("inbox", "add", tasks=[{"subject": "s", "skills": [*skills]}])
    assert scene.run(ROUTER).acted == 1
    (task,) = rows(scene.asks("spark", "list", states=["READY"]), "tasks")
    assert task["skills"] == skills


async def test_fault_attempts_were_counted_anew_on_the_other_node(nodes: SomeNodes) -> None:
    """A task that had failed twice began with its first attempt wherever it came to."""
    nodes.add("iris", 1, max_attempts=3)
    iris, loom = (nodes.machines[name].store for name in ("iris", "loom"))
    first = iris.apply(c.Claim("iris"))
    assert isinstance(first, c.Claimed)
    iris.apply(c.Started(uid(1), first.n, 42, 99, nodes.machines["iris"].clock.boot_id()))
    iris.apply(c.Finish(uid(1), first.n, c.Result("interrupted")))
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    second = loom.apply(c.Claim("loom"))
    assert isinstance(second, c.Claimed)
    assert second.n == first.n + 1


async def test_fault_the_key_was_lost_with_the_source_and_the_task_made_again(
    nodes: SomeNodes,
) -> None:
    """`source` became `fleet:x:stolen`, which no sensor knew: it made its task a second time."""
    nodes.add("iris", 1, key="check-7", source="cron:disk", origin="cron:disk")
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    task = within(await nodes.links["loom"].ask("show", {"uid": uid(1)}), "task")
    assert within(task, "source") == "fleet:iris:stolen"
    assert (within(task, "key"), within(task, "origin")) == ("check-7", "cron:disk")
    same = {name: within(task, name) for name in ("subject", "priority", "key", "body")}
    said = await nodes.links["iris"].ask("add", {"tasks": [same]})
    assert [(one["outcome"], one["uid"]) for one in rows(said, "results")] == [("exists", uid(1))]
    assert nodes.states(1) == {"loom": "READY"}


async def test_fault_what_was_stolen_counted_as_completed_where_it_had_been(
    nodes: SomeNodes,
) -> None:
    """The copy left behind was closed as "completed": who depended on it was set free."""
    nodes.add("iris", 1)
    await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    left = await nodes.links["iris"].ask("show", {"uid": uid(1)})
    assert within(left, "task", "state") == "MOVED"
    counts = within(await nodes.links["iris"].ask("status"), "counts")
    assert isinstance(counts, dict)
    assert not counts.get("COMPLETED")


# --- What ran twice -------------------------------------------------------------------------------


async def test_fault_a_task_that_had_just_started_was_stolen_all_the_same(
    nodes: SomeNodes,
) -> None:
    """It was closed without a look at whether it was still pending: it ran there and here."""
    nodes.add("iris", 1)
    planned = nodes.steal(1, "iris", "loom")
    got = nodes.machines["iris"].store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    (done,) = await carry_out([planned], nodes.links)
    assert (done.outcome, nodes.states(1)) == ("kept", {"iris": "CLAIMED"})


async def test_fault_a_timeout_after_the_change_made_the_task_again_in_the_next_cycle(
    nodes: SomeNodes,
) -> None:
    """The answer was lost, not the request: it counted as failed, and was created once more."""
    nodes.add("iris", 1)
    nodes.will("", "lost")  # the answer to hold
    (done,) = await carry_out([nodes.steal(1, "iris", "loom")], nodes.links)
    assert done.outcome == "in_doubt"
    await settle(nodes.links, await nodes.view())
    assert list(nodes.states(1).values()) == ["READY"]


def test_fault_one_suspended_agent_disabled_every_sensor(scene: Scene) -> None:
    """It was asked whether any agent is suspended where "this one" was meant."""
    scene.hub.journal.words.suspend("forge", by="human:lukas", reason="the vendor")
    del scene.hub.links["forge"]  # as the running hub does
    scene.has("iris", 13, priority=8)
    scene.passes(300)
    assert scene.run(REBALANCE).acted > 0
    assert scene.run(HEALTH).outcome == "done"


def test_fault_work_was_pushed_to_agents_that_were_suspended(scene: Scene) -> None:
    """It lay there for days. Spark owns this work and looked idle a moment ago.

    Guard: with the word left out of what a look remembers, the reason is not this one.
    """
    assert scene.run(ROUTER).looked == 4
    scene.tells(nodes_suspend, node="spark", reason="the vendor", by="human:lukas")
    scene.asks("inbox", "add", tasks=[{"subject": "s", "skills": ["clarity"]}])
    report = scene.run(ROUTER)
    assert report.moves == ()
    assert {(one.node, one.rule, one.because) for one in report.decisions} == {
        ("inbox", "node_answers", "spark: suspended by human:lukas: the vendor")}
    assert scene.waiting("inbox") == 1


# --- What went round, and what grew by itself -----------------------------------------------------


def test_fault_every_worker_was_a_router_too(scene: Scene, tmp_path: Path) -> None:
    """Each moved on what the others had moved to it. A second hub is refused before it may ask."""
    scene.has("iris", 13, priority=8)
    others_work(scene)
    scene.run(HEALTH)  # every node knows the hub
    with a_second_hub(scene, tmp_path / "spark"):
        for sensor in (ROUTER, REBALANCE):
            report = scene.run(sensor)
            assert (report.outcome, report.looked, report.moves) == ("could_not_look", 0, ())
        said = {one.node: one.because for one in scene.run(HEALTH).decisions}
    assert sorted(said) == sorted(scene.fleet.machines)
    assert all("obeys another hub" in because for because in said.values())
    assert scene.run(REBALANCE).acted == 3


def test_fault_all_failed_at_once_and_each_was_a_message_and_a_task(scene: Scene) -> None:
    """The vendor suspended all of them: a message each, a task for each message, and no end."""
    scene.run(HEALTH)
    for node in scene.fleet.machines:
        scene.off(node)
    scene.passes(600)
    report = scene.run(HEALTH)
    said = "no route to it; nothing changed there; last seen 10m ago (and alike)"
    assert within(report.details, "told") == [f"forge, iris, loom, spark: {said}"]
    scene.passes(300)
    assert within(scene.run(HEALTH).details, "told") == []
    assert scene.waiting("inbox") == 0
