"""Finds READY tasks that may move, and counts the rule that keeps each of the others."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from ..queries import Candidates, Chosen, Wanting
from ..strict import JsonObject
from ..task import State, Task
from .rows import WITHOUT_BODY, task_of, with_history
from .transaction import Transaction

_SHAPE = "pinned, priority, coalesce(domain, ''), skills, need_set, hops, stolen_from IS NOT NULL"
_SHAPES = f"SELECT {_SHAPE}, count(*) FROM task WHERE state = 'READY' GROUP BY {_SHAPE}"


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

    @property
    def untagged(self) -> bool:
        """Neither skills nor a domain: work that anyone can do."""
        return not self.skills and self.domain is None


def candidates(tx: Transaction, query: Candidates) -> Chosen:
    """Filtered before the limit; `kept` and `eligible` add up to every READY task."""
    needs = dict(tx.db.execute("SELECT id, needs FROM need_set").fetchall())
    domains = json.loads(tx.node.domains)
    kept: Counter[str] = Counter()
    allowed: list[tuple[object, ...]] = []
    eligible = 0
    for *key, number in tx.db.execute(_SHAPES).fetchall():
        rule = objection(_shape(key, needs), query, domains)
        if rule is not None:
            kept[rule] += number
            continue
        eligible += number
        allowed.append(tuple(key))
    tasks, following = _page(tx, query, allowed)
    return Chosen(tasks, following, dict(kept), eligible, tx.count(State.READY))


def _shape(key: list[object], needs: dict[int, str]) -> Shape:
    pinned, priority, domain, skills, need_set, hops, stolen = key
    return Shape(
        bool(pinned), int(str(priority)), str(domain) or None,
        tuple(json.loads(str(skills))), tuple(json.loads(needs[int(str(need_set))])),
        int(str(hops)), bool(stolen),
    )  # fmt: skip


def objection(shape: Shape, query: Candidates, domains: JsonObject) -> str | None:
    """The first rule that keeps such a task here; None when one of the nodes may take it."""
    if shape.pinned and query.why != "moved":
        return "pinned"
    steal_from = query.steal_from
    if steal_from is not None and query.why == "stolen" and shape.priority < steal_from:
        return "low_enough_priority"
    said = [_objection_of(wanting, shape, domains) for wanting in query.wanting]
    return None if None in said else said[0]


def _objection_of(wanting: Wanting, shape: Shape, domains: JsonObject) -> str | None:
    if wanting.hops_max is not None and shape.hops > wanting.hops_max:
        return "few_enough_hops"
    if wanting.skills is not None and not set(shape.needs) <= set(wanting.skills):
        return "needs_are_met"
    belongs = domains_of(shape, domains)
    if belongs & set(wanting.never):
        return "never_this_domain"
    if wanting.domains is None or belongs & set(wanting.domains):
        return None
    if shape.untagged and wanting.untagged_from is not None:
        return None if shape.priority >= wanting.untagged_from else "may_do_this_work"
    return "may_do_this_work"


def domains_of(shape: Shape, domains: JsonObject) -> set[str]:
    """The domains a task belongs to: its own word first, else those that name one of its skills."""
    if shape.domain is not None:
        return {shape.domain}
    return {name for name, entry in domains.items() if _names_one(entry, shape.skills)}


def _names_one(entry: object, skills: tuple[str, ...]) -> bool:
    named = entry.get("skills") if isinstance(entry, dict) else None
    return isinstance(named, list) and not set(skills).isdisjoint(map(str, named))


_URGENCY = 1 << 40
_PAGE = f"""
SELECT {WITHOUT_BODY}, rank FROM task
 WHERE state = 'READY' AND ({_SHAPE}) IN (VALUES {{shapes}}) AND {{beyond}}
 ORDER BY rank {{way}}, seq {{way}} LIMIT ?
"""


def _page(
    tx: Transaction, query: Candidates, allowed: list[tuple[object, ...]]
) -> tuple[tuple[Task, ...], int | None]:
    if not allowed:
        return (), None
    way, sign = ("ASC", ">") if query.order == "most_urgent" else ("DESC", "<")
    beyond = f"(rank, seq) {sign} (?, ?)" if query.after else "? IS ?"
    place = divmod(query.after, _URGENCY) if query.after else (0, 0)
    marks = ", ".join("(" + ", ".join("?" * len(allowed[0])) + ")" for _ in allowed)
    values = [value for shape in allowed for value in shape]
    sql = _PAGE.format(shapes=marks, beyond=beyond, way=way)
    rows = tx.db.execute(sql, (*values, *place, query.limit + 1)).fetchall()
    tasks = tuple(with_history(tx, task_of(row[:-1])) for row in rows[: query.limit])
    last = rows[query.limit - 1] if len(rows) > query.limit else None
    return tasks, None if last is None else int(last[-1]) * _URGENCY + int(last[0])
