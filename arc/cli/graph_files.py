"""Reads a graph from a file, YAML or JSON, and says where in it something is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.strict import LINE_MAX, JsonObject, JsonValue, decode_object
from arc.errors import BadGraph, WrongUse

if TYPE_CHECKING:
    from arc.marked_yaml import Loc, Marked, Plain

MONEY = frozenset({"budget_usd", "max_cost_usd"})
VALUES_MAX = 1_000_000  # of one YAML text: ten thousand tasks with a hundred each
DEPTH_MAX = 40
ALIASES_MAX = 20_000
YAML_BYTES_A_SECOND = 50_000  # about, of one that is unusual or wrong, on a busy machine
SAID_FROM_S = 3.0
SHOWN_MAX = 20  # faults of one file that are told one by one
_parts = re.compile(r"[^.\[\]]+|\[\d+\]").findall


def why_it_takes_long(raw: bytes, file: str) -> str:
    """A line about YAML that takes seconds to read by the whole reader; empty else."""
    seconds = len(raw) / YAML_BYTES_A_SECOND
    if _is_json(raw, file) or seconds < SAID_FROM_S or len(raw) > LINE_MAX:
        return ""
    return f"{file}: {len(raw) // 1024} KiB of YAML, about {seconds:.0f} s; JSON is read at once\n"


def _is_json(raw: bytes, file: str) -> bool:
    return raw.lstrip()[:1] == b"{" and not file.endswith((".yaml", ".yml"))


def graph_in(
    raw: bytes, file: str, *, by: str, talk: Callable[[str], object] = len
) -> JsonObject:
    """The document, or an error that names line and column; YAML is checked whole, for the hub has
    its lines no more. `talk` is told where that will take seconds.
    """
    if len(raw) > LINE_MAX:
        raise WrongUse(f"{file}: {len(raw)} bytes; a graph takes {LINE_MAX} at most")
    if _is_json(raw, file):
        return _json(raw, file)  # the hub names the place of what is wrong inside
    return _yaml(raw, file, by, talk=talk)


def _json(raw: bytes, file: str) -> JsonObject:
    try:
        return decode_object(raw)
    except BadInput as error:
        cause = error.__cause__
        at = f":{cause.lineno}:{cause.colno}" if isinstance(cause, json.JSONDecodeError) else ""
        raise WrongUse(f"{file}{at}: {error}; nothing was added") from error


def _check(document: JsonObject, by: str) -> None:
    """Everything that the hub will check, too: here the file's lines are at hand."""
    from agent_node.ulid import fresh_ulid
    from agent_node.unknown_fields import checked_graph

    checked_graph(document, mint=fresh_ulid, source=by)


def _yaml(raw: bytes, file: str, by: str, *, talk: Callable[[str], object]) -> JsonObject:
    from arc.marked_yaml import Marked, NotYaml, YamlLimits, read_marked
    from arc.plain_yaml import read_plain

    limits = YamlLimits("graphs are", DEPTH_MAX, ALIASES_MAX, VALUES_MAX)
    try:
        text = raw.decode("utf-8-sig")
        marked = read_plain(text, limits)
        if marked is None:
            talk(why_it_takes_long(raw, file))
            marked = read_marked(text, limits)
    except UnicodeDecodeError as error:
        raise WrongUse(f"{file}: is not UTF-8 at byte {error.start}") from error
    except NotYaml as error:
        trouble = error.trouble
        raise _bad(file, Marked(text), [(trouble.at.start, trouble.text)]) from error
    if marked.troubles:
        raise _bad(file, marked, [(one.at.start, one.text) for one in marked.troubles])
    if not isinstance(marked.data, dict):
        raise WrongUse(f"{file}: a graph is a mapping with title and tasks; nothing was added")
    document = _in_money(marked)
    try:
        _check(document, by)
    except BadInput as error:
        said = [(marked.span(loc_of(one.field, marked)).start, str(one))
                for one in error.faults or (error,)]  # fmt: skip
        raise _bad(file, marked, said, more=error.more) from error
    return document


def _bad(
    file: str, marked: Marked, faults: Sequence[tuple[int, str]], *, more: int = 0
) -> BadGraph:
    """All of them in the order in which they stand in the file, each with its line; `more` are not
    told one by one.
    """
    from agent_node.graph_faults import told_more
    from arc.findings import Finding, render_finding
    from arc.marked_yaml import Span

    told = sorted(faults)
    found = [Finding(BadGraph.code, text, file, marked.place(Span(start, start + 1)))
             for start, text in told[:SHOWN_MAX]]  # fmt: skip
    more += len(told) - len(found)
    lines = [render_finding(one, "") for one in found] + ([told_more(more)] if more else [])
    return BadGraph("\n".join([*lines, "nothing was added"]), where=found[0].where,
                    problems=tuple(one.as_json() for one in found))  # fmt: skip


def loc_of(field: str, marked: Marked) -> Loc:
    """Where in the document a field such as `graph.tasks.build.after[0]` stands."""
    loc: Loc = ()
    for part in _parts(field.removeprefix("graph")):
        step: str | int = int(part[1:-1]) if part.startswith("[") else part
        if (*loc, step) not in marked.values:
            break
        loc = (*loc, step)
    return loc


def _in_money(marked: Marked) -> JsonObject:
    """YAML reads 5.10 as a number; money is what was written, to the cent."""
    return dict(_pairs(marked, marked.data, ()))


def _pairs(marked: Marked, data: Plain, loc: Loc) -> Iterator[tuple[str, JsonValue]]:
    for name, value in data.items() if isinstance(data, dict) else ():
        yield name, _value(marked, value, (*loc, name))


def _value(marked: Marked, value: Plain, loc: Loc) -> JsonValue:
    if isinstance(value, dict):
        return dict(_pairs(marked, value, loc))
    if isinstance(value, list):
        return [_value(marked, one, (*loc, place)) for place, one in enumerate(value)]
    if loc[-1] in MONEY and isinstance(value, int | float) and not isinstance(value, bool):
        span = marked.values[loc]
        return marked.text[span.start : span.end]
    return value
