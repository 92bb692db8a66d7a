"""Finds what fleet.yaml may say and hardly means: rules nobody meets, domains nobody works for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .config import mark, read_text
from .decisions.domains import Domain
from .decisions.limits import LIMITS, OF_RETRIES, passed_over
from .decisions.sounding import Sounds
from .errors import ArcError
from .findings import Finding, Place
from .marked_yaml import Loc, Marked
from .settings import FleetSettings, NodeEntry

REPORT_EVERY_S = 30.0  # a node renews its report at least so often
_ROUTE, _STEAL = "router", "rebalance"
_MATCH = "skills in a node's node.toml, or those of the domain: one of them is out of date"


@dataclass(frozen=True)
class Seen:
    """What the nodes said of themselves, to hold the file against.

    Who is not in it was not heard; who lists no skills says nothing of them. Of neither comes any
    finding.
    """

    skills: Mapping[str, Collection[str]] = field(default_factory=dict)  # by node
    sounds: Sounds = field(default_factory=Sounds)


@dataclass(frozen=True)
class Doubt:
    """One finding before its line is known."""

    code: str
    loc: Loc
    text: str
    hint: str = ""
    key: bool = False  # the place is the key's, not the value's


def check_fleet(settings: FleetSettings, seen: Seen | None = None) -> tuple[Finding, ...]:
    """Everything doubtful in settings that can be obeyed, in the order of the file.

    Lines are looked up in the file as it is now; where it changed meanwhile or cannot be read,
    findings name the file alone.
    """
    seen = seen or Seen()
    doubts = [
        *_domains_without_worker(settings), *_domains_without_sign(settings),
        *_overlaps(settings), *_rules_nobody_meets(settings), *_roles(settings),
        *_same_place(settings), *_without_effect(settings), *_against(settings, seen),
    ]  # fmt: skip
    marked = _places(settings.file)
    found = [(_place(marked, doubt), doubt) for doubt in doubts]
    found.sort(key=lambda one: (one[0].line, one[0].column) if one[0] else (0, 0))
    return tuple(Finding(doubt.code, doubt.text, str(settings.file), place, doubt.hint)
                 for place, doubt in found)  # fmt: skip


def new_doubts(before: FleetSettings, after: FleetSettings) -> tuple[str, ...]:
    """What a change of the file makes doubtful that was not before, each in a line."""
    known = {one.text for one in check_fleet(before)}
    return tuple(f"{one.text} ({one.code}): arc config check"
                 for one in check_fleet(after) if one.text not in known)  # fmt: skip


def _places(file: Path) -> Marked | None:
    try:
        return mark(read_text(file), file)
    except ArcError:
        return None


def _place(marked: Marked | None, doubt: Doubt) -> Place | None:
    return marked.place(marked.span(doubt.loc, key=doubt.key)) if marked is not None else None


def _domains_without_worker(settings: FleetSettings) -> Iterator[Doubt]:
    """Tasks of such a domain go to nobody, or only to who may take them beside its own work."""
    owned = {name for node in settings.nodes for name in node.owns}
    also = {name for node in settings.nodes for name in node.also}
    for domain in settings.domains if settings.nodes else ():
        if domain.name in owned:
            continue
        left = "only who has it in also takes it" if domain.name in also else "its tasks stay"
        yield Doubt(
            "ARC-CFG-NO-OWNER", ("domains", domain.name),
            f"no node owns {domain.name}; {left}", "name it under owns: of a node", key=True,
        )  # fmt: skip


def _domains_without_sign(settings: FleetSettings) -> Iterator[Doubt]:
    """What cannot be recognised, and signs that no task can carry."""
    for domain in settings.domains:
        loc: Loc = ("domains", domain.name)
        if not (domain.skills or domain.prefix or domain.words):
            yield Doubt(
                "ARC-CFG-NEVER-MATCHES", loc,
                f"{domain.name} has no skills, prefix or words: only tasks that name it are its",
                key=True,
            )  # fmt: skip
        for n, start in enumerate(domain.prefix):
            shorter = _covers(start, domain.prefix[:n] + domain.prefix[n + 1 :])
            if start != start.lstrip():
                yield Doubt("ARC-CFG-NEVER-MATCHES", (*loc, "prefix", n),
                            f"no subject begins with a space, as '{start}' does")  # fmt: skip
            elif shorter is not None:
                yield Doubt("ARC-CFG-OVERLAP", (*loc, "prefix", n),
                            f"'{start}' adds nothing to '{shorter}'")  # fmt: skip
        for n, word in enumerate(domain.words):
            if word != word.strip():
                yield Doubt("ARC-CFG-NEVER-MATCHES", (*loc, "words", n),
                            f"'{word}' begins or ends with a space, and no word does")  # fmt: skip


def _covers(start: str, others: tuple[str, ...]) -> str | None:
    """Another beginning that catches all that this one would; None: there is none."""
    said = start.casefold()
    return next((one for one in others
                 if said.startswith(one.casefold()) and said != one.casefold()), None)  # fmt: skip


def _overlaps(settings: FleetSettings) -> Iterator[Doubt]:
    """A sign of two domains makes its tasks both one's work and the other's."""
    for kind in ("skills", "prefix", "words"):
        first: dict[str, tuple[str, int]] = {}
        for domain in settings.domains:
            for n, sign in enumerate(getattr(domain, kind)):
                said = sign if kind == "skills" else sign.casefold()
                there = first.setdefault(said, (domain.name, n))
                if there != (domain.name, n):
                    yield Doubt("ARC-CFG-OVERLAP", ("domains", domain.name, kind, n),
                                f"'{sign}' stands under {there[0]} already")  # fmt: skip


def _rules_nobody_meets(settings: FleetSettings) -> Iterator[Doubt]:
    """Limits that together let nothing move, which from outside looks like a fleet at rest."""
    code = "ARC-CFG-NOBODY-MEETS"
    route, steal = settings.route, settings.steal
    for section, key, value in (
        (_ROUTE, "batch", route.batch), (_ROUTE, "hard", route.hard),
        (_STEAL, "per_node", steal.per_node), (_STEAL, "per_cycle", steal.per_cycle),
    ):  # fmt: skip
        if value == 0 and not (section == _STEAL and steal.swift):  # which knows no such bound
            yield Doubt(code, (section, key), f"with {section}.{key}: 0 nothing ever moves",
                        f"to stop it on purpose write {section}: {{enabled: false}}")  # fmt: skip
    if len(set(route.keep)) == 10:  # noqa: PLR2004 - all priorities there are
        yield Doubt(code, (_ROUTE, "keep"), "every priority stays at the hub; nothing is routed")
    if settings.health.stale_after_s <= REPORT_EVERY_S:
        yield Doubt(code, ("health", "stale_after"),
                    f"a node renews its report every {REPORT_EVERY_S:.0f}s; all would look stale",
                    "write stale_after: 2m or more")  # fmt: skip
    nodes, domains = settings.nodes, settings.domains
    takers = [[node for node in nodes if one.name in node.owns + node.also] for one in domains]
    if len(nodes) > 1 and domains and not any(len(some) > 1 for some in takers):
        yield Doubt(code, ("nodes",), "no domain has a second node that may do it, so work with a "
                    "domain can never be moved", "name domains under also:", key=True)  # fmt: skip


def _roles(settings: FleetSettings) -> Iterator[Doubt]:
    """Words that contradict nothing and still say nothing."""
    for n, node in enumerate(settings.nodes):
        for m, name in enumerate(node.also):
            if name in node.owns:
                yield Doubt("ARC-CFG-NO-EFFECT", ("nodes", n, "also", m),
                            f"{node.name} owns {name}; also: adds nothing to that")  # fmt: skip
    fallback = settings.route.fallback
    if fallback is not None and settings.node(fallback) is None:
        yield Doubt("ARC-CFG-FALLBACK", (_ROUTE, "fallback"),
                    f"router.fallback is {fallback}, and no node is called so")  # fmt: skip


def _same_place(settings: FleetSettings) -> Iterator[Doubt]:
    """Two entries that lead to the same login, behind which only one node can answer."""
    seen: dict[tuple[object, ...], str] = {}
    for n, node in enumerate(settings.nodes):
        there = _login(node)
        first = seen.setdefault(there, node.name)
        if first != node.name:
            yield Doubt("ARC-CFG-SAME-PLACE", ("nodes", n),
                        f"{node.name} is reached exactly as {first} is; one of them will answer "
                        "under the other's name")  # fmt: skip


def _login(node: NodeEntry) -> tuple[object, ...]:
    return ("local", node.home) if node.local else (node.host, node.port, node.user)


def _without_effect(settings: FleetSettings) -> Iterator[Doubt]:
    """Keys that the chosen policy does not look at."""
    marked = _places(settings.file)
    for key in passed_over(settings.policy, LIMITS):
        if marked is not None and (_STEAL, key) in marked.keys and key not in OF_RETRIES:
            said = f"policy {settings.policy} does not look at rebalance.{key}"
            yield Doubt("ARC-CFG-NO-EFFECT", (_STEAL, key), said, key=True)


def _against(settings: FleetSettings, seen: Seen) -> Iterator[Doubt]:
    """What the file names and the fleet does not know: the way in which such tables go stale."""
    for domain in settings.domains:
        known = _known_of(settings, domain.name, seen)
        for n, skill in enumerate(domain.skills):
            if known is not None and skill not in known:
                yield Doubt("ARC-CFG-NOTHING-MATCHES", ("domains", domain.name, "skills", n),
                            f"no node reports the skill '{skill}'", _MATCH)  # fmt: skip
        yield from _unsaid(domain, seen.sounds)
    for n, node in enumerate(settings.nodes):
        yield from _unable(settings, n, set(seen.skills.get(node.name, ())))


def _unsaid(domain: Domain, sounds: Sounds) -> Iterator[Doubt]:
    """Its beginnings and words that none of many tasks has."""
    for kind, said in (("prefix", "begins with"), ("words", "has the word")):
        missing = sounds.missing.get(kind, ())
        for n, sign in enumerate(getattr(domain, kind)):
            if sign in missing:
                text = f"none of the {sounds.tasks} tasks that the nodes know {said} '{sign}'"
                yield Doubt("ARC-CFG-NOTHING-MATCHES", ("domains", domain.name, kind, n), text)


def _known_of(settings: FleetSettings, domain: str, seen: Seen) -> set[str] | None:
    """Every skill of the fleet; None: some node was not heard, or one that does this domain's work
    (of a domain that nobody does, any node) says nothing of skills.
    """
    nodes = settings.nodes
    if not all(node.name in seen.skills for node in nodes):
        return None
    doers = [node.name for node in nodes if domain in node.owns + node.also]
    asked = doers or [node.name for node in nodes]
    if not asked or not all(seen.skills[name] for name in asked):
        return None
    return {skill for node in nodes for skill in seen.skills[node.name]}


def unheard(settings: FleetSettings, seen: Seen) -> tuple[str, ...]:
    """The nodes whose skills are not known, where the file says anything that they could tell."""
    if not any(domain.skills for domain in settings.domains):
        return ()
    return tuple(sorted(node.name for node in settings.nodes if node.name not in seen.skills))


def _unable(settings: FleetSettings, n: int, skills: set[str]) -> Iterator[Doubt]:
    """A node that owns a domain of skills and reports none of them."""
    node = settings.nodes[n]
    for m, name in enumerate(node.owns if skills else ()):
        domain = next((one for one in settings.domains if one.name == name), None)
        if domain is not None and domain.skills and skills.isdisjoint(domain.skills):
            yield Doubt("ARC-CFG-NO-SKILL", ("nodes", n, "owns", m),
                        f"{node.name} owns {name} and reports none of its skills",
                        _MATCH)  # fmt: skip
