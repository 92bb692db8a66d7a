"""Lays facts out for people: columns, counts, ages, and the little marks between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from agent_node.strict import JsonObject, JsonValue
from agent_node.text import ago, duration, safe_text, short_uids, table

from .look import Look

SUBJECT_MAX, SUBJECT_MIN = 48, 20
OTHERS = 56  # columns that stand beside a subject in most lists

_STATE_COLOUR = {"idle": "32", "working": "36", "unseen": "31", "stopped": "31",
                 "no_agent": "31", "quarantined": "31", "paused": "33", "draining": "33",
                 "drained": "33", "suspended": "33"}  # fmt: skip


def objects(data: JsonObject, name: str) -> list[JsonObject]:
    """The objects in a list of the data; what is missing is an empty list only if it may be."""
    found = data.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def inside(data: JsonObject, name: str) -> JsonObject:
    """An object in the data, or an empty one."""
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def said(value: JsonValue, nothing: str = "-") -> str:
    """A value as one word or sentence, safe to print."""
    if value is None or value == "":
        return nothing
    if isinstance(value, list):
        return safe_text(", ".join(str(one) for one in value)) or nothing
    return safe_text(str(value))


def number(value: JsonValue) -> float:
    """A number of the data; 0 where it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def age(value: JsonValue) -> str:
    """How long ago, from seconds."""
    return "-" if not isinstance(value, int | float) else ago(float(value))


def lasting(value: JsonValue) -> str:
    """How long, from seconds."""
    return "-" if not isinstance(value, int | float) else duration(float(value))


def of_node(node: JsonValue, text: JsonValue) -> str:
    """What is said about a node, without its name in front: the line has that already."""
    return said(text, "").removeprefix(f"{said(node)}: ")


def unseen(one: JsonObject) -> str:
    """The rule and the first clause of why a node was not seen; the whole stands in the data."""
    clause = of_node(one.get("node"), one.get("reason") or one.get("because")).partition(";")[0]
    return clause if one.get("rule") == "suspended" else f"{said(one.get('rule'))}: {clause}"


def rows(head: Sequence[str], lines: Iterable[Sequence[str]], look: Look) -> str:
    """Aligned columns; a terminal has them folded to its width, and nothing is ever cut."""
    listed = [list(line) for line in lines]
    if look.width is None:
        return table(head, listed)
    from .folding import fitted

    return fitted(head, listed, look.width)


class Shorts(dict[str, str]):
    """Short forms by uid; what has no uid (it was refused before it got one) is a dash."""

    def __missing__(self, uid: str) -> str:
        return "-"


def shorts(*lists: Iterable[JsonObject]) -> Shorts:
    """The short form of every uid that is shown together."""
    return Shorts(short_uids(str(one["uid"]) for some in lists for one in some if one.get("uid")))


def subject(value: JsonValue, look: Look) -> str:
    """A task's subject in quotes; cut only for a terminal, and shorter for a narrow one."""
    room = max(look.width - OTHERS, SUBJECT_MIN) if look.width else None
    text = safe_text(str(value or ""), None if room is None else min(room, SUBJECT_MAX))
    return f'"{text}"'


def stated(state: JsonValue, look: Look) -> str:
    """A state's word, coloured where colours may be used; never by colour alone."""
    word = said(state)
    code = _STATE_COLOUR.get(word)
    return f"\x1b[{code}m{word}\x1b[0m" if look.colour and code else word


def by_count(entries: Iterable[JsonObject]) -> list[tuple[str, int, str]]:
    """(rule, how many, an example's reason), the commonest first."""
    total: dict[str, int] = {}
    example: dict[str, str] = {}
    for one in entries:
        rule = str(one.get("rule"))
        total[rule] = total.get(rule, 0) + cast("int", one.get("count") or 1)
        example.setdefault(rule, str(one.get("because") or ""))
    ordered = sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(rule, count, example[rule]) for rule, count in ordered]
