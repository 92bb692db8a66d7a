"""Tells a node that is back what was said to the whole fleet while it was away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject

from .asking import reading
from .errors import ArcError
from .journal_words import FLEET, OWN
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
        said: JsonObject = {"reason": word.reason, "by": word.by, "dry_run": False}
        heard = await say_for_fleet(hub, link, do, said, heard=do == "resume")
    except ArcError as error:
        fields: JsonObject = {"do": do, "because": str(error)[:WHY_MAX]}
        hub.journal.runs.log("word_still_owed", node=word.node, fields=fields)
        return 0
    hub.journal.words.told([word.node], do)
    hub.journal.runs.log("word_told_later", node=word.node, fields={"do": do, **noted(heard)})
    return 1


async def say_for_fleet(
    hub: Hub, link: Link, do: str, fields: JsonObject, *, heard: bool
) -> JsonObject:
    """The node's state after a word for the whole fleet. A node that is paused or drains by a word
    of its own is left as it is (`kept`), for nobody took that word back. `heard` is whether the
    fleet's pause reached it, where nothing was noted of that.
    """
    words, acts = hub.journal.words, not fields["dry_run"]
    stands = (await say_word(link, "pause", {**fields, "dry_run": True})).get("was")
    if isinstance(stands, dict) and _is_its_own(stands, words.whose_pause(link.name), heard=heard):
        if acts:
            words.say_whose(link.name, OWN)
        return {"state": stands["state"], "reason": stands["reason"] or "", "kept": True}
    if acts and do == "pause":
        words.say_whose(link.name, FLEET)  # before it is: its answer may get lost
    said = await say_word(link, do, fields)
    if acts and do == "resume":
        words.say_whose(link.name, None)
    return said


def _is_its_own(stands: JsonObject, whose: str | None, *, heard: bool) -> bool:
    """A drain always is, for no word to the fleet drains; and so is what its owner said there."""
    if stands["state"] != "paused":
        return True
    if stands.get("here") is True:
        return True
    return whose == OWN or (whose is None and not heard)


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
