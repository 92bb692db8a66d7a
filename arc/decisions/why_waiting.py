"""Says of a task that is blocked which edges it waits for, and what would change that; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .answers import CHANGE, ESCALATE, WAIT

NOWHERE, UNSEEN = "nowhere", "unseen"
BADLY = frozenset({"FAILED", "CANCELLED", "DEAD_LETTERED"})
DONE = "COMPLETED"
OVER = BADLY | {DONE}
WAITS_FOR = "waits_for"  # the hold by which a queue says that an end has not reached it


@dataclass(frozen=True)
class Needed:
    """A task that another one waits for, as the fleet knows it now.

    `state` is one of a task's, or `nowhere` (every node was asked) or `unseen` (some were not).
    """

    uid: str
    on_failure: str
    state: str
    node: str = ""
    subject: str = ""
    ended_at: str | None = None  # by its node's clock; None: it has not ended, or who knows when

    @property
    def over(self) -> bool:
        """Whether it ended, well or badly."""
        return self.state in OVER


@dataclass(frozen=True)
class Hold:
    """Something else than a task that keeps it from being READY."""

    rule: str
    because: str
    try_: str = ""  # what a person may type about it; empty: nothing in particular
    for_good: bool = False  # it is not over before a person did that


@dataclass(frozen=True)
class Waiting:
    """The answer: a verdict, one sentence, a sentence an edge, and what a person may type."""

    verdict: str
    says: str
    edges: tuple[tuple[Needed, str], ...]
    verbs: tuple[str, ...]


def why_it_waits(
    uid: str, needed: Sequence[Needed], holds: Sequence[Hold]
) -> Waiting | None:
    """None: no edge and no hold is known of it, so it waits for its time alone."""
    if not needed and not holds:
        return None
    edges = tuple((one, _sentence(one)) for one in needed)
    still = [one for one in needed if not one.over]
    told = bool(holds) and all(one.rule != WAITS_FOR for one in holds)
    said = [_of_edges(still, len(needed), told=told)] if needed else []
    said += [f"{one.rule}: {one.because}" for one in holds]
    verdicts = {_verdict(one) for one in needed} | {CHANGE for one in holds if one.for_good}
    verdict = next((one for one in (ESCALATE, CHANGE) if one in verdicts), WAIT)
    verbs = [one.try_ for one in holds if one.try_]
    verbs += [command for one in needed for command in _commands(one)]
    verbs += [f"arc tasks cancel {uid} --reason '…'"]
    return Waiting(verdict, "; ".join(said), edges, tuple(dict.fromkeys(verbs)))


def _of_edges(still: Sequence[Needed], total: int, *, told: bool) -> str:
    """`told`: its own queue names another hold, so it knows of every end."""
    if not still and told:
        return "all that it waited for has ended"
    if not still:
        return "all that it waited for has ended; its queue is told in the next run of fleet-graphs"
    return f"it waits for {len(still)} of {total} tasks to end"


def _sentence(one: Needed) -> str:
    place = f" on {one.node}" if one.node else ""
    if one.over and one.ended_at:
        place += f" at {one.ended_at}"
    if one.state == DONE:
        return f"done{place}"
    if one.state in BADLY:
        what = {"fail": "so this one will be cancelled", "skip": "so this one is left out",
                "run": "and this one runs all the same"}.get(one.on_failure, "")  # fmt: skip
        return f"{one.state}{place}, {what}"
    if one.state == NOWHERE:
        return "no node of the fleet has it: it will never end"
    if one.state == UNSEEN:
        return "not found on the nodes that answered"
    if one.state == "PARKED":
        return f"PARKED{place}: nobody knows how it ended; a person has to say"
    return f"{one.state}{place}"


def _verdict(one: Needed) -> str:
    if one.state == "PARKED":
        return ESCALATE
    return CHANGE if one.state == NOWHERE else WAIT


def _commands(one: Needed) -> tuple[str, ...]:
    """What to type about the task that is waited for."""
    if one.state == "PARKED":
        return (f"arc tasks resolve {one.uid} --as done", f"arc tasks show {one.uid}")
    if one.state in BADLY:
        return (f"arc tasks retry {one.uid}",)
    if one.state in (NOWHERE, UNSEEN, DONE):
        return ()
    return (f"arc why {one.uid}",)
