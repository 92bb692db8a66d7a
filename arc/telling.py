"""Says the words of a transfer to one end of it, naming whom it means on both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_node.failpoints import failpoint
from agent_node.strict import JsonObject

from .errors import AnswerUnreadable, ArcError, NodeRefused, OutcomeUnknown
from .links import Link
from .moved import Asked, Moved, read_moved

# Of all that a node refuses as a whole, these may be said after the change was made.
_AFTER_THE_FACT = frozenset({"disk", "disk_broken", "fault", "store_corrupt"})


@dataclass(frozen=True)
class End:
    """One end of a transfer: how it is reached, and the incarnation that is meant. A node that
    came back as another one meanwhile refuses what was meant for the earlier.
    """

    link: Link
    incarnation: str

    @property
    def name(self) -> str:
        """The node's name."""
        return self.link.name


async def meet(link: Link) -> End:
    """The end as it is now."""
    met = await link.meet()
    return End(link, met.incarnation)


@dataclass(frozen=True)
class Word:
    """One transfer in a batch of commit, abort, settled, activate or drop.

    `peer_incarnation` is the one that the transfer is bound to; None where nobody recorded any.
    """

    xfer: str
    uid: str
    peer_incarnation: str | None
    ended: str | None = None  # `settled` only: the task's end, where it is known

    def out(self, peer: str) -> JsonObject:
        """As it stands in a request."""
        said: JsonObject = {"xfer": self.xfer, "uid": self.uid, "peer": peer}
        if self.peer_incarnation is not None:
            said["peer_incarnation"] = self.peer_incarnation
        if self.ended is not None:
            said["ended"] = self.ended
        return said


async def tell(
    end: End, peer: str, do: str, words: Sequence[Word], *, dry_run: bool = False
) -> dict[str, Moved]:
    """The recorded outcome of each transfer at this end; without words nothing is asked.

    `dry_run`: what it would be, and nothing is changed. Safe to repeat. Raises what `Link.ask`
    raises, and `AnswerUnreadable`.
    """
    if not words:
        return {}
    asked = [Asked(word.xfer, word.uid) for word in words]
    moves: JsonObject = {"moves": [word.out(peer) for word in words]}
    if dry_run:
        moves["dry_run"] = True
    return await send(end, do, moves, asked)


async def send(
    end: End, do: str, fields: JsonObject, asked: Sequence[Asked]
) -> dict[str, Moved]:
    """One request of a transfer, meant for this incarnation and no other."""
    failpoint(f"hub.{do}.before")
    result = await end.link.ask(do, {**fields, "incarnation": end.incarnation})
    failpoint(f"hub.{do}.after")
    return read_moved(end.name, do, result, asked)


def may_have_happened(error: ArcError) -> bool:
    """Whether the node may have changed something in spite of the error: ask it before all else."""
    if isinstance(error, NodeRefused):
        return error.rule in _AFTER_THE_FACT
    return isinstance(error, OutcomeUnknown | AnswerUnreadable)
