"""Watches a node drain, and names what it waits for that no drain moves."""

from __future__ import annotations

import time

from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State
from arc.errors import ArcError, WaitedTooLong
from arc.operations import Told
from arc.text.columns import inside, number, objects
from arc.text.nodes import at_rest, render_drain, ways_out

from .answering import ANSWER_S, say
from .around import Around, here

WATCH_S = 1.0
DRAIN_S = 24 * 3600.0
READ_MAX = 10_000  # waiting tasks that are looked through for pinned ones
# Not at work, and not over.
LATER = ("PENDING", "RETRYING", "ESCROW", "HELD", "PARKED", "DEAD_LETTERED")


def watch_drain(name: str) -> int:
    """Lines when something changed, until nothing runs or waits there; bounded by a day. Who stops
    watching is told that the drain goes on, and what ends it.
    """
    try:
        return _watch(name)
    except KeyboardInterrupt:
        here().talk(f"{name} goes on draining; arc nodes drain {name} --watch looks again, "
                    f"arc nodes resume {name} ends it\n")  # fmt: skip
        raise


def _watch(name: str) -> int:
    around = here()
    shown: JsonObject = {}
    until = time.monotonic() + DRAIN_S
    while time.monotonic() < until:
        now = _now(around.ask(around, "nodes.show", {"node": name}, timeout_s=ANSWER_S).data)
        if now != shown:
            waits_for = _pinned_there(around, name) if now["pinned"] else []
            say("nodes.drain", Told({"node": name, **now, "waits_for": waits_for}), render_drain,
                around)  # fmt: skip
            shown = now
        if now["state"] == "drained" and not now["pending"]:
            off = f"what is left stays there{at_rest(now)}" if now["later"] else "nothing is left"
            around.talk(f"safe to switch off: {off}; back: arc nodes resume {name}\n")
            return 0
        time.sleep(WATCH_S)
    raise WaitedTooLong(f"{name} has not drained within a day; it goes on without being watched")


def _now(data: JsonObject) -> JsonObject:
    """How far the drain is; `pinned` are those of the waiting tasks that it leaves where they are,
    `later` what neither runs nor waits now and is not over.
    """
    counts = inside(data, "counts")
    seen = data.get("pending") is not None and data.get("movable") is not None
    pinned = int(number(data.get("pending")) - number(data.get("movable"))) if seen else 0
    return {
        **{key: data.get(key) for key in ("state", "running", "pending", "seen")},
        "pinned": pinned,
        "later": {state: counts[state] for state in LATER if counts.get(state)},
    }


def _pinned_there(around: Around, name: str) -> list[JsonValue] | None:
    """The waiting tasks that are pinned there, each with the ways out; None: not read just now."""
    asked: JsonObject = {"node": name, "states": [str(State.READY)], "limit": READ_MAX}
    try:
        told = around.ask(around, "tasks.list", asked, timeout_s=ANSWER_S)
    except ArcError:
        return None  # the watch goes on
    if told.partial:
        return None
    return [
        {"uid": one["uid"], "priority": one.get("priority"), "rule": "not_pinned",
         "ways_out": [*ways_out(str(one["uid"]))]}
        for one in objects(told.data, "tasks") if one.get("pinned")
    ]  # fmt: skip
