"""Says when a task goes on that no cycle looks at: at its next try, or by a person's word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.standing import next_try
from agent_node.strict import JsonObject
from agent_node.task import State, Task
from agent_node.text import duration

from .sensing import router_turn

if TYPE_CHECKING:
    from arc.hub import Hub


def goes_on(hub: Hub, task: Task) -> str:
    """When it runs again, or who decides about it; empty: neither is known of its state."""
    if task.state == State.RETRYING:
        return next_try(task, hub.clock.now())
    if task.state == State.DEAD_LETTERED:
        return f"failed for good; what spoke against it: arc dead show {task.uid}"
    return str(at_its_time(task).get("result", ""))


def why_again(hub: Hub, task: Task) -> JsonObject:
    """What `why` says of a task that is tried again; empty for every other one."""
    if task.state != State.RETRYING:
        return {}
    says = f"it failed and is tried {next_try(task, hub.clock.now())}"
    return {"result": says, "retry_at": task.retry_at}


PINNED_HERE = "it is pinned to the hub's own queue, where nothing runs"


def at_its_time(task: Task) -> JsonObject:
    """What `why` says of a task that only waits for its hour; empty for every other one."""
    if task.state != State.PENDING or task.blocked_by or task.not_before is None:
        return {}
    return {"result": f"it waits for its time, and is READY from {task.not_before} on"}


def not_routed_yet(hub: Hub, before: str = "") -> str:
    """Of a task in the hub's queue that no run of the router has seen, when one will; `before` is
    the rule by which the last that did see it could not send it.
    """
    turn = router_turn(hub)
    in_s = turn["in_s"]
    unseen = "the router has not seen it yet"
    if before:
        unseen = f"READY again, and the router has not looked since; last it was {before}"
    if not isinstance(in_s, int | float):
        return f"{unseen}: {turn['because']}"
    when = f"it looks in {duration(in_s)}" if in_s else "it looks at once"
    return f"{unseen}; {when}"
