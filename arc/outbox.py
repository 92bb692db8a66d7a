"""Tells each store that waits how the tasks ended that it waits for, as their nodes say now."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from agent_node.clock import iso
from agent_node.failpoints import failpoint
from agent_node.fields import ulid
from agent_node.requests import ENDS_MAX, Fields
from agent_node.strict import JsonObject, JsonValue

from .asking import ENTRIES_MAX, reading
from .circling import look_for_circles
from .custody import believed, whose_else, without_strangers
from .decisions.outbox import (
    EndHeard,
    JoinHeard,
    Known,
    Letter,
    needless,
    write_letters,
)
from .decisions.view import NodeSeen
from .entitling import may_be_told
from .errors import ArcError
from .journal_ends import TaskEnd
from .leaving import with_results
from .links import Link
from .looking import INBOX, Look
from .looking_up import look_up
from .unfound import note_unfound

if TYPE_CHECKING:
    from .hub import Hub

PAGE = 10_000
AWAITS_MAX = 50_000  # uids of one store that one run looks at
TOLD_MAX = ENDS_MAX  # ends in one request: each may bring 64 KiB of output
UIDS_MAX = 1000  # births, or uids that live again, in one request
NEW_GRAPHS_MAX = 50  # whose homes one run looks for
WHY_MAX = 500
NO_PARENT = "unknown_task"  # the parent's own birth may not have been heard of yet
HASH_MISMATCH = "hash_mismatch"
GRAPH_CANCELLED = "its graph was cancelled"

Item = TypeVar("Item")


@dataclass(eq=False)
class Delivered:
    """What one run told whom, for its report."""

    waiting: dict[str, int] = field(default_factory=dict)  # store: ends that it waits for
    joined: int = 0
    alive: int = 0
    ended: int = 0
    stores: set[str] = field(default_factory=set)  # where something was news
    failed: dict[str, str] = field(default_factory=dict)  # store: why it could not be told


async def deliver(hub: Hub, seen: Look, *, behind: Collection[str]) -> Delivered:
    """Ask who waits for what, and tell it what was heard; repeating it changes nothing.

    A store or node that fails is named, and has its turn again in the next run.
    """
    done = Delivered()
    awaits = await _awaits(seen, done)
    wanted = {uid for uids in awaits.values() for uid in uids}
    ended = hub.journal.ends.all_of(wanted)
    looked = await look_up(seen, wanted - {one.uid for one in ended})
    await note_unfound(seen, awaits, looked, ended)
    await look_for_circles(seen)
    births = await _births(hub, seen)
    known = Known(
        ends=[*map(end_heard, without_strangers(hub, hub.journal.ends.all_of(wanted)))],
        joins=births, homes=hub.homes, behind=behind,
        revived=hub.journal.outbox.revived(),
    )  # fmt: skip
    hub.journal.outbox.heard_of(needless(known))
    reachable = {node.name: awaits.get(node.name, frozenset()) for node in seen.whole.seen
                 if node.name in seen.links and node.name not in done.failed}  # fmt: skip
    letters = write_letters(reachable, known)
    await asyncio.gather(*(_send(hub, seen, letter, done) for letter in letters))
    return done


def waiting_for_others(seen: Look) -> list[NodeSeen]:
    """The stores, the hub's own queue among them, that say that they wait for tasks elsewhere."""
    return [node for node in seen.whole.seen
            if node.report.awaiting_count and node.name in seen.links]  # fmt: skip


async def _awaits(seen: Look, done: Delivered) -> dict[str, frozenset[str]]:
    nodes = waiting_for_others(seen)
    said = await asyncio.gather(*(_awaited_by(seen.links[one.name]) for one in nodes))
    found: dict[str, frozenset[str]] = {}
    for node, uids in zip(nodes, said, strict=True):
        if isinstance(uids, ArcError):
            done.failed[node.name] = str(uids)
        else:
            found[node.name] = uids
            done.waiting[node.name] = len(uids)
    return found


async def _awaited_by(link: Link) -> frozenset[str] | ArcError:
    """Every uid that this store waits for and does not have itself."""
    uids: set[str] = set()
    after: str | None = None
    try:
        while len(uids) < AWAITS_MAX:
            asked: JsonObject = {"limit": PAGE}
            if after is not None:
                asked["after"] = after
            page, after = _read_awaits(link.name, await link.ask("awaits", asked))
            known = len(uids)
            uids.update(page)
            if after is None or len(uids) == known:
                break
    except ArcError as error:
        return error
    return frozenset(uids)


def _read_awaits(node: str, result: JsonObject) -> tuple[tuple[str, ...], str | None]:
    with reading(node, "awaits"):
        said = Fields(result)
        uids = tuple(str(ulid(uid, "uids")) for uid in said.entries("uids", PAGE))
        return uids, said.ulid("next") if said.has("next") else None


def end_heard(one: TaskEnd) -> EndHeard:
    """The end as the decisions look at it."""
    return EndHeard(one.uid, one.node, one.state, iso(one.at), one.because, one.seq, one.result)


async def _births(hub: Hub, seen: Look) -> tuple[JoinHeard, ...]:
    """Births that somebody has yet to hear of; the homes of their graphs are looked for once."""
    births = await believed(seen, hub.journal.outbox.births())
    strange = {one.dag for one in births if not hub.homes.get(one.dag)}
    tried = [dag for dag in hub.homes if dag in strange]  # the longest ago first
    names = sorted((node.name for node in seen.whole.seen if node.name in seen.links),
                   key=lambda name: (name != INBOX, name))  # fmt: skip
    for dag in [*sorted(strange.difference(tried)), *tried][:NEW_GRAPHS_MAX]:
        said = await asyncio.gather(*(_keeps(seen.links[name], dag) for name in names))
        parents = {one.parent for one in births if one.dag == dag and one.parent}
        keep = [name for name, keeps in zip(names, said, strict=True) if keeps]
        home = next((name for name in keep if _had_any(hub, name, parents)), next(iter(keep), None))
        hub.homes.pop(dag, None)
        hub.homes[dag] = home or ""  # in no store: the others have their turn first
    return births


