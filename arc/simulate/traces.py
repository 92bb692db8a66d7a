"""Reads what came to a fleet from a trace: JSON lines, or SWF as supercomputers write it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from agent_node.clock import parse_iso
from agent_node.errors import BadInput
from agent_node.fields import is_name
from agent_node.strict import JsonObject, JsonValue, decode_object
from agent_node.text import safe_text
from arc.decisions.domains import Role
from arc.durations import PRIORITY_MAX
from arc.errors import WrongUse

from .drawing import SHARED, domains_of, fleet_of
from .engine import jobs_in_order
from .lengths import LONGEST_S
from .scene import INBOX, MS, Job, Kind, Place, Scene
from .wanted import (
    DRAWN,
    NODES_MAX,
    TASKS_MAX,
    Source,
    Wanted,
    file_of,
    nodes_of,
    only,
    seeds_of,
    share,
    slots_of,
)

if TYPE_CHECKING:
    from arc.settings import FleetSettings

BYTES_MAX = 512 * 1024 * 1024
BAD_SHOWN = 5
YEARS_MAX = 10  # from its first task to its last: the hub's looks in between are simulated, too
KEYS = ("at", "takes_s", "node", "priority", "domain", "skills", "needs", "pinned", "expected_s",
        "id", "subject")  # fmt: skip
SWF_FIELDS, SUBMIT, RUN, PROCESSORS, USER = 18, 1, 3, 4, 11


@dataclass(frozen=True)
class Line:
    """One task of a trace. `node` "": the trace does not say where it came."""

    at_s: float
    takes_s: float
    node: str
    kind: Kind | None  # None: the trace knows of none
    priority: int = 5
    expected_s: float | None = None
    name: str = ""
    user: int = 0
    wide: bool = False  # it ran on several processors at once


class BadLine(ValueError):
    """What is wrong with one line."""


def traced(wanted: Wanted, fleet: FleetSettings | None) -> Source:
    """The tasks of the file, on the nodes of `--nodes`, else of fleet.yaml, else on its own."""
    only(wanted, "--trace", f"nodes slots portable trace {DRAWN}")
    path, raw = file_of(wanted.trace, "--trace", BYTES_MAX)
    text = _decoded(raw, path.name)
    swf = path.suffix.lower() == ".swf" or not text.lstrip().startswith("{")
    lines, left_out = _read(text, path.name, swf=swf)
    slots = slots_of(wanted)
    places, mine = _places(wanted, lines, fleet, slots)
    _check_span(lines, path.name)
    portable = share(wanted.portable or ".6", "--portable")
    drawn = any(line.kind is None for line in lines)
    if wanted.seeds is not None and not drawn:
        raise WrongUse("--seeds: says nothing to a trace that says all: nothing of it is drawn")
    first_s = min(line.at_s for line in lines)
    domains = mine.domains if mine else domains_of(places)
    scene = Scene(places, (), domains)
    facts: JsonObject = {"kind": "trace", "file": path.name, "format": "swf" if swf else "jsonl",
                         "lines": len(lines), "left_out": left_out, "nodes": len(places),
                         **({"portable": portable} if drawn else {})}  # fmt: skip
    said = f"{len(lines):,} tasks of {safe_text(path.name, 100)} on {len(places)} nodes" + (
        f", {portable:.0%} of them portable" if drawn else "")  # fmt: skip
    warnings = [f"{left_out} tasks without a length are left out"] if left_out else []
    if wide := sum(line.wide for line in lines):
        warnings.append(f"{wide} jobs ran on several processors; here each takes one slot")
    return Source(
        said, facts, lambda seed: _scene(scene, lines, seed, first_s=first_s, portable=portable),
        seeds_of(wanted) if drawn else 1, tuple(warnings), mine,
    )  # fmt: skip


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongUse(f"{safe_text(name, 200)}: is not UTF-8 at byte {error.start}") from error


def _read(text: str, name: str, *, swf: bool) -> tuple[list[Line], int]:
    """Every line, or `WrongUse` that names each bad one by its number."""
    found: list[Line] = []
    bad: list[str] = []
    left_out = 0
    # Not `splitlines`: a subject may hold characters that it takes for the end of a line.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or (swf and line.lstrip().startswith(";")):
            continue
        try:
            read = _of_swf(line) if swf else _of_json(line)
        except (BadLine, BadInput) as error:
            bad.append(f"{safe_text(name, 100)}:{number}: {safe_text(str(error), 200)}")
            continue
        if read is None:
            left_out += 1
        else:
            found.append(read)
    if bad:
        more = f"\nand {len(bad) - BAD_SHOWN} more" if len(bad) > BAD_SHOWN else ""
        raise WrongUse("\n".join(bad[:BAD_SHOWN]) + more)
    if not found:
        raise WrongUse(f"{safe_text(name, 200)}: holds no task")
    if len(found) > TASKS_MAX:
        raise WrongUse(f"{safe_text(name, 200)}: {len(found):,} tasks; up to {TASKS_MAX:,}")
    return found, left_out


def _check_span(lines: list[Line], name: str) -> None:
    """A moment that is a slip, such as milliseconds for seconds, is told and not waited for."""
    years = (max(line.at_s for line in lines) - min(line.at_s for line in lines)) / LONGEST_S
    if years > YEARS_MAX:
        raise WrongUse(f"{safe_text(name, 200)}: {years:,.0f} years from its first task to its "
                       f"last; up to {YEARS_MAX}, and times are in seconds")  # fmt: skip


def _of_json(line: str) -> Line:
    said = decode_object(line.encode())
    unknown = [key for key in said if key not in KEYS]
    if unknown:
        raise BadLine(f"{unknown[0]}: there is no such key; known are {', '.join(KEYS)}")
    kind = Kind(
        _word(said, "domain") or None, _words(said, "skills"), _words(said, "needs"),
        _flag(said, "pinned"), _word(said, "subject") or "simulated",
    )  # fmt: skip
    expected_s = _seconds(said, "expected_s") if said.get("expected_s") is not None else None
    return Line(_moment(said), _seconds(said, "takes_s"), _word(said, "node"), kind,
                _priority(said), expected_s, _word(said, "id"))  # fmt: skip


def _moment(said: JsonObject) -> float:
    """Seconds since some beginning, or a zoned time."""
    value = said.get("at")
    if isinstance(value, str):
        try:
            return parse_iso(value).timestamp()
        except (ValueError, OverflowError) as error:
            raise BadLine(f"at: {value!r} is no zoned time") from error
    return _number(value, "at", 0.0, 1e11)


def _seconds(said: JsonObject, key: str) -> float:
    return _number(said.get(key), key, 0.001, LONGEST_S)


def _number(value: JsonValue, key: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadLine(f"{key}: {'missing' if value is None else 'should be a number'}")
    if not (math.isfinite(value) and low <= value <= high):
        raise BadLine(f"{key}: should lie between {low:g} and {high:g}")
    return float(value)


def _priority(said: JsonObject) -> int:
    value = said.get("priority", 5)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= PRIORITY_MAX:
        return value
    raise BadLine("priority: should be 1 to 10")


def _word(said: JsonObject, key: str) -> str:
    value = said.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    raise BadLine(f"{key}: should be text")


def _words(said: JsonObject, key: str) -> tuple[str, ...]:
    value = said.get(key) or []
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(map(str, value))
    raise BadLine(f"{key}: should be a list of texts")


def _flag(said: JsonObject, key: str) -> bool:
    value = said.get(key, False)
    if isinstance(value, bool):
        return value
    raise BadLine(f"{key}: should be true or false")


def _of_swf(line: str) -> Line | None:
    """A job of the Standard Workload Format; None: it says not how long it ran, so it never did."""
    fields = line.split()
    if len(fields) != SWF_FIELDS:
        raise BadLine(f"{len(fields)} fields; a line of SWF has {SWF_FIELDS}")
    try:
        numbers = [float(field) for field in fields]
    except ValueError as error:
        raise BadLine("a field is no number") from error
    at_s, takes_s, user = numbers[SUBMIT], numbers[RUN], numbers[USER]
    if not math.isfinite(at_s) or at_s < 0:
        raise BadLine("field 2, when it was submitted, should be 0 or more")
    if takes_s <= 0:
        return None
    if not takes_s <= LONGEST_S:
        raise BadLine("field 4, how long it ran, is more than a year")
    whose = int(user) if math.isfinite(user) else 0
    return Line(at_s, takes_s, "", None, name=fields[0], user=whose,
                wide=numbers[PROCESSORS] > 1)  # fmt: skip


def _places(
    wanted: Wanted, lines: list[Line], fleet: FleetSettings | None, slots: int
) -> tuple[tuple[Place, ...], FleetSettings | None]:
    """The nodes, and the fleet.yaml that they come from; None: from the command or the trace."""
    named = sorted({line.node for line in lines} - {"", INBOX})
    odd = [name for name in named if not is_name(name)]
    if odd:
        raise WrongUse(f"--trace: {safe_text(odd[0], 60)!r} is no name of a node")
    if wanted.nodes is not None:
        places = fleet_of(nodes_of(wanted), slots)
        mine = None
    elif fleet is not None and fleet.nodes:
        places = tuple(Place(node.name, slots, Role(node.owns, node.also, node.never))
                       for node in fleet.nodes)  # fmt: skip
        mine = fleet
    else:
        domains = tuple(sorted({line.kind.domain for line in lines
                                if line.kind and line.kind.domain} | {SHARED}))  # fmt: skip
        skills = tuple(sorted({need for line in lines if line.kind for need in line.kind.needs}))
        some = named or [place.name for place in fleet_of(5, slots)]
        return tuple(Place(name, slots, Role((f"own-{name}",), domains), skills)
                     for name in some[:NODES_MAX]), None  # fmt: skip
    strange = [name for name in named if name not in {place.name for place in places}]
    if strange:
        raise WrongUse(f"--trace: it names {safe_text(strange[0], 60)}, which is none of the "
                       f"{len(places)} nodes")  # fmt: skip
    return places, mine


def _scene(
    scene: Scene, lines: list[Line], seed: int, *, first_s: float, portable: float
) -> Scene:  # fmt: skip
    """What the trace does not say is drawn: where a task came, and whether others may run it."""
    chance = Random(f"trace {seed}")  # noqa: S311 - a simulation
    places = scene.places
    jobs = []
    for number, line in enumerate(lines, start=1):
        place = places[line.user % len(places)] if line.kind is None else chance.choice(places)
        home = line.node or place.name
        own = place.role.owns[0] if place.role.owns else None
        kind = line.kind or (Kind(domain=SHARED) if chance.random() < portable
                             else Kind(domain=own, pinned=own is None))  # fmt: skip
        jobs.append(Job(number, round((line.at_s - first_s) * MS), home,
                        max(round(line.takes_s * MS), 1), kind, line.priority, line.expected_s,
                        line.name))  # fmt: skip
    return replace(scene, jobs=jobs_in_order(jobs))

