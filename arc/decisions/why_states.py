"""Says of tasks that do not wait in a queue what they wait for, and what a person may do; pure."""

from __future__ import annotations

from dataclasses import dataclass

NO_HUB = "no hub runs: nothing moves by itself until `arc up` runs"
PAUSED = "the fleet is paused: nothing moves until `arc resume`"


@dataclass(frozen=True)
class Life:
    """What a state means to somebody who asks why the task does not move."""

    state: str
    verdict: str  # DONE | WAIT | CHANGE | ESCALATE
    says: str
    verbs: tuple[str, ...] = ()  # commands with TASK in the task's place

    def commands(self, uid: str) -> tuple[str, ...]:
        """What a person may type about this task."""
        return tuple(verb.replace("TASK", uid) for verb in self.verbs)


_CANCEL = "arc tasks cancel TASK"
_SHOW = "arc tasks show TASK"

LIVES: dict[str, Life] = {
    life.state: life
    for life in (
        Life("CREATED", "WAIT", "it is being taken in", (_SHOW,)),
        Life("PENDING", "WAIT", "it waits for other tasks, or for its time", (_SHOW, _CANCEL)),
        Life("CLAIMED", "WAIT", "an agent has it and is about to start; what runs never moves",
             (_CANCEL,)),
        Life("RUNNING", "WAIT", "it runs; what runs never moves", (_CANCEL,)),
        Life("VALIDATING", "WAIT", "it ran, and its answer is being checked", (_SHOW,)),
        Life("RETRYING", "WAIT", "it failed and is tried again by itself, no cycle is waited for",
             (_SHOW, "arc tasks retry TASK", _CANCEL)),
        Life("ESCROW", "WAIT", "a move of it is under way; doubts are settled in every cycle",
             ("arc doubts list", "arc doubts settle")),
        Life("HELD", "WAIT", "a move of it is under way: its copy waits for the giver's word",
             ("arc doubts list", "arc doubts settle")),
        Life("MOVED", "WAIT", "it was moved on; another node has it now", (_SHOW,)),
        Life("PARKED", "ESCALATE", "nobody knows how it ended; a person has to say",
             (_SHOW, "arc tasks resolve TASK --as done", "arc tasks resolve TASK --as ready")),
        Life("FAILED", "CHANGE", "it failed", ("arc tasks retry TASK",)),
        Life("DEAD_LETTERED", "CHANGE", "it failed for good; it runs again only by your word",
             (_SHOW, "arc tasks retry TASK", _CANCEL)),
        Life("COMPLETED", "DONE", "it completed; there is nothing to wait for", (_SHOW,)),
        Life("CANCELLED", "CHANGE", "it was cancelled", ("arc tasks retry TASK",)),
    )
}  # fmt: skip
