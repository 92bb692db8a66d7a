"""Tells one task's life as the hub saw it: how it came, its attempts, its moves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.errors import BadInput
from agent_node.fields import ulid
from agent_node.strict import JsonObject, JsonValue
from arc.errors import WrongUse

if TYPE_CHECKING:
    from arc.history import History


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """Every moment that the hub remembers of a task, in order; empty where it never heard of it."""
    uid = query.get("uid", "")
    try:
        ulid(uid, "uid")
    except BadInput as error:
        raise WrongUse(str(error)) from error
    arrival, stints, moves = history.life_of(uid)
    lines: list[tuple[datetime, JsonObject]] = []
    if arrival is not None:
        lines.append((arrival.at, {"what": arrival.how, "node": arrival.node}))
    lines += [(one.at, {"what": "moved" if one.outcome == "moved" else f"move {one.outcome}",
                        "node": one.busy, "to": one.idle, "why": one.why, "rule": one.rule,
                        "because": one.because, "run": one.run}) for one in moves]  # fmt: skip
    for one in stints:
        began = one.started_at or one.claimed_at
        lines.append((began, {"what": "started", "node": one.node, "n": one.n,
                              "agent": one.agent}))  # fmt: skip
        if one.ended_at is not None:
            cost: JsonValue = None if one.cost_usd is None else str(one.cost_usd)
            took = round((one.ended_at - began).total_seconds(), 1)
            lines.append((one.ended_at, {"what": one.outcome, "node": one.node, "n": one.n,
                                         "error": one.error_kind, "cost_usd": cost,
                                         "took_s": took}))  # fmt: skip
    lines.sort(key=lambda line: line[0])
    return {"uid": uid, "known": arrival is not None or bool(stints) or bool(moves),
            "lines": [{"at": iso(at), **line} for at, line in lines]}  # fmt: skip
