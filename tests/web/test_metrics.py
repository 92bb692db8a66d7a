"""Prometheus reads at `/metrics` the very samples that `arc metrics` prints."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from arc.operations.metrics import FAMILIES
from arc.text.look import Look
from arc.text.metrics import render_metrics
from tests.web.stage import Stage


def samples(text: str) -> set[tuple[str, tuple[tuple[str, str], ...], float]]:
    return {(one.name, tuple(sorted(one.labels.items())), one.value)
            for family in text_string_to_metric_families(text) for one in family.samples}


async def test_both_ways_to_the_metrics_tell_the_same_and_parse(stage: Stage) -> None:
    stage.desk.nodes.add("iris", 1, 2, 3)
    stage.desk.hub.journal.nodes.strand({("iris", 'a "rule"\n\\'): 120.0})
    answer = await stage.ask("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    served = samples(answer.body.decode())
    told = await stage.door.ask("metrics", {}, by="x", timeout_s=9)
    assert served == samples(render_metrics(told.data, Look(None, colour=False)))
    named = {name for name, _, _ in served}
    assert "fleet_stranded_node_minutes_total" in named
    assert {"node_seen", "task_queue_depth"} <= named <= {
        *FAMILIES, *(f"{name}_{end}" for name in FAMILIES for end in ("sum", "count"))}


async def test_a_node_that_is_not_seen_has_no_gauges_and_without_a_hub_there_is_no_zero(
    stage: Stage,
) -> None:
    stage.desk.nodes.machines["iris"].off = True
    served = samples((await stage.ask("/metrics")).body.decode())
    about = {name for name, labels, _ in served if ("node", "iris") in labels}
    assert about == {"node_seen"}
    stage.door.hub_leaves()
    assert (await stage.ask("/metrics")).status == 503
