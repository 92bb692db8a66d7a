"""Holds the hub's rows to their arithmetic: what is counted, what is compared, and what is said."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from agent_node.reports import parse_report
from agent_node.strict import decode_object
from arc.decisions.limits import StealLimits
from arc.links.answers import parse_greeting, parse_met
from bench import floor_node
from bench.floor_hub import BareCycle
from bench.hub_far import BYTES, Answers, greeting_of, status_of
from bench.hub_planning import fleet_of, n_log_n
from bench.hub_swift import _idle_after
from bench.measuring import percentile
from bench.nodes import Pipe, Talk


@pytest.mark.parametrize(("count", "percent", "expected"), [
    (100, 99, 99.0), (200, 99, 198.0), (101, 99, 100.0), (3, 99, 3.0), (1, 99, 1.0), (4, 50, 2.0),
])  # fmt: skip
def test_a_percentile_is_a_value_that_was_measured(
    count: int, percent: int, expected: float
) -> None:
    values = [float(number) for number in range(count, 0, -1)]
    assert percentile(values, percent) == expected


def test_growth_of_n_log_n_from_125_to_500_is_a_little_more_than_fivefold() -> None:
    assert n_log_n(500) / n_log_n(125) == pytest.approx(5.148, abs=0.001)


def test_the_far_side_answers_what_the_hub_believes() -> None:
    """A fixed answer that the hub refused would make the row a measurement of errors."""
    said = decode_object(Answers("n001").to(b'{"id":17,"do":"status"}'))
    assert (said["id"], said["ok"]) == (17, True)
    result = said["result"]
    assert isinstance(result, dict)
    report = parse_report(result)
    assert (report.node, report.idle, len(report.agents)) == ("n001", True, 4)
    assert parse_greeting(greeting_of("n001").rstrip()).incarnation == report.incarnation
    met = decode_object(Answers("n001").to(b'{"id":1,"do":"hello","fleet":"bench"}'))["result"]
    assert isinstance(met, dict)
    assert parse_met(met).node == "n001"


def test_every_status_has_the_same_size_whoever_answers() -> None:
    sizes = {len(json.dumps(status_of(name), separators=(",", ":"))) for name in ("n001", "n100")}
    assert sizes == {BYTES}


def test_the_planned_fleet_has_as_many_busy_nodes_and_tasks_as_the_row_says() -> None:
    fleet = fleet_of(20, 30)
    assert len(fleet.queues) == 20
    assert sum(len(queue.tasks) for queue in fleet.queues.values()) == 600
    assert len({task.uid for queue in fleet.queues.values() for task in queue.tasks}) == 600
    assert sum(node.report.idle for node in fleet.view.seen) == 2
    assert fleet.plan(StealLimits()) == 6, "three for each idle node"


class Child(Pipe):
    """A child of the floor without its process: what is sent is carried out when it is heard."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.left: list[Talk] = []
        self.done: list[str] = []

    def send(self, document: Talk) -> None:
        self.left.append(document)

    def hear(self) -> Talk:
        request = self.left.pop(0)
        self.done.append(request["do"])
        return {"result": {"results": floor_node.DOES[request["do"]](self.db, request)}}


def a_child() -> Child:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(floor_node.TABLE)
    return Child(db)


def test_the_floors_cycle_asks_what_ours_asks_and_moves_ten_tasks() -> None:
    busy, idle = a_child(), [a_child() for _ in range(4)]
    uids = [f"u{number}" for number in range(12)]
    floor_node.add(busy.db, {"tasks": [{"uid": uid} for uid in uids]})

    BareCycle(busy, idle, uids).run()

    assert busy.done == ["status", "candidates", *["escrow"] * 4, *["commit"] * 4, *["settled"] * 4]
    assert [child.done for child in idle] == [["status", "hold", "activate"]] * 4
    states = [[state for (state,) in child.db.execute("SELECT state FROM task ORDER BY uid")]
              for child in (busy, *idle)]  # fmt: skip
    assert sorted(states[0]) == ["GONE"] * 10 + ["READY"] * 2
    assert [len(some) for some in states[1:]] == [3, 3, 3, 1]
    assert {state for some in states[1:] for state in some} == {"READY"}


def test_news_of_an_earlier_idleness_is_passed_over(tmp_path: Path) -> None:
    """The moment counts that lies after the program before could have ended."""
    news = tmp_path / "news"
    news.write_text("".join(
        json.dumps({"event": event, "seq": 1, "at": f"2026-03-10T03:45:{second}.000Z"}) + "\n"
        for event, second in (("idle", "01"), ("busy", "05"), ("idle", "06"))
    ))  # fmt: skip
    with news.open("rb") as read, (tmp_path / "sent").open("wb") as write:
        at = _idle_after(Pipe(write, read), 1_773_114_304.0)
    assert at == 1_773_114_306.0
