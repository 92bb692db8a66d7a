"""The words a store is spoken to in: every change as a command, every reply as an outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from .strict import JsonObject, JsonValue
from .task import Task

Outcome = TypeVar("Outcome", covariant=True)


class Command(Generic[Outcome]):
    """A change that a store is asked for; the parameter is what it answers with."""


@dataclass(frozen=True)
class Because:
    """Why not: the rule by its name, and the reason in a sentence."""

    rule: str
    text: str


@dataclass(frozen=True)
class Sender:
    """Whose word a command is: a hub's, with the term it said hello with, or the owner's own."""

    by: str = "owner"
    term: int | None = None  # None: the owner of this machine, whom no term binds
    incarnation: str | None = None  # whom the sender means; None: whoever is here
    instance: str | None = None  # which hub of that term; None: it does not say


OWNER = Sender()


# --- Work comes in ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Add(Command["tuple[Added, ...]"]):
    """Take new tasks. Repeating is safe: a uid or key that is here with this content `exists`."""

    tasks: tuple[Task, ...]
    sender: Sender = OWNER


class Added(NamedTuple):
    """What became of one task of an `Add`; one added with a `because` was cancelled at once."""

    uid: str
    outcome: Literal["added", "exists", "refused"]
    because: Because | None = None  # of an added one: what it waits for had ended badly


# --- A task runs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentRow:
    """One agent as the store must know it: what it can do decides what it may claim."""

    name: str
    slots: int
    powers: tuple[str, ...]  # its skills and the node's capabilities: what `needs` is held against


@dataclass(frozen=True)
class SetAgents(Command["None"]):
    """Make these, and no others, the agents that may claim."""

    agents: tuple[AgentRow, ...]


@dataclass(frozen=True)
class Claim(Command["Claimed | NothingToClaim"]):
    """Take the most urgent task that this agent may run: READY becomes CLAIMED, numbered."""

    agent: str


class Claimed(NamedTuple):
    """A task that is now this agent's, and the number of the attempt."""

    task: Task
    n: int
    token: str
    context: JsonObject | None = None  # by reference, what other tasks left; None: nothing
    workspace: int | None = None  # the attempt whose folder was kept; None: it begins anew


class NothingToClaim(NamedTuple):
    """There was nothing for this agent, or a rule said no; `because` says which."""

    because: Because


@dataclass(frozen=True)
class Started(Command["bool"]):
    """The program of an attempt runs: CLAIMED becomes RUNNING."""

    uid: str
    n: int
    pid: int
    start_ticks: int
    boot_id: str
    model: str = ""  # that the program was told to use; "": nobody names one


@dataclass(frozen=True)
class Validate(Command["bool"]):
    """The program of an attempt ended well, and its output is judged: RUNNING to VALIDATING."""

    uid: str
    n: int


@dataclass(frozen=True)
class Result:
    """How an attempt ended. `interrupted` costs no retry and is counted, the third parks its task;
    `requeued`, which the node itself wanted, is not even counted; `unproved` parks the task, and
    so does `unvalidated`: the program ended well, and nobody could judge its output.
    """

    kind: Literal[
        "completed", "failed", "interrupted", "requeued", "unproved", "unvalidated", "cancelled",
        "waiting",
    ]
    error_kind: str | None = None
    message: str | None = None
    output: JsonValue = None
    artifacts: list[JsonValue] = field(default_factory=list)
    cost_usd: str | None = None
    tokens: JsonObject | None = None
    retry_at: str | None = None
    duration_s: float | None = None
    exit_code: int | None = None
    model: str | None = None  # that it was told to use; None: none, or nobody knows any more


@dataclass(frozen=True)
class Finish(Command["Finished"]):
    """Record how attempt `n` ended, once; `then_claim` takes the next task in the same breath."""

    uid: str
    n: int
    result: Result
    then_claim: str | None = None  # the agent whose slot is now free


class Finished(NamedTuple):
    """Whether the result was accepted, the task's new state, and what was claimed with it."""

    accepted: bool
    state: str | None
    because: Because | None
    next: Claimed | NothingToClaim | None


@dataclass(frozen=True)
class Beat(Command["bool"]):
    """The program of an attempt is alive; optionally with a word on how far it is."""

    uid: str
    n: int
    progress: str | None = None
    own: bool = False  # its program itself says so, and so may be expected to go on saying so


@dataclass(frozen=True)
class Stalled(Command["bool"]):
    """The attempt gives no sign of life any more; that is written down, and nothing else."""

    uid: str
    n: int
    because: str


@dataclass(frozen=True)
class Wake(Command["Woken"]):
    """Do what has come due: retries, starts not before a time, and escrow leases that ended."""


@dataclass(frozen=True)
class Woken:
    """What became READY by it, and when to wake next (wall time; boot seconds for leases)."""

    readied: int
    next_at: str | None
    next_lease: float | None


# --- A person's or the hub's word on one task or on the node --------------------------------------


@dataclass(frozen=True)
class SetNode(Command["Steered"]):
    """pause, resume or drain: the node, or one agent of it."""

    to: Literal["active", "paused", "draining"]
    reason: str
    sender: Sender = OWNER
    agent: str | None = None
    deadline_s: float | None = None
    then: Literal["requeue", "wait"] = "wait"


class Stood(NamedTuple):
    """A word that held: the state, since when, why, and who said so when; None: not known."""

    state: str
    reason: str
    by: str | None
    at: str | None
    since: str | None
    here: bool = False  # by the owner of this machine, not by a hub


class Steered(NamedTuple):
    """What holds now; what held `before`, None: work started; `already`: nothing was changed."""

    state: str
    reason: str
    before: Stood | None = None
    already: bool = False


@dataclass(frozen=True)
class SetFields(Command["Changed"]):
    """Change settable fields of a task that waits; its epoch rises."""

    uid: str
    fields: JsonObject
    reason: str = ""
    sender: Sender = OWNER


@dataclass(frozen=True)
class Cancel(Command["Changed"]):
    """A waiting task ends as CANCELLED; a running one is asked to stop first (`stopping`)."""

    uid: str
    reason: str = ""
    sender: Sender = OWNER


@dataclass(frozen=True)
class RetryNow(Command["Changed"]):
    """A failed, dead, cancelled or waiting-to-retry task is READY again, its failures forgiven."""

    uid: str
    reason: str = ""
    sender: Sender = OWNER
    not_here_s: float | None = None  # so long no agent here takes it: it is to be moved. None: all


@dataclass(frozen=True)
class Resolve(Command["Changed"]):
    """A person decides what became of a PARKED or dead task."""

    uid: str
    to: Literal["done", "failed", "cancelled"]
    reason: str = ""
    sender: Sender = OWNER


@dataclass(frozen=True)
class Review(Command["Changed"]):
    """A person looked at a dead letter; it stays dead, and says who looked and what they found."""

    uid: str
    reason: str = ""
    sender: Sender = OWNER


@dataclass(frozen=True)
class Changed:
    """What became of one such word: done and the task as it now is, or refused and why."""

    uid: str
    outcome: Literal["changed", "stopping", "refused"]
    task: Task | None = None
    because: Because | None = None
    already: bool = False  # nothing was done; a word of its own would be news to older hubs
    not_here_until: str | None = None  # until then no agent here takes it: it is to be moved


@dataclass(frozen=True)
class Raise(Command["None"]):
    """Raise the generation; the file beside the database follows before any answer leaves."""


@dataclass(frozen=True)
class Forget(Command["int"]):
    """Let go of what ended more than `days` ago, raising the xfer floor with it."""

    days: int = 30
    limit: int = 1000
