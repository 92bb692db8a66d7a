"""Gathers the fleet's metrics: what was counted so far, and how every node is at this moment."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State
from arc.decisions.tallying import ENDLESS, UNIT, Labels, quantile
from arc.decisions.view import NodeSeen
from arc.looking import look

from . import Told
from .depths import tiers_of

if TYPE_CHECKING:
    from arc.hub import Hub

# name: (kind, what it counts). The order is that of the page.
FAMILIES: dict[str, tuple[str, str]] = {
    "task_queue_depth": (
        "gauge", "Tasks on a node by status, READY ones by tier, too; as the node says now."),
    "task_queue_oldest_seconds": ("gauge", "For how long the oldest READY task of a node waits."),
    "task_queue_wait_seconds": ("summary", "From READY to claimed, today and yesterday, UTC."),
    "tasks_added_total": ("counter", "Tasks that were added on a node."),
    "tasks_completed_total": ("counter", "Attempts that completed their task."),
    "tasks_failed_total": ("counter", "Attempts that failed, by the kind of failure."),
    "tasks_retried_total": ("counter", "Failed attempts after which another one was due."),
    "tasks_interrupted_total": ("counter", "Attempts that were cut short and cost no try."),
    "tasks_dead_lettered_total": (
        "counter", "Tasks that no further attempt was made of, by their last failure."),
    "tasks_parked_total": ("counter", "Tasks that were left to a person."),
    "tasks_cancelled_total": ("counter", "Tasks that were cancelled."),
    "tasks_arrived_total": ("counter", "Tasks that a node was given by another one."),
    "tasks_left_total": ("counter", "Tasks that a node gave away."),
    "task_cost_usd_total": ("counter", "What attempts said that they cost."),
    "daily_spend_usd": ("gauge", "The same since midnight, UTC."),
    "budget_remaining_usd": ("gauge", "What a node may still spend today, where it has a limit."),
    "agent_utilization": ("gauge", "Share of an agent's slots at work, as its node says now."),
    "agent_busy_seconds_total": ("counter", "How long attempts of an agent took."),
    "agent_claims_total": ("counter", "Tasks that an agent claimed."),
    "agent_starts_total": ("counter", "Claims whose program started."),
    "agent_claim_success_rate": ("gauge", "Starts of claims, of all that were counted."),
    "agent_heartbeat_misses_total": ("counter", "Attempts that were silent for too long."),
    "fleet_stranded_node_minutes_total": (
        "counter", "Minutes in which a free slot stood beside work that fits it, by cause."),
    "fleet_moves_total": ("counter", "Moves that were begun, by why and how they ended."),
    "fleet_refusals_total": ("counter", "Tasks that a run left where they were, by rule."),
    "sensor_runs_total": ("counter", "Runs of the hub's sensors by outcome."),
    "sensor_seconds_total": ("counter", "How long they took."),
    "node_seen": ("gauge", "1: the node answered just now; 0: it did not, and nothing is known."),
    "node_slots": ("gauge", "How many tasks a node may run at once."),
    "node_free_slots": ("gauge", "How many more it could run now."),
    "node_idle": ("gauge", "1: nothing waits or runs there."),
    "node_disk_free_bytes": ("gauge", "Room on the disk of its queue."),
}  # fmt: skip
QUANTILES = {"0.5": 0.5, "0.95": 0.95, "0.99": 0.99}
WAITS = "task_queue_wait_seconds"

Samples = dict[str, list[tuple[str, Labels, float]]]  # by family: (its name on the line, …)


async def metrics(hub: Hub, args: JsonObject) -> Told:
    """Everything that is counted, as families of samples; a node that is not seen has no gauges."""
    seen = await look(hub)
    found: Samples = defaultdict(list)
    _counters(found, hub)
    _waits(found, hub)
    _today(found, hub)
    _claim_rate(found)
    whole = seen.whole.seen
    tiers, failed = await tiers_of(
        hub, [node.name for node in whole if node.report.counts.get(State.READY)]
    )
    for node in whole:
        _depth(found, node, tiers.get(node.name, {}))
    for node in seen.view.seen:
        _gauges(found, node)
    for unseen in seen.view.unseen:
        found["node_seen"].append(("node_seen", (("node", unseen.name),), 0.0))
    families: list[JsonValue] = [
        {"name": name, "kind": kind, "help": text, "samples": _told(found[name])}
        for name, (kind, text) in FAMILIES.items() if found.get(name)
    ]  # fmt: skip
    partial = (*(_partial(one.name, one.code, one.because) for one in seen.view.silent),
               *(_partial(name, one.code, str(one)) for name, one in failed.items()))  # fmt: skip
    return Told({"families": families}, exit=3 if partial else 0, partial=partial)


def _partial(node: str, code: str, because: str) -> JsonObject:
    return {"node": node, "error": {"code": code, "message": because}}


def _told(samples: list[tuple[str, Labels, float]]) -> list[JsonValue]:
    return [{"name": name, "labels": dict(labels), "value": value}
            for name, labels, value in samples]  # fmt: skip


def _counters(found: Samples, hub: Hub) -> None:
    for (name, labels), value in hub.journal.tallies.all().items():
        if FAMILIES.get(name, ("", ""))[0] == "counter":
            found[name].append((name, labels, value / UNIT))


def _waits(found: Samples, hub: Hub) -> None:
    """Quantiles over all nodes, from the buckets of today and yesterday."""
    buckets: dict[str, int] = defaultdict(int)
    for (_, labels), value in hub.journal.tallies.of_a_day(WAITS).items():
        buckets[dict(labels).get("le", ENDLESS)] += value // UNIT
    for word, share in QUANTILES.items():
        wait = quantile(buckets, share)
        if wait is not None:
            found[WAITS].append((WAITS, (("quantile", word),), wait))
    if buckets:
        total = sum(hub.journal.tallies.of_a_day(f"{WAITS}_sum").values())
        found[WAITS].append((f"{WAITS}_sum", (), total / UNIT))
        found[WAITS].append((f"{WAITS}_count", (), float(sum(buckets.values()))))


def _today(found: Samples, hub: Hub) -> None:
    spent = sum(hub.journal.tallies.of_today("task_cost_usd_total").values())
    found["daily_spend_usd"].append(("daily_spend_usd", (), spent / UNIT))


def _claim_rate(found: Samples) -> None:
    claims = {labels: value for _, labels, value in found.get("agent_claims_total", [])}
    starts = {labels: value for _, labels, value in found.get("agent_starts_total", [])}
    for labels, count in claims.items():
        rate = min(starts.get(labels, 0.0) / count, 1.0)
        found["agent_claim_success_rate"].append(("agent_claim_success_rate", labels, rate))


def _gauges(found: Samples, node: NodeSeen) -> None:
    report, labels = node.report, (("node", node.name),)
    left = report.budget_remaining_usd
    for name, value in {
        "budget_remaining_usd": None if left is None else float(left),
        "node_seen": 1, "node_slots": report.slots, "node_free_slots": report.free_slots,
        "node_idle": int(report.idle), "node_disk_free_bytes": report.disk_free_bytes,
    }.items():  # fmt: skip
        if value is not None:
            found[name].append((name, labels, float(value)))
    for agent in report.agents:
        if agent.slots:
            share = min(agent.running / agent.slots, 1.0)
            place = (("agent", agent.name), *labels)
            found["agent_utilization"].append(("agent_utilization", place, share))


def _depth(found: Samples, node: NodeSeen, tiers: dict[str, int]) -> None:
    """READY by tier where the node tells tiers, so that a sum over the rest still is how many."""
    name = "task_queue_depth"
    for status, count in sorted(node.report.counts.items()):
        place = (("node", node.name), ("status", status.lower()))
        if status == State.READY and tiers:
            found[name] += [(name, (*place, ("priority_tier", tier)), float(ready))
                            for tier, ready in tiers.items()]  # fmt: skip
        else:
            found[name].append((name, place, float(count)))
    oldest = node.report.oldest_ready_s
    if oldest is not None:
        name = "task_queue_oldest_seconds"
        found[name].append((name, (("node", node.name),), oldest))
