"""Reads a status report as values, for whoever has to believe it or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from .errors import BadInput
from .queries import MISSING, UNMET_MAX, Doubt
from .requests import Fields
from .strict import JsonObject, JsonValue

SCHEMA = "fleet-status/1"
COUNT_MAX = 10**7
SLOTS_MAX = 10_000
AGENTS_MAX = 1000
DOUBTS_MAX = 100_000
SECONDS_MAX = 10**10
BYTES_MAX = 2**60
TERM_MAX = 2**53
SAID_MAX = 1000
NEEDS_MAX = 128
_is_amount = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?").fullmatch
_is_state = re.compile(r"[A-Z_]{1,32}").fullmatch  # of a task, in this version or a later one
DAEMON_STOPPED = "no daemon runs here"  # in a sentence for people; a hub says it in its own words
# The same, where the node names its own way out: a hub names that of its machine.
NO_PROGRAM = "it is given work again once it can be started: agent-node doctor"
STATES = ("active", "paused", "draining", "drained", "quarantined")


class AgentReport(NamedTuple):
    """One agent of a node, as its node reports it; a tuple, for a survey makes hundreds."""

    name: str
    state: str  # available, full or failing
    slots: int
    running: int
    skills: tuple[str, ...] = ()
    last_heartbeat: str | None = None
    paused: bool = False
    missing: str = ""  # why its program cannot be started there; then it counts as paused, too


Unmet = tuple[tuple[str, ...], int]  # a set of needs, and how many READY tasks have it


class StatusReport(NamedTuple):
    """fleet-status.json, checked: within bounds, of one mind with itself, unknown fields ignored.

    All times are by the node's own clock; compare them with each other only.
    """

    node: str
    incarnation: str
    generation: int
    version: str
    written_at: str
    dispatcher: Literal["running", "stopped"]
    idle: bool
    idle_since: str | None
    pending_count: int
    running_count: int
    slots: int
    free_slots: int
    state: str
    reason: str = ""
    counts: Mapping[str, int] = MappingProxyType({})
    movable_count: int = 0
    oldest_ready_s: float | None = None
    doubts: tuple[Doubt, ...] = ()
    agents: tuple[AgentReport, ...] = ()
    skills: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    last_task: JsonObject | None = None
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    needs_you: tuple[str, ...] = ()
    awaiting_count: int = 0
    retried_count: int = 0
    artifacts_missing_count: int | None = None  # None: a node that is too old to say
    graphs_count: int | None = None  # the same
    unmet_count: int = 0  # of those that wait: how many no agent there can run
    unmet_needs: tuple[Unmet, ...] = ()  # some of their needs; where no agent is known, of all
    budget_remaining_usd: str | None = None  # today, perhaps below zero; None: no limit
    hub: str = ""  # whom the node obeys, and its term; empty and None: it does not say
    term: int | None = None


def parse_report(document: JsonObject) -> StatusReport:
    """The report, or `BadInput` naming the field: a report that contradicts itself is none."""
    said = _of_our_form(document)
    report = StatusReport(
        node=said.node("node"),
        incarnation=said.ulid("incarnation"),
        generation=said.whole("generation", 0, 2**62),
        version=said.text("version", 64),
        written_at=said.moment("written_at"),
        dispatcher=said.word("dispatcher", "running", "stopped"),
        idle=said.flag("idle"),
        idle_since=_since(said),
        pending_count=said.whole("pending_count", 0, COUNT_MAX),
        running_count=said.whole("running_count", 0, COUNT_MAX),
        slots=said.whole("slots", 0, SLOTS_MAX),
        free_slots=said.whole("free_slots", 0, SLOTS_MAX),
        state=said.word("state", *STATES),
        reason=_sentence(document, "reason"),
        counts=_counts(said),
        movable_count=said.maybe_whole("movable_count", 0, COUNT_MAX) or 0,
        oldest_ready_s=said.seconds("oldest_ready_s", SECONDS_MAX),
        doubts=read_doubts(said) if document.get("doubts") not in (None, []) else (),
        agents=tuple(map(_agent, said.objects("agents", AGENTS_MAX))),
        skills=said.words("skills"),
        capabilities=said.words("capabilities"),
        last_task=said.mapping("last_task") if said.has("last_task") else None,
        disk_free_bytes=said.maybe_whole("disk_free_bytes", 0, BYTES_MAX),
        disk_total_bytes=said.maybe_whole("disk_total_bytes", 0, BYTES_MAX),
        needs_you=_sentences(document.get("needs_you")),
        awaiting_count=said.maybe_whole("awaiting_count", 0, COUNT_MAX) or 0,
        retried_count=said.maybe_whole("retried_count", 0, COUNT_MAX) or 0,
        artifacts_missing_count=said.maybe_whole("artifacts_missing_count", 0, COUNT_MAX),
        graphs_count=said.maybe_whole("graphs_count", 0, COUNT_MAX),
        unmet_count=said.maybe_whole("unmet_count", 0, COUNT_MAX) or 0,
        unmet_needs=_unmet(document.get("unmet_needs")),
        budget_remaining_usd=_amount(document, "budget_remaining_usd"),
        hub=said.maybe_node("hub") or "",
        term=said.maybe_whole("term", 0, TERM_MAX),
    )
    check_of_one_mind(report)
    return report


def _of_our_form(document: JsonObject) -> Fields:
    if document.get("schema") != SCHEMA:
        raise BadInput(f"should be {SCHEMA!r}", "schema")
    return Fields(document)


def _since(said: Fields) -> str | None:
    """Since when it is idle, and never later than it says so: a clock that was put back meanwhile
    is no reason to believe nothing else that the node says.
    """
    since = said.maybe_moment("idle_since")
    return None if since is None else min(since, said.moment("written_at"))


def check_of_one_mind(report: StatusReport) -> None:
    """A node that is idle has nothing waiting and nothing running, and says since when."""
    if report.free_slots > report.slots:
        raise BadInput(f"{report.free_slots} of {report.slots} slots", "free_slots")
    if not report.idle:
        return
    if report.pending_count or report.running_count:
        waits = f"{report.pending_count} waiting and {report.running_count} running"
        raise BadInput(f"idle with {waits}", "idle")
    if report.dispatcher != "running" or report.state != "active":
        raise BadInput(f"idle, yet {report.state} with dispatcher {report.dispatcher}", "idle")
    if report.idle_since is None:
        raise BadInput("missing; an idle node says since when", "idle_since")


def read_doubts(said: Fields) -> tuple[Doubt, ...]:
    """The transfers that are not over for a node."""
    return tuple(
        Doubt(
            xfer=entry.ulid("xfer"),
            uid=entry.ulid("uid"),
            epoch=entry.whole("epoch", 1, 2**62),
            side=entry.word("side", "giver", "taker"),
            state=entry.word("state", "ESCROW", "HELD", "MOVED", "ABORTED"),
            peer=entry.node("peer"),
            peer_incarnation=entry.maybe_text("peer_incarnation"),
            age_s=entry.seconds("age_s", SECONDS_MAX) or 0.0,
        )
        for entry in said.objects("doubts", DOUBTS_MAX)
    )


def _agent(entry: Fields) -> AgentReport:
    return AgentReport(
        entry.node("name"),
        entry.word("state", "available", "full", "failing"),
        entry.whole("slots", 0, SLOTS_MAX),
        entry.whole("running", 0, SLOTS_MAX),
        entry.words("skills"),
        entry.maybe_moment("last_heartbeat"),
        entry.flag("paused"),
        _sentence(entry.values, "reason") if entry.values.get("held") == MISSING else "",
    )


def _counts(said: Fields) -> dict[str, int]:
    found = said.inside("counts") if said.has("counts") else Fields({}, "counts")
    named = [*filter(_is_state, found.values)][:64]
    return {state: found.whole(state, 0, COUNT_MAX) for state in named}


def _amount(document: JsonObject, name: str) -> str | None:
    value = document.get(name)
    if value is None or (isinstance(value, str) and _is_amount(value)):
        return value
    raise BadInput('should be an amount such as "0.12"', name)


def _unmet(value: JsonValue) -> tuple[Unmet, ...]:
    """Needs for people, bounded; they decide nothing, so no shape of them is refused."""
    listed = value[:UNMET_MAX] if isinstance(value, list) else []
    return tuple(found for entry in listed if (found := _unmet_one(entry)) is not None)


def _unmet_one(entry: JsonValue) -> Unmet | None:
    if not isinstance(entry, dict):
        return None
    needs, count = entry.get("needs"), entry.get("count")
    if not isinstance(needs, list) or type(count) is not int or not 0 < count <= COUNT_MAX:
        return None
    return tuple(one[:SAID_MAX] for one in needs[:NEEDS_MAX] if isinstance(one, str)), count


def _sentence(document: JsonObject, name: str) -> str:
    """A sentence for people, cut; it decides nothing, so no shape of it is refused."""
    value = document.get(name)
    return value[:SAID_MAX] if isinstance(value, str) else ""


def _sentences(value: JsonValue) -> tuple[str, ...]:
    """Sentences for people, bounded in number and length."""
    listed = value if isinstance(value, list) else []
    return tuple(entry[:SAID_MAX] for entry in listed[:100] if isinstance(entry, str))
