"""Takes a person's word that a machine is off, and owns again what had been moved to it."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.moves import Fenced
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.asking import read_given
from arc.errors import NeedsWord, NotFound
from arc.fencing import FenceReport, fence
from arc.looking import INBOX, look
from arc.survey import survey

from . import Told
from .everybody import ask_all, check_node, partial_of

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.reowning import Reowning


REFUSED = 7  # for safety: such as of a machine that answers


async def nodes_fence(hub: Hub, args: JsonObject) -> Told:
    """Without the person's word, or with `dry_run`, it only says what would be owned again."""
    asked = Fields(args)
    name = asked.node("node")
    check_node(hub, name)
    sure = asked.flag("yes_it_is_off")
    if not sure and not asked.flag("dry_run"):
        raise NeedsWord(
            f"{name}: what had been moved there would run again elsewhere, so nothing of it may "
            "still run there",
            hint=f"if it is off: arc nodes fence {name} --yes-it-is-off; only to look: --dry-run",
        )
    dead = Fenced(name, await _last_life(hub, name))
    done = await _fence(hub, dead, asked)
    tasks: list[JsonValue] = [told_of(one) for one in done.tasks]
    heard = hub.journal.nodes.heard_at(name)
    data: JsonObject = {"node": name, "incarnation": dead.incarnation, "refused": done.refused,
                        "dry_run": done.dry_run, "tasks": tasks,
                        "heard_at": iso(heard) if heard else None,
                        "ended_before": _known_by_givers(hub, done)}  # fmt: skip
    left = any(one.outcome == "refused" for one in done.tasks)
    unseen = [*done.unseen, *(node for one in done.tasks for node in one.unseen)]
    return Told(data, REFUSED if done.refused else 3 if left else 0, partial_of(unseen))


def _known_by_givers(hub: Hub, done: FenceReport) -> int:
    """How many had ended there beside those that are listed: their givers know it already."""
    listed = {one.uid for one in done.tasks}
    return len(set(hub.journal.ends.of_moved(done.remember.node)) - listed)


async def _fence(hub: Hub, dead: Fenced, asked: Fields) -> FenceReport:
    """What the hub has heard to have ended there is not owned again."""
    reason, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    earlier = [Fenced(one.node, one.incarnation) for one in hub.journal.words.fences()]
    async with hub.moving:
        await look(hub)
        view = await survey(hub.links, roles=hub.roles(), clock=hub.clock)
        done = await fence(
            hub.links, view, dead, earlier=earlier, everybody=everybody(hub),
            remember=lambda one: hub.journal.words.fence(one.node, one.incarnation, by=by,
                                                         reason=reason),
            known_ends=partial(hub.journal.ends.of,
                               nodes={one.node for one in (*earlier, dead)}),
            dry_run=asked.flag("dry_run"),
        )  # fmt: skip
    if not done.dry_run and not done.refused:
        hub.journal.lives.decided(one.uid for one in done.tasks if one.outcome != "refused")
        hub.journal.runs.log("node_fenced", node=dead.node, fields={
            "by": by, "reason": reason, "tasks": len(done.tasks),
            **Counter(one.outcome for one in done.tasks)})  # fmt: skip
    return done


async def _last_life(hub: Hub, name: str) -> str:
    """The life of the node that was seen last: by this hub, by an earlier fence, or by whoever gave
    it something, for a hub whose journal was lost.
    """
    met = hub.journal.nodes.met().get(name)
    if met is not None:
        return met.incarnation
    asked: JsonObject = {"peer": name, "open": True, "limit": 1000}
    names = [other for other in hub.links if other != name]
    given = await ask_all(hub, "moved", asked, lambda at, said: read_given(at, said)[0],
                          names=names)  # fmt: skip
    lives = {one.peer_incarnation or "" for some in given.said.values() for one in some}
    last = max([hub.journal.words.last_fenced(name) or "", *lives])
    if last:
        return last
    raise NotFound(f"{name} was never met, and no node that answers gave it anything: there is "
                   "nothing to own again")


def everybody(hub: Hub) -> list[str]:
    """All nodes that may have a copy of anything, the suspended too."""
    return [INBOX, *(node.name for node in hub.settings.nodes)]


def told_of(one: Reowning) -> JsonObject:
    """What became of one task."""
    return {"uid": one.uid, "outcome": one.outcome, "node": one.node, "rule": one.rule,
            "because": one.because}  # fmt: skip
