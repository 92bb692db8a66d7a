"""Reads from a node's answer what it had been told before: who paused it already, and why."""

from __future__ import annotations

from datetime import datetime

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import safe_text

from .journal_words import Word

SAID_MAX = 1000


def stood_in(result: JsonObject) -> JsonObject:
    """`was` and `already` of the answer, where it says them; an older node says neither."""
    said: JsonObject = {}
    was = result.get("was")
    if result.get("already") is True:
        said["already"] = True
    if isinstance(was, dict):
        names = (*_WORD, *(["since"] if "since" in was else []))  # an older node does not say it
        here: JsonObject = {"here": True} if was.get("here") is True else {}  # at the machine
        said["was"] = {**{name: _text(was.get(name)) for name in names}, **here}
    return said


_WORD = ("state", "reason", "by", "at")


def _text(value: JsonValue) -> str | None:
    return safe_text(value, SAID_MAX) if isinstance(value, str) else None


def noted(stood: JsonObject) -> JsonObject:
    """The same for a line of the hub's log, so that a reason which is replaced is kept there."""
    was = stood.get("was")
    if not isinstance(was, dict):
        return {}
    return {f"was_{name}": was[name] for name in ("state", "by", "reason") if was.get(name)}


def word_before(word: Word | None, state: str, *, since: datetime | None) -> JsonObject:
    """The same of a word for the whole fleet that stands; nothing where none does. `since` is when
    the first of such words was said; None: the log does not tell any more.
    """
    if word is None:
        return {}
    return {"was": {"state": state, "reason": word.reason, "by": word.by, "at": iso(word.at),
                    "since": iso(min(since, word.at)) if since else None}}  # fmt: skip
