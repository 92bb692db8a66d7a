"""Reads which policies are to be compared: by name, with any limits of fleet.yaml behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.decisions.limits import RouteLimits, StealLimits, passed_over
from arc.durations import parse_duration
from arc.errors import WrongUse

if TYPE_CHECKING:
    from arc.settings import FleetSettings

NONE, CENTRAL = "none", "central"
NAMES = ("none", "arc0", "swift", "central")
POLICIES_MAX = 12
TRANSFER_S = 5.0


@dataclass(frozen=True)
class Policy:
    """By which rules work is moved in one simulation, and how often the hub looks."""

    name: str
    steal: StealLimits = field(default_factory=StealLimits)
    route: RouteLimits = field(default_factory=RouteLimits)
    every_s: float = 300.0  # fleet-rebalance
    router_s: float = 1800.0  # fleet-router
    look_s: float = 300.0  # fleet-health: when stranded time is counted
    on_idle: bool = False
    steals: bool = True  # False: fleet-rebalance is off
    central: bool = False  # the bound: one queue for all, and no hub
    transfer_s: float = TRANSFER_S  # how long a move really takes
    said: JsonObject = field(default_factory=dict)  # the limits that were given with the name
    fleet: FleetSettings | None = field(default=None, compare=False)  # what the others came from

    def limits_like(self, other: Policy) -> bool:
        """Whether both decide alike, whatever they are called."""
        return replace(self, name="", said={}) == replace(other, name="", said={})

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Limits that were given with the name and that this policy does not look at."""
        section = self.said.get("rebalance")
        return passed_over(self.steal.policy, section) if isinstance(section, dict) else ()

    @property
    def waits_to_be_idle(self) -> bool:
        """Whether a node that turns idle is looked at once it has been so for the minimum."""
        return self.on_idle and not self.steal.swift


def parse_policy(word: str, fleet: FleetSettings | None = None) -> Policy:
    """The policy of `arc0`, `swift:gain_min=1m` or `arc0:every=60s,router.soft=6`.

    What is not said is as fleet.yaml has it, where there is one of the same policy, else at its
    default. `WrongUse` names what cannot be read.
    """
    name, _, rest = word.strip().partition(":")
    if name not in NAMES:
        raise WrongUse(f"--policy: there is no {safe_text(name, 40)!r}; choose among "
                       f"{', '.join(NAMES)}, as in arc0:idle_min=1m,every=60s")  # fmt: skip
    said = _pairs(rest, word)
    if name in (NONE, CENTRAL):
        if said:
            raise WrongUse(f"--policy: {name} has no limits to set")
        base = _of_settings("arc0", {}, fleet)
        return replace(base, name=name, steals=False, central=name == CENTRAL)
    return replace(_of_settings(name, said, fleet), name=word.strip())


def with_limits(policy: Policy, pairs: Mapping[str, str]) -> Policy:
    """The policy with these keys of `rebalance` set; all else stays."""
    section = policy.said.get("rebalance")
    said: JsonObject = {key: _plain(value) for key, value in pairs.items()}
    said = {**(section if isinstance(section, dict) else {}), **said}
    made = _of_settings(policy.steal.policy, {**policy.said, "rebalance": said}, policy.fleet)
    return replace(made, name=policy.name, transfer_s=policy.transfer_s)


def _pairs(rest: str, word: str) -> JsonObject:
    """What stands behind the colon, by section."""
    found: JsonObject = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        section, _, last = key.strip().rpartition(".")
        section = section or "rebalance"
        if not equals or not last or section not in ("rebalance", "router", "health"):
            raise WrongUse(f"--policy {safe_text(word, 80)}: {safe_text(pair, 40)!r} is no "
                           "KEY=VALUE; write every=60s, busy_over=2 or router.soft=6")  # fmt: skip
        inner = found.setdefault(section, {})
        assert isinstance(inner, dict)
        inner[last] = _plain(value.strip())
    return found


def _plain(value: str) -> int | bool | str:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() else value


def _of_settings(name: str, said: JsonObject, fleet: FleetSettings | None) -> Policy:
    """The policy with these limits, as fleet.yaml itself would read them."""
    from arc.config_model import check
    from arc.config_settings import document_of, settings_of

    document: JsonObject = {"version": 1, "nodes": [], "policy": name}
    if fleet is not None and fleet.policy == name:
        whole = document_of(fleet)
        document |= {key: whole[key] for key in ("router", "health", "rebalance")}
        router = document["router"]
        assert isinstance(router, dict)
        router.pop("fallback", None)
    for section, pairs in said.items():
        inner = document.get(section)
        assert isinstance(pairs, dict)
        document[section] = {**(inner if isinstance(inner, dict) else {}), **pairs}
    file = check(document)
    if isinstance(file, tuple):
        wrong = file[0]
        where = ".".join(map(str, wrong.loc))
        told = "there is no such key" if wrong.kind == "unknown" else wrong.told
        raise WrongUse(f"--policy: {safe_text(where, 60)}: {safe_text(told, 200)}",
                       hint="arc explain rebalance lists the keys")  # fmt: skip
    return _policy(name, settings_of(file, Path("/fleet.yaml")), said, fleet)


def _policy(
    name: str, settings: FleetSettings, said: JsonObject, fleet: FleetSettings | None
) -> Policy:
    every = settings.sensors
    rebalance, router = every["fleet-rebalance"], every["fleet-router"]
    return Policy(
        name, settings.steal, settings.route, rebalance.every_s, router.every_s,
        every["fleet-health"].every_s, settings.on_idle, steals=rebalance.enabled, said=said,
        fleet=fleet,
    )  # fmt: skip


def parse_transfer(word: str) -> float:
    """How long a move takes; `WrongUse` where it is no length of time."""
    try:
        return parse_duration(word)
    except ValueError as error:
        raise WrongUse(f"--transfer: {error}") from error
