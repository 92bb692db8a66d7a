"""Says which waiting tasks may move, and to whom, by what the rules look at in them; pure."""

from __future__ import annotations

from dataclasses import dataclass

from .queries import Candidates, Wanting
from .strict import JsonObject


@dataclass(frozen=True)
class Shape:
    """What the rules look at; many tasks share one, and are judged once."""

    pinned: bool
    priority: int
    domain: str | None
    skills: tuple[str, ...]
    needs: tuple[str, ...]
    hops: int
    stolen: bool
    guess: str | None = None  # the domain its subject sounds like, where it names none

    @property
    def untagged(self) -> bool:
        """Neither skills nor a domain: work that anyone can do. A guess is no word of its own."""
        return not self.skills and self.domain is None


def objection(shape: Shape, query: Candidates, domains: JsonObject) -> str | None:
    """The first rule that keeps such a task here; None when one of the nodes may take it."""
    if shape.pinned and query.why != "moved":
        return "pinned"
    steal_from = query.steal_from
    if steal_from is not None and query.why == "stolen" and shape.priority < steal_from:
        return "low_enough_priority"
    if shape.priority in query.keep:
        return "not_kept_at_the_hub"
    belongs = domains_of(shape, domains)
    first = ""
    for wanting in query.wanting:
        rule = _objection_of(wanting, shape, belongs)
        if rule is None:
            return None
        first = first or rule
    return first


def _objection_of(wanting: Wanting, shape: Shape, belongs: set[str]) -> str | None:
    if wanting.hops_max is not None and shape.hops > wanting.hops_max:
        return "few_enough_hops"
    if wanting.skills is not None and not set(shape.needs) <= set(wanting.skills):
        return "needs_are_met"
    if not belongs.isdisjoint(wanting.never):
        return "never_this_domain"
    if wanting.domains is None or not belongs.isdisjoint(wanting.domains):
        return None
    if shape.untagged and wanting.untagged_from is not None:
        return None if shape.priority >= wanting.untagged_from else "may_do_this_work"
    return "may_do_this_work"


def domains_of(shape: Shape, domains: JsonObject) -> set[str]:
    """The domains a task belongs to: its own word, else those that name one of its skills.

    Where it says neither, the one its subject sounds like.
    """
    if shape.domain is not None:
        return {shape.domain}
    if shape.untagged:
        return set() if shape.guess is None else {shape.guess}
    return {name for name, entry in domains.items() if _names_one(entry, shape.skills)}


def _names_one(entry: object, skills: tuple[str, ...]) -> bool:
    named = entry.get("skills") if isinstance(entry, dict) else None
    return isinstance(named, list) and not set(skills).isdisjoint(map(str, named))
