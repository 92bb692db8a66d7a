"""Owns tasks again after a machine is gone: everybody else is barred, then one node has each.

A fence is a person's word that a machine is off. What had been moved to it lives on in the copies
that the givers keep; what was born there and never moved has no copy anywhere and stays there.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_node.clock import iso
from agent_node.moves import Fenced
from agent_node.queries import Given
from agent_node.strict import JsonObject

from .asking import read_given
from .decisions.view import FleetView, NodeSeen, NodeUnseen
from .endings import tell_all
from .errors import ArcError, LinkError
from .journal_ends import FINAL, TaskEnd
from .links import Link
from .reowning import Reowning, reown
from .telling import End, Word
from .unseen import unread

Ends = Callable[[Iterable[str]], Mapping[str, TaskEnd]]

PAGES_MAX = 1000  # of a thousand tasks each: the most that one node is asked for


@dataclass(frozen=True)
class FenceReport:
    """What a fence did, task by task; with `refused` it did nothing, and that says why.

    `remember` has to outlive the hub's own memory: the node that comes back under this
    incarnation is told at its hello that it was fenced.
    """

    remember: Fenced
    tasks: tuple[Reowning, ...] = ()
    refused: str = ""
    dry_run: bool = False
    unseen: tuple[NodeUnseen, ...] = ()  # who could not be asked, of one that was refused


async def fence(
    links: Mapping[str, Link],
    view: FleetView,
    dead: Fenced,
    *,
    remember: Callable[[Fenced], None],
    everybody: Collection[str] = (),
    earlier: Sequence[Fenced] = (),
    known_ends: Ends = lambda uids: {},
    dry_run: bool = False,
) -> FenceReport:
    """Own again what had been moved to this life of a node; repeating it is safe.

    Not what `known_ends` says to have ended on a machine that is off: its givers are told so.

    Nothing is done unless every other node answers: of `links`, and of `everybody`, which names
    all nodes of the fleet, the suspended too. `earlier` are fences that still stand. `remember` is
    called before the first node is barred: it has to make the fence durable.
    """
    others, silent = who_answers(links, view, everybody=everybody, fenced=(*earlier, dead))
    refused = _not_barred(silent)
    known = view.node(dead.node)
    if isinstance(known, NodeSeen) and known.report.incarnation == dead.incarnation:
        refused = f"{dead.node} answers, so it is not off; pause or suspend it instead"
    if refused:
        return FenceReport(dead, refused=refused, dry_run=dry_run, unseen=silent)
    try:
        went = await _what_went_there(others, view, dead)
    except ArcError as error:
        away = unread(error.node, error) if isinstance(error, LinkError) else ()
        return FenceReport(dead, refused=str(error), dry_run=dry_run, unseen=away)
    if not dry_run:
        remember(dead)
    fenced = standing(view, (*earlier, dead))
    over = known_ends(went)
    tasks = await reown(others, view, sorted(went.keys() - over.keys()), fenced=fenced,
                        dry_run=dry_run)  # fmt: skip
    ended = await _tell_ends(links, view, went, over, dry_run=dry_run)
    done = sorted((*tasks, *ended), key=lambda one: one.uid)
    return FenceReport(dead, tuple(done), dry_run=dry_run)


async def settle_uid(
    links: Mapping[str, Link],
    view: FleetView,
    uid: str,
    *,
    everybody: Collection[str] = (),
    fenced: Sequence[Fenced] = (),
    dry_run: bool = False,
) -> Reowning:
    """Decide where one task lives that quarantine has set apart, and see that it lives only there.

    It runs where it is, if a node that is not in quarantine has it; the copy that is set apart
    gives way. Else the newest copy is owned again, also one that was PARKED because its end is not
    known. Nothing is done unless every node answers.
    """
    others, silent = who_answers(links, view, everybody=everybody, fenced=fenced)
    if silent:
        return Reowning(uid, "refused", rule="not_all_answer", because=_not_barred(silent),
                        unseen=silent)  # fmt: skip
    standing_now = standing(view, fenced)
    (done,) = await reown(
        others, view, [uid], fenced=standing_now, copies_give_way=True, parked_runs_again=True,
        dry_run=dry_run,
    )  # fmt: skip
    return done


def who_answers(
    links: Mapping[str, Link],
    view: FleetView,
    *,
    everybody: Collection[str],
    fenced: Sequence[Fenced],
) -> tuple[dict[str, End], tuple[NodeUnseen, ...]]:
    """Every node that has to be barred: those that answer, as they are now, and the others."""
    off = {one.node for one in fenced}
    seen = {node.name: node for node in view.seen if node.name in links}
    silent = sorted((set(links) | set(everybody)) - seen.keys() - off)
    ends = {
        name: End(links[name], node.report.incarnation)
        for name, node in seen.items()
        if Fenced(name, node.report.incarnation) not in fenced
    }
    if not silent:
        return ends, ()
    return ends, tuple(_unseen(view, name) for name in silent)


def _unseen(view: FleetView, name: str) -> NodeUnseen:
    known = view.node(name)
    if isinstance(known, NodeUnseen):
        return known
    return NodeUnseen(name, "suspended", "it is suspended, so it was not asked")


def _not_barred(silent: Sequence[NodeUnseen]) -> str:
    names = ", ".join(node.name for node in silent)
    return f"{names} could not be asked, and each has to say that it is barred" if names else ""


def standing(view: FleetView, fenced: Sequence[Fenced]) -> tuple[Fenced, ...]:
    """The fences of machines that have not come back as something later since.

    Of a machine that was fenced in more than one life only the last: it has come back from those
    before, and a node that heard of it refuses a word that still counts with them.
    """
    lives = {node.name: node.report.incarnation for node in view.seen}
    for one in fenced:
        lives[one.node] = max(lives.get(one.node, ""), one.incarnation)
    return tuple(dict.fromkeys(one for one in fenced if lives[one.node] <= one.incarnation))


async def _what_went_there(
    others: Mapping[str, End], view: FleetView, dead: Fenced
) -> dict[str, dict[str, Given]]:
    """The tasks that others gave to the node, with each giver's kept copy; and, without any, those
    that others hold from it.
    """
    pages = await asyncio.gather(*(_given_to(end, dead.node) for end in others.values()))
    went: dict[str, dict[str, Given]] = defaultdict(dict)
    for name, page in zip(others, pages, strict=True):
        for one in page:
            lived = one.peer_incarnation in (dead.incarnation, None)
            if lived and not one.here and one.ended is None:
                went[one.uid][name] = one
    for node in view.seen:
        for doubt in node.report.doubts:
            life = doubt.peer_incarnation or dead.incarnation
            if doubt.side == "taker" and Fenced(doubt.peer, life) == dead:
                went[doubt.uid]  # a copy is held, and no giver of it has to be told
    return went


async def _tell_ends(
    links: Mapping[str, Link],
    view: FleetView,
    went: Mapping[str, Mapping[str, Given]],
    over: Mapping[str, TaskEnd],
    *,
    dry_run: bool,
) -> tuple[Reowning, ...]:
    """What has ended there stays ended, also once the hub has forgotten that it heard so."""
    words: dict[tuple[str, str], list[Word]] = defaultdict(list)
    for uid, end in over.items():
        for giver, one in went[uid].items():
            if end.state == FINAL and one.settled:
                word = Word(one.xfer, uid, one.peer_incarnation, end.state)
                words[giver, one.peer].append(word)
    untold: dict[str, str] = {}
    seen = {node.name: node for node in view.seen}
    for (giver, peer), some in () if dry_run else sorted(words.items()):
        try:
            await tell_all(links, seen[giver], peer, some)
        except ArcError as error:
            untold |= {word.uid: f"; its giver could not be told: {error}" for word in some}
    return tuple(
        Reowning(uid, "ended", end.node, because=f"{end.state} there at {iso(end.at)}, as the hub "
                 f"heard{untold.get(uid, '')}") for uid, end in over.items()
    )  # fmt: skip


async def _given_to(end: End, node: str) -> list[Given]:
    """All that this node gave to that one and still keeps a copy of."""
    found: list[Given] = []
    after: str | None = None
    for _ in range(PAGES_MAX):
        fields: JsonObject = {"peer": node, "open": True, "limit": 1000}
        if after is not None:
            fields["after"] = after
        page, after = read_given(end.name, await end.link.ask("moved", fields))
        found += page
        if after is None:
            break
    return found
