"""Tells which skills the nodes reported last, and which signs of a domain no task has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.reports import StatusReport
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.sounding import KINDS
from arc.looking import remembered

from . import Told
from .known_subjects import look_through

if TYPE_CHECKING:
    from arc.hub import Hub


SIGNS_MAX = 10_000


async def config_seen(hub: Hub, args: JsonObject) -> Told:
    """Each node that was heard lately; who is not named was not. Nobody is asked for that.

    `prefix`, `words`: signs for which the tasks that nodes know are looked through.
    """
    asked = Fields(args)
    signs = {kind: [*map(str, asked.entries(kind, SIGNS_MAX))]
             for kind in KINDS if asked.has(kind)}  # fmt: skip
    view, _ = remembered(hub)
    lately_s = hub.settings.health.stale_after_s
    heard: list[JsonValue] = [
        {"node": node.name, "skills": [*skills_said(node.report)]}
        for node in view.seen if node.age_s <= lately_s
    ]  # fmt: skip
    if not signs:
        return Told({"nodes": heard, "sounds": None, "unread": []})
    sounds, unread = await look_through(hub, signs)
    missing: JsonObject = {kind: [*some] for kind, some in sounds.missing.items()}
    return Told({"nodes": heard, "sounds": {"tasks": sounds.tasks, "missing": missing},
                 "unread": [*unread]})  # fmt: skip


def skills_said(report: StatusReport) -> tuple[str, ...]:
    """What its agents and its machine can do; empty: its node.toml says nothing of skills."""
    return tuple(sorted({*report.skills, *report.capabilities})) if report.skills else ()
