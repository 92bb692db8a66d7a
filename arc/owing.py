"""Tells a node that is back what was said to the whole fleet while it was away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject

from .asking import reading
from .errors import ArcError
from .links import Link
from .stood import noted, stood_in

if TYPE_CHECKING:
    from .hub import Hub

WHY_MAX = 500  # characters of a refusal that the log keeps


async def tell_owed(hub: Hub) -> int:
    """Pause or resume every node that is there now and missed that word; how many were told.

    Only links that are open are used: looking for a node is the survey's work, not ours. A node
    that fails is told at a later call, and the log says why.
    """
    told = 0
    for name in [word.node for _, word in hub.journal.words.owed()]:
        link = hub.links.get(name)
        if link is None or link.met is None:
            continue
        async with hub.saying[name]:  # what is owed may have changed while others were told
            told += await _tell(hub, link)
    return told


async def _tell(hub: Hub, link: Link) -> int:
    owed = {word.node: (do, word) for do, word in hub.journal.words.owed()}
    if link.name not in owed:
        return 0
    do, word = owed[link.name]
    try:
        heard = await say_word(link, do, {"reason": word.reason, "by": word.by})
    except ArcError as error:
        fields: JsonObject = {"do": do, "because": str(error)[:WHY_MAX]}
        hub.journal.runs.log("word_still_owed", node=word.node, fields=fields)
        return 0
    hub.journal.words.told([word.node], do)
    hub.journal.runs.log("word_told_later", node=word.node, fields={"do": do, **noted(heard)})
    return 1


async def say_word(link: Link, do: str, fields: JsonObject) -> JsonObject:
    """Tell this node to `pause` or `resume`, as it is now; its state after the word, and of a
    `pause` what it had been told before.
    """
    met = await link.meet()
    said = await link.ask(do, {**fields, "incarnation": met.incarnation})
    with reading(link.name, do):
        state: JsonObject = {"state": Fields(said).text("state", 40),
                             "reason": Fields(said).text_or("reason", "", 1000)}  # fmt: skip
    return {**state, **(stood_in(said) if do == "pause" else {})}
