"""Renders what came of a machine that joined, was trusted anew, or left."""

from __future__ import annotations

from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text

from .columns import said
from .look import Look


def render_joined(data: JsonObject, look: Look) -> str:
    """How much was changed, and what is left to do; the steps themselves were told before."""
    node, changed, hints = said(data.get("node")), data.get("changed"), data.get("hints")
    count = len(changed) if isinstance(changed, list) else 0
    lines = [f"{node}: dry run, nothing was changed" if data.get("dry_run")
             else f"{node}: {counted(count, 'change')}" if count
             else f"{node}: all of it was there already; nothing was changed"]  # fmt: skip
    lines += [f"next: {safe_text(str(one))}" for one in hints] if isinstance(hints, list) else []
    return "\n".join(lines)
