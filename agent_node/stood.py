"""Tells in a sentence what had been said before to a node that is paused or drained again."""

from __future__ import annotations

from collections.abc import Mapping

from .text import safe_text

SAID_MAX = 1000


def stood_before(result: Mapping[str, object], *, dry_run: bool) -> str:
    """Who had said what, when and why, and what becomes of that; empty where nothing had been said.

    `result` is the answer to `pause` or `drain`, by the node or by the hub for the whole fleet.
    """
    was = result.get("was")
    if not isinstance(was, dict):
        return ""
    state = _text(was, "state")
    already = " already" if state == result.get("state") else ""
    why = f": {_text(was, 'reason')}" if was.get("reason") else ", without a reason"
    fate = _fate(result, was, verb="would be" if dry_run else "is")
    return f"it was {state}{already}{_who_and_when(was)}{why}{fate}"


def _who_and_when(was: Mapping[str, object]) -> str:
    """Since when it is so, where that is known; and who said last why, if that was later."""
    by, at, since = _text(was, "by"), _text(was, "at"), _text(was, "since")
    if since and since == at:
        return (f", by {by}" if by else "") + f", since {since}"
    last = f", last by {by}" if by else ", last said"
    return (f", since {since}" if since else "") + (f"{last} at {at}" if at else "")


def _fate(result: Mapping[str, object], was: Mapping[str, object], *, verb: str) -> str:
    if result.get("already"):
        return "; that stays as it is" if verb == "is" else "; that would stay as it is"
    if was.get("state") != result.get("state"):
        return f"; that {verb} over"
    new = was.get("reason") != result.get("reason")
    return f"; that reason {verb} replaced" if new and was.get("reason") else ""


def _text(said: Mapping[str, object], name: str) -> str:
    return safe_text(str(said.get(name) or ""), SAID_MAX)
