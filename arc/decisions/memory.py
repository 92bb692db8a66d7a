"""What earlier cycles leave for a plan to consider; pure, and empty is always right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .objections import Objection


@dataclass(frozen=True)
class Memory:
    """What the hub knows beside the view. A plan without any of it is safe, only less clever."""

    refused_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(uid, node): how many seconds ago that node refused that task."""

    no_work: Mapping[str, Objection] = field(default_factory=dict)
    """Nodes that health gives nothing, because what they run fails, and why."""

    trials: frozenset[str] = frozenset()
    """Nodes that failed and were quiet since: each is given one task, to show that it works."""

    taken: Mapping[str, int] = field(default_factory=dict)
    """Moves to each node within the interval that is sliding; empty for a cycle of its own."""

    typical_s: Mapping[str, float] = field(default_factory=dict)
    """How long a task of each domain usually runs; under "" those of no domain."""

    running_left_s: Mapping[str, float] = field(default_factory=dict)
    """How long what each node runs is expected to go on, summed over its slots."""

    runs_for_s: Mapping[str, float] = field(default_factory=dict)
    """For how long everything that runs on a node has run at least: a task waited, none ended."""
