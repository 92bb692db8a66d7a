"""The words in which a store is told of graphs, and of ends that happened elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .commands import OWNER, Because, Command, Sender
from .graphs import Graph
from .queries import Query
from .readiness import Came, OnFailure
from .strict import JsonObject, JsonValue
from .task import Task

GraphState = Literal["running", "completed", "failed", "cancelled"]


# --- What changes something ---------------------------------------------------------------------


@dataclass(frozen=True)
class Submit(Command["Submitted"]):
    """Take a whole graph, or nothing of it. A graph that is here with this content `exists`."""

    graph: Graph
    sender: Sender = OWNER
    parent: Parent | None = None  # the running task that made it; None: a person, or the hub


@dataclass(frozen=True)
class Submitted:
    """What became of a graph; `dag` is the one that is here, whose key or id it was."""

    dag: str
    outcome: Literal["added", "exists", "refused"]
    tasks: int = 0
    because: Because | None = None


@dataclass(frozen=True)
class Parent:
    """The attempt of a running task that makes others; it may ask to be put back until they end."""

    uid: str
    n: int
    waits: bool = False


@dataclass(frozen=True)
class Spawn(Command["Spawned"]):
    """Take a running task's child into the graph that its parent belongs to."""

    child: Task
    parent: Parent
    sender: Sender = OWNER


@dataclass(frozen=True)
class Spawned:
    """What became of the child."""

    uid: str
    outcome: Literal["added", "exists", "refused"]
    because: Because | None = None


@dataclass(frozen=True)
class CancelGraph(Command["GraphCancelled | None"]):
    """Every member that has not ended is to end. None: there is no such graph here."""

    id: str
    reason: str = ""
    sender: Sender = OWNER


@dataclass(frozen=True)
class GraphCancelled:
    """What a graph's members came to: `stopping` run and end when their programs have."""

    id: str
    state: GraphState
    cancelled: int
    stopping: tuple[str, ...]
    elsewhere: tuple[str, ...]  # members that are not here and have not ended


@dataclass(frozen=True)
class EndTold:
    """A task that ended elsewhere, as the hub passes it on."""

    uid: str
    state: str
    node: str
    at: str
    output: JsonValue = None
    artifacts: list[JsonValue] | None = None  # None: nobody has said yet what it left
    cost_usd: str | None = None
    because: str | None = None
    # Of the output, as the task's own node says; None: it says none. Without an output: there was
    # one, and it is damaged.
    sha256: str | None = None


@dataclass(frozen=True)
class NoteEnds(Command["tuple[Noted, ...]"]):
    """Tasks ended elsewhere: what waits for them here goes on."""

    ends: tuple[EndTold, ...]
    sender: Sender = OWNER


@dataclass(frozen=True)
class TakeBack(Command["tuple[Noted, ...]"]):
    """Ends that were told do not hold any more: these tasks live again."""

    uids: tuple[str, ...]
    sender: Sender = OWNER


@dataclass(frozen=True)
class Birth:
    """A task that was born elsewhere into a graph whose home is here."""

    uid: str
    dag: str
    parent: str | None = None
    name: str | None = None
    max_cost_usd: str | None = None


@dataclass(frozen=True)
class Join(Command["tuple[Noted, ...]"]):
    """Make these members of their graphs, wherever they live."""

    births: tuple[Birth, ...]
    sender: Sender = OWNER


@dataclass(frozen=True)
class Noted:
    """What became of one such word."""

    uid: str
    outcome: Literal["noted", "known", "unawaited", "refused", "taken_back", "joined"]
    because: Because | None = None


# --- What is asked ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GraphFacts:
    """One graph in numbers. `then` is the graph that follows, or would; None: none does."""

    id: str
    title: str
    key: str | None
    state: GraphState
    reason: str
    by: str
    created_at: str
    ended_at: str | None
    total: int
    open: int
    bad: int
    counts: dict[str, int]
    budget_usd: str | None
    spent_usd: str | None
    reserved_usd: str | None
    then: str | None
    after: str | None


@dataclass(frozen=True)
class GraphPage:
    """Graphs, newest first, and the id after which the next page starts; None: the last."""

    graphs: tuple[GraphFacts, ...]
    next: str | None


@dataclass(frozen=True)
class ListGraphs(Query[GraphPage]):
    """Graphs whose home is here."""

    states: tuple[str, ...] = ()
    limit: int = 100
    after: str | None = None


@dataclass(frozen=True)
class EdgeSeen:
    """What a task waits for, and how that came; None: it is open."""

    needs: str
    on_failure: OnFailure
    came: Came | None


@dataclass(frozen=True)
class MemberSeen:
    """A task of a graph, wherever it is. `node` None: here, or nobody knows."""

    uid: str
    name: str | None
    place: int
    state: str
    subject: str | None
    node: str | None
    because: str | None
    weight: float | None
    critical: bool
    edges: tuple[EdgeSeen, ...]


@dataclass(frozen=True)
class GraphShown:
    """One graph with its members, from the place asked for on."""

    facts: GraphFacts
    members: tuple[MemberSeen, ...]
    critical_path: tuple[str, ...]
    next: int | None


@dataclass(frozen=True)
class ShowGraph(Query["GraphShown | None"]):
    """A graph by its id, or a graph of one by the uid of its task. None: neither is here."""

    id: str
    limit: int = 10_000
    after: int = -1


@dataclass(frozen=True)
class Awaits(Query[tuple[str, ...]]):
    """Tasks that do not live here and whose end somebody here waits for, by uid."""

    after: str = ""
    limit: int = 1000


@dataclass(frozen=True)
class Given:
    """What an attempt is given: the values of its references, and where it may go on working.

    `workspace` is the number of the attempt whose folder was kept for it; None: none was.
    """

    context: JsonObject
    workspace: int | None


@dataclass(frozen=True)
class WaitAsked(Query[bool]):
    """Whether this attempt asked that its task be put back until others have ended."""

    uid: str
    n: int


@dataclass(frozen=True)
class Inputs(Query["Given | None"]):
    """What is to be given to this task's attempt. None: nothing."""

    uid: str
