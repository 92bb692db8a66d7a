"""Says when a node fails so much of its work that it must be given no more; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .explain import Objection, lasting
from .limits import HealthLimits
from .view import NodeSeen

LONGEST = 8  # windows of quiet before the next trial, at most: each that fails doubles them


@dataclass(frozen=True)
class End:
    """One attempt that ended on a node, by the hub's own clock."""

    at: datetime
    uid: str
    well: bool


@dataclass(frozen=True)
class Breaker:
    """What a node's ends say of it: open up to `until`, and on trial from then on.

    `until` None: closed. On trial it is given one task; that one ends well, and it is closed.
    """

    until: datetime | None = None
    window_s: float = 0.0


CLOSED = Breaker()


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
    again_s: float | None = None  # until its next trial, below zero since it began; None: closed
    window_s: float = 0.0  # of the breaker, while it is not closed
    given_s: float | None = None  # since it was given a task on this trial; None: it was not
    other_hub: str = ""  # why it refuses what this hub orders; empty: it does not

    @property
    def on_trial(self) -> bool:
        """Whether it failed and has not shown since that it works: it gets one task at most."""
        return self.again_s is not None and self.again_s <= 0


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
        or _every_agent_fails(node, facts) or _not_proved(node, seen)
    )  # fmt: skip
    return None if because is None else Objection("work_succeeds", because)


def proved_by(name: str, facts: NodeFactsSeen | None) -> str:
    """How a node that fails shows that it is well again, and when; "": it does not fail."""
    if facts is None or facts.again_s is None:
        return ""
    if facts.again_s > 0:
        when = lasting(facts.again_s)
        return (f"{name} is trusted again after its trial, one task that the hub gives it in {when}"
                " and that ends well; sooner where enough ends well of its own work, or of what you"
                f" bring it (arc tasks move TASK --to {name}). A trial that fails makes the time"
                " until the next one twice as long")  # fmt: skip
    given_s = facts.given_s
    if given_s is None:
        return f"{name} is on trial: it is given one task, and trusted again when one ends well"
    return (f"{name} is on trial: it was given one task {lasting(given_s)} ago, and is"
            " trusted again when one ends well; one that fails makes the time until the next trial"
            " twice as long")  # fmt: skip


def second_on_trial(name: str) -> Objection:
    """Why a node on trial gets no second task: one that fails there is enough."""
    return Objection("work_succeeds", f"{name} is on trial: {_ONE}")


_ONE = "it failed, and gets one task until that has ended well"


def counted(well: Sequence[bool]) -> NodeFactsSeen:
    """The counts of these tasks, each by its last end, oldest first."""
    streak = next((n for n, good in enumerate(reversed(well)) if good), len(well))
    return NodeFactsSeen(ended=len(well), failed=well.count(False), streak=streak)


def breaker_of(ends: Iterable[End], limits: HealthLimits) -> Breaker:
    """Where these ends, oldest first, have left the breaker of their node; closed at first.

    It opens as the rules say, and stays open for one window of quiet. Then one task is the trial:
    if that fails, the window is doubled, to LONGEST times at most. Whatever ends well while the
    rules are content closes it, a person's work and its own as well.
    """
    known, lately = CLOSED, dict[str, End]()
    within = timedelta(seconds=limits.failing_within_s)
    for end in ends:
        lately.pop(end.uid, None)
        lately[end.uid] = end
        while end.at - (oldest := next(iter(lately.values()))).at > within:
            del lately[oldest.uid]
        facts = counted([one.well for one in lately.values()])
        fails = bool(_fails_in_a_row(facts, limits) or _fails_mostly(facts, limits))
        known = _after(known, end, limits, fails=fails)
    return known


def _after(known: Breaker, end: End, limits: HealthLimits, *, fails: bool) -> Breaker:
    trial = known.until is not None and end.at >= known.until
    if end.well and (trial or not fails):
        return CLOSED
    if trial:
        longer = min(known.window_s * 2, limits.failing_within_s * LONGEST)
        return Breaker(end.at + timedelta(seconds=longer), longer)
    if end.well or not fails:
        return known
    window_s = known.window_s or limits.failing_within_s
    return Breaker(end.at + timedelta(seconds=window_s), window_s)


def _not_proved(node: NodeSeen, facts: NodeFactsSeen) -> str | None:
    """Once its quiet is over a node shows on one task that it works, and on no second one.

    A trial that never ends there, such as a cancelled one, is over with its window.
    """
    if facts.again_s is None:
        return None
    if facts.again_s > 0:
        return f"it failed again and again; it is tried with one task in {lasting(facts.again_s)}"
    if facts.given_s is None:
        return None
    busy = node.report.running_count + node.report.counts.get("HELD", 0)
    over = facts.given_s >= facts.window_s and not busy
    return None if over else f"on trial: {_ONE}"


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
