"""`arc metrics` is read by Prometheus, counts each thing once, and invents nothing."""

from __future__ import annotations

import re

import pytest

from agent_node import commands as c
from agent_node.budget import Money
from agent_node.replies import HANDLERS
from agent_node.strict import JsonObject
from arc.operations.metrics import FAMILIES
from arc.text.look import Look
from arc.text.metrics import render_metrics
from tests.hub.cli.desk import Desk
from tests.test_docs import DOCS

SAMPLE = re.compile(
    r"[a-z_]+(\{([a-z_]+=\"(\\.|[^\"\\\n])*\",?)+\})? -?(\d+(\.\d+)?(e[+-]?\d+)?|\+Inf)").fullmatch


def lines(desk: Desk) -> list[str]:
    return desk.arc("metrics").lines


def value_of(desk: Desk, start: str) -> float:
    found = [line for line in lines(desk) if line.startswith(start)]
    assert len(found) == 1, (start, found)
    return float(found[0].rpartition(" ")[2])


def test_every_line_is_one_that_prometheus_reads(desk: Desk) -> None:
    desk.waits("iris", 3)
    desk.arc("sensors", "run", "fleet-health")
    said = desk.arc("metrics")
    assert said.code == 0
    kinds: dict[str, str] = {}
    for line in said.lines:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            assert SAMPLE(line), line
            name = re.split(r"[{ ]", line)[0]
            assert name in kinds or name.removesuffix("_sum").removesuffix("_count") in kinds, line
    assert set(kinds) <= set(FAMILIES)


def test_what_waits_and_who_was_seen_is_told_of_each_node(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3)
    ready = [line for line in lines(desk)
             if line.startswith("task_queue_depth{") and 'node="iris"' in line]  # fmt: skip
    assert sum(float(line.rpartition(" ")[2]) for line in ready) == 3
    assert sum('priority_tier="' in line and 'status="ready"' in line for line in ready) == 5
    assert value_of(desk, 'node_seen{node="loom"}') == 1
    assert value_of(desk, "daily_spend_usd") == 0


def test_a_node_that_tells_no_tiers_yet_has_one_row_and_is_no_trouble(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a node of before counts as one that could not be read (exit 3)."""
    desk.waits("iris", 1, 2, 3)
    monkeypatch.delitem(HANDLERS, "tiers")
    assert desk.arc("metrics").code == 0
    assert value_of(desk, 'task_queue_depth{node="iris",status="ready"}') == 3


def test_a_node_that_tells_its_tiers_badly_is_named_and_still_counted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.waits("iris", 1, 2, 3)
    monkeypatch.setitem(HANDLERS, "tiers", lambda *_: {"ready_by_tier": {"critical": -1}})
    ran = desk.arc("metrics", "--json")
    assert ran.code == 3
    assert [one["node"] for one in ran.envelope["partial"]] == ["iris"]
    assert value_of(desk, 'task_queue_depth{node="iris",status="ready"}') == 3


def test_what_a_node_may_still_spend_is_told_where_it_has_a_limit(desk: Desk) -> None:
    """Fails when nobody reads it: the page has a row, and no line ever says it."""
    assert not any(line.startswith("budget_remaining_usd") for line in lines(desk))
    desk.nodes.machines["iris"].store.spend_within(Money("12.50"))
    assert value_of(desk, 'budget_remaining_usd{node="iris"}') == 12.5
    desk.nodes.switch_off("loom")
    assert value_of(desk, "budget_remaining_usd") == 12.5  # and no other node says it


def test_an_attempt_is_counted_once_however_often_it_is_heard(desk: Desk) -> None:
    result = c.Result("completed", cost_usd="0.25", duration_s=3.0)
    desk.nodes.machines["iris"].store.apply(c.Finish(desk.runs("iris", 1), 1, result))
    for _ in range(3):
        desk.arc("sensors", "run", "fleet-health")
    of_agent = '{agent="iris",node="iris"}'
    assert value_of(desk, f"tasks_completed_total{of_agent}") == 1
    assert value_of(desk, f"task_cost_usd_total{of_agent}") == 0.25
    assert value_of(desk, "daily_spend_usd") == 0.25
    assert value_of(desk, f"agent_busy_seconds_total{of_agent}") == 3


def test_a_label_cannot_break_out_of_its_line() -> None:
    data: JsonObject = {"families": [{"name": "x", "kind": "gauge", "help": "h", "samples": [
        {"name": "x", "labels": {"node": 'a"} 1\nx{b="\\'}, "value": 0.5}]}]}
    text = render_metrics(data, Look())
    assert len(text.splitlines()) == 3
    assert SAMPLE(text.splitlines()[2]), text


def test_the_page_has_a_row_for_every_metric_and_no_other() -> None:
    page = (DOCS / "metrics.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (gauge|counter|summary) \|", page, re.MULTILINE)
    assert dict(rows) == {name: kind for name, (kind, _) in FAMILIES.items()}


def test_the_page_names_every_door_to_them() -> None:
    """Seen to fail without the page's own door: who scrapes would not know that there is one."""
    page = (DOCS / "metrics.md").read_text()
    assert all(f"`{door}`" in page for door in ("arc metrics", "/metrics", "task_cost_usd"))
