"""What a store may be asked, and how it answers; asking changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from .narrowing import ANY, Narrowed
from .strict import JsonObject
from .task import Task

Answer = TypeVar("Answer", covariant=True)


class Query(Generic[Answer]):
    """A question; the parameter is what the answer is."""


@dataclass(frozen=True)
class AgentFacts:
    """One agent as the store sees it."""

    name: str
    state: str
    slots: int
    running: int
    last_heartbeat: str | None
    reason: str = ""


MISSING = "missing"  # the state of an agent whose program is not there, while a daemon runs
UNMET_MAX = 200  # sets of needs that a report names
UNMET_COUNTED = 1000  # tasks of one set of needs; the store counts no further


@dataclass(frozen=True)
class NodeFacts:
    """The node in numbers, from the database and never ahead of it."""

    name: str
    incarnation: str
    generation: int
    state: str
    reason: str
    term: int
    hub: str | None
    fleet: str | None
    xfer_floor: str
    waits_for_hub: bool
    counts: dict[str, int]
    movable: int
    oldest_ready_at: str | None
    oldest_held_at: str | None
    idle_since: str | None
    agents: tuple[AgentFacts, ...]
    domains: JsonObject
    last_task: JsonObject | None
    next_at: str | None
    next_lease: float | None
    drain_until: str | None
    drain_then: str | None
    event_seq: int
    stalled: tuple[tuple[str, str], ...] = ()  # tasks that run and give no sign of life, since when
    unmet: tuple[tuple[tuple[str, ...], int], ...] = ()  # needs of READY tasks nobody here meets
    unmet_more: int = 0  # and how many of those are not among these, where there are so many
    budget_remaining_usd: str | None = None  # None: the node has no limit
    awaiting: int = 0  # tasks elsewhere whose end somebody here waits for, counted up to 1000
    retried: int = 0  # READY, failed by everybody here who can run them, counted up to 1000
    artifacts_missing: int = 0  # files of other nodes that tasks here wait for, up to 1000
    graphs: int = 0  # graphs whose home is here, ended ones too, counted up to 1000
    unaffordable: int = 0  # tasks that wait for money
    never_affordable: int = 0  # of these, for more than their limit ever has
    clock_doubt: str = ""  # why nothing is let go of by its age; empty: nothing is doubted


class Facts(Query[NodeFacts]):
    """The node in numbers."""


class InForce(Query[dict[str, str]]):
    """By what a commit is kept through a power cut, as the store itself reads it back."""


class FoldersKept(Query[dict[str, str] | None]):
    """Tasks that ended long ago and stay because their folders could not be removed, each with the
    reason; None: nobody has tried since this store was opened.
    """


class ReadyByTier(Query[dict[str, int]]):
    """How many READY tasks are in each tier, by its name in lower case; it reads all of them."""


@dataclass(frozen=True)
class Listed:
    """One page of tasks without their bodies, and where the next page starts."""

    tasks: tuple[Task, ...]
    next: int | None
    care: dict[str, JsonObject] = field(default_factory=dict)  # by uid: what is known of the dead
    order: dict[str, JsonObject] = field(default_factory=dict)  # by uid: what it is worth now
    total: int | None = None  # tasks of all pages; None: not asked, or not known without reading


@dataclass(frozen=True)
class ListTasks(Query[Listed]):
    """Tasks in the order they came: by states, by an end of the uid, and by what they are."""

    states: tuple[str, ...] = ()
    limit: int = 100
    after: int = 0
    match: str | None = None
    narrowed: Narrowed = ANY
    count: bool = False  # how many there are on all pages, too


@dataclass(frozen=True)
class Shown:
    """One task whole, with what happened to it."""

    task: Task
    attempts: tuple[JsonObject, ...]
    moves: tuple[JsonObject, ...]
    events: tuple[JsonObject, ...]
    care: JsonObject = field(default_factory=dict)
    order: JsonObject = field(default_factory=dict)  # what it is worth now; empty once it ended
    output_sha256: str | None = None  # as it was when the task ended; None: nobody wrote it down


@dataclass(frozen=True)
class AttemptsPage(Query[tuple[JsonObject, ...]]):
    """Attempts of one task, in order: the first ones after a number; None: the last ones."""

    uid: str
    after: int | None = None
    limit: int = 100


@dataclass(frozen=True)
class ShowTask(Query["Shown | None"]):
    """One task by its uid, from the kept copy where it was moved away; None: it was never here."""

    uid: str


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter whole but for its body: `care` holds poison, reviewed, resolution, cost."""

    task: Task
    attempts: tuple[JsonObject, ...]
    care: JsonObject


