"""Ends what earlier moves left half done, from nothing but the doubts of the nodes themselves."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_node.queries import Doubt

from .asking import read_shown
from .decisions.view import FleetView, NodeSeen, NodeUnseen
from .errors import ArcError, NodeRefused
from .links import Link
from .moved import Moved
from .telling import End, Word, tell
from .unseen import rule_of, unread

PAIR_MAX = 200  # doubts of one pair of nodes in one cycle; the rest waits for the next


@dataclass(frozen=True)
class Settlement:
    """What became of one doubt: `settled`, `left` for a later cycle, or `needs_person`.

    `now` is the owner's name once it is known. The sentence says what was found and why it stays.
    Of a settled one the incarnations are those of both ends as they were told so.
    """

    xfer: str
    uid: str
    giver: str
    taker: str
    outcome: str  # settled | left | needs_person
    now: str = ""
    rule: str = ""
    because: str = ""
    unseen: tuple[NodeUnseen, ...] = ()  # who said nothing when this was to be ended
    giver_incarnation: str = ""
    taker_incarnation: str = ""


@dataclass(frozen=True)
class Case:
    """One transfer that is not over, as its two ends report it; None: that end reports nothing."""

    xfer: str
    uid: str
    giver: str
    taker: str
    given: Doubt | None = None
    held: Doubt | None = None

    @property
    def decided(self) -> bool:
        """Whether the giver has given it up, or taken it back, already."""
        return self.given is not None and self.given.state in ("MOVED", "ABORTED")

    def end(self, outcome: str, rule: str, because: str, *, now: str = "") -> Settlement:
        """What became of it."""
        ends = (self.giver, self.taker)
        return Settlement(self.xfer, self.uid, *ends, outcome, now, rule, because)

    def at_giver(self) -> Word:
        """As the giver knows it: bound to the taker as it was then."""
        return Word(self.xfer, self.uid, self.given.peer_incarnation if self.given else None)

    def at_taker(self) -> Word:
        """As the taker knows it."""
        return Word(self.xfer, self.uid, self.held.peer_incarnation if self.held else None)


async def settle(
    links: Mapping[str, Link], view: FleetView, *, leave: Collection[str] = (),
    dry_run: bool = False,
) -> tuple[Settlement, ...]:  # fmt: skip
    """One answer for each transfer that any node of the view reports as a doubt, by xfer.

    The giver decides: what it gave up is the taker's, all else is given back. Pairs of nodes are
    settled at the same time, each in three round trips. `leave` names transfers that are being
    carried out right now; they are left alone. Repeating it is safe at any moment. `dry_run` says
    what would become of each, by the words of both nodes.
    """
    seen = {node.name: node for node in view.seen if node.name in links}
    settled: list[Settlement] = []
    pairs: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases_of(view):
        why = _why_not(case, view, seen, leave)
        if why is not None:
            settled.append(why)
        else:
            pairs[case.giver, case.taker].append(case)
    done = await asyncio.gather(*(
        _Pair(end_of(links, seen[giver]), end_of(links, seen[taker]), cases[:PAIR_MAX],
              dry_run).settle()
        for (giver, taker), cases in pairs.items()
    ))  # fmt: skip
    for cases in pairs.values():
        settled += [one.end("left", "bounded", f"{PAIR_MAX} of this pair were settled before it")
                    for one in cases[PAIR_MAX:]]  # fmt: skip
    return tuple(sorted([*settled, *(one for pair in done for one in pair)],
                        key=lambda one: one.xfer))  # fmt: skip


def end_of(links: Mapping[str, Link], node: NodeSeen) -> End:
    """The node as it was when it told its doubts; one that changed since refuses."""
    return End(links[node.name], node.report.incarnation)


def cases_of(view: FleetView) -> list[Case]:
    """Both ends' doubts of each transfer laid together, by xfer."""
    found: dict[tuple[str, str, str, str], Case] = {}
    for node in view.seen:
        for doubt in node.report.doubts:
            is_giver = doubt.side == "giver"
            ends = (node.name, doubt.peer) if is_giver else (doubt.peer, node.name)
            place = (doubt.xfer, doubt.uid, *ends)
            case = found.get(place) or Case(doubt.xfer, doubt.uid, *ends)
            found[place] = replace(case, given=doubt) if is_giver else replace(case, held=doubt)
    return [found[place] for place in sorted(found)]


def _why_not(
    case: Case, view: FleetView, seen: Mapping[str, NodeSeen], leave: Collection[str]
) -> Settlement | None:
    """Why a case is not touched; None where both ends can be asked."""
    if case.xfer in leave:
        return case.end("left", "under_way", "it is being carried out right now")
    for name in (case.giver, case.taker):
        if name not in seen:
            node = view.node(name)
            said = getattr(node, "because", "") or f"the fleet has no node {name} now"
            return case.end("left", "peer_unseen", f"{name} could not be asked: {said}")
    return None


