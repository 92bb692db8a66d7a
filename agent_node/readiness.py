"""Decides from its edges whether a task waits, may run, or never will. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from .errors import BadInput
from .references import references_of
from .strict import JsonObject, JsonValue, kind_of
from .task import ENDED, State
from .ulid import is_ulid

OnFailure = Literal["fail", "skip", "run"]
Came = Literal["well", "badly", "skipped"]
ON_FAILURE: tuple[OnFailure, ...] = get_args(OnFailure)
EDGES_MAX = 50_000  # of one graph, and so of one task

BY_GRAPH = "graph"  # who ends what an edge ends, in its events
DEPENDENCY_FAILED = "dependency_failed"
SKIPPED = "skipped"
# What a hub writes of a good end whose node is away and never said what its task left.
AWAY = "it is away"
UNHEARD = "what it left on {node} was not heard: {why}"
_is_unheard = re.compile(  # behind the reason of the end itself, where it has one
    rf"(?:.*; )?{UNHEARD.format(node='[a-z][a-z0-9-]*', why=AWAY)}", re.DOTALL
).fullmatch
_is_skip = re.compile(rf"{SKIPPED}: [0-7][0-9A-HJKMNP-TV-Z]{{25}}").match


@dataclass(frozen=True)
class Edge:
    """What a task waits for, what it does should that end badly, and how it ended. None: open."""

    needs: str
    on_failure: OnFailure = "fail"
    came: Came | None = None


@dataclass(frozen=True)
class Verdict:
    """`uid` is the task whose end decided it; None where no single one did."""

    kind: Literal["waits", "ready", "fails", "skips"]
    uid: str | None = None

    @property
    def because(self) -> str:
        """What is written down of a task that will never run."""
        rule = DEPENDENCY_FAILED if self.kind == "fails" else SKIPPED
        how = "ended badly" if self.kind == "fails" else "ended badly, and its work is left out"
        return f"{rule}: {self.uid} {how}"

    @property
    def came(self) -> Came:
        """How such a task counts for those that wait for it: what is left out fails nobody."""
        return "badly" if self.kind == "fails" else "skipped"


WAITS, READY = Verdict("waits"), Verdict("ready")


def is_unheard(because: str | None) -> bool:
    """Whether what a task left may still be told: its node is away, and nobody had heard it yet."""
    return because is not None and _is_unheard(because) is not None


def judge(edges: Iterable[Edge]) -> Verdict:
    """The same for every order in which the ends come.

    One bad end under `fail` decides at once. One under `skip` decides as soon as no open edge
    could still say `fail`. Else every edge has to have come.
    """
    listed = list(edges)
    bad = [edge for edge in listed if edge.came == "badly"]
    still = [edge for edge in listed if edge.came is None]
    return decide(
        failed=_least(edge.needs for edge in bad if edge.on_failure == "fail"),
        skipped=_least(edge.needs for edge in bad if edge.on_failure == "skip"),
        may_fail=any(edge.on_failure == "fail" for edge in still),
        open_edges=bool(still),
    )


def _least(uids: Iterable[str]) -> str | None:
    return min(uids, default=None)


def decide(
    *, failed: str | None, skipped: str | None, may_fail: bool, open_edges: bool
) -> Verdict:
    """The rule itself, of what is known of all edges together."""
    if failed is not None:
        return Verdict("fails", failed)
    if skipped is not None and not may_fail:
        return Verdict("skips", skipped)
    return WAITS if open_edges else READY


def came_of(state: str, because: str | None = None) -> Came | None:
    """How a task in this state counts for those that wait for it; None: it has not ended."""
    if state == State.COMPLETED:
        return "well"
    if state not in ENDED:
        return None
    return "skipped" if state == State.CANCELLED and _is_skip(because or "") else "badly"


def edges_of(depends_on: Iterable[JsonValue], *, of: str, where: str = "depends_on") -> list[Edge]:
    """What a task says it waits for: uids, or objects of `uid` and `on_failure`; each once."""
    found: dict[str, Edge] = {}
    for place, entry in enumerate(depends_on):
        edge = _edge(entry, f"{where}[{place}]")
        if edge.needs == of:
            raise BadInput("the task would wait for itself", f"{where}[{place}]")
        if found.setdefault(edge.needs, edge) != edge:
            raise BadInput(f"{edge.needs} stands here twice, and not alike", f"{where}[{place}]")
    return list(found.values())


def all_edges(
    depends_on: Iterable[JsonValue], context_refs: Iterable[JsonValue], *, of: str
) -> list[Edge]:
    """All that a task waits for: what is to be given of another can be had when that has ended."""
    edges = edges_of(depends_on, of=of)
    said = {edge.needs for edge in edges}
    sources = {ref.of for ref in references_of(context_refs)} - said - {None, of}
    return [*edges, *(Edge(str(uid)) for uid in sorted(map(str, sources)))]


def _edge(entry: JsonValue, where: str) -> Edge:
    said: JsonObject = {"uid": entry} if isinstance(entry, str) else _object(entry, where)
    unknown = sorted(said.keys() - {"uid", "on_failure"})
    if unknown:
        raise BadInput("no such field; there are uid, on_failure", f"{where}.{unknown[0][:80]}")
    uid = said.get("uid")
    if not isinstance(uid, str) or not is_ulid(uid):
        raise BadInput("not a ULID (26 characters of 0-9 A-Z without I L O U)", f"{where}.uid")
    return Edge(uid, on_failure_of(said.get("on_failure", "fail"), f"{where}.on_failure"))


def on_failure_of(value: JsonValue, where: str) -> OnFailure:
    """One of the three words, or `BadInput`."""
    for word in ON_FAILURE:
        if value == word:
            return word
    raise BadInput(f"one of {', '.join(ON_FAILURE)} belongs here", where)


def _object(entry: JsonValue, where: str) -> JsonObject:
    if not isinstance(entry, dict):
        raise BadInput(f"a {kind_of(entry)} where a uid or an object belongs", where)
    return entry
