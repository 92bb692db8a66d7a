"""Decides which ends of tasks go to which store that waits for them, and in which order; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

COMPLETED = "COMPLETED"
UNNUMBERED = -1  # an end that no event told: it was seen in a list


@dataclass(frozen=True, slots=True)
class EndHeard:
    """A task that ended on a node: how, and by which of the node's numbered events."""

    uid: str
    node: str
    state: str  # COMPLETED | FAILED | CANCELLED | DEAD_LETTERED
    at: str  # by the hub's clock
    because: str = ""
    seq: int = UNNUMBERED
    result: str = ""  # what the task left, as JSON, where that is known


@dataclass(frozen=True, slots=True)
class JoinHeard:
    """A task that was born on a node into a graph, perhaps one whose home is elsewhere."""

    uid: str
    dag: str
    node: str
    seq: int
    parent: str | None = None
    name: str | None = None
    waits: bool = False  # its parent waits for it
    max_cost_usd: str | None = None


@dataclass(frozen=True)
class Letter:
    """What one store is told, in this order: births, what lives again, ends."""

    store: str
    joined: tuple[JoinHeard, ...] = ()
    alive: tuple[str, ...] = ()
    ended: tuple[EndHeard, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.joined or self.alive or self.ended)


@dataclass(frozen=True)
class Known:
    """Everything that was heard, for one decision.

    `behind`: nodes whose events were not heard to their end. `homes`: in which store each graph
    lives; a graph that is not named there was found nowhere.
    """

    ends: Collection[EndHeard] = ()
    joins: Collection[JoinHeard] = ()
    homes: Mapping[str, str] | None = None
    revived: Collection[tuple[str, str]] = ()  # (store, uid): told as ended badly, and lives again
    behind: Collection[str] = ()


def write_letters(
    awaits: Mapping[str, Collection[str]], known: Known
) -> tuple[Letter, ...]:
    """One letter for each store that is to be told something; in the order of the stores' names.

    `awaits`: the stores that can be told now, each with the uids whose end it waits for.
    """
    of_uid = last_words(known.ends, behind=known.behind)
    joined = _by_home(known)
    revived: dict[str, list[str]] = defaultdict(list)
    for store, uid in known.revived:
        revived[store].append(uid)
    letters = (
        Letter(
            store,
            joined=tuple(sorted(joined.get(store, ()), key=_in_order)),
            alive=tuple(sorted(revived.get(store, ()))),
            ended=tuple(sorted(
                (of_uid[uid] for uid in awaits[store]
                 if uid in of_uid and of_uid[uid].node != store), key=_in_order)),
        )
        for store in sorted(awaits)
    )  # fmt: skip
    return tuple(letter for letter in letters if not letter.empty)


def last_words(
    ends: Iterable[EndHeard], *, behind: Collection[str] = ()
) -> dict[str, EndHeard]:
    """The one end of each task that counts: done is done; else whatever was heard last.

    While a node has more to tell, two kinds wait: an end that no event told may overtake what was
    said before it, such as that the task had made another one; and a bad end may have been taken
    back since.
    """
    said: dict[str, EndHeard] = {}
    for end in ends:
        if end.node in behind and (end.seq == UNNUMBERED or end.state != COMPLETED):
            continue
        before = said.get(end.uid)
        if before is None or _weight(end) > _weight(before):
            said[end.uid] = end
    return said


def _weight(end: EndHeard) -> tuple[bool, str, str]:
    return end.state == COMPLETED, end.at, end.node


def _in_order(one: EndHeard | JoinHeard) -> tuple[str, bool, int, str]:
    """As each node told it; what no event told comes after all that events did."""
    return one.node, one.seq == UNNUMBERED, one.seq, one.uid


def _by_home(known: Known) -> dict[str, list[JoinHeard]]:
    """Births by the store of their graph; where the task was born there, the store knows it."""
    found: dict[str, list[JoinHeard]] = defaultdict(list)
    for join in known.joins:
        home = (known.homes or {}).get(join.dag)
        if home is not None and home != join.node:
            found[home].append(join)
    return found


def needless(known: Known) -> tuple[str, ...]:
    """Births that nobody has to be told of: the graph's home is where the task was born."""
    homes = known.homes or {}
    return tuple(join.uid for join in known.joins if homes.get(join.dag) == join.node)
