"""Tells what an answer to `why` rests on: earlier cycles, the last run, and how old reports are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.decisions.answers import History
from arc.looking import INBOX, Look

if TYPE_CHECKING:
    from arc.hub import Hub

REBALANCE, ROUTER = "fleet-rebalance", "fleet-router"
CYCLES = 100  # of which the journal is asked whether they could look


def history_of(hub: Hub, uid: str, node: str) -> History:
    """In how many cycles it stayed there, and in how many the queue could not be read."""
    stayed, since = hub.journal.runs.stayed(uid, node)
    blind = sum(_blind(run.report.details, node)
                for run in hub.journal.runs.last(REBALANCE, CYCLES))  # fmt: skip
    return History(stayed, iso(since) if since else None, blind)


def evidence_of(hub: Hub, seen: Look, node: str) -> JsonObject:
    """What the answer rests on: how old the reports are, and which run decided last."""
    sensor = ROUTER if node == INBOX else REBALANCE
    last = next(iter(hub.journal.runs.last(sensor)), None)
    ages = [one.age_s for one in seen.view.seen]
    return {"evidence": {
        "sensor": sensor, "run": last.id if last else None, "at": iso(last.at) if last else None,
        "summary": last.report.summary if last else None,
        "oldest_report_s": round(max(ages), 1) if ages else None, "seen": len(ages),
        "unseen": [{"node": one.name, "rule": one.rule, "because": one.because, "code": one.code}
                   for one in seen.view.unseen],
    }}  # fmt: skip


def _blind(details: JsonObject, node: str) -> bool:
    """Whether a run could not read this node, or its queue."""
    nodes = details.get("nodes")
    return any(
        isinstance(one, dict) and one.get("node") == node
        and (bool(one.get("code")) or one.get("rule") == "queue_was_read")
        for one in (nodes if isinstance(nodes, list) else [])
    )  # fmt: skip