@dataclass(eq=False)
class _Pair:
    """The cases of one giver and one taker on their way through the three steps."""

    giver: End
    taker: End
    cases: Sequence[Case]
    dry_run: bool
    became: dict[str, Settlement] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)  # committed or aborted, by xfer

    async def settle(self) -> list[Settlement]:
        """Ask the giver, end it at the taker, tell the giver that it is over."""
        by_xfer = {case.xfer: case for case in self.cases}
        if len(by_xfer) < len(self.cases):
            return [case.end("needs_person", "two_tasks", "one transfer, said to be of two tasks")
                    for case in self.cases]  # fmt: skip
        said = self.said = await self._ask_giver()
        await self._end_at_taker([by_xfer[xfer] for xfer in said], said)
        return [self.became[case.xfer] for case in self.cases]

    async def _ask_giver(self) -> dict[str, str]:
        """Committed or aborted, by xfer. A commit is asked for only where the copy is held."""
        commit, abort, said = [], [], {}
        for case in self.cases:
            if case.given is not None and case.decided:
                said[case.xfer] = "committed" if case.given.state == "MOVED" else "aborted"
            elif case.held is not None:
                commit.append(case)
            else:
                abort.append(case)
        for more in await asyncio.gather(self._say("commit", commit), self._say("abort", abort)):
            said |= more
        return said

    async def _say(self, do: str, cases: Sequence[Case]) -> dict[str, str]:
        words = [case.at_giver() for case in cases]
        try:
            said = await tell(self.giver, self.taker.name, do, words, dry_run=self.dry_run)
        except ArcError as error:
            self._leave(cases, self.giver, error)
            return {}
        for case in cases:
            moved = said[case.xfer]
            if moved.outcome not in ("committed", "aborted"):
                self.became[case.xfer] = _odd(case, self.giver.name, do, moved)
        ends = ("committed", "aborted")
        return {xfer: one.outcome for xfer, one in said.items() if one.outcome in ends}

    async def _end_at_taker(self, cases: Sequence[Case], said: Mapping[str, str]) -> None:
        committed = [case for case in cases if said[case.xfer] == "committed"]
        aborted = [case for case in cases if said[case.xfer] == "aborted"]
        ended = await asyncio.gather(self._activate(committed), self._drop(aborted))
        await self._tell_giver([case for part in ended for case in part])

    async def _activate(self, cases: Sequence[Case]) -> list[Case]:
        """The giver gave it up; those that the taker has, or is done with, are over."""
        said = await self._at_taker("activate", cases)
        over = []
        for case in cases:
            moved = said.get(case.xfer)
            if moved is None:
                continue
            why = _not_taken(case, moved) if moved.outcome != "activated" else None
            if why is not None and await self._lives_at_taker(case, moved):
                why = None
            if why is None:
                over.append(case)
            else:
                self.became[case.xfer] = why
        return over

    async def _lives_at_taker(self, case: Case, moved: Moved) -> bool:
        """Whether a copy that was dropped made room for the task itself, at the same node."""
        if moved.outcome != "dropped":
            return False
        try:
            result = await self.taker.link.ask("show", {"uid": case.uid})
            task = read_shown(self.taker.name, case.uid, result).task
        except ArcError:
            return False  # then nobody knows of it, and a person is told so
        return task.state not in ("MOVED", "HELD")

    async def _drop(self, cases: Sequence[Case]) -> list[Case]:
        """The giver has it back; a copy, or one that is still on its way, is refused for ever."""
        said = await self._at_taker("drop", cases)
        over = []
        for case in cases:
            moved = said.get(case.xfer)
            if moved is None:
                continue
            # A copy that quarantine parked cannot become READY without asking the giver first.
            if moved.outcome in ("dropped", "refused", "too_old", "quarantined"):
                over.append(case)
            else:
                self.became[case.xfer] = _odd(case, self.taker.name, "drop", moved)
        return over

    async def _at_taker(self, do: str, cases: Sequence[Case]) -> dict[str, Moved]:
        words = [case.at_taker() for case in cases]
        try:
            return await tell(self.taker, self.giver.name, do, words, dry_run=self.dry_run)
        except ArcError as error:
            self._leave(cases, self.taker, error)
            return {}

    async def _tell_giver(self, over: Sequence[Case]) -> None:
        """Only now may the giver let its record age out. In a dry run it has none of those yet
        that it only would give up, or take back.
        """
        told = [case for case in over if not self._is_tried(case)]
        for case in filter(self._is_tried, over):
            self._end(case)
        words = [case.at_giver() for case in told]
        try:
            said = await tell(self.giver, self.taker.name, "settled", words, dry_run=self.dry_run)
        except ArcError as error:
            self._leave(told, self.giver, error)
            return
        for case in told:
            moved = said[case.xfer]
            if moved.outcome in ("settled", "too_old"):
                self._end(case)
            else:
                self.became[case.xfer] = _odd(case, self.giver.name, "settled", moved)

    def _end(self, case: Case) -> None:
        """Both ends agree who has it."""
        gone, tried = self.said[case.xfer] == "committed", self._is_tried(case)
        does = ("would give it up" if tried else "gave it up") if gone else (
            "would have it back" if tried else "has it back")  # fmt: skip
        owner = case.taker if gone else case.giver
        ended = case.end("settled", "", f"{case.giver} {does}", now=owner)
        self.became[case.xfer] = replace(ended, giver_incarnation=self.giver.incarnation,
                                         taker_incarnation=self.taker.incarnation)  # fmt: skip

    def _is_tried(self, case: Case) -> bool:
        """Whether the giver only said what it would do."""
        return self.dry_run and not case.decided

    def _leave(self, cases: Iterable[Case], end: End, error: ArcError) -> None:
        rule = error.rule if isinstance(error, NodeRefused) else rule_of(error)
        for case in cases:
            left = case.end("left", rule, str(error))
            self.became[case.xfer] = replace(left, unseen=unread(end.name, error))


def _odd(case: Case, node: str, do: str, moved: Moved) -> Settlement:
    """An outcome that no move of ours leads to: a restored or lost queue, and never for a guess."""
    rule = moved.rule or moved.outcome
    said = f"{node} answers {do} with {moved.outcome}: {moved.because or rule}"
    return case.end("needs_person", rule, said)


def _not_taken(case: Case, moved: Moved) -> Settlement | None:
    """Given up by one and not taken by the other; None where that is how it ought to be."""
    if moved.outcome == "too_old" or moved.rule in ("barred", "replaced"):
        return None
    return _odd(case, case.taker, "activate", moved)
