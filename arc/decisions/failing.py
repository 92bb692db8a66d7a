"""Says when a node fails so much of its work that it must be given no more; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .explain import Objection, lasting
from .limits import HealthLimits
from .view import NodeSeen


@dataclass(frozen=True)
class NodeFactsSeen:
    """What a report does not say: gathered from a node's events, by the hub's own clock.

    The window is `failing_within_s`. A streak is counted inside it, so that a node on which
    nothing ended for so long is tried again: a gate without a way back would close for ever.
    """

    ended: int = 0  # tasks of which an attempt ended within the window
    failed: int = 0  # those of them whose last attempt failed; an interruption is no failure
    streak: int = 0  # tasks in a row that failed within the window, up to the last end
    longest_running_s: float | None = None  # None: nothing runs, or it is not known
    longest_running: str = ""  # the uid of that task
    quiet_s: float | None = None  # since an attempt last started or ended; None: not known
    unseen_s: float | None = None  # since the last report; None: never seen by this hub


def last_of_each(ends: Iterable[tuple[str, bool]]) -> list[bool]:
    """How each task ended that ended on a node, (uid, well), in the order of their last ends.

    A task that fails there again and again is one task, however often it is tried: many different
    ones that fail speak against the node, and one alone speaks against itself.
    """
    last: dict[str, bool] = {}
    for uid, well in ends:
        last.pop(uid, None)
        last[uid] = well
    return [*last.values()]


def attracts_no_work(
    node: NodeSeen, facts: NodeFactsSeen | None, limits: HealthLimits
) -> Objection | None:
    """Why this node must be given nothing: what it runs fails. None: it may be given work.

    Work that a person or a queue of its own brings is still run there, so the node can show that
    it works again. What failed before the window no longer counts.
    """
    seen = facts or NodeFactsSeen()
    because = (
        _fails_in_a_row(seen, limits) or _fails_mostly(seen, limits)
        or _every_agent_fails(node, facts)
    )  # fmt: skip
    return None if because is None else Objection("work_succeeds", because)


def _fails_in_a_row(facts: NodeFactsSeen, limits: HealthLimits) -> str | None:
    if facts.streak < limits.streak:
        return None
    return f"the last {facts.streak} tasks failed, one after the other"


def _fails_mostly(facts: NodeFactsSeen, limits: HealthLimits) -> str | None:
    """More than the share, of at least so many: one failure of one says nothing yet."""
    if facts.ended < limits.failing_of or facts.failed <= facts.ended * limits.failing_share:
        return None
    within = lasting(limits.failing_within_s)
    return f"{facts.failed} of {facts.ended} tasks failed within {within}"


def _every_agent_fails(node: NodeSeen, facts: NodeFactsSeen | None) -> str | None:
    """By the node's own count, which has no window: so it holds only while something ends there."""
    agents = node.report.agents
    tried_again = facts is not None and not facts.ended
    if tried_again or not agents or any(agent.state != "failing" for agent in agents):
        return None
    return "every agent there fails again and again"
