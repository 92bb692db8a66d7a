"""What `arc why` is answered with: data that adds up, for a renderer to make text of; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from .changes import Change
from .explain import Steal
from .objections import Objection
from .stranded import Stranded
from .view import QueuedTask, QueueUnseen
from .why_states import Life

WAIT, CHANGE, ESCALATE = "WAIT", "CHANGE", "ESCALATE"


@dataclass(frozen=True)
class Check:
    """One rule about the task itself, or about the node that has it; `said` where it is not met."""

    rule: str
    met: bool
    said: str = ""


@dataclass(frozen=True)
class Dropped:
    """A node that drops out at a step, and why. `changeable`: one of the ways answers it."""

    node: str
    because: str
    changeable: bool = False


@dataclass(frozen=True)
class Step:
    """One condition on a receiver: how many meet it alone, and how many are left after it.

    The dropped of all steps and the left of the last one add up to the receivers.
    """

    rule: str
    alone: int
    left: int
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True)
class Way:
    """Changes with which the next plan would move the task: tried on the planner, not guessed."""

    changes: tuple[Change, ...]
    to: str


@dataclass(frozen=True)
class History:
    """What the journal knows of this task: what earlier cycles made of it."""

    cycles: int = 0  # in which it was not moved
    since: str | None = None
    could_not_look: int = 0  # of them, in which its queue could not be read


@dataclass(frozen=True)
class Standing:
    """Why a node starts nothing that waits there, whatever else happens, and what ends that."""

    rule: str
    says: str  # a sentence that ends with what to type
    verdict: str  # CHANGE | ESCALATE, where nothing else moves the task


@dataclass(frozen=True)
class Reach:
    """When the task's own node would start it. `ahead` None: it would not.

    `reach_s` None: what runs and waits before it does not all say how long it takes.
    """

    place: int | None = None  # in its node's queue, from 1; None: not known
    ahead: int | None = None  # tasks that wait before it, and those that hold every slot
    reach_s: float | None = None


@dataclass(frozen=True)
class WhyTask:
    """Why a task is where it is. One of four answers, by which of the fields are set.

    `moves`: it is in the plan. `steps`: it is not, because. `life`: it is not waiting at all.
    `could_not_look`: nobody knows, because (and that is never "nothing to move").
    """

    task: QueuedTask
    node: str
    verdict: str  # WAIT | CHANGE | ESCALATE; DONE: there is nothing to wait for
    result: str  # one sentence
    checks: tuple[Check, ...] = ()
    receivers: int = 0
    steps: tuple[Step, ...] = ()
    ways: tuple[Way, ...] = ()
    by_hand: tuple[str, ...] = ()  # commands that no node would refuse
    moves: Steal | None = None
    kept: Objection | None = None  # what the plan itself says
    life: Life | None = None
    could_not_look: QueueUnseen | None = None
    reach: Reach = field(default_factory=Reach)
    history: History = field(default_factory=History)
    own_node: Standing | None = None  # its own node starts nothing; None: it does
    receivers_say: str = ""  # what keeps it from the others, where `result` is about its own node


@dataclass(frozen=True)
class WhyNode:
    """What a node is to a rebalance, and what it would get or give now, with every reason."""

    node: str
    part: str  # idle | busy | neither | out
    receives: tuple[Check, ...] = ()  # every condition on a node that is given work
    gives: tuple[Check, ...] = ()  # every condition on one that work is taken from
    gets: tuple[Steal, ...] = ()
    loses: tuple[Steal, ...] = ()
    elsewhere: tuple[tuple[str, int, str], ...] = ()  # rule, how many waiting tasks, one reason
    stranded: Stranded | None = None
    could_not_look: tuple[QueueUnseen, ...] = ()
    says: str = ""  # what it is, where its part does not tell that
