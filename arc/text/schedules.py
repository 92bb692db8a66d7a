"""Renders where work comes from by itself, and what a schedule added."""

from __future__ import annotations

from agent_node.strict import JsonObject

from .columns import inside, objects, rows, said, shorts
from .look import Look

_KINDS = {"cron": "schedule", "files": "files", "watch": "failures"}


def render_schedules(data: JsonObject, look: Look) -> str:
    """A line a source: when it adds work next, and what it did last."""
    sources = objects(data, "sources")
    if not sources:
        read = f", as the hub read it {said(data['read_at'])}," if data.get("read_at") else ""
        none = f"fleet.yaml{read} has no schedules:, watch_files: or watch:"
        return "\n".join([f"no work comes by itself: {none}", *_refused(data)])
    short = shorts(one for one in sources if one.get("uid"))
    lines = [
        (said(one.get("name")), said(_KINDS.get(str(one.get("kind")))), said(one.get("when")),
         said(one.get("zone")), said(one.get("next")), said(one.get("last_at")),
         said(one.get("outcome")), short[str(one.get("uid"))])
        for one in sources
    ]  # fmt: skip
    head = ("NAME", "KIND", "WHEN", "ZONE", "NEXT", "LAST", "IT WAS", "TASK")
    return "\n".join([rows(head, lines, look), *_notes(data)])


def render_schedule(data: JsonObject, look: Look) -> str:
    """One source whole."""
    kind = said(_KINDS.get(str(data.get("kind"))))
    lines = [f"{said(data.get('name'))}: {kind}, {said(data.get('when'))} "
             f"{said(data.get('zone'), '')}".rstrip()]  # fmt: skip
    lines += [f"  next {said(one)}" for one in _texts(data, "times")]
    if data.get("last_at"):
        lines.append(f"  last {said(data.get('last_at'))}: {said(data.get('outcome'))} "
                     f"{said(data.get('uid'))}: {said(data.get('because'))}")  # fmt: skip
    else:
        lines.append("  has added nothing yet")
    if data.get("missed"):
        lines.append(f"  {said(data.get('missed'))} times passed without work of their own")
    task = inside(data, "task") or inside(data, "graph")
    lines += [f"  {said(data.get('what'))} {said(name)}: {said(value)}"
              for name, value in task.items() if not isinstance(value, dict)]  # fmt: skip
    return "\n".join([*lines, *_notes(data)])


def _texts(data: JsonObject, name: str) -> list[str]:
    found = data.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _refused(data: JsonObject) -> list[str]:
    """A file that cannot be obeyed leaves what it said before."""
    why = said(data.get("complaint"), "")
    return [f"what stands in it now cannot be obeyed: {why}: arc config check"] if why else []


def _notes(data: JsonObject) -> list[str]:
    return [*_refused(data), *_standing(data)]


def _standing(data: JsonObject) -> list[str]:
    if data.get("paused"):
        return ["the fleet is paused: nothing is added until arc resume"]
    if data.get("hub_running") is False:
        return ["no hub runs, so nothing is added by itself: arc up"]
    return []


def render_schedule_run(data: JsonObject, look: Look) -> str:
    """What became of the work that was asked for now."""
    would = "would be " if data.get("dry_run") else ""
    head = (f"{said(data.get('name'))}: {said(data.get('what'))} {said(data.get('uid'))} "
            f"{would}{said(data.get('outcome'))}")  # fmt: skip
    if data.get("rule"):
        head += f": {said(data.get('rule'))}: {said(data.get('because'))}"
    return head
