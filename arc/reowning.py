"""Makes exactly one node the owner of a task, once every other node has said that it is barred."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_node.moves import REOWN_STEP, Fenced, Reowned
from agent_node.queries import Shown
from agent_node.strict import JsonObject, JsonValue

from .asking import read_reowned, read_shown
from .decisions.view import FleetView, NodeUnseen
from .errors import ArcError, NodeRefused
from .telling import End
from .unseen import rule_of, unread

BATCH_MAX = 100  # tasks that are looked at, barred and owned again together


@dataclass(frozen=True)
class Reowning:
    """What became of one task: `reowned` at a node, `lives` there already, `ended` there before
    its machine went, or `refused`.

    `barred`: a copy of it that was set apart gave way to the task, which lives at `node`. Of a
    refused one `node` is who said no; repeating it is safe in any case.
    """

    uid: str
    outcome: str  # reowned | lives | ended | barred | refused
    node: str = ""
    epoch: int = 0
    rule: str = ""
    because: str = ""
    unseen: tuple[NodeUnseen, ...] = ()  # who could not be asked, of a refused one


@dataclass(frozen=True)
class _Copy:
    """What one node has of a task, and whether that may become the task itself."""

    node: str
    state: str
    rank: tuple[bool, int, str]  # the newest copy first; ties by name
    lives: bool


@dataclass(eq=False)
class _Case:
    """One task on its way: what each node has of it, who is to own it, and at which epoch."""

    uid: str
    shown: dict[str, Shown]
    epoch: int = 0
    winner: str = ""
    give_way: list[str] = field(default_factory=list)  # barred only: the task lives elsewhere
    became: Reowning | None = None

    def refuse(self, node: str, said: _Said) -> None:
        """The first no stands."""
        if self.became is None:
            self.became = _refused(self, node, said)


async def reown(
    others: Mapping[str, End],
    view: FleetView,
    uids: Iterable[str],
    *,
    fenced: Sequence[Fenced],
    copies_give_way: bool = False,
    parked_runs_again: bool = False,
    dry_run: bool = False,
) -> tuple[Reowning, ...]:
    """One answer for each task. `others` are all nodes that are not off, as they are now.

    Every node but the winner is barred first, at an epoch above all that any of them named; one
    that says no, or nothing, leaves the task as it is. The newest copy wins. `copies_give_way`: a
    task that lives somewhere bars the copies that quarantine set apart elsewhere.
    `parked_runs_again`: a person has named these tasks, so PARKED is no life of its own.
    """
    wanted = list(uids)
    done: list[Reowning] = []
    for start in range(0, len(wanted), BATCH_MAX):
        work = _Work(others, view, tuple(fenced), parked_runs_again=parked_runs_again,
                     dry_run=dry_run)  # fmt: skip
        cases = await asyncio.gather(*map(work.look, wanted[start : start + BATCH_MAX]))
        for case in cases:
            work.choose(case, copies_give_way=copies_give_way)
        await work.bar(cases)
        await work.own(cases)
        done += [case.became for case in cases if case.became is not None]
    return tuple(done)


class _Work:
    """The fleet as one batch of decisions is built upon it."""

    def __init__(
        self,
        others: Mapping[str, End],
        view: FleetView,
        fenced: tuple[Fenced, ...],
        *,
        parked_runs_again: bool,
        dry_run: bool,
    ) -> None:
        self._others, self._fenced, self._dry_run = others, fenced, dry_run
        self._parked_runs_again = parked_runs_again
        self._set_apart = {node.name for node in view.seen if node.report.state == "quarantined"}

    async def look(self, uid: str) -> _Case:
        """What every node has of the task; one that cannot say decides it: refused."""
        case = _Case(uid, {})
        await asyncio.gather(*(self._show(case, end) for end in self._others.values()))
        return case

    async def _show(self, case: _Case, end: End) -> None:
        try:
            result = await end.link.ask("show", {"uid": case.uid})
            case.shown[end.name] = read_shown(end.name, case.uid, result)
        except NodeRefused as error:
            if error.rule != "not_found":
                case.refuse(end.name, _unsaid(end.name, error))
        except ArcError as error:
            case.refuse(end.name, _unsaid(end.name, error))

    def choose(self, case: _Case, *, copies_give_way: bool) -> None:
        """Who is to own it: nobody new where it lives; else whoever has the newest copy."""
        if case.became is not None:
            return
        case.epoch = max(map(_highest_epoch, case.shown.values()), default=0) + REOWN_STEP
        copies = [self._copy(name, shown) for name, shown in sorted(case.shown.items())]
        lives = next((copy for copy in copies if copy.lives), None)
        if lives is None and not copies:
            said = f"no node has {case.uid} or a copy of it"
            case.refuse("", _Said("", "unknown_task", said))
        elif lives is None:
            case.winner = max(copies, key=lambda copy: copy.rank).node
        else:
            said = f"it is {lives.state} at {lives.node}"
            case.became = Reowning(case.uid, "lives", lives.node, because=said)
            if copies_give_way:
                apart = [copy for copy in copies if copy.node in self._set_apart]
                case.give_way = [copy.node for copy in apart if copy.state != "MOVED"]

    def _copy(self, name: str, shown: Shown) -> _Copy:
        state = str(shown.task.state)
        if state == "MOVED":
            rank = (self._went_to_the_dead(shown), _rank(shown), name)
            return _Copy(name, state, rank, lives=False)
        apart = name in self._set_apart and state in ("READY", "PARKED")
        orphan = state == "HELD" and self._held_from_the_dead(shown)
        named = state == "PARKED" and self._parked_runs_again
        lives = not (apart or orphan or named)
        return _Copy(name, state, (True, shown.task.epoch, name), lives=lives)

    def _went_to_the_dead(self, shown: Shown) -> bool:
        last = max(_moves(shown, "giver", "committed"), key=_epoch_of, default=None)
        return last is None or self._is_gone(last)

    def _held_from_the_dead(self, shown: Shown) -> bool:
        return any(map(self._is_gone, _moves(shown, "taker", "held")))

    def _is_gone(self, move: JsonObject) -> bool:
        """Whether that peer is fenced, or has come back as another one since."""
        peer, life = str(move.get("peer")), move.get("peer_incarnation")
        if not isinstance(life, str):
            return False
        now = self._others.get(peer)
        return Fenced(peer, life) in self._fenced or (now is not None and now.incarnation > life)

    async def bar(self, cases: Sequence[_Case]) -> None:
        """Everybody but the winner says that the task lives elsewhere from this epoch on."""
        wanted: dict[str, list[_Case]] = defaultdict(list)
        for case in cases:
            if case.became is None:
                for name in self._others.keys() - {case.winner}:
                    wanted[name].append(case)
            for name in case.give_way:
                wanted[name].append(case)
        await asyncio.gather(*(self._bar_at(name, wanted[name]) for name in sorted(wanted)))

    async def _bar_at(self, name: str, cases: Sequence[_Case]) -> None:
        said = await self._ask(name, "bar", cases)
        for case, owned in zip(cases, said, strict=True):
            if case.give_way:
                case.became = _gave_way(case, name, owned)
            elif owned.outcome != "barred":
                case.refuse(name, owned)

    async def own(self, cases: Sequence[_Case]) -> None:
        """The winner, and nobody else, makes it READY."""
        winners: dict[str, list[_Case]] = defaultdict(list)
        for case in cases:
            if case.became is None:
                winners[case.winner].append(case)
        await asyncio.gather(*(self._own_at(name, winners[name]) for name in sorted(winners)))

    async def _own_at(self, name: str, cases: Sequence[_Case]) -> None:
        said = await self._ask(name, "reown", cases)
        for case, owned in zip(cases, said, strict=True):
            if owned.outcome == "reowned":
                case.became = Reowning(case.uid, "reowned", name, case.epoch)
            else:
                case.refuse(name, owned)

    async def _ask(self, name: str, do: str, cases: Sequence[_Case]) -> Sequence[_Said]:
        """What this node says of each; the same error for all of them where it says nothing."""
        end = self._others[name]
        fields: JsonObject = {
            "uids": [{"uid": case.uid, "epoch": case.epoch} for case in cases],
            "fenced": [_named(one) for one in self._fenced],
            "nodes": [_named(Fenced(other.name, other.incarnation))
                      for other in self._others.values()],
            "incarnation": end.incarnation,
        }  # fmt: skip
        if do == "reown" and self._parked_runs_again:
            fields["alone"] = True  # every other node has said that it is barred
        if self._dry_run:
            fields["dry_run"] = True
        try:
            result = await end.link.ask(do, fields)
            answers = read_reowned(name, do, result, [case.uid for case in cases])
        except ArcError as error:
            return [_unsaid(name, error)] * len(cases)
        return [_said(answer) for answer in answers]


@dataclass(frozen=True)
class _Said:
    """One node's word on one task."""

    outcome: str
    rule: str = ""
    because: str = ""
    unseen: tuple[NodeUnseen, ...] = ()  # the node itself, where it said nothing


