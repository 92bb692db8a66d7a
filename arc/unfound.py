"""Remembers who waits for a task that no queue has, or that lies where nobody can hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted, safe_text

from .circling import blocked, needs_of
from .custody import fences_of, last_holder
from .decisions.explain import lasting
from .errors import ArcError
from .graph_answers import read_graph
from .journal_ends import FINAL, TaskEnd
from .links import Link
from .looking import INBOX, Look
from .looking_up import LookedUp

if TYPE_CHECKING:
    from agent_node.task import Task

    from .hub import Hub

LOOKS = 2  # with ten minutes between them: what was on its way has arrived by then
SHOWN_MAX = 10
TITLE_SHOWN = 60
EVENT = "awaited_task_is_nowhere"
MOVED = "MOVED"


@dataclass(frozen=True)
class Waiter:
    """Who waits for it, where, and what a person types to end that."""

    store: str
    what: str
    command: str


@dataclass(frozen=True)
class Unfound:
    """An awaited task that no queue had which could be asked. `silent` are those that may have it;
    nobody: it is nowhere. `known` where the hub itself had given it to the silent one.
    """

    uid: str
    silent: tuple[str, ...]
    known: bool
    looks: int
    waiters: tuple[Waiter, ...]


async def note_unfound(
    seen: Look,
    awaits: Mapping[str, Collection[str]],
    looked: LookedUp,
    ended: Collection[TaskEnd] = (),
) -> None:
    """Remember, for a person, which of these tasks no queue has: their waiters wait for ever; and
    which of them `ended` on a node that is away and has yet to say what they left.
    """
    hub = seen.hub
    awaited = {uid for uids in awaits.values() for uid in uids}
    before = hub.unfound
    stays = awaited | unheard(seen).keys()
    hub.unfound = {uid: one for uid, one in before.items()
                   if uid in stays and uid not in looked.owners}  # fmt: skip
    lost = [uid for uid, owners in looked.owners.items()
            if uid in awaited and all(task.state == MOVED for task in owners.values())]  # fmt: skip
    untold = _untold(seen, ended)
    fresh = sorted(untold.keys() - hub.unfound.keys())[:SHOWN_MAX]
    if not (lost or fresh):
        return
    waiters = await _waiters(seen.links, awaits, [*lost, *fresh])
    hub.unfound |= {uid: Unfound(uid, (untold[uid],), known=True, looks=1, waiters=waiters[uid])
                    for uid in fresh}  # fmt: skip
    for uid in lost:
        silent, known = _who_may_have(seen, uid, looked.silent)
        last = before.get(uid)
        looks = last.looks + 1 if last is not None and last.silent == silent else 1
        hub.unfound[uid] = Unfound(uid, silent, known, looks, waiters[uid])
        if looks == LOOKS and not silent:
            hub.journal.runs.log(EVENT, task=uid, fields={"because": _nowhere(hub.unfound[uid])})


def _untold(seen: Look, ended: Collection[TaskEnd]) -> dict[str, str]:
    """By uid the node that is away with what such a task left: nobody else can tell that."""
    away = seen.whole.unheard
    return {one.uid: one.node for one in ended
            if one.state == FINAL and not one.result and one.node in away}  # fmt: skip


def unheard(seen: Look) -> dict[str, Unfound]:
    """Those whose waiters lie where nobody answers now: nothing was said that ends their wait."""
    silent = seen.whole.unheard
    return {uid: one for uid, one in seen.hub.unfound.items()
            if any(waiter.store in silent for waiter in one.waiters)}  # fmt: skip


def _who_may_have(
    seen: Look, uid: str, silent: Collection[str]
) -> tuple[tuple[str, ...], bool]:
    """Who cannot be asked and may have it; and whether the hub knows that it is there."""
    hub = seen.hub
    holder = last_holder(hub.journal.runs.moved([uid]), fences_of(hub))
    if holder is not None and (holder in silent or seen.whole.node(holder) is None):
        return (holder,), True
    return tuple(sorted(silent)), False


async def _waiters(
    links: Mapping[str, Link], awaits: Mapping[str, Collection[str]], lost: Collection[str]
) -> dict[str, tuple[Waiter, ...]]:
    """By uid whoever waits for it; a store that fails in between has its turn at the next look."""
    found: dict[str, list[Waiter]] = {uid: [] for uid in lost}
    for store in sorted(awaits):
        some = [uid for uid in lost if uid in awaits[store]]
        if not some:
            continue
        graphs = await asyncio.gather(*(_graph_of(links[store], uid) for uid in some))
        found_there = dict(zip(some, graphs, strict=True))
        single = [uid for uid, graph in found_there.items() if graph is None]
        tasks = await blocked(links[store]) if single else []
        for uid, graph in found_there.items():
            found[uid] += [graph] if graph else _tasks_after(store, uid, tasks)
    return {uid: tuple(some) for uid, some in found.items()}


async def _graph_of(link: Link, uid: str) -> Waiter | None:
    """The graph there whose member it is: the whole of it ends with its last member."""
    try:
        line = read_graph(link.name, await link.ask("graph", {"dag": uid, "limit": 1})).line
    except ArcError:
        return None
    return Waiter(link.name, f'graph {line.id} "{safe_text(line.title, TITLE_SHOWN)}"',
                  f"arc dag cancel {line.id} --reason 'nobody has {uid}'")  # fmt: skip


def _tasks_after(store: str, uid: str, tasks: list[Task]) -> list[Waiter]:
    return [Waiter(store, one.uid, f"arc tasks cancel {one.uid} --reason 'nobody has {uid}'")
            for one in tasks if uid in needs_of(one)]  # fmt: skip


def unfound_now(hub: Hub) -> list[JsonValue]:
    """A line for each task that is nowhere, and one for each node that keeps others waiting."""
    nowhere = [one for one in hub.unfound.values() if not one.silent and one.looks >= LOOKS]
    nowhere.sort(key=lambda one: one.uid)
    said: list[JsonValue] = [
        {"node": _store(one), "text": _nowhere(one),
         "try": one.waiters[0].command if one.waiters else f"arc why {one.uid}"}
        for one in nowhere[:SHOWN_MAX]
    ]  # fmt: skip
    groups: dict[tuple[tuple[str, ...], bool], list[Unfound]] = {}
    for one in sorted(hub.unfound.values(), key=lambda one: one.uid):
        if one.silent:
            groups.setdefault((one.silent, one.known), []).append(one)
    lines = [_unheard(hub, names, some) for (names, _), some in sorted(groups.items())]
    return [*said, *filter(None, lines)][: 2 * SHOWN_MAX]


def _store(one: Unfound) -> str:
    return one.waiters[0].store if one.waiters else INBOX


def _nowhere(one: Unfound) -> str:
    return f"{_who(one)} waits for {one.uid}, which no queue of the fleet has: it waits for ever"


def _who(one: Unfound) -> str:
    if not one.waiters:
        return "somebody"
    more = len(one.waiters) - 1
    return one.waiters[0].what + (f" (and {more} more)" if more else "")


def _unheard(hub: Hub, names: tuple[str, ...], some: list[Unfound]) -> JsonObject | None:
    """One line for those who were not heard for long; nothing while that may still be an outage of
    a moment. What the hub gave to a node is there; anything else may be.
    """
    ages = {name: age for name in names if (age := _quiet_s(hub, name)) is not None}
    if not ages:
        return None
    first = some[0]
    there = "is there" if first.known else "is in no queue that can be asked"
    others = f", and {counted(len(some) - 1, 'other task')} with it" if len(some) > 1 else ""
    heard = ", ".join(f"{name} was last heard {age}" for name, age in ages.items())
    return {"node": min(ages), "try": how_to_hear(hub, min(ages), first.uid),
            "text": f"{heard}: {_who(first)} on {_store(first)} waits for {first.uid}, which"
            f" {there}{others}"}  # fmt: skip


def _quiet_s(hub: Hub, name: str) -> str | None:
    """How long ago it was heard, for people; None: not so long ago that anybody has to know."""
    last = hub.journal.nodes.met().get(name)
    if last is None:
        return "never"
    quiet_s = (hub.clock.now() - last.at).total_seconds()
    away = hub.settings.node(name) is None and name != INBOX
    if quiet_s < hub.settings.health.stale_after_s and not away:
        return None
    return f"{lasting(quiet_s)} ago" + (", and is in the fleet no more" if away else "")


def how_to_hear(hub: Hub, name: str, uid: str) -> str:
    """What to type about a node that may have what this task waits for, and was not heard."""
    if hub.settings.node(name) is None and name != INBOX:
        return f"arc why {uid}"
    if name in hub.journal.words.suspended():
        return f"arc nodes resume {name}"
    return f"arc doctor --node {name}"
