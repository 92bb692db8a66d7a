"""Writes what a store said of graphs as it stands on the wire."""

from __future__ import annotations

from collections.abc import Iterable

from .graph_words import EdgeSeen, GraphFacts, GraphShown, MemberSeen, Noted, Submitted
from .graphs import Graph
from .strict import JsonObject, JsonValue
from .wire import because_out, fitting


def submitted_out(graph: Graph, done: Submitted) -> JsonObject:
    """What became of a graph, and what follows from its edges alone."""
    document: JsonObject = {
        "dag": done.dag, "outcome": done.outcome, "tasks": len(graph.members),
        "roots": [*graph.roots], "leaves": [*graph.leaves],
        "critical_path": [*graph.critical_path],
    }  # fmt: skip
    return {**document, **because_out(done.because)}


def facts_out(facts: GraphFacts) -> JsonObject:
    """One graph in numbers, field by field."""
    return {**facts.__dict__, "counts": dict(facts.counts)}


def shown_out(shown: GraphShown) -> JsonObject:
    """One graph with its members; a page ends earlier where one line could not hold it."""
    members = fitting(map(_member_out, shown.members))
    after = shown.next
    if len(members) < len(shown.members):
        after = shown.members[len(members) - 1].place
    needed = {edge.needs for member in shown.members for edge in member.edges}
    inside = {member.uid for member in shown.members}
    roots: list[JsonValue] = [
        member.uid for member in shown.members
        if not any(edge.needs in inside for edge in member.edges)
    ]  # fmt: skip
    leaves: list[JsonValue] = [one.uid for one in shown.members if one.uid not in needed]
    return {
        **facts_out(shown.facts), "tasks": [*members], "roots": roots, "leaves": leaves,
        "critical_path": [*shown.critical_path], "next": after,
    }  # fmt: skip


def _member_out(member: MemberSeen) -> JsonObject:
    return {
        "uid": member.uid, "name": member.name, "subject": member.subject, "state": member.state,
        "node": member.node, "because": member.because, "depends_on": edges_out(member.edges),
        "weight": member.weight, "critical": member.critical, "place": member.place,
    }  # fmt: skip


def edges_out(edges: Iterable[EdgeSeen]) -> list[JsonValue]:
    """What a task waits for, and how each of that came."""
    return [
        {"uid": edge.needs, "on_failure": edge.on_failure, "came": edge.came} for edge in edges
    ]


def noted_out(results: Iterable[Noted]) -> JsonObject:
    """What became of each word, in order."""
    return {
        "results": [
            {"uid": one.uid, "outcome": one.outcome, **because_out(one.because)}
            for one in results
        ]
    }
