"""Takes a person's word that a machine is off, and owns again what had been moved to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.moves import Fenced
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.asking import read_given
from arc.errors import NeedsWord, NotFound
from arc.fencing import fence
from arc.looking import INBOX, look
from arc.survey import survey

from . import Told
from .everybody import ask_all, check_node

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
    life = await _last_life(hub, name)
    reason, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    earlier = [Fenced(one.node, one.incarnation) for one in hub.journal.words.fences()]
    async with hub.moving:
        await look(hub)
        view = await survey(hub.links, roles=hub.roles(), clock=hub.clock)
        done = await fence(
            hub.links, view, name, life, earlier=earlier, everybody=everybody(hub),
            remember=lambda dead: hub.journal.words.fence(dead.node, dead.incarnation, by=by,
                                                          reason=reason),
            dry_run=asked.flag("dry_run"),
        )  # fmt: skip
    if not done.dry_run and not done.refused:
        hub.journal.runs.log("node_fenced", node=name, fields={
            "by": by, "reason": reason, "tasks": len(done.tasks)})
    tasks: list[JsonValue] = [told_of(one) for one in done.tasks]
    data: JsonObject = {"node": name, "incarnation": life, "refused": done.refused,
                        "dry_run": done.dry_run, "tasks": tasks}  # fmt: skip
    left = any(one.outcome == "refused" for one in done.tasks)
    return Told(data, exit=REFUSED if done.refused else 3 if left else 0)


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
