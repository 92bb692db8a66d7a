"""Finds everything in fleet.yaml that cannot be obeyed, and says it in words people can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from .errors import BadSettings
from .findings import Finding, render_finding
from .marked_yaml import Loc, Marked, Plain

if TYPE_CHECKING:
    from .config_model import Refusal

INBOX = "inbox"  # the hub's own queue stands among the nodes under this name
BUILT_IN = {"fleet-router": "router", "fleet-health": "health", "fleet-rebalance": "rebalance"}
SHOWN_MAX = 30  # faults that are told one by one
FAULTS_MAX = 200  # and how many of each kind are looked for
VALUE_SHOWN_MAX = 40
NAMES_SHOWN_MAX = 12
_ROLES = ("owns", "also", "never")
_SSH_KEYS = ("host", "port", "user")

Fault = tuple[str, Loc, str, bool]  # code, where, what is wrong, whether the key itself is


def bad_settings(file: str, marked: Marked, faults: Sequence[Fault]) -> BadSettings:
    """All faults in one error, in the order in which they stand in the file."""
    spans = [(marked.span(loc, key=key), code, text) for code, loc, text, key in faults]
    spans += [(trouble.at, trouble.code, trouble.text) for trouble in marked.troubles]
    spans.sort(key=lambda entry: entry[0].start)
    found = [Finding(code, text, file, marked.place(span))
             for span, code, text in spans[:SHOWN_MAX]]  # fmt: skip
    return error_of(file, found, total=len(spans))


def error_of(file: str, found: Sequence[Finding], *, total: int) -> BadSettings:
    """The error that names these findings; `total` counts also those that are not shown."""
    many = "1 error" if total == 1 else f"{total if total < FAULTS_MAX else 'many'} errors"
    more = [f"… and {total - len(found)} more"] if total > len(found) else []
    lines = [f"{many} in {file}", *map(render_finding, found), *more]
    return BadSettings("\n".join(lines), where=found[0].where,
                       problems=tuple(finding.as_json() for finding in found))  # fmt: skip


def faults_of_model(refused: Sequence[Refusal]) -> Iterator[Fault]:
    """What the model refuses, in our words: each with the key that was probably meant."""
    for one in refused[:FAULTS_MAX]:
        name = dotted(one.loc)
        if one.kind == "unknown":
            yield "ARC-CFG-UNKNOWN", one.loc, _unknown(one.loc), True
        elif one.kind == "missing":
            said = "; write nodes: [] if there are none" if one.loc == ("nodes",) else ""
            yield "ARC-CFG-MISSING", one.loc, f"{name} is missing{said}", False
        else:
            got = "" if ";" in one.told else f", not {shown(one.given)}"
            yield f"ARC-CFG-{one.kind.upper()}", one.loc, f"{name} {one.told}{got}", one.at_key


def shown(value: object) -> str:
    """A value as an error repeats it: short."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    said = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else repr(value)
    said = str(said)
    return said if len(said) <= VALUE_SHOWN_MAX else said[: VALUE_SHOWN_MAX - 1] + "…"


def dotted(loc: Loc) -> str:
    """`nodes[1].port`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return text.removeprefix(".") or "the file"


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'port'?`, or nothing when no known word is near."""
    found = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)
    return f"; did you mean '{found[0]}'?" if found else ""


def _unknown(loc: Loc) -> str:
    from .config_keys import keys_at, keys_of

    here, word = keys_at(loc[:-1]), str(loc[-1])
    said = near(word, here)
    if not said:
        homes = [key.name for key in keys_of() if key.name.split(".")[-1] == word]
        said = f"; did you mean '{homes[0]}'?" if homes else f"; known here: {', '.join(here)}"
    return f"{dotted(loc)} is not a setting{said}"


def contradictions(data: Plain) -> Iterator[Fault]:
    """What each key may say, and all of them together may not; works on half-wrong files too."""
    return islice(_contradictions(data), FAULTS_MAX)


