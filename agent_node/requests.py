"""Reads one request of the wire: its frame, its fields, each checked once and by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

from . import fields
from .errors import BadInput
from .fields import Check
from .strict import JsonObject, JsonValue, decode_object, kind_of, refuse_crowded
from .ulid import is_ulid
from .wire import Id

ID_MAX = 64
WORD_MAX = 64
NAME_MAX = 200
REASON_MAX = 1000
DIGITS_MAX = 18  # of a place in a list: what a 64-bit number surely holds
# Commas, colons and opening brackets of one request. The densest that a hub tells at once is 50
# outputs of nothing but empty lists: two marks in three bytes. As measured, the values of any line
# of so many take 210 MiB at most. Answers are not bounded so: pages are cut by their bytes alone,
# and a node that says what is lawful must never be taken for one that lies.
ENDS_MAX = 50
_FRAME_MARKS = 1024  # of each, besides its output: its fields, and 64 artifacts by name
MARKS_MAX = ENDS_MAX * (fields.EXTRA_MAX * 2 // 3 + _FRAME_MARKS)

Word = TypeVar("Word", bound=str)


class NotARequest(BadInput):
    """The line is no request at all: after it, nothing that this peer sends can be trusted."""


class Fields:
    """One object of a request. A field that we do not know is ignored: a newer hub may say more.

    What is as it should be is looked at first and taken at once; the checks say what is wrong.
    """

    __slots__ = ("_place", "_where", "values")

    def __init__(self, values: JsonObject, where: str = "", place: int | None = None) -> None:
        self.values = values
        self._where, self._place = where, place

    def name_of(self, name: str) -> str:
        """The field as an error calls it: `moves[3].xfer`."""
        where = self._where if self._place is None else f"{self._where}[{self._place}]"
        return f"{where}.{name}" if where else name

    def take(self, name: str, check: Check) -> JsonValue:
        """The checked value of a field that has to be there."""
        value = self.values.get(name)
        if value is None:
            raise BadInput("missing", self.name_of(name))
        return check(value, self.name_of(name))

    def has(self, name: str) -> bool:
        """Whether the field says something; null says nothing."""
        return self.values.get(name) is not None

    def text(self, name: str, longest: int = NAME_MAX) -> str:
        """One line of text that has to be there."""
        return cast("str", self.take(name, fields.text(longest)))

    def text_or(self, name: str, default: str, longest: int = NAME_MAX) -> str:
        """One line of text, or what is meant when there is none."""
        return self.text(name, longest) if self.has(name) else default

    def maybe_text(self, name: str, longest: int = NAME_MAX) -> str | None:
        """One line of text; None when the request says nothing."""
        return None if self.values.get(name) is None else self.text(name, longest)

    def ulid(self, name: str) -> str:
        """A uid or a transfer id."""
        value = self.values.get(name)
        if type(value) is str and is_ulid(value):
            return value
        return cast("str", self.take(name, fields.ulid))

    def node(self, name: str) -> str:
        """The name of a node, a hub or an agent."""
        value = self.values.get(name)
        if type(value) is str and fields.is_name(value):
            return value
        return cast("str", self.take(name, fields.node_name))

    def maybe_node(self, name: str) -> str | None:
        """Such a name; None when the request says nothing."""
        return self.node(name) if self.has(name) else None

    def whole(self, name: str, lowest: int, highest: int) -> int:
        """A whole number in a range."""
        value = self.values.get(name)
        if type(value) is int and lowest <= value <= highest:
            return value
        return cast("int", self.take(name, fields.integer(lowest, highest)))

    def maybe_whole(self, name: str, lowest: int, highest: int) -> int | None:
        """Such a number; None when the request says nothing."""
        value = self.values.get(name)
        if type(value) is int and lowest <= value <= highest:
            return value
        return None if value is None else self.whole(name, lowest, highest)

    def limit(self, default: int, most: int) -> int:
        """How many entries the asker wants at most."""
        return self.whole("limit", 1, most) if self.has("limit") else default

    def after(self, name: str = "after") -> int:
        """Where an earlier page ended, as a number or as its digits; 0 is the beginning."""
        value = self.values.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS_MAX:
            return int(value)
        return self.whole(name, 0, 2**63 - 1) if value is not None else 0

    def seconds(self, name: str, most: float) -> float | None:
        """A duration; None when the request says nothing."""
        if not self.has(name):
            return None
        return float(cast("float", self.take(name, fields.number(0, most))))

    def points(self, name: str, most: float) -> float:
        """A number from 0 on, whole or not; 0 when the request says nothing."""
        if self.values.get(name) is None:
            return 0.0
        return float(cast("float", self.take(name, fields.number(0, most))))

    def flag(self, name: str) -> bool:
        """true, or false when the request says nothing."""
        value = self.values.get(name)
        if type(value) is bool:
            return value
        return self.has(name) and bool(self.take(name, fields.boolean))

    def moment(self, name: str) -> str:
        """A time as text of fixed width, so that texts compare."""
        value = self.values.get(name)
        if type(value) is str and fields.is_stamp(value):
            return value
        return cast("str", self.take(name, fields.moment))

    def maybe_moment(self, name: str) -> str | None:
        """Such a time; None when the request says nothing."""
        value = self.values.get(name)
        if type(value) is str and fields.is_stamp(value):
            return value
        return None if value is None else self.moment(name)

    def word(self, name: str, *words: Word) -> Word:
        """One of a few words."""
        value = self.values.get(name)
        for word in words:
            if value == word:
                return word
        return cast("Word", self.take(name, fields.one_of(*words)))

    def words(self, name: str) -> tuple[str, ...]:
        """A list of short texts; empty when the request says nothing."""
        return self.maybe_words(name) or ()

    def maybe_words(self, name: str) -> tuple[str, ...] | None:
        """The same, where an empty list and no list are different words."""
        value = self.values.get(name)
        if value is None:
            return None
        if type(value) is list:
            try:
                return fields.tag_set(tuple(value))
            except (BadInput, TypeError):
                pass  # the check below says what is wrong, and where
        return tuple(cast("list[str]", self.take(name, fields.words)))

    def mapping(self, name: str) -> JsonObject:
        """An object of bounded size whose inside is not ours."""
        return cast("JsonObject", self.take(name, fields.mapping))

    def inside(self, name: str) -> Fields:
        """An object in the request whose fields are read in turn."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise BadInput(f"a {kind_of(value)} where an object belongs", self.name_of(name))
        return Fields(value, self.name_of(name))

    def objects(self, name: str, most: int) -> list[Fields]:
        """A list of objects; each knows its place for the errors it may be part of."""
        found, where, listed = self.entries(name, most), self.name_of(name), []
        for place, value in enumerate(found):
            if not isinstance(value, dict):
                raise BadInput(f"a {kind_of(value)} where an object belongs", f"{where}[{place}]")
            listed.append(Fields(value, where, place))
        return listed

    def entries(self, name: str, most: int) -> list[JsonValue]:
        """A list whose entries are looked at one by one, later."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise BadInput(f"a {kind_of(value)} where a list belongs", self.name_of(name))
        if len(value) > most:
            message = f"{len(value)} entries; at most {most} are taken at a time"
            raise BadInput(message, self.name_of(name))
        return value


@dataclass(frozen=True)
class Request:
    """One request, its frame read."""

    id: Id
    do: str
    fields: Fields

    @property
    def dry_run(self) -> bool:
        """Whether it only asks what would happen; anything but true or false is refused."""
        return self.fields.flag("dry_run")


def read_request(line: bytes) -> Request:
    """The request in this line. `NotARequest`: the talk is over; `BadInput`: this request is."""
    try:
        values = read_frame(line)
        asked = read_id(values)
        do = _read_do(values)
    except BadInput as error:
        raise NotARequest(str(error)) from error
    return Request(id=asked, do=do, fields=Fields(values))


def read_frame(line: bytes) -> JsonObject:
    """The object in a line that a peer sent unasked; its values cost bounded memory."""
    refuse_crowded(line, MARKS_MAX)
    return decode_object(line)


def marks_of(value: JsonValue) -> int:
    """How many commas, colons and opening brackets it takes on the wire, outside its texts."""
    if isinstance(value, dict):
        own, inner = 2 * len(value), list(value.values())
    elif isinstance(value, list):
        own, inner = len(value), value
    else:
        return 0
    return max(own, 1) + sum(marks_of(one) for one in inner if type(one) in (dict, list))


def _read_do(values: JsonObject) -> str:
    do = values.get("do")
    if type(do) is not str or not 0 < len(do) <= WORD_MAX:
        raise BadInput("missing; it names what is asked for", "do")
    return do


def read_id(values: JsonObject) -> Id:
    """What the answer will be known by: a number or a short text, or nothing."""
    asked = values.get("id")
    if asked is None or type(asked) is int or (type(asked) is str and len(asked) <= ID_MAX):
        return asked
    raise BadInput(f"a {kind_of(asked)} where a number or a short text belongs", "id")
