"""NEEDS YOU of the page is that of `arc status`, entry for entry, and no node is asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_node.strict import JsonObject, JsonValue
from arc.doubted import PATIENCE_S, Doubted
from arc.operations.page_now import page_now
from arc.operations.status import status
from arc.schedule import Schedule
from arc.settings import NotifyEntry
from tests.builders import uid
from tests.sensors.test_circles import ten_minutes, waits
from tests.sensors.test_graphs_across import DAG, a_graph, day, hub_restarts, runs_it, submitted
from tests.sensors_stage import Scene, rows, within

__all__ = ["day"]
HEALTH, ROUTER = "fleet-health", "fleet-router"
EVERY_KIND = (
    "the hub runs on with what it knew", "1 dead (1 auth_failure): ", "waits in the hub's queue",
    "speaks against it", "in a circle", f"graph {DAG} ", "is told nothing",
    "no route to it", "no node that was seen has gpu",
)  # fmt: skip


def ends_badly(day: Scene) -> None:
    """A graph that spark keeps fails with its first task, which is dead."""
    submitted(day, a_graph(("b", "a")), home="spark")
    assert runs_it(day, "spark", how="failed") == uid(1)


def is_left_over(day: Scene, number: int) -> None:
    """A copy waits in the hub's queue of what the router found to be done."""
    task: JsonObject = {"uid": uid(number), "subject": "x", "skills": ["arc-research"]}
    day.asks("iris", "add", tasks=[task])
    runs_it(day, "iris")
    day.asks("inbox", "add", tasks=[task])
    for _ in range(2):
        report = day.run(ROUTER)
        day.hub.journal.runs.add(report, began=day.hub.clock.now(), because="interval")


def is_told_nothing(day: Scene) -> None:
    day.hub.settings = replace(day.hub.settings, notify=(NotifyEntry("pager", ("parked",)),))
    for _ in range(3):
        (pager,) = day.hub.journal.notices.receivers(["pager"]).values()
        day.hub.journal.notices.failed(pager, "nobody listens")


def is_doubted(day: Scene) -> None:
    now = day.hub.clock.boottime()
    day.hub.doubted[uid(40)] = Doubted(uid(40), "iris", "COMPLETED", "loom", now - PATIENCE_S, now)


def everything_happens(day: Scene) -> None:
    ends_badly(day)
    is_left_over(day, 20)
    waits(day, "iris", 31, 32)
    waits(day, "loom", 32, 31)
    day.off("forge")
    day.asks("inbox", "add", tasks=[{"uid": uid(60), "subject": "x", "needs": ["gpu"]}])
    ten_minutes(day)
    is_told_nothing(day)
    is_doubted(day)
    day.hub.complaint = "line 3: nodse"
    day.hub.schedule = Schedule(day.hub)  # a page is told by a hub that runs


def asked(day: Scene) -> dict[str, int]:
    return {name: link.requests for name, link in day.hub.links.items() if name != "inbox"}


def needs(day: Scene) -> JsonValue:
    """What the page says, and that nobody was asked for it."""
    before = asked(day)
    said = day.tells(page_now).data["needs_you"]
    assert asked(day) == before
    return said


def test_every_kind_of_entry_of_the_status_stands_on_the_page(day: Scene) -> None:
    """Fails where each has a list of its own: circles, failed graphs of nodes, and of what dead
    letters died were never on the page.
    """
    everything_happens(day)
    said = day.tells(status).data
    texts = [str(one["text"]) for one in rows(said["needs_you"])]
    for words in EVERY_KIND:
        assert any(words in text for text in texts), (words, texts)
    assert needs(day) == said["needs_you"]
    assert day.tells(page_now).data["graphs"] == said["graphs"]


def test_the_page_needs_nobody_who_asks_for_the_status(day: Scene) -> None:
    """What a look at the fleet's health asked is remembered, and what is over is shown no more."""
    ends_badly(day)
    day.run("fleet-rebalance")
    assert f"graph {DAG}" not in str(needs(day))
    assert within(day.tells(page_now).data, "graphs", "unread") == ["spark"]
    day.run(HEALTH)
    said = needs(day)
    assert f'graph {DAG} "a graph" failed' in str(said)
    assert "1 dead (1 auth_failure): " in str(said)
    day.asks("spark", "retry", uid=uid(1), reason="mended", by="human:ann")
    day.run(HEALTH)
    assert (str(needs(day)).count(" dead "), f"graph {DAG}" in str(needs(day))) == (0, False)


@pytest.mark.parametrize("journal", ["kept", "lost"])
def test_a_hub_that_starts_anew_says_what_it_has_not_asked(day: Scene, journal: str) -> None:
    ends_badly(day)
    day.run(HEALTH)
    hub_restarts(day, journal=journal)
    day.run("fleet-rebalance")
    assert within(day.tells(page_now).data, "graphs", "unread") == ["spark"]
    day.run(HEALTH)
    assert within(day.tells(page_now).data, "graphs", "unread") == []


def test_a_node_that_has_no_answer_now_keeps_its_own_sentence(day: Scene) -> None:
    """Of more dead letters than were counted by kind, the count alone is said."""
    ends_badly(day)
    day.run(HEALTH)
    day.asks("spark", "add", tasks=[{"uid": uid(50), "subject": "x", "max_attempts": 1}])
    assert runs_it(day, "spark", how="failed") == uid(50)
    day.run("fleet-rebalance")
    assert "2 dead: " in str(needs(day))
