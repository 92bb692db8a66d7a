"""Reads what a task's program wrote on a node; says where else it ran if it never ran there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_node.fields import is_name
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.task import UNDERWAY
from agent_node.text import safe_text
from arc.asking import read_shown
from arc.errors import ArcError, NodeRefused

from . import Told
from .everybody import link_of, not_found_yet
from .finding import Found, find_task

if TYPE_CHECKING:
    from arc.hub import Hub

PIECE_MAX = 1024 * 1024
ATTEMPTS_MAX = 1000
LISTED = 8
NO_SUCH_LOG = "not_found"  # what a node answers that has no such attempt, or no log of it


async def nodes_logs(hub: Hub, args: JsonObject) -> Told:
    """A piece of what a task's program wrote: of its last attempt on this node, or of one named."""
    asked = Fields(args)
    name, uid = asked.node("node"), asked.text("task", 64)
    found = await find_task(hub, uid)
    fields: JsonObject = {"uid": found.uid, "stream": asked.text_or("stream", "stdout", 10),
                          "offset": asked.after("offset"), "limit": PIECE_MAX}  # fmt: skip
    attempt = asked.maybe_whole("attempt", 1, 10**9)
    if attempt is not None:
        fields["attempt"] = attempt
    try:
        said = Fields(await link_of(hub, name).ask("log", fields))
    except NodeRefused as refused:
        if refused.rule != NO_SUCH_LOG:
            raise
        raise await _why_no_log(hub, found, name, attempt, refused) from refused
    text = said.values.get("text")
    return Told({
        "uid": found.uid, "node": name, "attempt": said.whole("attempt", 1, 10**9),
        "text": text if isinstance(text, str) else "", "next": said.whole("next", 0, 2**62),
        "size": said.whole("size", 0, 2**62), "ended": found.task.state not in UNDERWAY,
    })  # fmt: skip


async def _why_no_log(
    hub: Hub, found: Found, name: str, attempt: int | None, refused: NodeRefused
) -> ArcError:
    """Where the task ran instead, or that it has not run at all; the node's own word where it did
    run there, or where nobody can be asked. The history travels with a task, so its holder knows.
    """
    try:
        said = await link_of(hub, found.node).ask("show", {"uid": found.uid,
                                                         "attempts": ATTEMPTS_MAX})  # fmt: skip
        shown = read_shown(found.node, found.uid, said)
    except ArcError:
        return refused
    known = [one for one in shown.attempts
             if is_name(str(one.get("node"))) and isinstance(one.get("n"), int)]  # fmt: skip
    tried = [one for one in known if attempt in (None, one["n"])]
    if any(one.get("node") == name for one in tried):
        return refused.hinting(f"arc tasks show {found.uid}")
    what = f"{found.uid} never ran on {name}"
    if attempt is not None:
        what = f"attempt {attempt} of {found.uid} did not run on {name}"
    if found.elsewhere:
        what += f"; {found.node} gave it to another node"
        return not_found_yet(what, found.answers.failed, found.not_asked)
    where, hint = _where(found, tried) if tried or not known else _numbers(found, known)
    return NodeRefused(name, NO_SUCH_LOG, f"{what}; {where}", hint=hint)


def _numbers(found: Found, known: Sequence[JsonObject]) -> tuple[str, str]:
    """Which attempts there are, of which none was meant; and what to type."""
    last = ", ".join(str(one["n"]) for one in known[-LISTED:])
    some = "" if len(known) <= LISTED else f"{len(known)}, the last of them "
    return f"its attempts are {some}{last}", f"arc tasks show {found.uid}"


def _where(found: Found, tried: Sequence[JsonObject]) -> tuple[str, str]:
    """On which nodes it ran, and how it is now; and what to type."""
    now = f"it is {found.task.state} on {found.node}"
    if not tried:
        return now, f"arc why {found.uid}"
    nodes = list(dict.fromkeys(str(one["node"]) for one in tried))
    last = tried[-1]
    hint = f"arc nodes logs {last['node']} {found.uid} --attempt {last['n']}"
    return f"it ran on {safe_text(', '.join(nodes), 200)}; {now}", hint
