"""Says under NEEDS YOU on which nodes another hub has taken this one's place."""

from __future__ import annotations

from agent_node.strict import JsonValue
from arc.decisions.health import TAKE_OVER
from arc.displaced import displaced_on
from arc.looking import Look

SHOWN = 5


def outranked(seen: Look) -> list[JsonValue]:
    """One line, however many nodes obey the other hub: nothing that this one orders is done."""
    hub = seen.hub
    said = [(one.name, because) for one in seen.view.seen
            if (because := displaced_on(one, seen.links, hub.lease.term))]  # fmt: skip
    if not said:
        return []
    names = ", ".join(name for name, _ in said[:SHOWN])
    more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    text = (f"another hub is obeyed by {names}{more}, and nothing that this one orders is done "
            f"there: {said[0][1]}. Stop the hub that is not wanted; one that is to stay is "
            "stopped and started as it stands below")  # fmt: skip
    return [{"node": "hub", "text": text, "try": TAKE_OVER}]
