"""Options that several commands share, and small readers of what people type."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

import typer

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject, JsonValue
from arc.errors import WrongUse

from .around import here

Reason = Annotated[str, typer.Option("--reason", help="Why; kept with who said it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; change nothing.")]
Priority = Annotated[int | None, typer.Option("--priority", "-p", help="1 urgent … 10.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Tasks = Annotated[list[str], typer.Argument(help="Beginnings or ends of uids.", metavar="TASK…")]
Node = Annotated[str, typer.Argument(help="The node's name.", metavar="NAME")]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_is_duration = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+").fullmatch


def seconds(text: str, name: str) -> float:
    """A duration such as 90s, 5m or 1h30m."""
    if not _is_duration(text):
        raise WrongUse(f"{name}: {text!r} is no duration; write 90s, 5m, 1h30m or 2d")
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    return sum(float(count) * _SECONDS[unit] for count, unit in parts)


def moment(text: str, name: str, *, past: bool = False) -> str:
    """A zoned time, or a duration from now (`past`: before now), as text."""
    if _is_duration(text):
        away = timedelta(seconds=seconds(text, name))
        now: datetime = here().clock.now()
        return iso(now - away if past else now + away)
    try:
        return iso(parse_iso(text))
    except (ValueError, OverflowError) as error:
        raise WrongUse(f"{name}: {text!r} is no time; write 2026-03-10T03:00Z, or 30m for so much "
                       f"{'ago' if past else 'from now'}") from error  # fmt: skip


def words(given: list[str] | None) -> list[JsonValue]:
    """Words given one by one or with commas between them."""
    return [word.strip() for one in given or [] for word in one.split(",") if word.strip()]


def one_word_of(given: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of a sentence; nothing where nothing is alike."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given.lower()[:80], list(names), n=1, cutoff=0.5)
    return f"; did you mean {names[close[0]]}?" if close else ""


def only_said(fields: JsonObject) -> JsonObject:
    """The fields that were said at all; a 0 was said."""
    return {name: value for name, value in fields.items()
            if value is not None and value is not False and value not in ("", [])}


def sure(question: str, *, yes: bool) -> bool:
    """Whether it may be done: `--yes`, or a person at the keyboard says so."""
    if yes:
        return True
    around = here()
    if not around.asks_people:
        return False
    around.talk(f"{question} [y/N] ")
    return around.stdin.readline().strip().lower() in {b"y", b"yes"}
