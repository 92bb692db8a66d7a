"""Says what it is to reach a node: ask it something, hear its news, and know how it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agent_node.reports import StatusReport
from agent_node.strict import JsonObject
from arc.errors import ArcError

READ_S = 10.0  # how long a question may take that changes nothing
WRITE_S = 15.0  # and one that changes something: its answer is worth waiting for

# What changes nothing on the node: without an answer, nothing has happened. Everything else may
# have happened, and is safe to repeat under its own ids (see docs/wire.md).
READS = frozenset(
    ("hello", "status", "list", "show", "log", "candidates", "doubts", "moved", "events",
     "subscribe", "graphs", "graph", "awaits", "artifact", "artifacts_missing", "budget", "tiers",
     "dead")
)  # fmt: skip

# The result of a request, or what it became; a report has been read already.
Told = Callable[["JsonObject | StatusReport | ArcError"], None]
EventHeard = Callable[[str, str], None]  # (node, event): idle, free_slot, task_ready, …
# No node says it, the link does: its news is heard from now on, what it said before may be missed.
HEARS_NOW = "hears_now"


@dataclass(frozen=True)
class Met:
    """What a node answered to the hub's hello; it stands until the session ends."""

    node: str
    incarnation: str
    generation: int
    term: int
    state: str
    version: str
    wire: int
    waits_for_hub: bool
    at: str  # the node's wall clock when it answered
    clock_off_s: float  # node minus hub, at the middle of the round trip
    # Why mutations will be refused, by the hello or by the first refusal since; empty: not known.
    old_term: str = ""


class Link(Protocol):
    """One node as the hub reaches it. Every wait has a limit; requests may overlap.

    `ask` gives the result of one request of docs/wire.md. It opens the session when there is
    none, and raises: `NodeUnreachable` and its kinds (nothing happened), `OutcomeUnknown` (it may
    have), `NodeRefused` (the node said no), `AnswerUnreadable`.
    """

    @property
    def name(self) -> str:
        """The node's name in fleet.yaml; `inbox` for the hub's own queue."""

    @property
    def met(self) -> Met | None:
        """What the node answered to the hello of the session that is open; None: none is."""

    @property
    def requests(self) -> int:
        """How many requests have left over this link, for the cost of a cycle."""

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        """The result of one request, or one of the errors named above."""

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        """Ask without waiting: what `ask` would give or raise is told, once and in time, to `told`,
        which must neither wait nor raise. A status that says what the last one said, but when, may
        be told as the report that it is. False: nothing was asked, because no session is open or
        more than this question would be needed; `ask` is the way.
        """

    async def meet(self, *, anew: bool = False) -> Met:
        """Open the session if there is none, and say hello; what the node answered.

        `anew`: the node is no longer the one that was met, so hello is said again.
        """

    async def listen(self, heard: EventHeard) -> None:
        """From now on, and again after every reconnect, tell the node's events to `heard`.

        `HEARS_NOW` is told each time: whoever acts on news looks for what was missed.
        """

    async def close(self) -> None:
        """End the session and whatever keeps it open; closing twice is fine."""


@dataclass(frozen=True)
class HelloWords:
    """What the hub says of itself to every node it meets."""

    fleet: str
    hub: str
    term: int
    instance: str  # a ULID: this hub's own state folder; two hubs never share one
    domains: JsonObject

    def to(self, incarnation: str | None, *, fenced: bool) -> JsonObject:
        """The fields of one hello; `fenced`: a person declared that incarnation dead."""
        said: JsonObject = {
            "fleet": self.fleet, "hub": self.hub, "term": self.term, "instance": self.instance,
            "wire": [1, 1], "domains": self.domains,
        }  # fmt: skip
        if fenced:
            said |= {"fenced": True, "incarnation": incarnation}
        return said
