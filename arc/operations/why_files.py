"""Looks up the files that a task waits for: where each is, and what was tried to bring it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import safe_text, size
from arc.asking import ENTRIES_MAX, reading
from arc.errors import ArcError

from .finding import Found

if TYPE_CHECKING:
    from arc.hub import Hub

GRAPHS = "fleet-graphs"
FILES_MAX = 20
INPUTS_MISSING = "inputs_missing"
TEXT_MAX = 500


async def files_of(hub: Hub, found: Found) -> JsonObject:
    """What `why` adds for a task that waits for files; nothing for every other one."""
    rules = {one.get("rule") for one in found.task.blocked_by if isinstance(one, dict)}
    link = hub.links.get(found.node)
    if INPUTS_MISSING not in rules or link is None:
        return {}
    try:
        asked: JsonObject = {"uid": found.uid, "limit": FILES_MAX}
        result = await link.ask("artifacts_missing", asked)
        with reading(link.name, "artifacts_missing"):
            entries = Fields(result).objects("artifacts", ENTRIES_MAX)
            files: list[JsonValue] = [_file(hub, found.node, entry) for entry in entries]
    except ArcError:  # the rest of the answer stands without it
        return {}
    return {"files": files} if files else {}


def _file(hub: Hub, store: str, entry: Fields) -> JsonObject:
    sha256, bytes_ = entry.text("sha256", 64), entry.maybe_whole("size", 0, 2**53)
    many = "" if bytes_ is None else f" ({size(bytes_)})"
    says = f"{_where(hub, entry, sha256)}{_tried(hub, f'{store} {sha256}')}"
    return {"sha256": sha256, "ref": entry.text("ref", TEXT_MAX), "size": bytes_,
            "says": f"{sha256[:12]}{many}: {says}"}  # fmt: skip


def _where(hub: Hub, entry: Fields, sha256: str) -> str:
    if hub.artifacts.has(sha256) is not None:
        return "the hub has it, and takes it there next"
    have = hub.artifacts.begun(sha256).have
    begun = f"; {size(have)} of it are at the hub" if have else ""
    source = entry.maybe_text("source", 26)
    ended = hub.journal.ends.of([source]).get(source) if source else None
    node = entry.maybe_node("node") or (ended.node if ended else None)
    return (f"on {node}" if node else "nobody has said who has it") + begun


def _tried(hub: Hub, which: str) -> str:
    """What the last run said of it."""
    last = next(iter(hub.journal.runs.last(GRAPHS)), None)
    failed = last.report.details.get("artifacts_failed") if last else None
    why = failed.get(which) if isinstance(failed, dict) else None
    return f"; the last try: {safe_text(str(why), TEXT_MAX)}" if why else ""
