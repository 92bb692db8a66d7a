"""The panels of the page: each turns remembered history into what one picture shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from arc.decisions.limits import LIMITS

if TYPE_CHECKING:
    from arc.history import History

Data = Callable[["History", datetime, Mapping[str, str]], JsonObject]


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its name in `/api/v1/panels/NAME`, what it shows, what it may be asked for."""

    name: str
    says: str  # one sentence: what am I looking at
    takes: Mapping[str, str]  # parameter: one sentence
    module: str  # of this package; its function `data` does the work, but for `what_if`'s `Replays`

    def data(self, history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
        """What it shows, as plain JSON. Reads only; `WrongUse` names a parameter that is none."""
        work: Data = import_module(f"{__name__}.{self.module}").data
        return work(history, now, query)


_WINDOW = {"at": "the moment it ends, ISO 8601; without it: now", "span": "how long, as `3h`"}
_NODES = {"nodes": "only these nodes, divided by commas"}

PANELS: dict[str, Panel] = {
    panel.name: panel for panel in (
        Panel("lanes", "A lane a node: what ran when, what waited, what moved, what was stranded.",
              {**_WINDOW, **_NODES, "width": "in how many pixels it is drawn"}, "lanes"),
        Panel("heat", "A row a node and a colour a stretch of time, stranded nodes first.",
              {**_WINDOW, **_NODES, "buckets": "how many stretches"}, "heat"),
        Panel("moment", "How every node was at one moment of the past.", _WINDOW, "moment"),
        Panel("funnel", "What the last cycles did with what waited, rule by rule.",
              {**_WINDOW, "cycles": "how many", "step": "the tasks that this rule kept"},
              "funnel"),
        Panel("feeds", "How many tasks went from which node to which.", _WINDOW, "feeds"),
        Panel("depth", "How many tasks waited on each node.",
              {**_WINDOW, **_NODES, "buckets": "how many stretches"}, "depth"),
        Panel("money", "What each node spent, hour by hour.", {**_WINDOW, **_NODES}, "money"),
        Panel("sensors", "A tick for each run of each sensor.", _WINDOW, "sensors"),
        Panel("what_if", "What other limits would have made of the same work.",
              {**_WINDOW, "policy": "another policy", **{key: f"as `rebalance.{key}` of fleet.yaml"
                                                         for key in LIMITS}}, "what_if"),
        Panel("life", "Where one task was, and when.", {"uid": "the task"}, "life"),
    )
}  # fmt: skip
