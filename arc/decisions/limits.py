"""The numbers the decisions obey, with their defaults; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Which keys of `rebalance:` each policy looks at where it moves waiting work. `enabled` is the
# sensor's own, and `ask_again` every policy's.
GOES_BY: Mapping[str, tuple[str, ...]] = {
    "arc0": ("idle_min", "busy_over", "steal_from", "anyone_from", "per_node", "per_cycle", "every",
             "on_idle"),
    "swift": ("every", "gain_min", "hops", "transfer", "task_takes"),
}  # fmt: skip
LIMITS = tuple(dict.fromkeys(key for keys in GOES_BY.values() for key in keys))
OF_RETRIES = frozenset({"per_node", "per_cycle"})  # by any policy: how many are tried elsewhere


def passed_over(policy: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Those of these limits that the policy does not look at, in their order."""
    return tuple(key for key in keys if key in LIMITS and key not in GOES_BY.get(policy, LIMITS))


@dataclass(frozen=True)
class StealLimits:
    """`rebalance:` of fleet.yaml. The defaults are policy `arc0`, the seed's own numbers."""

    policy: str = "arc0"  # or "swift"
    idle_min_s: float = 120.0
    busy_over: int = 5
    steal_from: int = 5
    anyone_from: int = 8
    per_node: int = 3
    per_cycle: int = 10
    stale_after_s: float = 600.0
    hops_max: int = 0  # a task stolen more often than this stays; swift: 2
    transfer_s: float = 5.0  # swift: what a move costs
    gain_min_s: float = 30.0  # swift: what a move has to bring at least
    default_task_s: float = 600.0  # swift: how long a task takes that does not say
    ask_again_s: float = 600.0  # how long a node is not asked again for a task that it refused

    @property
    def swift(self) -> bool:
        """Whether `policy: swift` decides."""
        return self.policy == "swift"

    @property
    def untagged_from(self) -> int:
        """From which P on anyone may do untagged work; swift knows no thresholds of priority."""
        return 1 if self.swift else self.anyone_from

    @property
    def hops_allowed(self) -> int:
        """How often a task may have been stolen before: never (arc0), twice (swift)."""
        return self.hops_max or 2 if self.swift else self.hops_max


@dataclass(frozen=True)
class RouteLimits:
    """`router:` of fleet.yaml."""

    policy: str = "arc0"
    soft: int = 12
    hard: int = 20
    batch: int = 10
    keep: tuple[int, ...] = ()  # priorities that never leave the hub by themselves
    fallback: str | None = None
    fallback_after: int = 2  # cycles that nobody wanted a task
    stale_after_s: float = 600.0


@dataclass(frozen=True)
class HealthLimits:
    """`health:` of fleet.yaml."""

    stale_after_s: float = 600.0
    running_over_s: float = 3600.0
    disk_over: float = 0.8
    failing_share: float = 0.5
    failing_of: int = 4
    failing_within_s: float = 3600.0
    streak: int = 5
    clock_off_s: float = 30.0
    stalled_after_s: float = 1800.0  # work waits beside a free slot, and nothing is started
