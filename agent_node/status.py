"""Builds the status report from what the database says, and from nothing else that may be newer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from .budget import is_spent
from .capabilities import powers_of
from .clock import iso, parse_iso
from .config import NodeSettings
from .program import running_id
from .queries import MISSING, UNMET_COUNTED, AgentFacts, Doubt, NodeFacts
from .reports import DAEMON_STOPPED, NO_PROGRAM
from .strict import JsonObject, JsonValue
from .task import UNDERWAY, State
from .text import size
from .wire import doubt_out

SCHEMA = "fleet-status/1"
NO_DAEMON_YET = "no daemon has run here yet"
NO_AGENT = "no agent here has a program for them: node.toml names none; agent-node doctor"
HELD_BLOCKS_S = 600.0  # a copy held longer than this waits for a person, not for the next minute


def build_report(
    facts: NodeFacts,
    doubts: Sequence[Doubt],
    *,
    settings: NodeSettings,
    now: datetime,
    disk_free: int,
    dispatching: bool,
    version: str,
    disk_total: int | None = None,
) -> JsonObject:
    """The report at `now`. A node that does not dispatch is never idle, however empty it is."""
    running = _running(facts)
    takes_work = dispatching and facts.state == "active"
    idle = takes_work and is_empty(facts, doubts)
    since = min(_idle_since(facts, doubts, now), iso(now))  # the clock may have been put back
    agents = facts.agents or _unclaimed(settings)
    cannot_start = _cannot_start(agents, settings, disk_free, disk_total)
    starts = takes_work and disk_free >= settings.disk_needed(disk_total)
    return {
        **_whose(facts, version, now),
        "dispatcher": "running" if dispatching else "stopped",
        "idle": idle,
        "idle_since": since if idle else None,
        "pending_count": facts.counts.get(State.READY, 0),
        "running_count": running,
        "slots": sum(agent.slots for agent in agents),
        "free_slots": sum(map(_free_slots, agents)) if starts else 0,
        "state": _state(facts, running),
        "reason": facts.reason,
        **_queue(facts, now),
        "doubts": [doubt_out(doubt) for doubt in doubts],
        "agents": _agents(agents, settings),
        "skills": [*sorted({skill for agent in settings.agents for skill in agent.skills})],
        "capabilities": list(powers_of(settings)),
        "last_task": facts.last_task,
        "budget_remaining_usd": facts.budget_remaining_usd,
        "disk_free_bytes": disk_free,
        "disk_total_bytes": disk_total,
        "needs_you": [*(() if dispatching else _no_daemon(facts)),
                      *_needs_you(facts, doubts, agents),
                      *(cannot_start if dispatching else ())],
        **({"clock_doubt": facts.clock_doubt} if facts.clock_doubt else {}),
    }


def _whose(facts: NodeFacts, version: str, now: datetime) -> JsonObject:
    """Which node says so, in which life of it, by which program, whom it obeys, and when."""
    return {
        "schema": SCHEMA,
        "node": facts.name,
        "incarnation": facts.incarnation,
        "generation": facts.generation,
        "version": version,
        "program": running_id(),
        "hub": facts.hub,
        "term": facts.term,
        "written_at": iso(now),
    }


def _queue(facts: NodeFacts, now: datetime) -> JsonObject:
    """How many tasks there are, and how many of them somebody else has to look at."""
    return {
        "counts": {state: count for state, count in sorted(facts.counts.items()) if count},
        "movable_count": facts.movable,
        "oldest_ready_s": _age(facts.oldest_ready_at, now),
        "awaiting_count": facts.awaiting,
        "artifacts_missing_count": facts.artifacts_missing,
        "graphs_count": facts.graphs,
        "unmet_count": _unmet_count(facts) if facts.agents else 0,
        "unmet_needs": [{"needs": list(needs), "count": count} for needs, count in facts.unmet],
        "retried_count": facts.retried,
    }


def _unmet_count(facts: NodeFacts) -> int:
    return facts.unmet_more + sum(number for _, number in facts.unmet)


def _cannot_start(
    agents: Sequence[AgentFacts], settings: NodeSettings, disk_free: int, disk_total: int | None
) -> Iterator[str]:
    """Why a daemon that runs starts nothing, or nothing of one agent, though all else is well."""
    if disk_free < (needed := settings.disk_needed(disk_total)):
        by = "disk_floor" if needed == settings.disk_floor else "an attempt's own files may take"
        less = f"less than {by} ({size(needed)})"
        yield f"{size(disk_free)} of disk are free, {less}: nothing starts or is taken in"
    for agent in agents:
        if agent.state == MISSING:
            yield f"agent {agent.name}: {agent.reason}; {NO_PROGRAM}"


def is_empty(facts: NodeFacts, doubts: Sequence[Doubt]) -> bool:
    """Nothing waits, runs or is on its way; a copy held for long no longer counts as on its way."""
    busy = (State.READY, *UNDERWAY, State.ESCROW)
    young = any(doubt.state == State.HELD and doubt.age_s < HELD_BLOCKS_S for doubt in doubts)
    return not young and not any(facts.counts.get(state) for state in busy)


def _idle_since(facts: NodeFacts, doubts: Sequence[Doubt], now: datetime) -> str:
    """When the last of it went: a copy counted as on its way until it had been held so long."""
    if facts.idle_since is not None:
        return facts.idle_since
    went = [doubt.age_s - HELD_BLOCKS_S for doubt in doubts if doubt.state == State.HELD]
    ended = facts.last_task.get("ended_at") if facts.last_task else None
    stamps = [iso(now - timedelta(seconds=max(age, 0))) for age in went]
    return max([*stamps, ended] if isinstance(ended, str) else stamps, default=iso(now))


def _running(facts: NodeFacts) -> int:
    return sum(facts.counts.get(state, 0) for state in UNDERWAY)


def _state(facts: NodeFacts, running: int) -> str:
    """A draining node has drained once its last program has ended."""
    return "drained" if facts.state == "draining" and not running else facts.state


def _free_slots(agent: AgentFacts) -> int:
    return max(agent.slots - agent.running, 0) if agent.state in {"active", "failing"} else 0


def _unclaimed(settings: NodeSettings) -> tuple[AgentFacts, ...]:
    """The agents of a node whose daemon has never run: the store does not know them yet."""
    agents = settings.agents
    return tuple(AgentFacts(agent.name, "active", agent.slots, 0, None) for agent in agents)


def _agents(agents: Sequence[AgentFacts], settings: NodeSettings) -> list[JsonValue]:
    skills = {agent.name: agent.skills for agent in settings.agents}
    return [
        {
            "name": agent.name,
            "state": _agent_state(agent),
            "slots": agent.slots,
            "running": agent.running,
            "skills": list(skills.get(agent.name, ())),
            "last_heartbeat": agent.last_heartbeat,
            "paused": agent.state in _HELD,
            "held": agent.state if agent.state in _HELD else None,
            "reason": agent.reason or None,
        }
        for agent in agents
    ]


_HELD = frozenset({"paused", "draining", MISSING})  # it takes nothing: a hub calls all of it paused


def _agent_state(agent: AgentFacts) -> str:
    if agent.state == "failing":
        return "failing"
    return "full" if agent.running >= agent.slots else "available"


def _age(stamp: str | None, now: datetime) -> float | None:
    """Seconds since then by the same wall clock, never below zero; None: there is nothing."""
    return None if stamp is None else max((now - parse_iso(stamp)).total_seconds(), 0.0)


def _no_daemon(facts: NodeFacts) -> Iterator[str]:
    """That what waits here is started by nobody; of a node whose daemon never ran, that."""
    ready = facts.counts.get(State.READY, 0)
    if ready and facts.state == "active" and facts.agents:
        yield f"{ready} READY, and {DAEMON_STOPPED}: agent-node start"


def _needs_you(
    facts: NodeFacts, doubts: Sequence[Doubt], agents: Sequence[AgentFacts]
) -> list[JsonValue]:
    """What waits for a person, a sentence each."""
    said: list[JsonValue] = []
    if facts.state == "quarantined":
        said.append(f"quarantined: {facts.reason}")
    ready = facts.counts.get(State.READY, 0)
    if ready and not agents:
        said.append(f"{ready} READY, but {NO_AGENT}")
    elif ready and not facts.agents:
        said.append(f"{ready} READY, and {NO_DAEMON_YET}: agent-node run")
    for needs, number in facts.unmet if facts.agents else ():  # who can do what is not known yet
        more = "or more " if number >= UNMET_COUNTED else ""
        said.append(f"{number} {more}READY, but no agent here has: {', '.join(needs)}")
    dead = facts.counts.get(State.DEAD_LETTERED, 0)
    if dead:
        said.append(f"{dead} dead: they failed for good; retry or cancel them, or resolve them"
                    " where the work is done after all")
    said += [f"agent {agent.name} fails again and again: {_what_failed(facts, agent.name)}"
             for agent in facts.agents if agent.state == "failing"]  # fmt: skip
    said += [f"{uid} runs and gives no sign of life since {at}" for uid, at in facts.stalled]
    parked = facts.counts.get(State.PARKED, 0)
    if parked:
        said.append(f"{parked} parked: what became of them is not known; resolve them")
    old = sum(doubt.state == State.HELD and doubt.age_s >= HELD_BLOCKS_S for doubt in doubts)
    if old:
        said.append(f"{old} held for more than {HELD_BLOCKS_S:.0f} s: their giver does not answer")
    said += _over_budget(facts)
    if facts.waits_for_hub and facts.counts.get(State.READY):
        said.append("tasks that came from other nodes wait for the hub since this boot")
    return said


def _what_failed(facts: NodeFacts, agent: str) -> str:
    """Where a person reads why: of its last task, where that is what ended here last."""
    last = facts.last_task or {}
    if (last.get("agent"), last.get("outcome")) == (agent, "failed"):
        return f"agent-node log {last['uid']} --stderr"
    return "agent-node list --state RETRYING --state DEAD_LETTERED"


def _over_budget(facts: NodeFacts) -> Iterator[str]:
    """What waits for money, and for how much of it a day brings none."""
    never, others = facts.never_affordable, facts.unaffordable - facts.never_affordable
    if never:
        yield f"{never} wait for money (over_budget) and never start before their limit is raised"
    if others:
        yield (f"{others} wait for money (over_budget): raise a limit, or wait for midnight UTC"
               " where it is a day's")  # fmt: skip
    ready, left = facts.counts.get(State.READY, 0), facts.budget_remaining_usd
    if ready and left is not None and is_spent(left):
        yield (f"{ready} READY wait for money (over_budget): nothing of today's is left;"
               " raise the limit, or wait for midnight UTC")  # fmt: skip
