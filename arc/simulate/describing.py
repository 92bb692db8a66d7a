"""Reads a fleet and its work from YAML, or makes up work for the fleet of fleet.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, TypeVar

from agent_node.fields import is_name
from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.decisions.domains import Role
from arc.errors import WrongUse
from arc.marked_yaml import Loc, Marked, NotYaml, Plain, Span, YamlLimits, read_marked

from .drawing import SHARED, Stream, Streams, domains_of, draw_streams
from .lengths import parse_lengths
from .scene import INBOX, Kind, Place
from .slots import slots_known
from .wanted import (
    DRAWN,
    NODES_MAX,
    SLOTS_MAX,
    Source,
    Wanted,
    bounded,
    counted,
    days,
    file_of,
    only,
    seeds_of,
    share,
)

if TYPE_CHECKING:
    from arc.settings import FleetSettings

Value = TypeVar("Value")
BYTES_MAX = 1024 * 1024
DEFAULTS = ("slots", "load", "portable", "durations")
TOP = (*DEFAULTS, "days", "at_hub", "told", "nodes")
OF_A_NODE = (*DEFAULTS, "name", "owns", "also", "never", "skills")


@dataclass(frozen=True)
class _Words:
    """One mapping of the file, and where it stands."""

    file: str
    marked: Marked
    loc: Loc
    values: Mapping[str, Plain]

    def wrong(self, key: str, because: str) -> NoReturn:
        """`WrongUse` with the line of this key."""
        place = self.marked.place(self.marked.span((*self.loc, key), key=True))
        raise WrongUse(f"{safe_text(self.file, 200)}:{place.line}: {key}: {because}")

    def text(self, key: str, default: str) -> str:
        value = self.values.get(key)
        if isinstance(value, bool | list | dict):
            self.wrong(key, "should be one word or number")
        return default if value is None else str(value)

    def names(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key)
        listed = [] if value is None else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            self.wrong(key, "should be a list of names, such as [research]")
        return tuple(map(str, listed))

    def only(self, known: tuple[str, ...]) -> None:
        for key in self.values:
            if key not in known:
                self.wrong(key, f"there is no such key; known are {', '.join(known)}")


def described(wanted: Wanted) -> Source:
    """The fleet and the streams of the file that `--describe` names."""
    only(wanted, "--describe", "describe days " + DRAWN)
    path, raw = file_of(wanted.describe, "--describe", BYTES_MAX)
    top = _top(path.name, raw)
    top.only(TOP)
    listed = top.values.get("nodes")
    if not isinstance(listed, list) or not listed:
        top.wrong("nodes", "should be a list of nodes, at least one")
    if len(listed) > NODES_MAX:
        top.wrong("nodes", f"are {len(listed)}; up to {NODES_MAX} can be simulated")
    each = tuple(_stream(top, number, entry) for number, entry in enumerate(listed))
    names = [one.place.name for one in each]
    if len(set(names)) < len(names):
        top.wrong("nodes", "two have the same name")
    told = top.values.get("told", False)
    if not isinstance(told, bool):
        top.wrong("told", "should be true or false")
    streams = Streams(
        _with_shared(each), domains_of(tuple(one.place for one in each)),
        _said(top, "days", lambda: days(wanted.days or top.text("days", "1"))),
        _said(top, "at_hub", lambda: share(top.text("at_hub", "0"), "at_hub")), told,
    )  # fmt: skip
    bounded(streams.tasks)
    facts: JsonObject = {"kind": "described", "file": path.name, "days": streams.days,
                         "nodes": len(each)}  # fmt: skip
    said = f"{len(each)} nodes of {path.name}, {streams.days:g} day{'s' * (streams.days != 1)}"
    return Source(said, facts, lambda seed: draw_streams(streams, seed), seeds_of(wanted))


def _top(file: str, raw: bytes) -> _Words:
    try:
        marked = read_marked(raw.decode("utf-8-sig"), YamlLimits("descriptions are"))
    except UnicodeDecodeError as error:
        raise WrongUse(f"{safe_text(file, 200)}: is not UTF-8 at byte {error.start}") from error
    except NotYaml as error:
        at = Marked(raw.decode("utf-8-sig")).place(error.trouble.at)
        because = safe_text(error.trouble.text, 200)
        raise WrongUse(f"{safe_text(file, 200)}:{at.line}: {because}") from error
    for trouble in marked.troubles:
        line = marked.place(Span(trouble.at.start, trouble.at.end)).line
        raise WrongUse(f"{safe_text(file, 200)}:{line}: {safe_text(trouble.text, 200)}")
    if not isinstance(marked.data, dict):
        raise WrongUse(f"{safe_text(file, 200)}: a description is a mapping with nodes")
    return _Words(file, marked, (), marked.data)


def _said(words: _Words, key: str, read: Callable[[], Value]) -> Value:
    """What `read` gives; what it refuses is told with the line of its key."""
    try:
        return read()
    except WrongUse as error:
        words.wrong(key, str(error))


def _stream(top: _Words, number: int, entry: Plain) -> Stream:
    said_of_it = entry if isinstance(entry, dict) else {}
    words = _Words(top.file, top.marked, ("nodes", number), said_of_it)
    if not words.values:
        words.wrong("name", "a node is a mapping with a name")
    words.only(OF_A_NODE)
    name = words.text("name", "")
    if not is_name(name):
        words.wrong("name", "should be lower case letters, digits and dashes, as forge")
    if name == INBOX:
        words.wrong("name", f"{INBOX} is what the hub's own queue is called")
    usual = {"slots": "1", "load": ".65", "portable": ".6", "durations": "agents"}
    said = {key: words.text(key, top.text(key, usual[key])) for key in DEFAULTS}
    where = {key: words if key in words.values else top for key in DEFAULTS}
    slots = _said(where["slots"], "slots", lambda: counted(
        int(said["slots"]) if said["slots"].isdecimal() else 0, "slots", SLOTS_MAX))  # fmt: skip
    role = Role(words.names("owns"), words.names("also"), words.names("never"))
    place = Place(name, slots, role, words.names("skills"))
    return Stream(
        place, _said(where["load"], "load", lambda: share(said["load"], "load", most=2.0)),
        _said(where["portable"], "portable", lambda: share(said["portable"], "portable")),
        _said(where["durations"], "durations", lambda: parse_lengths(said["durations"])), (), (),
    )  # fmt: skip


def _with_shared(each: tuple[Stream, ...]) -> tuple[Stream, ...]:
    """Which kinds of work are portable, and which a node's own, from what the nodes' roles say.

    A node of which no role says anything has work of its own, and also takes what all share.
    """
    if not any(one.place.role != Role() for one in each):
        each = tuple(_alike(one) for one in each)
    doers: dict[str, int] = {}
    for one in each:
        for name in {*one.place.role.owns, *one.place.role.also}:
            doers[name] = doers.get(name, 0) + 1
    return tuple(_with_kinds(one, doers) for one in each)


def _alike(one: Stream) -> Stream:
    role = Role((f"own-{one.place.name}",), (SHARED,))
    return replace(one, place=replace(one.place, role=role))


def _with_kinds(one: Stream, doers: Mapping[str, int]) -> Stream:
    """What several nodes do is portable. What is a node's alone stays; else it is pinned there."""
    role = one.place.role
    mine = dict.fromkeys((*role.owns, *role.also))
    shared = tuple(Kind(domain=name) for name in mine if doers[name] > 1)
    own = tuple(Kind(domain=name) for name in mine if doers[name] == 1)
    pinned = (Kind(domain=next(iter(mine), None), pinned=True),)
    return replace(one, shared=shared or own or pinned, own=own or pinned)


