"""Says of a node that was paused with the whole fleet what ends that: arc resume, not its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.journal_words import FLEET

if TYPE_CHECKING:
    from arc.hub import Hub

RESUME = "arc resume"
_WHOLE: JsonObject = {"kind": "state", "key": "fleet", "value": "active", "node": "", "uid": "",
                      "says": "the fleet were not paused", "command": RESUME}  # fmt: skip


def how_to_resume(hub: Hub, node: str) -> str:
    """What a person types so that this paused node starts work again."""
    return RESUME if _with_the_fleet(hub, node) else resumes(node)


def resumes(node: str) -> str:
    """The word to one node."""
    return f"arc nodes resume {node}"


def by_the_fleet(hub: Hub, data: JsonObject) -> JsonObject:
    """The ways of a task, and what its own node needs, while the whole fleet is paused: each way
    begins with the word that ends it, and that one resumes whom it had paused.
    """
    ways, own = data["ways"], data["own_node"]
    if hub.journal.words.fleet_paused() is None:
        return {}
    more: JsonObject = {}
    if isinstance(ways, list) and ways:
        more["ways"] = [_way(hub, one) for one in ways if isinstance(one, dict)]
    for name in hub.roles():
        if _with_the_fleet(hub, name):
            more["result"] = str(more.get("result", data["result"])).replace(resumes(name), RESUME)
            if isinstance(own, dict) and isinstance(said := own.get("says"), str):
                own = more["own_node"] = {**own, "says": said.replace(resumes(name), RESUME)}
    return more


def _way(hub: Hub, way: JsonObject) -> JsonObject:
    changes = way["changes"]
    assert isinstance(changes, list), "every way has its changes"
    rest: list[JsonValue] = [one for one in changes if not _is_said_by_it(hub, one)]
    return {**way, "changes": [_WHOLE, *rest]}


def _is_said_by_it(hub: Hub, change: JsonValue) -> bool:
    node = str(change.get("node")) if isinstance(change, dict) else ""
    return (isinstance(change, dict) and change.get("command") == resumes(node)
            and _with_the_fleet(hub, node))  # fmt: skip


def _with_the_fleet(hub: Hub, node: str) -> bool:
    words = hub.journal.words
    return words.fleet_paused() is not None and words.whose_pause(node) == FLEET
