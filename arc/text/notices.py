"""Renders who is told of what, and what came of a test."""

from __future__ import annotations

from agent_node.strict import JsonObject

from .columns import objects, rows, said
from .look import Look


def render_notices(data: JsonObject, look: Look) -> str:
    """A line a receiver: of what, how, and how it fares."""
    receivers = objects(data, "receivers")
    if not receivers:
        return "nobody is told: fleet.yaml has no notify:"
    lines = [
        (said(one.get("name")), said(one.get("how")), said(one.get("to")), said(one.get("on")),
         said(one.get("waiting")), said(one.get("told_at")), said(one.get("tries")),
         said(one.get("problem")))
        for one in receivers
    ]  # fmt: skip
    head = ("NAME", "HOW", "TO", "OF WHAT", "WAITING", "TOLD", "IN VAIN", "PROBLEM")
    text = rows(head, lines, look)
    if data.get("hub_running") is False:
        text += "\nno hub runs, so nobody is told: arc up"
    return text


def render_notice_test(data: JsonObject, look: Look) -> str:
    """Whether it was taken."""
    went = "would be told" if data.get("dry_run") else "took it"
    return f"{said(data.get('name'))}: {said(data.get('how'))} {said(data.get('to'))} {went}"
