"""Finds the one task a person means by the beginning or the end of its uid."""

from __future__ import annotations

import re

from agent_node.errors import BadInput, NodeError
from agent_node.text import WHOLE_SHORT, first_of, safe_text, short_uids
from agent_node.ulid import is_ulid

from .around import Around
from .shapes import objects

CANDIDATES_MAX = 20
_is_part = re.compile(r"[0-9A-HJKMNP-TV-Z]{1,26}").fullmatch


class NoSuchTask(NodeError):
    """No task here has this uid; nothing changed."""

    code = "not_found"
    exit_code = 5
    hint = f"agent-node list shows what is here; {WHOLE_SHORT}"


class Ambiguous(NodeError):
    """More than one task is meant; nothing changed."""

    code = "ambiguous"
    exit_code = 2
    hint = "give more of the uid"


def find_uid(part: str, around: Around) -> str:
    """The whole uid that begins or ends with this part; upper or lower case."""
    wanted = part.upper()
    if is_ulid(wanted):
        return wanted
    if not _is_part(wanted):
        raise BadInput(f"{part[:40]!r} is no part of one: digits, letters but I, L, O, U", "UID")
    request: dict[str, object] = {"do": "list", "match": wanted, "limit": CANDIDATES_MAX}
    found = {
        str(task.get("uid")): str(task.get("subject", ""))
        for task in objects(around.door(request), "tasks")
        if str(task.get("uid")).startswith(wanted) or str(task.get("uid")).endswith(wanted)
    }
    if not found:
        raise NoSuchTask(f"{part}: no task here has a uid that begins or ends so")
    if len(found) > 1:
        raise Ambiguous(f"{part}: could be any of these tasks:\n{_candidates(found)}")
    return next(iter(found))


def _candidates(found: dict[str, str]) -> str:
    short = short_uids(found)
    lines = [f"  {short[uid]}  {uid}  {safe_text(found[uid], 60)}" for uid in sorted(found)]
    return first_of(lines, all_of_them=len(lines) < CANDIDATES_MAX)


def find_uids(parts: list[str], around: Around) -> list[str]:
    """All of them before anything is done to one of them; each once."""
    return list(dict.fromkeys(find_uid(part, around) for part in parts))
