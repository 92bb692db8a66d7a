"""Takes typed values out of a TOML table, and says on which line a wrong one stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from .errors import BadSettings
from .fields import is_money
from .toml_lines import Place

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
RESERVED = {"pool": "is a reserved key: pools of agents are not built yet; leave it out"}
TEXT_MAX = 256 * 1024
SHOWN_MAX = 60

_SIZE = re.compile(r"(\d{1,15}) *(|B|KiB|MiB|GiB|TiB)")
_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE_MAX = 2**60


@dataclass(frozen=True, slots=True)
class Source:
    """Which file a table came from, and where each of its keys stands."""

    file: str
    lines: Mapping[Place, int]

    def at(self, place: Place) -> str:
        """`node.toml:12`, by the nearest place whose line is known."""
        for length in range(len(place), 0, -1):
            line = self.lines.get(place[:length])
            if line is not None:
                return f"{self.file}:{line}"
        return self.file


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a settings file; each method gives a value of its type or raises."""

    values: Mapping[str, object]
    place: Place
    source: Source

    def wrong(self, key: str, problem: str) -> NoReturn:
        """Refuse, naming file, line and key."""
        where = ".".join([*_spelled(self.place), key])
        raise BadSettings(f"{self.source.at((*self.place, key))}: {where}: {problem}")

    def only(self, known: Iterable[str]) -> None:
        """Refuse the first key that is not among these, and say which one was probably meant."""
        names = tuple(known)
        for key in self.values:
            if key in RESERVED:
                self.wrong(key, RESERVED[key])
            if key not in names:
                self.wrong(key, f"is no key here{suggestion(key, names)}")

    def name(self, key: str) -> str:
        """A name of a node or an agent; it must be there."""
        value = self.values.get(key)
        if value is None:
            self.wrong(key, 'is missing; write name = "…"')
        if not isinstance(value, str) or not NAME.fullmatch(value):
            self.wrong(key, f"should match ^{NAME.pattern}$, not {shown(value)}")
        return value

    def count(self, key: str, default: int, *, low: int, high: int) -> int:
        """A whole number within these bounds."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(key, f"should be a whole number, not {shown(value)}")
        if key in self.values and not low <= value <= high:
            self.wrong(key, f"should lie between {low} and {high}, not {value}")
        return value

    def size(self, key: str, default: int, *, low: int = 0) -> int:
        """Bytes, given as a whole number or as text such as "512MiB"."""
        value = self.values.get(key, default)
        parsed = _bytes(value)
        if parsed is None:
            self.wrong(key, f'should be bytes, as 1048576 or "512MiB", not {shown(value)}')
        if not low <= parsed <= _SIZE_MAX:
            self.wrong(key, f"should be at least {low} bytes and at most {_SIZE_MAX}")
        return parsed

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """One of a few words."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in choices:
            words = " or ".join(f'"{choice}"' for choice in choices)
            self.wrong(key, f"should be {words}, not {shown(value)}")
        return value

    def money(self, key: str) -> str | None:
        """An amount as text, such as "12.50"; None when the key is not there."""
        value = self.values.get(key)
        if value is not None and not (isinstance(value, str) and is_money(value)):
            self.wrong(key, f'should be an amount as text, such as "12.50", not {shown(value)}')
        return None if value is None else str(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Yes or no."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, f"should be true or false, not {shown(value)}")
        return value

    def path(self, key: str) -> str | None:
        """An absolute path, `~` allowed; None when the key is not there."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or "\0" in value:
            self.wrong(key, f"should be a path, not {shown(value)}")
        path = os.path.expanduser(value)
        if not os.path.isabs(path):
            self.wrong(key, f"should be an absolute path, not {shown(value)}")
        return path

    def texts(
        self,
        key: str,
        *,
        needed: bool = False,
        longest: int = TEXT_MAX,
        like: re.Pattern[str] | None = None,
    ) -> tuple[str, ...]:
        """A list of texts; empty when the key is not there, unless it is needed."""
        value = self.values.get(key)
        if value is None and not needed:
            return ()
        if not isinstance(value, list):
            self.wrong(key, f"should be a list of texts, not {shown(value)}")
        for item in value:
            self._check_text(key, item, longest, like)
        return tuple(str(item) for item in value)

    def _check_text(
        self, key: str, item: object, longest: int, like: re.Pattern[str] | None
    ) -> None:
        if not isinstance(item, str):
            self.wrong(key, f"should hold texts only, not {shown(item)}")
        if "\0" in item or len(item) > longest:
            self.wrong(key, f"holds a text with a NUL or of more than {longest} characters")
        if like is not None and not like.fullmatch(item):
            self.wrong(key, f"holds {shown(item)}, which should match ^{like.pattern}$")

    def tables(self, key: str) -> tuple[Table, ...]:
        """The `[[key]]` tables, in their order."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, f"should be written as [[{key}]] tables")
        return tuple(
            Table(item, (*self.place, key, index), self.source) for index, item in enumerate(value)
        )

    def named_tables(self, key: str) -> tuple[Table, ...]:
        """The `[key.NAME]` tables, in their order; a name is spelled like every other one."""
        value = self.values.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
            self.wrong(key, f"should be written as [{key}.NAME] tables")
        for name in value:
            if not NAME.fullmatch(name):
                Table(value, (*self.place, key), self.source).wrong(
                    name, f"is no name; it should match ^{NAME.pattern}$"
                )
        return tuple(
            Table(inner, (*self.place, key, name), self.source) for name, inner in value.items()
        )


def _spelled(place: Place) -> list[str]:
    """`("agent", 0)` as `agent[1]`: people count from one."""
    words: list[str] = []
    for part in place:
        if isinstance(part, int):
            words[-1] += f"[{part + 1}]"
        else:
            words.append(part)
    return words


def _bytes(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else None


def shown(value: object) -> str:
    """A value as an error may show it: its kind when it is missing or long."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"a {type(value).__name__} of {len(text)} characters"


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean "slots"?`, or nothing when no known word is near."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""
