"""Says what every sensor is given and what it hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from agent_node.strict import JsonObject

if TYPE_CHECKING:
    from .hub import Hub


@dataclass(frozen=True)
class SensorReport:
    """One run of a sensor, as the journal keeps it and `arc sensors` shows it."""

    sensor: str
    outcome: str  # done | skipped | could_not_look | failed
    summary: str  # one line for people
    looked: int = 0  # nodes that answered
    unseen: int = 0  # nodes that did not
    decided: int = 0  # moves planned, alerts judged
    acted: int = 0  # moves made, alerts told
    requests: int = 0  # sent over links
    took_s: float = 0.0
    skipped: str | None = None
    details: JsonObject = field(default_factory=dict)  # what `show RUN` prints


class Sensor(Protocol):
    """Scheduled hub work: look, decide, act, and a report of all three.

    `verbs` are what `arc skills run --name NAME -- VERB` offers: word → one sentence.
    """

    name: str
    every_s: float
    verbs: Mapping[str, str]

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One cycle. What it raises ends this run only."""
