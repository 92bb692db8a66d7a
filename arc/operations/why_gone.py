"""Tells of a task that was moved to a node which left the fleet, or which does not know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.decisions.answers import CHANGE, ESCALATE
from arc.looking import INBOX
from arc.sensor import Moved

from .finding import Found, find_task

if TYPE_CHECKING:
    from arc.hub import Hub

IN_PART = 3  # the exit code of who cannot say where a task lives


async def gone_with(hub: Hub, found: Found) -> JsonObject:
    """What replaces the answer of such a task; empty where a node of the fleet has it, or may."""
    if found.task.state != "MOVED":
        return {}
    last = _last_move(hub, found.uid)
    if last is None or last.idle == INBOX or hub.settings.node(last.idle) is not None:
        said = await denied_by_all(hub, found)
        return {"verdict": ESCALATE, "result": said, "by_hand": _decide(found.uid)} if said else {}
    node = last.idle
    return {
        "verdict": CHANGE,
        "result": f"it was moved to {node}, which is no longer in the fleet: nobody here sees it",
        "by_hand": [
            f"arc nodes add USER@HOST --name {node}",
            f"arc nodes fence {node} --yes-it-is-off  # with its line in fleet.yaml again",
        ],
    }


async def denied_by_all(hub: Hub, found: Found) -> str:
    """Who gave the task away, where every node answers, none of them has more than the copy that
    a giver keeps, and no end was heard; empty of any other task. Asked again with no move under
    way: a task between two nodes may be missed at both.
    """
    if not _is_nowhere(hub, found):
        return ""
    async with hub.moving:
        again = await find_task(hub, found.uid)
        if not _is_nowhere(hub, again):
            return ""
    last = _last_move(hub, found.uid)
    if last is None:
        return f"{again.node} gave it away, and no node has it; how it ended is not known here"
    met = hub.journal.nodes.met().get(last.idle)
    if met is not None and last.idle_incarnation not in ("", met.incarnation):
        return (f"it was moved to {last.idle}, which is another queue since: neither that one nor "
                "any other node has it; bring the old home back, if it is anywhere")  # fmt: skip
    return (f"it was moved to {last.idle}, which answers and does not have it, nor does any other "
            "node; how it ended is not known here")  # fmt: skip


def _decide(uid: str) -> list[JsonValue]:
    return [f"arc doubts settle {uid} --dry-run",
            f"arc doubts settle {uid} --yes  # it runs again"]  # fmt: skip


def _is_nowhere(hub: Hub, found: Found) -> bool:
    whole = not (found.answers.failed or found.not_asked)
    return whole and {*found.copies.values()} == {"MOVED"} and not hub.journal.ends.of([found.uid])


def _last_move(hub: Hub, uid: str) -> Moved | None:
    return next(reversed(hub.journal.runs.moved([uid])), None)
