"""Moves tasks between two queues in steps that may be repeated; a task may be late, never doubled.

The hub remembers nothing that safety needs: what a crash leaves half done, the nodes themselves
report as doubts, and `settling` ends it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from agent_node.strict import JsonObject, JsonValue

from .decisions.explain import Steal
from .errors import ArcError, NodeRefused
from .links import Link
from .moved import Asked, Moved
from .telling import End, Word, may_have_happened, meet, send, send_in_parts, tell
from .unseen import rule_of

LEASE_S = 60.0
# The taker starts what came while nobody asks its giver, often on the same machine, for anything.
SETTLE_AFTER_S = 0.003
BATCH_MAX = 100  # moves in one request; the node bounds their bytes by itself
Noted = Callable[[str, Sequence[JsonObject]], None]  # who takes which tasks
INBOX = "inbox"  # the hub's own queue: nothing is dispatched there, and it takes tasks all the same
# Nodes refuse so without writing it down: the same task may be taken, or given, the next moment.
UNRECORDED = frozenset({"batch_full", "quarantined", "other_incarnation", "other_transfer"})


@dataclass(frozen=True)
class Outcome:
    """What became of one steal: `moved`, `kept` where it was, or `in_doubt` until it is settled.

    `rule` and `because` say why it was kept or is in doubt; of a moved one they are empty.
    `refused_by` is the node that refused this very task, not only this request; empty: none did.
    `settled` is false where the giver still counts it as a doubt, which the next cycle ends.
    """

    steal: Steal
    outcome: str  # moved | kept | in_doubt
    rule: str = ""
    because: str = ""
    refused_by: str = ""
    settled: bool = False


@dataclass(frozen=True)
class Terms:
    """How the moves of one call are asked for."""

    lease_s: float = LEASE_S  # after it the giver takes back what was not committed
    even_if_pinned: bool = False  # a person's word
    even_if_stopped: bool = False  # the taker need not run anything
    note: Noted | None = None  # hears what a node is about to be given
    dry_run: bool = False  # both nodes are asked what they would say, and nothing is changed


async def carry_out(
    steals: Sequence[Steal],
    links: Mapping[str, Link],
    *,
    lease_s: float = LEASE_S,
    even_if_pinned: bool = False,
    even_if_stopped: bool = False,
    note: Noted | None = None,
    dry_run: bool = False,
) -> tuple[Outcome, ...]:
    """Carry out these moves, and say what became of each, in the order they were given.

    Pairs of nodes move at the same time, and the moves of one pair together: five round trips
    however many they are. Nothing is raised for a node that fails: its moves are kept or in doubt.
    `note` hears of the tasks that a node is about to be given, before it is. `dry_run` says what
    would become of each, by the words of both nodes.
    """
    terms = Terms(lease_s, even_if_pinned, even_if_stopped, note, dry_run)
    pairs: dict[tuple[str, str, str], list[Steal]] = defaultdict(list)
    for steal in steals:
        pairs[steal.busy, steal.idle, steal.why].append(steal)
    done = await asyncio.gather(*(
        _carry_pair(batch, links.get(busy), links.get(idle), terms)
        for (busy, idle, _), batch in pairs.items()
    ))  # fmt: skip
    found = {outcome.steal.xfer: outcome for outcomes in done for outcome in outcomes}
    return tuple(found[steal.xfer] for steal in steals)


async def _carry_pair(
    steals: Sequence[Steal], busy: Link | None, idle: Link | None, terms: Terms
) -> list[Outcome]:
    if busy is None or idle is None:
        absent = steals[0].busy if busy is None else steals[0].idle
        return [Outcome(one, "kept", "no_link", f"{absent} has no link") for one in steals]
    try:
        giver, taker = await asyncio.gather(meet(busy), meet(idle))
    except ArcError as error:
        return [Outcome(one, "kept", rule_of(error), str(error)) for one in steals]
    outcomes: list[Outcome] = []
    for start in range(0, len(steals), BATCH_MAX):
        batch = _Batch(giver, taker, steals[start : start + BATCH_MAX], terms)
        await batch.carry_out()
        outcomes += batch.outcomes()
    return outcomes


class _Batch:
    """The moves of one pair under way: what each has come to, and which step is next."""

    def __init__(self, giver: End, taker: End, steals: Sequence[Steal], terms: Terms) -> None:
        self._giver, self._taker, self._terms = giver, taker, terms
        self._steals = {steal.xfer: steal for steal in steals}
        self._became: dict[str, Outcome] = {}
        self._over: list[str] = []  # both ends are done with these

    def outcomes(self) -> list[Outcome]:
        """One for each steal, once all steps were taken."""
        return [self._became[xfer] for xfer in self._steals]

    async def carry_out(self) -> None:
        """Escrow, hold, commit, activate, settled; each only for what the step before brought."""
        taken = await self._escrow()
        if not taken:
            return
        held = await self._hold(taken)
        if held is None:
            return
        if self._terms.dry_run:
            self._would(held)
            return
        refused = [xfer for xfer in taken if held[xfer].outcome != "held"]
        kept = [xfer for xfer in taken if held[xfer].outcome == "held"]
        committed, _ = await asyncio.gather(self._commit(kept), self._abort(refused, held))
        await self._finish(committed)
        if self._over:
            await asyncio.sleep(SETTLE_AFTER_S)
            await self._settled()

    async def _escrow(self) -> dict[str, Moved]:
        """What the giver set aside; the rest stays where it is."""
        moves: list[JsonValue] = [
            {"xfer": xfer, "uid": steal.task.uid, "epoch": steal.task.epoch}
            for xfer, steal in self._steals.items()
        ]
        fields: JsonObject = {"to": self._taker.name, "why": self._why, "moves": moves,
                              "lease_s": self._terms.lease_s, "terse": True,
                              "peer_incarnation": self._taker.incarnation}  # fmt: skip
        if self._terms.even_if_pinned:
            fields["even_if_pinned"] = True
        if self._terms.dry_run:
            fields["dry_run"] = True
        asked = [Asked(xfer, steal.task.uid, steal.task.epoch)
                 for xfer, steal in self._steals.items()]  # fmt: skip
        try:
            said = await send(self._giver, "escrow", fields, asked)
        except ArcError as error:
            self._fail(self._steals, error)
            return {}
        for moved in said.values():
            if moved.outcome != "escrowed":
                self._note(moved.xfer, _kept_or_not(moved), moved, by=self._giver)
        return {xfer: moved for xfer, moved in said.items() if moved.outcome == "escrowed"}

    async def _hold(self, taken: dict[str, Moved]) -> dict[str, Moved] | None:
        """What the taker said of each; None where all of them are decided upon already."""
        fields: JsonObject = {
            "from": self._giver.name, "why": self._why,
            "peer_incarnation": self._giver.incarnation,
        }  # fmt: skip
        if self._terms.even_if_stopped or self._taker.name == INBOX:
            fields["even_if_stopped"] = True
        if self._terms.dry_run:
            fields["dry_run"] = True
        asked = [Asked(xfer, self._steals[xfer].task.uid) for xfer in taken]
        if self._terms.note is not None and not self._terms.dry_run:
            self._terms.note(self._taker.name, [one.task for one in taken.values() if one.task])
        try:
            offers = [_offered(one) for one in taken.values()]
            return await send_in_parts(self._taker, "hold", fields, offers, asked)
        except ArcError as error:
            if may_have_happened(error) and not self._terms.dry_run:
                self._fail(taken, error)
                return None
            rule = error.rule if isinstance(error, NodeRefused) else rule_of(error)
            return {xfer: Moved(xfer, "not_asked", rule, str(error)) for xfer in taken}

    def _would(self, held: Mapping[str, Moved]) -> None:
        """What would become of each, had this been meant."""
        for xfer, one in held.items():
            if one.outcome == "held":
                self._became[xfer] = Outcome(self._steals[xfer], "moved")
            else:
                self._note(xfer, "kept", one, by=self._taker)

    async def _commit(self, xfers: Sequence[str]) -> dict[str, Moved]:
        """From a `committed` on the task belongs to the taker."""
        try:
            said = await tell(self._giver, self._taker.name, "commit", self._words(xfers))
        except ArcError as error:
            self._doubt(xfers, error)
            return {}
        for moved in said.values():
            if moved.outcome not in ("committed", "aborted"):
                self._note(moved.xfer, "in_doubt", moved)
        return said

    async def _abort(self, xfers: Sequence[str], held: Mapping[str, Moved]) -> None:
        """Give back at once what the taker did not take, with the taker's reason."""
        try:
            said = await tell(self._giver, self._taker.name, "abort", self._words(xfers))
        except ArcError as error:
            self._doubt(xfers, error)
            return
        for moved in said.values():
            became = "kept" if moved.outcome == "aborted" else "in_doubt"
            self._note(moved.xfer, became, held[moved.xfer], by=self._taker)
            if became == "kept" and held[moved.xfer].outcome in ("refused", "dropped", "too_old"):
                self._over.append(moved.xfer)

    async def _finish(self, said: Mapping[str, Moved]) -> None:
        """Activate what was committed; drop what the giver had taken back meanwhile."""
        activate = [xfer for xfer, moved in said.items() if moved.outcome == "committed"]
        drop = [xfer for xfer, moved in said.items() if moved.outcome == "aborted"]
        await asyncio.gather(
            self._end(activate, "activate", "activated", said),
            self._end(drop, "drop", "dropped", said),
        )

    async def _end(
        self, xfers: Sequence[str], do: str, expected: str, said: Mapping[str, Moved]
    ) -> None:
        words = [replace(word, peer_incarnation=self._giver.incarnation)
                 for word in self._words(xfers)]  # fmt: skip
        try:
            ended = await tell(self._taker, self._giver.name, do, words)
        except ArcError as error:
            self._doubt(xfers, error)
            return
        for moved in ended.values():
            if moved.outcome != expected:
                self._note(moved.xfer, "in_doubt", moved)
                continue
            self._over.append(moved.xfer)
            if do == "activate":
                self._became[moved.xfer] = Outcome(self._steals[moved.xfer], "moved")
            else:
                self._note(moved.xfer, "kept", said[moved.xfer])

    async def _settled(self) -> None:
        """Tell the giver that nobody will ask again; unsaid, it is a doubt for the next cycle."""
        with suppress(ArcError):
            said = await tell(self._giver, self._taker.name, "settled", self._words(self._over))
            for xfer, moved in said.items():
                done = moved.outcome == "settled"
                self._became[xfer] = replace(self._became[xfer], settled=done)

    @property
    def _why(self) -> str:
        return next(iter(self._steals.values())).why

    def _words(self, xfers: Sequence[str]) -> list[Word]:
        """For the giver; the transfer is bound to the taker as it was met."""
        life = self._taker.incarnation
        return [Word(xfer, self._steals[xfer].task.uid, life) for xfer in xfers]

    def _note(self, xfer: str, outcome: str, moved: Moved, *, by: End | None = None) -> None:
        rule, because = moved.rule or moved.outcome, moved.because or f"it is {moved.outcome}"
        refused = moved.outcome == "refused" and moved.rule not in UNRECORDED
        refused_by = by.name if by is not None and refused else ""
        self._became[xfer] = Outcome(self._steals[xfer], outcome, rule, because, refused_by)

    def _fail(self, xfers: Mapping[str, object], error: ArcError) -> None:
        """The first step failed as a whole: in doubt only if it may have happened."""
        doubted = may_have_happened(error) and not self._terms.dry_run
        outcome = "in_doubt" if doubted else "kept"
        self._note_all(list(xfers), outcome, error)

    def _doubt(self, xfers: Sequence[str], error: ArcError) -> None:
        """The tasks are set aside already: without an answer nothing is known of them."""
        self._note_all(xfers, "in_doubt", error)

    def _note_all(self, xfers: Sequence[str], outcome: str, error: ArcError) -> None:
        rule = error.rule if isinstance(error, NodeRefused) else rule_of(error)
        for xfer in xfers:
            self._became[xfer] = Outcome(self._steals[xfer], outcome, rule, str(error))


def _offered(one: Moved) -> JsonObject:
    """As `hold` brings it; who is too old to know of weights does not look for one."""
    offer: JsonObject = {"xfer": one.xfer, "task": one.task, "sha256": one.sha256}
    if one.weight:
        offer["weight"] = one.weight
    return offer


def _kept_or_not(moved: Moved) -> str:
    """An escrow that was refused, or taken back before, leaves the task where it is."""
    return "kept" if moved.outcome in ("refused", "aborted") else "in_doubt"