@dataclass(frozen=True)
class DeadPage:
    """One page of dead letters, and the `seq` after which the next page starts; None: the last."""

    letters: tuple[DeadLetter, ...]
    next: int | None


@dataclass(frozen=True)
class DeadLetters(Query[DeadPage]):
    """Dead letters in the order in which their tasks came."""

    limit: int = 100
    after: int = 0
    poison: bool = False  # only those that are poison
    resolved: bool = False  # those that were dead once, too, whatever they are now


@dataclass(frozen=True)
class Doubt:
    """A transfer that is not over for this node."""

    xfer: str
    uid: str
    epoch: int
    side: Literal["giver", "taker"]
    state: Literal["ESCROW", "HELD", "MOVED", "ABORTED"]
    peer: str
    peer_incarnation: str | None
    age_s: float


@dataclass(frozen=True)
class Given:
    """A task that left this node: where it went, under which transfer, and whether it has ended."""

    uid: str
    epoch: int
    xfer: str
    peer: str
    peer_incarnation: str | None
    at: str
    settled: bool
    ended: str | None  # None: its end is not known here
    here: bool  # a row of it is back


@dataclass(frozen=True)
class Moved(Query[tuple[Given, ...]]):
    """Tasks of which a kept copy lies here, by uid: all, to one peer, or without a known end."""

    peer: str | None = None
    open_only: bool = False
    after: str = ""
    limit: int = 100


class Doubts(Query[tuple[Doubt, ...]]):
    """Every HELD, and every giver's record that is not settled yet."""


@dataclass(frozen=True)
class Events(Query[tuple[JsonObject, ...]]):
    """Durable, numbered events after a number.

    With `domains`, ends of attempts name the domain of their task; with `traits`, what brings a
    task or claims it says what the task is like by now. Both where the task is still here.
    """

    after_seq: int = 0
    limit: int = 1000
    domains: bool = False
    traits: bool = False


@dataclass(frozen=True)
class Wanting:
    """A node that might take tasks, with what it may and may not do."""

    node: str
    domains: tuple[str, ...] | None = None
    never: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = None
    untagged_from: int | None = None
    hops_max: int | None = None


@dataclass(frozen=True)
class Chosen:
    """Movable tasks for at least one of the nodes asked for, and why all others stay."""

    tasks: tuple[Task, ...]
    next: int | None
    kept: dict[str, int]
    eligible: int
    total: int


@dataclass(frozen=True)
class Candidates(Query[Chosen]):
    """READY tasks that may move, filtered here before the limit."""

    why: Literal["stolen", "routed", "drained", "moved", "retried"]
    wanting: tuple[Wanting, ...]
    steal_from: int | None = None
    order: Literal["least_urgent", "most_urgent"] = "least_urgent"
    limit: int = 100
    after: int = 0
    keep: tuple[int, ...] = ()  # priorities that are not to leave


@dataclass(frozen=True)
class OpenAttempt:
    """An attempt that the database believes to be under way."""

    uid: str
    n: int
    agent: str
    token: str
    state: str
    pid: int | None
    start_ticks: int | None
    boot_id: str
    max_s: float | None
    interruptions: int = 0
    stopping: str | None = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class Due:
    """When something comes due by itself: by the wall, and in seconds since boot. None: nothing."""

    at: str | None
    lease: float | None


class NextDue(Query[Due]):
    """When to wake next."""


@dataclass(frozen=True)
class OpenAttempts(Query[tuple[OpenAttempt, ...]]):
    """What a new daemon has to adopt, or prove dead."""

    parked: bool = False  # those that were not proven dead, too
