"""Says the words of a transfer to one end of it, naming whom it means on both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_node.failpoints import failpoint
from agent_node.requests import MARKS_MAX, marks_of
from agent_node.strict import JsonObject, JsonValue

from .errors import AnswerUnreadable, ArcError, NodeRefused, OutcomeUnknown
from .links import Link
from .moved import Asked, Moved, read_moved

# Of all that a node refuses as a whole, these may be said after the change was made.
_AFTER_THE_FACT = frozenset({"disk", "disk_broken", "fault", "store_corrupt"})
_FRAME_MARKS = 1000  # of a request, besides its moves


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


async def send_in_parts(
    end: End, do: str, fields: JsonObject, moves: Sequence[JsonObject], asked: Sequence[Asked]
) -> dict[str, Moved]:
    """The same of moves that bring their tasks: as many requests as it takes that a node reads
    each, for it bounds the values of a line and not its bytes alone.

    Where a later one fails, all of them are in doubt: what an earlier one said is no lie, and both
    nodes still report what has to be ended.
    """
    said: dict[str, Moved] = {}
    for part in _parts(moves):
        these = {str(move["xfer"]) for move in part}
        about = [one for one in asked if one.xfer in these]
        try:
            said |= await send(end, do, {**fields, "moves": list[JsonValue](part)}, about)
        except ArcError as error:
            if not said:
                raise
            raise OutcomeUnknown(end.name, do, str(error)) from error
    return said


def _parts(moves: Sequence[JsonObject]) -> list[list[JsonObject]]:
    parts: list[list[JsonObject]] = [[]]
    left = most = MARKS_MAX - _FRAME_MARKS
    for move in moves:
        left -= marks_of(move) + 1
        if left < 0 and parts[-1]:
            parts.append([])
            left = most - marks_of(move) - 1
        parts[-1].append(move)
    return parts


def may_have_happened(error: ArcError) -> bool:
    """Whether the node may have changed something in spite of the error: ask it before all else."""
    if isinstance(error, NodeRefused):
        return error.rule in _AFTER_THE_FACT
    return isinstance(error, OutcomeUnknown | AnswerUnreadable)