def _said(answer: Reowned) -> _Said:
    if answer.because is None:
        return _Said(answer.outcome)
    return _Said(answer.outcome, answer.because.rule, answer.because.text)


def _unsaid(name: str, error: ArcError) -> _Said:
    """The same of an error: a no of the node, or nothing at all."""
    rule = error.rule if isinstance(error, NodeRefused) else rule_of(error)
    return _Said("", rule, str(error), unread(name, error))


def _refused(case: _Case, node: str, said: _Said) -> Reowning:
    rule = said.rule or said.outcome
    because = said.because or rule
    return Reowning(case.uid, "refused", node, case.epoch, rule, because, said.unseen)


def _gave_way(case: _Case, name: str, said: _Said) -> Reowning:
    assert case.became is not None, "a copy gives way only where the task lives"
    if case.became.outcome == "refused":
        return case.became
    if said.outcome == "barred":
        return replace(case.became, outcome="barred", epoch=case.epoch)
    return _refused(case, name, said)


def _named(one: Fenced) -> JsonValue:
    return {"node": one.node, "incarnation": one.incarnation}


def _moves(shown: Shown, side: str, outcome: str) -> list[JsonObject]:
    return [move for move in shown.moves
            if move.get("side") == side and move.get("outcome") == outcome]  # fmt: skip


def _epoch_of(move: JsonObject) -> int:
    epoch = move.get("epoch")
    return epoch if isinstance(epoch, int) else 0


def _rank(shown: Shown) -> int:
    """How new a kept copy is: by its last move, since a bar raises the epoch beside it."""
    return max(map(_epoch_of, _moves(shown, "giver", "committed")), default=0)


def _highest_epoch(shown: Shown) -> int:
    return max([shown.task.epoch, *map(_epoch_of, shown.moves)])