def _contradictions(data: Plain) -> Iterator[Fault]:
    from .config_work_faults import work_faults

    domains = inside(data, "domains")
    yield from _limits(data)
    yield from _sensors(data)
    yield from work_faults(data)
    if "version" in domains:
        yield ("ARC-CFG-VALUE", ("domains", "version"),
               "domains.version is reserved: nodes are told the table's version under it", True)
    names: dict[str, int] = {}
    for index, node in _nodes(data):
        yield from _name(index, node, names)
        yield from _reached(index, node)
        yield from _roles(index, node, domains)


def inside(data: Plain, *path: str) -> dict[str, Plain]:
    """The mapping at a path of the file; empty where there is none."""
    for part in path:
        data = data.get(part) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _nodes(data: Plain) -> Iterator[tuple[int, dict[str, Plain]]]:
    listed = data.get("nodes") if isinstance(data, dict) else None
    for index, node in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(node, dict):
            yield index, node


def _limits(data: Plain) -> Iterator[Fault]:
    from .decisions.limits import RouteLimits

    router, default = inside(data, "router"), RouteLimits()
    soft, hard = router.get("soft", default.soft), router.get("hard", default.hard)
    if isinstance(soft, int) and isinstance(hard, int) and soft > hard:
        key = "soft" if "soft" in router else "hard"
        yield ("ARC-CFG-CONFLICT", ("router", key),
               f"router.soft is {soft}, above router.hard, which is {hard}", False)


def _sensors(data: Plain) -> Iterator[Fault]:
    for name in inside(data, "sensors"):
        if name in BUILT_IN:
            yield ("ARC-CFG-CONFLICT", ("sensors", name),
                   f"{name} is set under {BUILT_IN[name]}:, not under sensors:", True)


def _name(index: int, node: Mapping[str, Plain], names: dict[str, int]) -> Iterator[Fault]:
    name = node.get("name")
    if not isinstance(name, str):
        return
    loc: Loc = ("nodes", index, "name")
    if name == INBOX:
        yield ("ARC-CFG-VALUE", loc,
               f"'{INBOX}' is the hub's own queue; call the node something else", False)
    if name in names:
        yield "ARC-CFG-TWICE", loc, f"'{name}' is already nodes[{names[name]}]", False
    names.setdefault(name, index)


def _reached(index: int, node: Mapping[str, Plain]) -> Iterator[Fault]:
    local = node.get("local") is True
    if not local and node.get("host") is None:
        yield ("ARC-CFG-MISSING", ("nodes", index),
               f"nodes[{index}] needs host: MACHINE, or local: true", False)
    if not local and node.get("home") is not None:
        yield ("ARC-CFG-CONFLICT", ("nodes", index, "home"),
               f"nodes[{index}].home is for local: true; a remote node knows its own", True)
    for key in _SSH_KEYS if local else ():
        if node.get(key) is not None:
            yield ("ARC-CFG-CONFLICT", ("nodes", index, key),
                   f"nodes[{index}].{key} and local: true exclude each other", True)


def _roles(
    index: int, node: Mapping[str, Plain], domains: Mapping[str, Plain]
) -> Iterator[Fault]:
    told = {role: _texts(node.get(role)) for role in _ROLES}
    for role, named in told.items():
        for n, domain in named:
            loc: Loc = ("nodes", index, role, n)
            if domain not in domains:
                said = near(domain, domains) or _which(domains)
                yield ("ARC-CFG-DOMAIN", loc,
                       f"{dotted(loc[:-1])} names no domain of this file: {shown(domain)}{said}",
                       False)  # fmt: skip
            elif role == "never" and domain in {other for _, other in told["owns"] + told["also"]}:
                yield ("ARC-CFG-CONFLICT", loc,
                       f"nodes[{index}] does {domain} and never does it", False)


def _which(domains: Mapping[str, Plain]) -> str:
    if domains:
        return f"; there are: {', '.join(islice(map(shown, domains), NAMES_SHOWN_MAX))}"
    return "; there are no domains: write them under domains: (see arc explain domains)"


def _texts(value: Plain) -> list[tuple[int, str]]:
    listed = value if isinstance(value, list) else []
    return [(n, word) for n, word in enumerate(listed) if isinstance(word, str)]
