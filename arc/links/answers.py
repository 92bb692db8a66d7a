"""Reads what a node says, line by line: its greeting, its answers, its news, its last words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_node.errors import BadInput
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue, decode_object
from agent_node.text import safe_text
from arc.errors import (
    AnswerUnreadable,
    ArcError,
    NodeCannotServe,
    NodeRefused,
    NodeUnreachable,
    NoNodeProgram,
    OtherHub,
    OutcomeUnknown,
)

from . import READS, Met

LINES_MAX = 3
SAID_MAX = 300  # characters of anything a node said that an error repeats
# Said of a mutation, these leave open whether it happened: the answer broke, or the disk under it.
UNSURE = frozenset({"fault", "batch_full", "disk_broken"})
# Another hub is obeyed there: a later one, or the one that came first with the same term.
LATER_HUB = frozenset({"old_term", "other_hub"})
# The node is there and cannot be spoken to just now; asking again is all that is needed.
LATER = frozenset({"starting", "crowded"})
_CODE = re.compile(r"[a-z][a-z_]{1,39}")
# As its commands print it, in `last_words`: before there is a home it has no other way to say it.
_ERROR = re.compile(r"\berror\[([a-z][a-z_]{1,39})\]: (.+?)(?:; hint: (.+))?$")


@dataclass(frozen=True)
class Greeting:
    """Who answers at the other end, before anything was asked."""

    node: str
    incarnation: str
    generation: int
    wire: int
    version: str


def parse_greeting(line: bytes) -> Greeting:
    """The greeting in this line, or `BadInput`; unknown fields are ignored."""
    said = Fields(decode_object(line))
    return Greeting(
        node=said.node("node"),
        incarnation=said.ulid("incarnation"),
        generation=said.whole("generation", 0, 2**62),
        wire=said.whole("wire", 1, 10**6),
        version=said.text("agent-node", 64),
    )


def parse_met(result: JsonObject) -> Met:
    """What a node answered to hello, or `BadInput`; the clocks are compared by the caller."""
    said = Fields(result)
    return Met(
        node=said.node("node"),
        incarnation=said.ulid("incarnation"),
        generation=said.whole("generation", 0, 2**62),
        term=said.whole("term", 0, 2**53),
        state=said.text("state", 64),
        version=said.text("version", 64),
        wire=said.whole("wire", 1, 10**6),
        waits_for_hub=said.flag("waits_for_hub"),
        at=said.text("at", 64),
        clock_off_s=0.0,
    )


def met_by_later_hub(greeting: Greeting, term: int, because: str) -> Met:
    """A node that obeys a hub with a higher term: it may be read, and will refuse all else."""
    return Met(
        node=greeting.node,
        incarnation=greeting.incarnation,
        generation=greeting.generation,
        term=term,
        state="unknown",
        version=greeting.version,
        wire=greeting.wire,
        waits_for_hub=False,
        at="",
        clock_off_s=0.0,
        old_term=because,
    )


def parse_trouble(node: str, line: bytes) -> ArcError:
    """Why the node's program does not serve, in its own words."""
    try:
        error = decode_object(line).get("error")
    except BadInput as bad:
        return NoNodeProgram(node, f"agent-node could not be understood: {bad}")
    code, text = code_of(error), text_of(error, "message")
    if code in LATER:
        return NodeUnreachable(node, f"agent-node is {code}: {text}")
    return _cannot_serve(node, code, text, text_of(error, "hint"))


def last_trouble(node: str, words: str) -> NodeCannotServe | None:
    """The same from the last words of a program that ended; None: they are no error of a node's."""
    found = _ERROR.search(words)
    return found and _cannot_serve(node, found[1], found[2], found[3] or "")


def _cannot_serve(node: str, code: str, text: str, hint: str) -> NodeCannotServe:
    because = f"agent-node cannot serve: {code}: {text}"
    return NodeCannotServe(node, because, hint=_what_now(node, code, hint), told=code)


def _what_now(node: str, code: str, hint: str) -> str:
    """The node's own advice or, where it gave none, the page on its code; a name, no other word."""
    if hint:
        return f"on {node}: {hint}"
    return f"arc explain {code}" if _CODE.fullmatch(code) else ""


def refusal(node: str, do: str, error: JsonValue, *, changes: bool) -> ArcError:
    """What the node's error means for whoever asked; `changes`: the request was a mutation."""
    code, text = code_of(error), text_of(error, "message")
    if changes and code in LATER_HUB:
        return OtherHub(f"{node}: {text}", where=node)
    if changes and code in UNSURE:
        return OutcomeUnknown(node, do, f"{code}: {text}")
    rule = text_of(error, "rule") or code
    return NodeRefused(node, rule, text, hint=text_of(error, "hint"))


def code_of(error: JsonValue) -> str:
    """The error's code; `unnamed` where the node gave none."""
    return text_of(error, "code") or "unnamed"


def text_of(error: JsonValue, name: str) -> str:
    """One text of an error, cut and safe to print; empty where there is none."""
    value = error.get(name) if isinstance(error, dict) else None
    return safe_text(value, SAID_MAX) if isinstance(value, str) else ""


def changes(do: str, fields: JsonObject) -> bool:
    """Whether this request, unanswered, may have changed something."""
    return do not in READS and fields.get("dry_run") is not True


def unanswered(node: str, do: str, because: str, *, lies: bool, changed: bool) -> ArcError:
    """What a request becomes whose talk ended first. `lies`: what came was no answer of ours."""
    if changed:
        return OutcomeUnknown(node, do, because)
    if lies:
        return AnswerUnreadable(node, f"{do}: {because}; nothing changed there")
    return NodeUnreachable(node, f"{do} was not answered: {because}; nothing changed there")


def last_words(raw: bytes) -> str:
    """The last lines of what was written to stderr, safe to print; empty where nothing was."""
    lines = [line.strip() for line in raw.decode("utf-8", "replace").splitlines()]
    said = "; ".join([line for line in lines if line][-LINES_MAX:])
    return safe_text(said[-SAID_MAX:])
