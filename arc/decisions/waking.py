"""Says which sensors a node's news starts under policy `swift`; pure."""

from __future__ import annotations

REBALANCE, ROUTER = "fleet-rebalance", "fleet-router"
# What says that a node could be given work, and what says that there is more to give.
HUNGRY, SURPLUS = frozenset({"idle", "free_slot"}), frozenset({"task_ready"})
# A node that starts the task it had at hand may be given the next one, before its slot is free.
ROOM = HUNGRY | {"task_started"}
# What starts when a node is heard again: it may have said anything of the above meanwhile.
CATCHES_UP = (ROUTER, REBALANCE)


def woken_by(event: str, *, at_the_hub: bool) -> tuple[str, ...]:
    """The sensors that this event calls for; `at_the_hub`: the hub's own queue said it."""
    router = event in ROOM or (event in SURPLUS and at_the_hub)
    rebalance = event in HUNGRY or (event in SURPLUS and not at_the_hub)
    return (ROUTER,) * router + (REBALANCE,) * rebalance
