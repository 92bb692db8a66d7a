"""Says what fleet.yaml may hold: every key, its kind, its default and one sentence on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from .config_kinds import (
    Beginning,
    Count,
    Duration,
    Every,
    Failing,
    File,
    Flag,
    Host,
    Label,
    Name,
    Port,
    Priority,
    Section,
    Share,
    SomeTime,
    Times,
    User,
    says,
)
from .config_sources import (
    BudgetSection,
    HookSection,
    NotifySection,
    ScheduleSection,
    WatchFilesSection,
    WatchSection,
    WebSection,
)
from .decisions.limits import HealthLimits, RouteLimits, StealLimits
from .durations import render_duration, render_failing, render_share

STEAL, ROUTE, HEALTH = StealLimits(), RouteLimits(), HealthLimits()


class HubSection(Section):
    """Who the hub is, and where it keeps its own state."""

    name: Name = says("arc", "What the hub is called in the source of the tasks that it moves.")
    state: File = says(".arc", "The hub's own folder; relative to fleet.yaml.")


class RouterSection(Section):
    """fleet-router: from the hub's inbox to the nodes."""

    every: Every = says("30m", "How often waiting tasks of the inbox are given to nodes.")
    enabled: Flag = says(default=True, sentence="Whether fleet-router runs by itself.")
    soft: Count = says(ROUTE.soft, "A node with this many tasks gets more only if all have.")
    hard: Count = says(ROUTE.hard, "A node with this many tasks gets no more.")
    batch: Count = says(ROUTE.batch, "How many tasks one cycle routes at most.")
    keep: tuple[Priority, ...] = says((), "Priorities that never leave the hub by themselves.")
    fallback: Name | None = says(None, "The node that takes what nobody claimed.")
    fallback_after: Times = says(
        ROUTE.fallback_after, "Cycles that nobody wanted a task before the fallback gets it."
    )


class HealthSection(Section):
    """fleet-health: which nodes are well."""

    every: Every = says("5m", "How often nodes are judged.")
    enabled: Flag = says(default=True, sentence="Whether fleet-health runs by itself.")
    stale_after: SomeTime = says(
        render_duration(HEALTH.stale_after_s), "An older report is not believed any more."
    )
    running_over: SomeTime = says(
        render_duration(HEALTH.running_over_s), "A task that runs for longer is reported."
    )
    stalled_after: SomeTime = says(
        render_duration(HEALTH.stalled_after_s),
        "Work waits beside a free slot, and for so long nothing was started: it is reported.",
    )
    disk_over: Share = says(
        render_share(HEALTH.disk_over), "A disk that is fuller than this is reported."
    )
    failing: Failing = says(
        render_failing(HEALTH.failing_share, HEALTH.failing_of, HEALTH.failing_within_s),
        "More than this share of at least so many tasks failed within so long: it gets none.",
    )
    streak: Times = says(HEALTH.streak, "So many failures in a row: it gets no work.")
    clock_off: SomeTime = says(
        render_duration(HEALTH.clock_off_s), "A clock that is further off is reported."
    )


class RebalanceSection(Section):
    """fleet-rebalance: from busy nodes to idle ones."""

    every: Every = says("5m", "How often waiting tasks of busy nodes are given to idle ones.")
    enabled: Flag = says(default=True, sentence="Whether fleet-rebalance runs by itself.")
    on_idle: Flag = says(default=False, sentence="Also start a cycle when a node turns idle.")
    idle_min: Duration = says(
        render_duration(STEAL.idle_min_s), "How long a node has to be idle before it is given work."
    )
    busy_over: Count = says(STEAL.busy_over, "A node with more waiting tasks than this is busy.")
    steal_from: Priority = says(
        f"P{STEAL.steal_from}", "The most urgent priority that is moved; P1 is the most urgent."
    )
    anyone_from: Priority = says(
        f"P{STEAL.anyone_from}", "From here on, tasks without skills and domain may go anywhere."
    )
    per_node: Count = says(STEAL.per_node, "How many tasks one idle node gets in a cycle.")
    per_cycle: Count = says(STEAL.per_cycle, "How many tasks move in one cycle in all.")
    hops: Times = says(
        2, "swift: a task stolen more often than this stays; arc0 never steals it again."
    )
    transfer: Duration = says(
        render_duration(STEAL.transfer_s), "swift: how long a move takes; a task should gain more."
    )
    gain_min: Duration = says(
        render_duration(STEAL.gain_min_s), "swift: how much earlier a moved task has to start."
    )
    task_takes: SomeTime = says(
        render_duration(STEAL.default_task_s), "swift: how long a task takes that does not say."
    )
    ask_again: Duration = says(
        render_duration(STEAL.ask_again_s),
        "How long a node is not asked again for a task that it refused.",
    )