def drawn_for(wanted: Wanted, fleet: FleetSettings) -> Source:
    """Streams for the nodes of fleet.yaml: nobody knows yet what comes, so it is made up."""
    only(wanted, "the fleet of fleet.yaml", "slots load portable durations days at_hub told "
         + DRAWN)
    slots = slots_known(wanted, fleet)
    load = share(wanted.load or ".65", "--load", most=2.0)
    portable = share(wanted.portable or ".6", "--portable")
    lengths = parse_lengths(wanted.durations or "agents")
    each = _with_shared(tuple(
        Stream(Place(node.name, slots.of[node.name], Role(node.owns, node.also, node.never)), load,
               portable, lengths, (), ()) for node in fleet.nodes
    ))  # fmt: skip
    streams = Streams(each, fleet.domains, days(wanted.days or "1"),
                      share(wanted.at_hub or "0", "--at-hub"), wanted.told)  # fmt: skip
    bounded(streams.tasks)
    facts: JsonObject = {
        "kind": "fleet", "nodes": len(each), **slots.facts, "load": load, "portable": portable,
        "durations": lengths.word, "days": streams.days,
    }  # fmt: skip
    said = (f"the {len(each)} nodes of {fleet.file.name}, {slots.sentence}, "
            f"work made up: load {load:g}, {portable:.0%} portable, durations {lengths.word}, "
            f"{streams.days:g} day{'s' * (streams.days != 1)}")  # fmt: skip
    return Source(said, facts, lambda seed: draw_streams(streams, seed), seeds_of(wanted),
                  warnings=NOTHING_SHARED if portable and not _any_shared(each) else (),
                  fleet=fleet)  # fmt: skip


NOTHING_SHARED = (
    ("no domain is done by two nodes, so nothing that is made up is portable and no policy moves "
    "any of it: add a domain to another node's also: in fleet.yaml, or say --nodes N"),
)


def _any_shared(each: Sequence[Stream]) -> bool:
    """Whether two nodes do the same kind of work."""
    kinds = [kind for one in each for kind in set(one.shared) if not kind.pinned]
    return len(kinds) > len(set(kinds))
