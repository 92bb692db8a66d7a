"""What fleet.yaml says, as plain values that every part of the hub may hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

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

    def node(self, name: str) -> NodeEntry | None:
        """The node of this name; None: fleet.yaml has none."""
        return next((node for node in self.nodes if node.name == name), None)
