"""Owns tasks again after a machine is gone: everybody else is barred, then one node has each.

A fence is a person's word that a machine is off. What had been moved to it lives on in the copies
that the givers keep; what was born there and never moved has no copy anywhere and stays there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from agent_node.moves import Fenced
from agent_node.queries import Given
from agent_node.strict import JsonObject

from .asking import read_given
from .decisions.view import FleetView, NodeSeen
from .errors import ArcError
from .links import Link
from .reowning import Reowning, reown
from .telling import End

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


async def fence(
    links: Mapping[str, Link],
    view: FleetView,
    node: str,
    incarnation: str,
    *,
    remember: Callable[[Fenced], None],
    everybody: Collection[str] = (),
    earlier: Sequence[Fenced] = (),
    dry_run: bool = False,
) -> FenceReport:
    """Own again what had been moved to this node under this incarnation; repeating it is safe.

    Nothing is done unless every other node answers: of `links`, and of `everybody`, which names
    all nodes of the fleet, the suspended too. `earlier` are fences that still stand. `remember` is
    called before the first node is barred: it has to make the fence durable.
    """
    dead = Fenced(node, incarnation)
    others, refused = who_answers(links, view, everybody=everybody, fenced=(*earlier, dead))
    known = view.node(node)
    if isinstance(known, NodeSeen) and known.report.incarnation == incarnation:
        refused = f"{node} answers, so it is not off; pause or suspend it instead"
    if refused:
        return FenceReport(dead, refused=refused, dry_run=dry_run)
    try:
        uids = await _what_went_there(others, view, dead)
    except ArcError as error:
        return FenceReport(dead, refused=str(error), dry_run=dry_run)
    if not dry_run:
        remember(dead)
    fenced = standing(view, (*earlier, dead))
    tasks = await reown(others, view, uids, fenced=fenced, dry_run=dry_run)
    return FenceReport(dead, tasks, dry_run=dry_run)


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
    others, refused = who_answers(links, view, everybody=everybody, fenced=fenced)
    if refused:
        return Reowning(uid, "refused", rule="not_all_answer", because=refused)
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
) -> tuple[dict[str, End], str]:
    """Every node that has to be barred, as it is now, and why that is not all of them."""
    off = {one.node for one in fenced}
    seen = {node.name: node for node in view.seen if node.name in links}
    silent = sorted((set(links) | set(everybody)) - seen.keys() - off)
    ends = {
        name: End(links[name], node.report.incarnation)
        for name, node in seen.items()
        if Fenced(name, node.report.incarnation) not in fenced
    }
    if not silent:
        return ends, ""
    return ends, f"{', '.join(silent)} could not be asked, and each has to say that it is barred"


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
) -> list[str]:
    """The tasks that others gave to the node, and those that they hold from it, by uid."""
    pages = await asyncio.gather(*(_given_to(end, dead.node) for end in others.values()))
    given = {
        one.uid
        for page in pages
        for one in page
        if one.peer_incarnation in (dead.incarnation, None) and not one.here and one.ended is None
    }
    held = {
        doubt.uid
        for node in view.seen
        for doubt in node.report.doubts
        if doubt.side == "taker"
        and Fenced(doubt.peer, doubt.peer_incarnation or dead.incarnation) == dead
    }
    return sorted(given | held)


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
