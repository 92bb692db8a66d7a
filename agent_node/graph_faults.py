"""Finds all that is wrong with a graph's document, where its reader stops at the first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import TypeVar

from .errors import BadInput
from .graph_drafts import born_of, draft_of, following_of, graph_object, head_of, name_of, named
from .graph_names import Draft, read_ties
from .graphs import THEN_MAX, circle_in, told_circle
from .strict import JsonObject, JsonValue
from .text import safe_text
from .ulid import is_ulid

SHOWN_MAX = 20
COUNTED_MAX = 1000  # and then no further one is looked for
OF_ONE_MAX = 8  # faults of one task that are looked for
TEXT_MAX = 500
_STAND_IN: JsonObject = {"title": "x", "subject": "x"}  # in place of one that is wrong
T = TypeVar("T")
Found = Generator[BadInput, None, T]


def with_all_others(first: BadInput, document: JsonValue) -> BadInput:
    """One error of everything that can be told of this document at once: `faults` are those that
    are shown, in the document's order, `more` is how many others there are. Its field stays that
    at which the reader stopped, as whoever knows of one fault alone was always told.
    """
    return as_one(first, islice(_wrong(document, depth=1), COUNTED_MAX))


def as_one(first: BadInput, found: Iterator[BadInput], *, more: int = 0) -> BadInput:
    """One error of all of these, or of the first where there are none; `more` were counted only."""
    shown = tuple(islice(found, SHOWN_MAX)) or (first,)
    more += sum(1 for _ in found)
    lines = [safe_text(str(one), TEXT_MAX) for one in shown]
    lines += [told_more(more)] if more else []
    error = BadInput("\n".join(lines))
    error.field, error.faults, error.more = first.field, shown, more
    return error


def told_more(more: int) -> str:
    """How many others there are, as the last line of those that are shown."""
    least = " at least" if more >= COUNTED_MAX - SHOWN_MAX else ""
    return f"… and {more} more{least}"


def _wrong(document: JsonValue, depth: int) -> Iterator[BadInput]:
    where = "graph" + ".then" * (depth - 1)
    try:
        said = graph_object(document, where)
    except BadInput as error:
        yield error
        return
    yield from _without(said, where, lambda some: head_of(some, where))
    yield from _wrong_tasks(said.get("tasks"), where)
    then = said.get("then")
    if then is None:
        return
    try:
        following_of(then, depth)
    except BadInput as error:
        yield error
    if isinstance(then, dict) and depth < THEN_MAX:
        yield from _wrong(then, depth + 1)


def _without(said: JsonObject, where: str, read: Callable[[JsonObject], T]) -> Found[T | None]:
    """What can be read of this once everything that is wrong in it is told, and left out."""
    for _ in range(OF_ONE_MAX):
        try:
            return read(said)
        except BadInput as error:
            yield error
            name = _name_in(error.field.removeprefix(f"{where}."), said)
        if name not in said and name not in _STAND_IN:
            return None
        rest = {one: value for one, value in said.items() if one != name}
        said = {**rest, name: _STAND_IN[name]} if name in _STAND_IN else rest
    yield BadInput("more is wrong here than was looked for", where)
    return None


def _name_in(field: str, said: JsonObject) -> str:
    return field if field in said else field.partition(".")[0].partition("[")[0]


def _wrong_tasks(tasks: JsonValue, where: str) -> Iterator[BadInput]:
    try:
        entries = [*named(tasks, where)]
    except BadInput as error:
        yield error
        return
    uids = _uids_of(entries)
    taken: set[str] = set()
    born: set[str] = set()
    needs: dict[str, dict[str, str]] = {}
    for said, task, place in entries:
        try:
            taken.add(name_of(said, taken, place))
        except BadInput as error:
            yield error
        draft = yield from _draft(str(said), task, place)
        if draft is not None:
            yield from _born(draft, born, uids[draft.name])
            places = yield from read_ties(draft, uids)
            needs.setdefault(uids[draft.name], {}).update(places)
    yield from _cycles(needs, {uid: name for name, uid in uids.items()}, where)


def _uids_of(entries: list[tuple[JsonValue, JsonValue, str]]) -> dict[str, str]:
    """By name a uid for each task, also for one that cannot be read: it is none that is missing."""
    found: dict[str, str] = {}
    for number, (name, task, _) in enumerate(entries):
        own = task.get("uid") if isinstance(task, dict) else None
        given = own if isinstance(own, str) and is_ulid(own) else f"{number:026d}"
        found.setdefault(str(name), given)
    return found


def _draft(name: str, task: JsonValue, place: str) -> Found[Draft | None]:
    if isinstance(task, dict):
        return (yield from _without(task, place, lambda some: draft_of(name, some, place)))
    try:
        return draft_of(name, task, place)
    except BadInput as error:
        yield error
    return None


def _born(draft: Draft, born: set[str], uid: str) -> Iterator[BadInput]:
    task = yield from _without(draft.fields, draft.where, lambda some: born_of(
        replace(draft, fields=some), born, priority=None, mint=lambda: uid, source=""
    ))  # fmt: skip
    if task is not None:
        born.add(task.uid)


def _cycles(
    needs: Mapping[str, Mapping[str, str]], names: Mapping[str, str], where: str
) -> Iterator[BadInput]:
    """Each at that of its tasks which stands first, where that says for what it waits. Of cycles
    that share a task one is told.
    """
    order = {uid: number for number, uid in enumerate(needs)}
    left: dict[str, Collection[str]] = {**needs}
    for _ in range(SHOWN_MAX):
        circle = circle_in(left)
        if circle is None:
            return
        _, needed, uid = min((order[uid], before, uid) for before, uid in pairwise(circle))
        at = circle.index(uid)
        path = [*circle[at:-1], *circle[:at], uid] if at else circle
        yield BadInput(told_circle([names.get(one, one) for one in path]), needs[uid][needed])
        gone = set(circle)
        left = {uid: some for uid, some in left.items() if uid not in gone}
    if circle_in(left) is not None:
        yield BadInput("there are more cycles than were looked for", where)
