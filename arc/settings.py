"""What fleet.yaml says, as plain values that every part of the hub may hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agent_node.strict import JsonObject

from .decisions.domains import Domain
from .decisions.limits import HealthLimits, RouteLimits, StealLimits


@dataclass(frozen=True)
class NodeEntry:
    """One node of fleet.yaml: how it is reached, and whose work it does.

    That a node is suspended is no setting but a word of the moment: the journal keeps it.
    """

    name: str
    host: str | None = None  # None: `local`
    port: int = 22
    user: str | None = None
    local: bool = False
    home: str | None = None  # of a local node; None: the default home of this user
    owns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class SensorEntry:
    """How often one sensor runs, and whether it does."""

    every_s: float
    enabled: bool = True


@dataclass(frozen=True)
class ScheduleEntry:
    """Work that is due at times; it has a task or a graph, never both."""

    name: str
    cron: str
    zone: str = "UTC"
    task: JsonObject | None = None
    graph: JsonObject | None = None
    catch_up: bool = True  # False: times that passed without a hub get no task


@dataclass(frozen=True)
class FilesEntry:
    """Work that each new or changed file asks for."""

    name: str
    path: str  # absolute; may be a pattern
    task: JsonObject


@dataclass(frozen=True)
class WatchEntry:
    """Work that failures ask for, at most once in the time that is watched."""

    name: str
    when: str  # `failing 40% of 5 in 1d`
    task: JsonObject
    domain: str | None = None  # None: every domain, and tasks of none
    node: str | None = None  # None: every node


@dataclass(frozen=True)
class NotifyEntry:
    """Whom to tell of what: one of `command`, `url` and `mail_to` is set, the others are empty."""

    name: str
    on: tuple[str, ...]
    command: tuple[str, ...] = ()
    url: str = ""
    secret_file: Path | None = None  # None: the messages are not signed
    mail_to: str = ""
    mail_from: str = ""
    mail_host: str = ""
    mail_port: int = 25
    at_most_s: float = 600.0
    attempts: int = 8


@dataclass(frozen=True)
class HookEntry:
    """Work that a signed message from elsewhere asks for; its texts may name fields of it."""

    name: str
    secret_file: Path
    task: JsonObject
    key: str = ""  # a template; "": the sender's own id of the delivery, else the message itself
    per_minute: int = 60  # messages that are taken in a minute


@dataclass(frozen=True)
class WebEntry:
    """Where the page listens, and what it lets through."""

    host: str = "127.0.0.1"
    port: int = 8420
    socket: Path | None = None  # None: host and port
    names: tuple[str, ...] = ()  # more names under which it may be asked for
    actions: bool = False
    token_file: Path | None = None  # None: the usual one, and only where others reach the page


@dataclass(frozen=True)
class FleetSettings:
    """The whole of fleet.yaml, checked."""

    fleet: str
    hub: str
    file: Path
    state: Path  # absolute; the hub's own folder
    policy: str = "arc0"
    ssh_config: Path | None = None
    nodes: tuple[NodeEntry, ...] = ()
    domains: tuple[Domain, ...] = ()
    steal: StealLimits = field(default_factory=StealLimits)
    route: RouteLimits = field(default_factory=RouteLimits)
    health: HealthLimits = field(default_factory=HealthLimits)
    sensors: dict[str, SensorEntry] = field(default_factory=dict)  # by name: fleet-router, …
    on_idle: bool = False
    schedules: tuple[ScheduleEntry, ...] = ()
    watch_files: tuple[FilesEntry, ...] = ()
    watch: tuple[WatchEntry, ...] = ()
    notify: tuple[NotifyEntry, ...] = ()
    web: WebEntry = field(default_factory=WebEntry)
    webhooks: tuple[HookEntry, ...] = ()
    budget_per_day: str | None = None  # USD; None: no limit
    urgent_overdraft: bool = False  # P1 to P4 may go on beyond it
    assume_usd: str | None = None  # what a task without `max_cost_usd` reserves; None: nothing

    def node(self, name: str) -> NodeEntry | None:
        """The node of this name; None: fleet.yaml has none."""
        return next((node for node in self.nodes if node.name == name), None)
