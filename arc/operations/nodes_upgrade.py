"""Brings a signed program to one node, and comes back when it runs there, or when it does not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.text import safe_text
from agent_node.upgrade_record import Outcome
from arc.asking import reading
from arc.errors import LinkError, NodeRefused, NodeUnreachable, OutcomeUnknown

from . import Told
from .everybody import check_node, incarnation_of, link_of, nothing_changed

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.links import Link

SEND_S = 300.0  # a program is some MiB, and the way may be slow
OUTCOME_S = 120.0  # for its trial, its start, and the way back
ASK_EVERY_S = 0.5
STEADY_MAX_S = 600.0
SAID_MAX = 1000
BY_HAND = "install arc-fleet anew on this machine, then: "

Word = Literal["already", "would", "by_hand", "refused", "under_way", "upgraded", "went_back",
               "failed", "stuck"]  # fmt: skip
OUTCOMES: tuple[Outcome, ...] = ("under_way", "upgraded", "went_back", "failed", "stuck")


@dataclass(frozen=True)
class Running:
    """Which program a node runs, by its own word, and whether its daemon does."""

    version: str
    program: str | None  # the first digits of its sha256; None: it is installed another way
    dispatches: bool


async def nodes_upgrade(hub: Hub, args: JsonObject) -> Told:
    """One node. With `dry_run`, or without a signature, only what would be done."""
    asked = Fields(args)
    name, version, sha256 = asked.node("node"), asked.text("version", 32), asked.text("sha256", 64)
    check_node(hub, name)
    entry = hub.settings.node(name)
    if entry is not None and entry.local:
        again = hub.roles()[name].typed("stop", "start")
        return _told(name, "by_hand", because=BY_HAND + again)
    link = link_of(hub, name)
    with nothing_changed():
        was = await _running(link)
    if was.program == sha256[:12]:
        return _told(name, "already", was=was.version)
    if asked.flag("dry_run") or not asked.has("signature"):
        return _told(name, "would", was=was.version)
    hub.journal.runs.log("node_upgrade_began", node=name, fields={"version": version})
    outcome, because = await _carried_out(link, args, asked)
    if outcome == "upgraded":
        steady = asked.seconds("steady_s", STEADY_MAX_S) or 0.0
        because = await _not_well(link, was, version, sha256, steady)
        outcome = "failed" if because else "upgraded"
    hub.journal.runs.log("node_upgrade_ended", node=name,
                         fields={"version": version, "outcome": outcome})  # fmt: skip
    return _told(name, outcome, was=was.version, because=because)


async def _carried_out(link: Link, args: JsonObject, asked: Fields) -> tuple[Word, str]:
    """Send it, and ask again until it is over. Repeating is safe: the statement is its id."""
    signed: JsonObject = {name: args[name] for name in ("sha256", "statement", "signature")}
    words: JsonObject = {**signed, "by": asked.text_or("by", "human:unknown"),
                         **await incarnation_of(link)}  # fmt: skip
    sent = False
    try:
        async with asyncio.timeout(OUTCOME_S + SEND_S):
            while True:
                request = words if sent else {**words, "file": args["file"]}
                said = await _outcome(link, request)
                if said is not None and said[0] != "under_way":
                    return said[0], said[1]
                sent = sent or said is not None
                await asyncio.sleep(ASK_EVERY_S)
    except NodeRefused as refused:
        hint = f" ({refused.hint})" if refused.hint else ""
        return "refused", f"{refused.rule}: {refused.because}{hint}"
    except TimeoutError:
        return "failed", f"no end of it within {OUTCOME_S + SEND_S:.0f} s; ask the node again"


async def _outcome(link: Link, request: JsonObject) -> tuple[Word, str] | None:
    """What the node has recorded; None: it could not be asked, as while its daemon changes."""
    try:
        await link.meet()
        result = await link.ask("upgrade", request, timeout_s=SEND_S)
    except (NodeUnreachable, OutcomeUnknown) as error:
        if error.exit_code == 4:  # noqa: PLR2004 - keys and logins do not mend by waiting
            raise
        return None
    with reading(link.name, "upgrade"):
        said = Fields(result)
        word: Word = said.word("outcome", "already", *OUTCOMES)
        because = said.values.get("because")
    return word, safe_text(because, SAID_MAX) if isinstance(because, str) else ""


async def _not_well(link: Link, was: Running, version: str, sha256: str, steady_s: float) -> str:
    """Empty when the new program answers a new session, and still does after a while."""
    for pause in (0.0, steady_s):
        await asyncio.sleep(pause)
        try:
            met = await link.meet(anew=True)
            now = await _running(link)
        except LinkError as error:
            return f"it said that it was upgraded, and now: {error}"
        if (met.version, now.program) != (version, sha256[:12]):
            return f"it said that it was upgraded, and greets as {safe_text(met.version, 32)}"
        if was.dispatches and not now.dispatches:
            return "the new program answers, and its daemon does not run: agent-node start"
    return ""


async def _running(link: Link) -> Running:
    result = await link.ask("status")
    with reading(link.name, "status"):
        said = Fields(result)
        return Running(
            safe_text(said.text("version", 64)), said.maybe_text("program", 64),
            said.values.get("dispatcher") == "running",
        )  # fmt: skip


def _told(name: str, outcome: Word, *, was: str = "", because: str = "") -> Told:
    data: JsonObject = {"node": name, "outcome": outcome, "was": was or None}
    if because:
        data["because"] = because
    return Told(data, exit=0 if outcome in ("already", "would", "upgraded") else 1)
