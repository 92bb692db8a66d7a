"""Keeps what people said: which nodes are suspended or fenced, and whether the fleet is paused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

from .fences import FenceFile

if TYPE_CHECKING:
    from .journal import Row, Rows

WHOLE_FLEET = ""
WHOSE = "whose-pause"
FLEET, OWN = "fleet", "own"  # by whose word a node is paused or drains
OWED = {"pause": "owed-pause", "resume": "owed-resume"}  # words that a node was not there to hear


@dataclass(frozen=True)
class Word:
    """Something a person said, why, and for how long; `until` None: until it is taken back."""

    node: str  # empty: the whole fleet
    reason: str
    by: str
    at: datetime
    until: datetime | None = None


@dataclass(frozen=True)
class Fence:
    """A person's word that one life of a node is over."""

    node: str
    incarnation: str
    at: datetime
    by: str
    reason: str


class WordBook:
    """Words that stand. Each is on the disk before the call returns."""

    def __init__(self, rows: Rows, clock: Clock, fences: FenceFile) -> None:
        self._rows, self._clock, self._fences = rows, clock, fences

    def suspend(self, node: str, *, reason: str, by: str, until: datetime | None = None) -> None:
        """From now on the node is not even asked."""
        self._say("suspended", node, reason=reason, by=by, until=until)

    def unsuspend(self, node: str) -> bool:
        """Ask it again; whether it was suspended."""
        return self._take_back("suspended", node)

    def suspended(self) -> dict[str, Word]:
        """Every node that is suspended now, by name."""
        return {word.node: word for word in self._standing("suspended")}

    def pause_fleet(self, *, reason: str, by: str, until: datetime | None = None) -> None:
        """From now on nothing new moves by itself."""
        self._say("paused", WHOLE_FLEET, reason=reason, by=by, until=until)

    def resume_fleet(self) -> bool:
        """Let tasks move again; whether the fleet was paused."""
        return self._take_back("paused", WHOLE_FLEET)

    def fleet_paused(self) -> Word | None:
        """The word that pauses the whole fleet; None: it is not paused."""
        return next(iter(self._standing("paused")), None)

    def owe(self, nodes: Iterable[str], do: str, *, reason: str, by: str) -> None:
        """These nodes have yet to be told to `pause` or `resume`; of each, the last word counts."""
        now = iso(self._clock.now())
        with self._rows.transaction(durable=True):
            for node in nodes:
                self._forget_owed(node, *OWED.values())
                self._rows.write(
                    "INSERT INTO word (kind, node, reason, said_by, at) VALUES (?,?,?,?,?)",
                    [OWED[do], node, reason, by, now],
                )

    def told(self, nodes: Iterable[str], do: str | None = None) -> None:
        """They heard this word for the whole fleet, a later one stands; None: one of their own."""
        with self._rows.transaction(durable=True):
            for node in nodes:
                self._forget_owed(node, *([OWED[do]] if do else OWED.values()))

    def _forget_owed(self, node: str, *kinds: str) -> None:
        for kind in kinds:
            self._rows.write("DELETE FROM word WHERE kind = ? AND node = ?", [kind, node])

    def say_whose(self, node: str, whose: str | None) -> None:
        """By whose word this node is paused or drains: that for the fleet, its own, or nobody's."""
        if whose is None:
            self._take_back(WHOSE, node)
        else:
            self._say(WHOSE, node, reason=whose, by="", until=None)

    def whose_pause(self, node: str) -> str | None:
        """The same as it was said last; None: nobody's, or an older hub paused it."""
        found = [word.reason for word in self._standing(WHOSE) if word.node == node]
        return found[0] if found else None

    def owed(self) -> tuple[tuple[str, Word], ...]:
        """What nodes have still to be told, each with `pause` or `resume`; sorted by node."""
        found = [(do, word) for do, kind in OWED.items() for word in self._standing(kind)]
        return tuple(sorted(found, key=lambda one: one[1].node))

    def fence(self, node: str, incarnation: str, *, by: str, reason: str) -> None:
        """Remember that this life of the node is over; saying it twice is fine.

        Also outside the journal: whoever comes back as it is told so, whatever became of that.
        """
        with self._rows.transaction(durable=True):
            self._rows.write(
                "INSERT OR IGNORE INTO fence (node, incarnation, at, said_by, reason)"
                " VALUES (?,?,?,?,?)",
                [node, incarnation, iso(self._clock.now()), by, reason],
            )
            self._fences.add(node, incarnation, at=self._clock.now(), by=by, reason=reason)

    def is_fenced(self, node: str, incarnation: str) -> bool:
        """Whether a person declared this life of the node over."""
        if self._fences.has(node, incarnation):
            return True
        found = self._rows.read(
            "SELECT 1 FROM fence WHERE node = ? AND incarnation = ?", [node, incarnation])
        return bool(found)

    def last_fenced(self, node: str) -> str | None:
        """The life of this node that was declared over last, also when the journal was lost."""
        return self._fences.last_life(node)

    def fences(self) -> tuple[Fence, ...]:
        """Every fence that still stands, oldest first: those of machines that have not been met as
        another since. One that came back may have work again, so it has to be asked again.
        """
        rows = self._rows.read(
            "SELECT * FROM fence WHERE NOT EXISTS (SELECT 1 FROM met WHERE met.node = fence.node"
            " AND met.incarnation <> fence.incarnation) ORDER BY at, node")
        return tuple(
            Fence(node=str(row["node"]), incarnation=str(row["incarnation"]),
                  at=parse_iso(str(row["at"])), by=str(row["said_by"]), reason=str(row["reason"]))
            for row in rows
        )  # fmt: skip

    def _say(
        self, kind: str, node: str, *, reason: str, by: str, until: datetime | None
    ) -> None:
        with self._rows.transaction(durable=True):
            self._rows.write(
                "INSERT OR REPLACE INTO word (kind, node, reason, said_by, at, until)"
                " VALUES (?,?,?,?,?,?)",
                [kind, node, reason, by, iso(self._clock.now()), iso(until) if until else None],
            )

    def _take_back(self, kind: str, node: str) -> bool:
        stood = any(word.node == node for word in self._standing(kind))
        with self._rows.transaction(durable=True):
            self._rows.write("DELETE FROM word WHERE kind = ? AND node = ?", [kind, node])
        return stood

    def _standing(self, kind: str) -> tuple[Word, ...]:
        rows = self._rows.read(
            "SELECT * FROM word WHERE kind = ? AND (until IS NULL OR until > ?) ORDER BY node",
            [kind, iso(self._clock.now())],
        )
        return tuple(map(_word, rows))


def _word(row: Row) -> Word:
    until = cast("str | None", row["until"])
    return Word(node=str(row["node"]), reason=str(row["reason"]), by=str(row["said_by"]),
                at=parse_iso(str(row["at"])),
                until=parse_iso(until) if until else None)  # fmt: skip
