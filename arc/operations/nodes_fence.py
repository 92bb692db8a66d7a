"""Takes a person's word that a machine is off, and owns again what had been moved to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.moves import Fenced
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import NeedsWord, NotFound
from arc.fencing import fence
from arc.looking import INBOX, look
from arc.survey import survey

from . import Told
from .everybody import check_node

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.reowning import Reowning


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
    met = hub.journal.nodes.met().get(name)
    if met is None:
        raise NotFound(f"{name} was never met by this hub, so nothing was moved to it by it")
    reason, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    earlier = [Fenced(one.node, one.incarnation) for one in hub.journal.words.fences()]
    async with hub.moving:
        await look(hub)
        view = await survey(hub.links, roles=hub.roles(), clock=hub.clock)
        done = await fence(
            hub.links, view, name, met.incarnation, earlier=earlier, everybody=everybody(hub),
            remember=lambda dead: hub.journal.words.fence(dead.node, dead.incarnation, by=by,
                                                          reason=reason),
            dry_run=asked.flag("dry_run"),
        )  # fmt: skip
    if not done.dry_run and not done.refused:
        hub.journal.runs.log("node_fenced", node=name, fields={"by": by, "tasks": len(done.tasks)})
    tasks: list[JsonValue] = [told_of(one) for one in done.tasks]
    data: JsonObject = {"node": name, "incarnation": met.incarnation, "refused": done.refused,
                        "dry_run": done.dry_run, "tasks": tasks}  # fmt: skip
    left = bool(done.refused) or any(one.outcome == "refused" for one in done.tasks)
    return Told(data, exit=3 if left else 0)


def everybody(hub: Hub) -> list[str]:
    """All nodes that may have a copy of anything, the suspended too."""
    return [INBOX, *(node.name for node in hub.settings.nodes)]


def told_of(one: Reowning) -> JsonObject:
    """What became of one task."""
    return {"uid": one.uid, "outcome": one.outcome, "node": one.node, "rule": one.rule,
            "because": one.because}  # fmt: skip
