"""Orders the tasks of a graph: who waits for whom, if in a circle, and what lasts longest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count

from .errors import BadInput
from .readiness import EDGES_MAX, edges_of
from .strict import JsonObject
from .task import Task
from .ulid import clock_ms_of, new_ulid

TASKS_MAX = 10_000
THEN_MAX = 8  # graphs that follow one another in one document
CYCLE_SHOWN = 20  # names of a cycle that are told
WEIGHT_DIGITS = 4


@dataclass(frozen=True)
class Member:
    """A task in its graph. `weight`: what waits behind it, as a part of the longest path."""

    name: str
    task: Task
    weight: float = 0.0
    critical: bool = False


@dataclass(frozen=True)
class Graph:
    """A whole graph, checked: no cycle, every name known, every task with its uid and its edges.

    `content` is the hash of all that makes two requests the same one. `then` is the document of
    the graph that follows when this one has completed; None: none does.
    """

    id: str
    title: str
    members: tuple[Member, ...]
    roots: tuple[str, ...]
    leaves: tuple[str, ...]
    critical_path: tuple[str, ...]
    content: str
    key: str | None = None
    budget_usd: str | None = None
    urgent_overdraft: bool = False
    then: JsonObject | None = None


@dataclass(frozen=True)
class Shape:
    """What follows from the edges alone, by uid."""

    weights: dict[str, float]
    roots: tuple[str, ...]
    leaves: tuple[str, ...]
    critical_path: tuple[str, ...]


def shape_of(tasks: Sequence[Task], names: Mapping[str, str]) -> Shape:
    """Roots, leaves and the longest path; `BadInput` names a cycle by the names of its tasks."""
    inside = {task.uid for task in tasks}
    needs = {
        task.uid: [edge.needs for edge in edges_of(task.depends_on, of=task.uid)
                   if edge.needs in inside]
        for task in tasks
    }  # fmt: skip
    number = sum(len(task.depends_on) for task in tasks)
    if number > EDGES_MAX:
        raise BadInput(f"{number} edges; at most {EDGES_MAX} are taken", "tasks")
    order = in_order(needs, names)
    behind, below = _longest(order, needs, {task.uid: task.expected_s for task in tasks})
    needed = {uid for some in needs.values() for uid in some}
    longest = max(below.values())
    path = _critical_path(needs, below, [task.uid for task in tasks])
    return Shape(
        weights={uid: round(behind[uid] / longest, WEIGHT_DIGITS) if longest else 0.0
                 for uid in below},
        roots=tuple(task.uid for task in tasks if not needs[task.uid]),
        leaves=tuple(task.uid for task in tasks if task.uid not in needed),
        critical_path=path,
    )  # fmt: skip


def in_order(needs: Mapping[str, Iterable[str]], names: Mapping[str, str]) -> list[str]:
    """Every uid after all that it needs."""
    from graphlib import CycleError, TopologicalSorter  # only who is given a graph needs it

    try:
        return [*TopologicalSorter(needs).static_order()]
    except CycleError as error:
        circle = [names.get(uid, uid) for uid in error.args[1]]
        raise BadInput(told_circle(circle), "tasks") from error


def told_circle(circle: Sequence[str]) -> str:
    """Who waits for whom in it, by name; the first stands at its end again."""
    more = f" -> … ({len(circle) - 1} tasks)" if len(circle) > CYCLE_SHOWN else ""
    return f"a cycle: {' -> '.join(circle[:CYCLE_SHOWN])}{more}"


def circle_in(needs: Mapping[str, Iterable[str]]) -> list[str] | None:
    """One of the cycles, each uid before one that needs it, the first again as the last; None:
    there is none.
    """
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return [*error.args[1]]
    return None


def _longest(
    order: Sequence[str], needs: Mapping[str, Sequence[str]], lasts: Mapping[str, float | None]
) -> tuple[dict[str, float], dict[str, float]]:
    """How long it takes at least from the end of each task to the end of the graph; and the same
    with the task itself.
    """
    behind = dict.fromkeys(order, 0.0)
    below: dict[str, float] = {}
    for uid in reversed(order):
        expected = lasts[uid]
        below[uid] = behind[uid] + (1.0 if expected is None else float(expected))
        for needed in needs[uid]:
            behind[needed] = max(behind[needed], below[uid])
    return behind, below


def _critical_path(
    needs: Mapping[str, Sequence[str]], below: Mapping[str, float], uids: Sequence[str]
) -> tuple[str, ...]:
    """The longest way through; of two that are equally long the one that stands first."""
    following: dict[str, list[str]] = {uid: [] for uid in uids}
    for uid in uids:
        for needed in needs[uid]:
            following[needed].append(uid)
    here = [uid for uid in uids if not needs[uid]]
    path: list[str] = []
    while here:
        path.append(max(here, key=below.__getitem__))
        here = following[path[-1]]
    return tuple(path)


class Derived:
    """ULIDs that follow from another one, the same each time they are asked for in this order."""

    def __init__(self, uid: str, what: str = "then") -> None:
        self._from, self._ms, self._numbers = f"{uid}/{what}", clock_ms_of(uid), count()

    def __call__(self) -> str:
        told = f"{self._from}/{next(self._numbers)}".encode()
        return new_ulid(self._ms, sha256(told).digest())
