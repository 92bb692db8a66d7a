"""Decides when a daemon may end: when it was told to, or when nothing is left for it."""

from __future__ import annotations

import sys

from .queries import MISSING, AgentFacts, Facts, ListTasks, NodeFacts
from .store import Store
from .strict import JsonObject, JsonValue
from .task import UNDERWAY, State
from .text import safe_text, short_uids

LEFT_UNDONE = 3
NAMED_MAX = 10  # tasks of each state; `agent-node list` has them all
WAITS = "what came from other nodes waits for the hub since this boot"


class Leaving:
    """Told once, a daemon lets running tasks finish within a grace; told twice, it goes at once."""

    def __init__(self, grace_s: float) -> None:
        self.grace_s = grace_s
        self.asked = False
        self.left: tuple[JsonObject, ...] = ()  # what nothing here may do, once that is known
        self._ends_at = 0.0

    def ask(self, now: float) -> bool:
        """Count one more signal; whether it was the first."""
        first, self.asked = not self.asked, True
        self._ends_at = now + self.grace_s if first else now
        return first

    def is_over(self, now: float) -> bool:
        """Whether what still runs is left to its shims."""
        return self.asked and now >= self._ends_at

    def when_idle(self, store: Store) -> int | None:
        """0: all is done; 3: the rest cannot be done here; None: wait, something will come due."""
        facts = store.read(Facts())
        if any(facts.counts.get(state) for state in (*UNDERWAY, State.RETRYING)):
            return None
        self.left = _what_is_left(store, facts)
        if not self.left:
            return 0
        print(_told(self.left, facts), file=sys.stderr)
        return LEFT_UNDONE


def _what_is_left(store: Store, facts: NodeFacts) -> tuple[JsonObject, ...]:
    """By state, how many tasks stay and which; of READY ones also the needs nobody here meets."""
    states = (State.READY, State.ESCROW, State.HELD, State.PARKED)
    named = {
        state: [task.uid for task in store.read(ListTasks((state,), limit=NAMED_MAX)).tasks]
        for state in states
        if facts.counts.get(state)
    }
    short = short_uids(uid for uids in named.values() for uid in uids)
    unmet: list[JsonValue] = [[*needs] for needs, _ in facts.unmet]
    return tuple(
        {
            "state": state.value,
            "count": facts.counts[state],
            "uids": [{"uid": uid, "short": short[uid]} for uid in uids],
            "needs": unmet if state == State.READY else [],
        }
        for state, uids in named.items()
    )


def _told(left: tuple[JsonObject, ...], facts: NodeFacts) -> str:
    said = ", ".join(f"{one['count']} {one['state']} ({_names(one)})" for one in left)
    why = f" ({facts.name} is {facts.state})" if facts.state != "active" else ""
    why += "".join(map(_held, facts.agents)) + (f"; {WAITS}" if facts.waits_for_hub else "")
    unmet = "".join(f"; no agent here has {', '.join(needs)}" for needs, _ in facts.unmet)
    return f"left undone: {said}{why}{unmet}; see: agent-node list"


def _held(agent: AgentFacts) -> str:
    """Why this agent takes nothing, be its slots free or not."""
    if agent.state == MISSING:
        return f"; agent {agent.name}: {agent.reason}"
    if agent.state not in ("paused", "draining"):
        return ""
    because = f" ({safe_text(agent.reason)})" if agent.reason else ""
    return f"; agent {agent.name} is {agent.state}{because}"


def _names(one: JsonObject) -> str:
    uids, count = one["uids"], one["count"]
    assert isinstance(uids, list)
    assert isinstance(count, int)
    names = [str(uid["short"]) for uid in uids if isinstance(uid, dict)]
    return ", ".join([*names, *([f"{count - len(names)} more"] if count > len(names) else [])])
