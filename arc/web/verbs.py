"""What people may do from the page: to which tasks and nodes, and how it reads before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent_node.strict import JsonObject, JsonValue
from agent_node.task import CHANGES, State, may_become
from arc.operations import Told
from arc.text.look import Look
from arc.text.nodes import render_fleet
from arc.text.steered import render_steered
from arc.text.tasks import render_changed, render_moved

LINES_MAX = 600  # of a plan that are shown: a line a node

# As what a task may be resolved, and what it is then.
OUTCOMES = {"done": State.COMPLETED, "failed": State.FAILED, "cancelled": State.CANCELLED}
# What the store lets run again at a person's word; what is PARKED may still run somewhere.
RETRIED = (State.FAILED, State.RETRYING, State.DEAD_LETTERED, State.CANCELLED)
RESOLVED = (State.PARKED, State.DEAD_LETTERED)
# Nodes that nobody told to pause.
WORKING = ("idle", "working", "no_agent", "stopped", "unseen")


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that people may do here: the operation, what it needs to be told, and in which
    states of a task, a node or the fleet it is offered.
    """

    op: str
    about: str  # node | tasks | fleet
    says: Callable[[JsonObject, Look], str]
    states: tuple[str, ...]
    more: tuple[str, ...] = ()


VERBS: dict[str, Verb] = {
    "pause": Verb("nodes.pause", "node", render_steered, (*WORKING, "draining", "drained")),
    "drain": Verb("nodes.drain", "node", render_steered, WORKING),
    "resume": Verb("nodes.resume", "node", render_steered,
                   ("paused", "draining", "drained", "unseen", "suspended")),
    "cancel": Verb("tasks.cancel", "tasks", render_changed, may_become(State.CANCELLED)),
    "retry": Verb("tasks.retry", "tasks", render_changed, RETRIED),
    "move": Verb("tasks.move", "tasks", render_moved, (State.READY,), ("to",)),
    "resolve": Verb("tasks.resolve", "tasks", render_changed, RESOLVED, ("as",)),
    "pause-fleet": Verb("fleet.pause", "fleet", render_fleet, ("active",)),
    "resume-fleet": Verb("fleet.resume", "fleet", render_fleet, ("paused",)),
}  # fmt: skip


def offered() -> JsonObject:
    """By state: which verbs a task, a node and the fleet are offered, and as what it resolves."""
    said: dict[str, JsonValue] = {}
    for about, name in (("tasks", "task"), ("node", "node"), ("fleet", "fleet")):
        some = {verb: one for verb, one in VERBS.items() if one.about == about}
        states = sorted({str(state) for one in some.values() for state in one.states})
        said[name] = {state: [verb for verb, one in some.items() if state in one.states]
                      for state in states}  # fmt: skip
    said["as"] = {str(state): _outcomes(CHANGES[state]) for state in RESOLVED}
    return said


def _outcomes(allowed: Iterable[State]) -> list[JsonValue]:
    return [word for word, state in OUTCOMES.items() if state in allowed]


def lines_of(kind: Verb, what: Told) -> list[JsonValue]:
    """What the command of that name would print of it, line by line."""
    silent = [f"{one.get('node')} could not be asked: {_because(one)}" for one in what.partial]
    lines = [*kind.says(what.data, Look()).splitlines(), *silent]
    more = len(lines) - LINES_MAX
    return [*lines[:LINES_MAX], *([f"… and {more} lines more"] if more > 0 else [])]


def _because(one: JsonObject) -> str:
    error = one.get("error")
    return str(error.get("message") if isinstance(error, dict) else error)
