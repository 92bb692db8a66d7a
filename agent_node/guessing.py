"""Guesses from its subject to which domain a task belongs that names none; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .strict import JsonObject, JsonValue

VERSION = "version"  # a reserved key of the hub's table; no domain
SOUNDS_MAX = 5000  # beginnings, and words, that are listened for; a table has a few dozen


@dataclass(frozen=True)
class Ears:
    """The beginnings and words of all domains, made ready once for a table."""

    prefixes: tuple[tuple[str, str], ...] = ()  # the longest first
    words: re.Pattern[str] | None = None
    by_word: Mapping[str, str] = field(default_factory=dict)
    starts: tuple[str, ...] = ()  # the beginnings alone

    def guess(self, subject: str) -> str | None:
        """The domain a subject sounds like: by how it begins, else by a whole word in it.

        Upper and lower case are alike. The longest beginning wins, then the first word of the
        subject that a domain names; a draw goes to the domain that the table names first.
        """
        said = subject.casefold()
        if said.startswith(self.starts):  # all at once, for most begin with none of them
            for start, name in self.prefixes:
                if said.startswith(start):
                    return name
        found = self.words.search(said) if self.words else None
        return self.by_word[found.group()] if found else None


def parse_domains(text: str) -> JsonObject:
    """The hub's table as the node keeps it, without what is no domain."""
    table = json.loads(text)
    return {name: entry for name, entry in table.items() if name != VERSION}


def ears_for(domains: JsonObject) -> Ears:
    """What to listen for; an entry that is not as it should be is not listened for."""
    starts = _said(domains, "prefix")
    by_word: dict[str, str] = {}
    for word, name in _said(domains, "words"):
        by_word.setdefault(word, name)
    some = "|".join(map(_whole, sorted(by_word, key=len, reverse=True)))
    return Ears(
        tuple(sorted(starts, key=lambda start: -len(start[0]))),
        re.compile(rf"(?:{some})(?!\w)") if some else None,
        by_word,
        tuple(start for start, _ in starts),
    )


def _whole(word: str) -> str:
    """The word with nothing of another one before it. Each begins with its own first letter, and
    only then looks back: so a search passes over all other letters quickly.
    """
    first, rest = re.escape(word[0]), re.escape(word[1:])
    return rf"{first}(?<!\w{first}){rest}"


def _said(domains: JsonObject, key: str) -> list[tuple[str, str]]:
    listed = [(said, name) for name, entry in domains.items() for said in _texts(entry, key)]
    return [(said.casefold(), name) for said, name in listed[:SOUNDS_MAX] if said]


def _texts(entry: JsonValue, key: str) -> list[str]:
    named = entry.get(key) if isinstance(entry, dict) else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