def _had_any(hub: Hub, store: str, uids: Collection[str]) -> bool:
    """Whether the store can be their graph's home: one of them came from there, or went there."""
    return any(may_be_told(hub, store, uid) for uid in uids)


async def _keeps(link: Link, dag: str) -> bool:
    """Whether this store is the graph's home; one that cannot be asked is asked another time."""
    try:
        await link.ask("graph", {"dag": dag, "limit": 1})
    except ArcError:
        return False
    return True


async def _send(hub: Hub, seen: Look, letter: Letter, done: Delivered) -> None:
    """Births before what lives again before ends; what fails keeps the rest from being told."""
    link = seen.links[letter.store]
    try:
        await _say_joined(seen, link, letter.joined, done)
        await _say_alive(hub, link, letter.alive, done)
        await _say_ended(hub, seen, link, letter.ended, done)
    except ArcError as error:
        done.failed[letter.store] = str(error)
        fields: JsonObject = {"because": str(error)[:WHY_MAX]}
        hub.journal.runs.log("ends_untold", node=letter.store, fields=fields)


async def _say_joined(
    seen: Look, link: Link, births: Sequence[JoinHeard], done: Delivered
) -> None:
    hub = seen.hub
    hub.journal.ties.note(link.name, [one.uid for one in births if one.parent
                                      and may_be_told(hub, link.name, one.parent)])  # fmt: skip
    for some in _pieces(births, UIDS_MAX):
        tasks: list[JsonValue] = [
            {"uid": one.uid, "dag": one.dag, "parent": one.parent,
             **({"name": one.name} if one.name else {}), **({"waits": True} if one.waits else {}),
             **({"max_cost_usd": one.max_cost_usd} if one.max_cost_usd else {})}
            for one in some
        ]  # fmt: skip
        said = await _said(link, "joined", {"tasks": tasks})
        await _note_joined(seen, some, said)
        done.joined += len(said)
        done.stores.add(link.name)


async def _note_joined(
    seen: Look, births: Sequence[JoinHeard], said: Mapping[str, str]
) -> None:
    """A graph that is not there after all is looked for again; one that was cancelled takes its
    newest tasks with it, wherever they are, unless they are another node's.
    """
    hub = seen.hub
    lost = {one.dag for one in births if said.get(one.uid) == "unknown_graph"}
    for dag in lost:
        hub.homes.pop(dag, None)
    orphans = [one.uid for one in births if said.get(one.uid) == "graph_cancelled"
               and not await whose_else(seen, one.uid, one.node, once=True)]
    if orphans:
        hub.journal.outbox.owe_cancels(orphans, by="fleet-graphs", reason=GRAPH_CANCELLED)
    hub.journal.outbox.heard_of(one.uid for one in births
                                if said.get(one.uid, NO_PARENT) != NO_PARENT
                                and one.dag not in lost)  # fmt: skip


async def _say_alive(hub: Hub, link: Link, uids: Sequence[str], done: Delivered) -> None:
    for some in _pieces(uids, UIDS_MAX):
        said = await _said(link, "alive", {"uids": list[JsonValue](some)})
        hub.journal.outbox.alive(link.name, [uid for uid in some if uid in said])
        done.alive += len(said)
        done.stores.add(link.name)


async def _say_ended(
    hub: Hub, seen: Look, link: Link, ends: Sequence[EndHeard], done: Delivered
) -> None:
    for some in _pieces(ends, TOLD_MAX):
        whole = await with_results(seen, link.name, some)
        if not whole:
            continue
        hub.journal.outbox.telling(link.name, [end for end, _ in whole])
        said = await _said_ended(link, [task for _, task in whole])
        noted = [uid for uid, outcome in said.items() if outcome == "noted"]
        done.ended += len(noted)
        done.stores |= {link.name} if noted else set()


async def _said_ended(link: Link, ends: Sequence[JsonObject]) -> dict[str, str]:
    """What the store says of each end. A node of an older version takes a hash without its output
    for an output that was changed: it is told the same without the hash, and keeps the reason.
    """
    said = await _said(link, "ended", {"tasks": [*ends]})
    older: list[JsonValue] = [
        {name: value for name, value in end.items() if name != "sha256"} for end in ends
        if said.get(str(end["uid"])) == HASH_MISMATCH and end.get("output") is None
        and end.get("sha256") is not None
    ]  # fmt: skip
    return said | await _said(link, "ended", {"tasks": older}) if older else said


def _pieces(some: Sequence[Item], size: int) -> Iterable[Sequence[Item]]:
    return (some[start : start + size] for start in range(0, len(some), size))


async def _said(link: Link, do: str, fields: JsonObject) -> dict[str, str]:
    """The outcome for each uid that the store spoke of, meant for the store as it is now; of a
    refusal its rule.
    """
    met = await link.meet()
    failpoint("outbox.before_telling")
    result = await link.ask(do, {**fields, "incarnation": met.incarnation})
    failpoint("outbox.after_telling")
    with reading(link.name, do):
        return {entry.ulid("uid"): _outcome(entry)
                for entry in Fields(result).objects("results", ENTRIES_MAX)}  # fmt: skip


def _outcome(entry: Fields) -> str:
    outcome = entry.text("outcome", 40)
    if outcome != "refused" or not entry.has("because"):
        return outcome
    return entry.inside("because").text("rule", 64)
