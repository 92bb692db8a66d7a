"""Reads what stores say of graphs strictly, as values: what does not fit is an error, no guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_node.commands import Because
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.text import safe_text

from .asking import COUNT_MAX, ENTRIES_MAX, SAID_MAX, reading

STATES = ("running", "completed", "failed", "cancelled")
TITLE_MAX = 500
NAME_MAX = 200
MONEY_MAX = 64
WEIGHT_MAX = 10**9


@dataclass(frozen=True)
class GraphLine:
    """One graph as its home tells it: what it is, how far it is, and what it may spend."""

    id: str
    home: str
    title: str
    state: str
    total: int
    open: int
    bad: int
    counts: Mapping[str, int]
    by: str = ""
    reason: str = ""
    key: str | None = None
    created_at: str | None = None
    ended_at: str | None = None
    budget_usd: str | None = None
    spent_usd: str | None = None
    reserved_usd: str | None = None
    then: str | None = None
    follows: str | None = None


@dataclass(frozen=True)
class EdgeSeen:
    """One edge of a member: what it waits for, what happens if that goes badly, what came of it."""

    uid: str
    on_failure: str
    came: str | None  # well | badly | skipped; None: it is open


@dataclass(frozen=True)
class MemberSeen:
    """One member of a graph as the graph's home knows it."""

    uid: str
    name: str
    subject: str | None  # None: not known here, the task itself is not at home
    state: str
    node: str | None  # where it went, or ended; None: it is at home, or that is not known
    because: str
    edges: tuple[EdgeSeen, ...]
    weight: float
    critical: bool


@dataclass(frozen=True)
class GraphSeen:
    """A graph whole."""

    line: GraphLine
    members: tuple[MemberSeen, ...]
    roots: tuple[str, ...]
    leaves: tuple[str, ...]
    critical_path: tuple[str, ...]
    next: int | None = None  # after which place the next page begins


@dataclass(frozen=True)
class Submitted:
    """What became of a graph that was handed in."""

    dag: str
    outcome: str  # added | exists | refused
    because: Because | None
    tasks: int
    roots: tuple[str, ...]
    leaves: tuple[str, ...]
    critical_path: tuple[str, ...]


@dataclass(frozen=True)
class GraphCancelled:
    """What a word against a whole graph did at its home."""

    id: str
    state: str
    cancelled: int
    stopping: int
    elsewhere: tuple[str, ...]


def read_graphs(node: str, result: JsonObject) -> tuple[tuple[GraphLine, ...], str | None]:
    """A page of graphs, newest first, and after which id the next page begins."""
    with reading(node, "graphs"):
        said = Fields(result)
        lines = tuple(_line(node, entry) for entry in said.objects("dags", ENTRIES_MAX))
        return lines, said.text("next", 64) if said.has("next") else None


def read_graph(node: str, result: JsonObject) -> GraphSeen:
    """One graph, or a page of its members."""
    with reading(node, "graph"):
        said = Fields(result)
        return GraphSeen(
            _line(node, said), tuple(map(_member, said.objects("tasks", ENTRIES_MAX))),
            _uids(said, "roots"), _uids(said, "leaves"), _uids(said, "critical_path"),
            said.maybe_whole("next", 0, 2**62),
        )  # fmt: skip


def read_submitted(node: str, result: JsonObject) -> Submitted:
    """Added, there already, or refused and why."""
    with reading(node, "submit"):
        said = Fields(result)
        outcome = said.word("outcome", "added", "exists", "refused")
        tasks = said.maybe_whole("tasks", 0, COUNT_MAX) or 0
        paths = (_uids(said, name) for name in ("roots", "leaves", "critical_path"))
        return Submitted(said.text_or("dag", "", 64), outcome, _because(said), tasks, *paths)


def read_graph_cancelled(node: str, result: JsonObject) -> GraphCancelled:
    """How many members ended, how many are being stopped, and which are elsewhere."""
    with reading(node, "graph_cancel"):
        said = Fields(result)
        return GraphCancelled(
            said.text("id", 64), said.word("state", *STATES),
            said.whole("cancelled", 0, COUNT_MAX), said.whole("stopping", 0, COUNT_MAX),
            _uids(said, "elsewhere"),
        )  # fmt: skip


def _line(node: str, said: Fields) -> GraphLine:
    counts = said.inside("counts")
    return GraphLine(
        id=said.text("id", 64), home=node, title=_sentence(said, "title", TITLE_MAX),
        state=said.text("state", 40), total=said.whole("total", 0, COUNT_MAX),
        open=said.maybe_whole("open", 0, COUNT_MAX) or 0,
        bad=said.maybe_whole("bad", 0, COUNT_MAX) or 0,
        counts={state[:40]: counts.whole(state, 0, COUNT_MAX) for state in counts.values},
        by=_sentence(said, "by", 200), reason=_sentence(said, "reason", SAID_MAX),
        key=said.maybe_text("key", 256), created_at=said.maybe_text("created_at", 40),
        ended_at=said.maybe_text("ended_at", 40),
        budget_usd=said.maybe_text("budget_usd", MONEY_MAX),
        spent_usd=said.maybe_text("spent_usd", MONEY_MAX),
        reserved_usd=said.maybe_text("reserved_usd", MONEY_MAX),
        then=said.maybe_text("then", 64), follows=said.maybe_text("after", 64),
    )  # fmt: skip


def _member(said: Fields) -> MemberSeen:
    edges = tuple(
        EdgeSeen(edge.ulid("uid"), edge.word("on_failure", "fail", "skip", "run"),
                 edge.maybe_text("came", 20))
        for edge in said.objects("depends_on", ENTRIES_MAX)
    )  # fmt: skip
    weight = said.seconds("weight", WEIGHT_MAX) if said.has("weight") else 0.0
    return MemberSeen(
        uid=said.ulid("uid"), name=_sentence(said, "name", NAME_MAX),
        subject=_maybe_sentence(said, "subject", TITLE_MAX), state=said.text("state", 40),
        node=said.maybe_text("node", 64), because=_sentence(said, "because", SAID_MAX),
        edges=edges, weight=weight or 0.0, critical=said.flag("critical"),
    )  # fmt: skip


def _uids(said: Fields, name: str) -> tuple[str, ...]:
    if not said.has(name):
        return ()
    return tuple(str(uid)[:64] for uid in said.entries(name, ENTRIES_MAX))


def _sentence(said: Fields, name: str, longest: int) -> str:
    """A text that somebody else wrote, cut to what a line can hold; empty where there is none."""
    value = said.values.get(name)
    return safe_text(value, longest) if isinstance(value, str) else ""


def _maybe_sentence(said: Fields, name: str, longest: int) -> str | None:
    """The same; None where nothing was told, which is another thing than an empty text."""
    return _sentence(said, name, longest) if isinstance(said.values.get(name), str) else None


def _because(said: Fields) -> Because | None:
    if not said.has("because"):
        return None
    inside = said.inside("because")
    return Because(inside.text_or("rule", "", 64), _sentence(inside, "text", SAID_MAX))