class SensorSection(Section):
    """A sensor of somebody else."""

    every: Every = says("5m", "How often it runs.")
    enabled: Flag = says(default=True, sentence="Whether it runs by itself.")


class DomainSection(Section):
    """A kind of work, and how a task of it is recognised."""

    skills: tuple[Label, ...] = says((), "A task with one of these skills belongs here.")
    prefix: tuple[Beginning, ...] = says(
        (), "A subject that begins so belongs here, if the task names no skill and no domain."
    )
    words: tuple[Label, ...] = says(
        (), "A subject with one of these words belongs here, if nothing else says where it does."
    )


class NodeSection(Section):
    """One node: how it is reached, and whose work it does."""

    name: Name = Field(description="What the node calls itself in its node.toml.")
    host: Host | None = says(None, "The machine it runs on; not with local: true.")
    port: Port = says(22, "Where its SSH server listens.")
    user: User | None = says(None, "Who the hub logs in as; the hub's own user by default.")
    local: Flag = says(default=False, sentence="It runs on the hub's machine, under its user.")
    home: File | None = says(None, "Where a local node keeps its queue; ~/.agent-node by default.")
    owns: tuple[Name, ...] = says((), "Domains whose work comes here first.")
    also: tuple[Name, ...] = says((), "Domains whose work it may take when it is idle.")
    never: tuple[Name, ...] = says((), "Domains whose work it is never given.")


class FleetFile(Section):
    """The whole of fleet.yaml."""

    version: Literal[1] = says(1, "The version of this file's format.")
    fleet: Name = says("arc0", "What the fleet is called; nodes remember it.")
    hub: HubSection = says({}, "Who the hub is.")
    policy: Literal["arc0", "swift"] = says("arc0", "By which rules work is moved.")
    ssh_config: File | None = says(None, "An OpenSSH settings file for the hub; none by default.")
    router: RouterSection = says({}, "fleet-router: from the inbox to the nodes.")
    health: HealthSection = says({}, "fleet-health: which nodes are well.")
    rebalance: RebalanceSection = says({}, "fleet-rebalance: from busy nodes to idle ones.")
    sensors: dict[Name, SensorSection] = says({}, "Sensors of others, by their name.")
    domains: dict[Name, DomainSection] = says({}, "Kinds of work, by their name.")
    schedules: dict[Name, ScheduleSection] = says({}, "Work that is due at times, by its name.")
    watch_files: dict[Name, WatchFilesSection] = says({}, "Work that a changed file asks for.")
    watch: dict[Name, WatchSection] = says({}, "Work that failures ask for.")
    webhooks: dict[Name, HookSection] = says({}, "Work that signed messages ask for.")
    web: WebSection = says({}, "The page.")
    budget: BudgetSection = says({}, "What the whole fleet may spend.")
    notify: dict[Name, NotifySection] = says({}, "Whom to tell of what needs a person.")
    # Needed, so that a file cut off by a full disk does not read as a fleet without nodes.
    nodes: tuple[NodeSection, ...] = Field(description="The machines of the fleet.")


@dataclass(frozen=True)
class Refusal:
    """What the model did not take, still without a line."""

    kind: str  # unknown, missing, type or value
    loc: tuple[str | int, ...]
    told: str = ""  # what it should be
    given: object = None
    at_key: bool = False


def check(data: object) -> FleetFile | tuple[Refusal, ...]:
    """The checked file, or everything that it refuses in these plain values."""
    try:
        return FleetFile.model_validate(data)
    except ValidationError as error:
        return tuple(map(_refusal, error.errors(include_url=False)))


_KINDS = {"extra_forbidden": "unknown", "missing": "missing"}
_SHOULD_BE = {
    "tuple_type": "should be a list, such as [one, two]",
    "dict_type": "should be a mapping of names",
    "model_type": "should be a mapping, such as {key: value}",
}


def _refusal(detail: ErrorDetails) -> Refusal:
    kind, loc = detail["type"], tuple(part for part in detail["loc"] if part != "[key]")
    context = detail.get("ctx", {})
    told = str(context.get("error", "")) or _SHOULD_BE.get(kind, detail["msg"])
    if kind == "literal_error":
        told = f"should be {context['expected']}".replace("'", "")
    return Refusal(
        _KINDS.get(kind, "type" if kind.endswith("_type") else "value"), loc, told,
        detail["input"], at_key=kind == "extra_forbidden" or len(loc) < len(detail["loc"]),
    )  # fmt: skip


def schema() -> dict[str, object]:
    """The JSON schema of the file."""
    found: dict[str, object] = FleetFile.model_json_schema()
    return found
