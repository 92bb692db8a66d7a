"""Remembers which ends are in doubt, because two nodes speak against each other, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue

from .decisions.outbox import EndHeard

if TYPE_CHECKING:
    from .hub import Hub

PATIENCE_S = 300.0  # what still is in doubt then does not end by itself
FORGOTTEN_S = 600.0  # nobody asked for it any more
SHOWN_MAX = 10


@dataclass(frozen=True)
class Doubted:
    """One end that is told to nobody: who says it, who speaks against it, since and until when."""

    uid: str
    node: str
    state: str
    other: str
    since_s: float  # since boot
    seen_s: float


def doubt(hub: Hub, end: EndHeard, other: str) -> None:
    """This end is not believed at this moment; it is written down once while that lasts."""
    now = hub.clock.boottime()
    before = hub.doubted.get(end.uid)
    since = before.since_s if before and now - before.seen_s < FORGOTTEN_S else now
    hub.doubted[end.uid] = Doubted(end.uid, end.node, end.state, other, since, now)
    if since == now:
        fields: JsonObject = {"because": f"it lives elsewhere, or ended otherwise: {other}"}
        hub.journal.runs.log("end_doubted", node=end.node, task=end.uid, fields=fields)


def doubted_ends(hub: Hub) -> list[JsonValue]:
    """A line for each that a person has to decide: who says what, and what to do about it."""
    now = hub.clock.boottime()
    hub.doubted = {uid: one for uid, one in hub.doubted.items() if now - one.seen_s < FORGOTTEN_S}
    late = [one for one in hub.doubted.values() if now - one.since_s >= PATIENCE_S]
    return [_line(one) for one in sorted(late, key=lambda one: one.uid)[:SHOWN_MAX]]


def _line(one: Doubted) -> JsonObject:
    return {
        "node": one.node, "try": f"arc tasks show {one.uid}",
        "text": f"{one.uid} is {one.state} on {one.node}, and {one.other} speaks against it:"
        " nobody is told of its end until one of them is suspended or agrees",
    }  # fmt: skip
