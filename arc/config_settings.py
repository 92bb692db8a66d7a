"""Turns a checked fleet.yaml into the settings that every part of the hub holds, and back."""

from __future__ import annotations

from pathlib import Path

from agent_node.strict import JsonObject

from .config import beside
from .config_model import FleetFile, NodeSection, RebalanceSection
from .config_work import (
    files_of,
    hooks_of,
    notify_of,
    schedules_of,
    watch_of,
    web_of,
    work_words,
)
from .decisions.domains import Domain
from .decisions.limits import GOES_BY, HealthLimits, RouteLimits, StealLimits
from .durations import render_duration, render_failing, render_share
from .settings import FleetSettings, NodeEntry, SensorEntry

# What policy swift means by a key of `rebalance:` that nobody wrote down.
SWIFT_REBALANCE = {
    "every": 60.0, "idle_min": 0.0, "busy_over": 0, "steal_from": 1,
}  # fmt: skip
SWIFT_ROUTER_EVERY_S = 60.0  # late binding keeps work at the hub, so somebody has to look often


def settings_of(file: FleetFile, path: Path) -> FleetSettings:
    """The settings; `path` is absolute, and relative paths of the file start at its folder."""
    rebalance = _by_policy(file)
    return FleetSettings(
        fleet=file.fleet,
        hub=file.hub.name,
        file=path,
        state=beside(path, file.hub.state),
        policy=file.policy,
        ssh_config=beside(path, file.ssh_config) if file.ssh_config else None,
        nodes=tuple(_node(node, path) for node in file.nodes),
        domains=tuple(Domain(name, kind.skills, kind.prefix, kind.words)
                      for name, kind in file.domains.items()),
        steal=_steal(file, rebalance),
        route=_route(file),
        health=_health(file),
        sensors=_sensors(file, rebalance),
        on_idle=rebalance.on_idle,
        schedules=schedules_of(file),
        watch_files=files_of(file, path),
        watch=watch_of(file),
        notify=notify_of(file, path),
        web=web_of(file, path),
        webhooks=hooks_of(file, path),
        budget_per_day=file.budget.per_day,
        urgent_overdraft=file.budget.urgent_overdraft,
        assume_usd=file.budget.assume_usd,
    )  # fmt: skip


def _by_policy(file: FleetFile) -> RebalanceSection:
    """The section with the policy's own defaults where the file says nothing."""
    said = file.rebalance.model_fields_set
    if file.policy != "swift":
        return file.rebalance
    meant = {key: value for key, value in SWIFT_REBALANCE.items() if key not in said}
    return file.rebalance.model_copy(update=meant)


def _node(node: NodeSection, path: Path) -> NodeEntry:
    return NodeEntry(
        name=node.name,
        host=node.host,
        port=node.port,
        user=node.user,
        local=node.local,
        home=str(beside(path, node.home)) if node.home else None,
        owns=node.owns,
        also=node.also,
        never=node.never,
    )


def _steal(file: FleetFile, said: RebalanceSection) -> StealLimits:
    return StealLimits(
        policy=file.policy,
        idle_min_s=said.idle_min,
        busy_over=said.busy_over,
        steal_from=said.steal_from,
        anyone_from=said.anyone_from,
        per_node=said.per_node,
        per_cycle=said.per_cycle,
        stale_after_s=file.health.stale_after,
        hops_max=said.hops if file.policy == "swift" else 0,
        transfer_s=said.transfer,
        gain_min_s=said.gain_min,
        default_task_s=said.task_takes,
        ask_again_s=said.ask_again,
    )


def _route(file: FleetFile) -> RouteLimits:
    said = file.router
    return RouteLimits(
        policy=file.policy,
        soft=said.soft,
        hard=said.hard,
        batch=said.batch,
        keep=said.keep,
        fallback=said.fallback,
        fallback_after=said.fallback_after,
        stale_after_s=file.health.stale_after,
    )


def _health(file: FleetFile) -> HealthLimits:
    said = file.health
    share, attempts, within = said.failing
    return HealthLimits(
        stale_after_s=said.stale_after,
        running_over_s=said.running_over,
        disk_over=said.disk_over,
        failing_share=share,
        failing_of=attempts,
        failing_within_s=within,
        streak=said.streak,
        clock_off_s=said.clock_off,
        stalled_after_s=said.stalled_after,
    )


def _sensors(file: FleetFile, rebalance: RebalanceSection) -> dict[str, SensorEntry]:
    router_s = file.router.every
    if file.policy == "swift" and "every" not in file.router.model_fields_set:
        router_s = SWIFT_ROUTER_EVERY_S
    others = {name: SensorEntry(one.every, one.enabled) for name, one in file.sensors.items()}
    return {
        "fleet-router": SensorEntry(router_s, file.router.enabled),
        "fleet-health": SensorEntry(file.health.every, file.health.enabled),
        "fleet-rebalance": SensorEntry(rebalance.every, rebalance.enabled),
        **others,
    }


def document_of(settings: FleetSettings) -> JsonObject:
    """Every setting that is in effect, defaults too, in the words of fleet.yaml.

    Written to a file beside this one it would read back as the same settings.
    """
    document: JsonObject = {
        "version": 1,
        "fleet": settings.fleet,
        "hub": {"name": settings.hub, "state": str(settings.state)},
        "policy": settings.policy,
        "router": {**_runs(settings, "fleet-router"), **_router_words(settings.route)},
        "health": {**_runs(settings, "fleet-health"), **_health_words(settings.health)},
        "rebalance": {**_runs(settings, "fleet-rebalance"), "on_idle": settings.on_idle,
                      **_steal_words(settings.steal)},
        "sensors": {name: _runs(settings, name) for name in list(settings.sensors)[3:]},
        "domains": {one.name: {"skills": list(one.skills), "prefix": list(one.prefix),
                               "words": list(one.words)} for one in settings.domains},
        "nodes": [_node_words(node) for node in settings.nodes],
    }  # fmt: skip
    document |= work_words(settings)
    if settings.ssh_config is not None:
        document["ssh_config"] = str(settings.ssh_config)
    return document


def limits_by_policy(settings: FleetSettings) -> JsonObject:
    """By policy the limits that it goes by, in the words of fleet.yaml: this fleet's own where the
    policy is its own, else those that a file would come to that says nothing but the policy.
    """
    return {policy: _goes_by(policy, settings) for policy in GOES_BY}


def _goes_by(policy: str, settings: FleetSettings) -> JsonObject:
    if policy != settings.policy:
        file = FleetFile.model_validate({"version": 1, "nodes": [], "policy": policy})
        settings = settings_of(file, settings.file)
    section = document_of(settings)["rebalance"]
    assert isinstance(section, dict)
    return {key: section[key] for key in GOES_BY[policy]}


def _runs(settings: FleetSettings, sensor: str) -> JsonObject:
    entry = settings.sensors[sensor]
    return {"every": render_duration(entry.every_s), "enabled": entry.enabled}


def _router_words(limits: RouteLimits) -> JsonObject:
    said: JsonObject = {
        "soft": limits.soft, "hard": limits.hard, "batch": limits.batch,
        "keep": [f"P{priority}" for priority in limits.keep],
        "fallback_after": limits.fallback_after,
    }  # fmt: skip
    return said | ({"fallback": limits.fallback} if limits.fallback else {})


def _health_words(limits: HealthLimits) -> JsonObject:
    failing = render_failing(limits.failing_share, limits.failing_of, limits.failing_within_s)
    return {
        "stale_after": render_duration(limits.stale_after_s),
        "running_over": render_duration(limits.running_over_s),
        "stalled_after": render_duration(limits.stalled_after_s),
        "disk_over": render_share(limits.disk_over), "failing": failing,
        "streak": limits.streak, "clock_off": render_duration(limits.clock_off_s),
    }  # fmt: skip


def _steal_words(limits: StealLimits) -> JsonObject:
    return {
        "idle_min": render_duration(limits.idle_min_s), "busy_over": limits.busy_over,
        "steal_from": f"P{limits.steal_from}", "anyone_from": f"P{limits.anyone_from}",
        "per_node": limits.per_node, "per_cycle": limits.per_cycle,
        **({"hops": limits.hops_max} if limits.hops_max else {}),
        "transfer": render_duration(limits.transfer_s),
        "gain_min": render_duration(limits.gain_min_s),
        "task_takes": render_duration(limits.default_task_s),
        "ask_again": render_duration(limits.ask_again_s),
    }  # fmt: skip


def _node_words(node: NodeEntry) -> JsonObject:
    said: JsonObject = {"name": node.name}
    if node.local:
        said |= {"local": True, **({"home": node.home} if node.home else {})}
    else:
        said |= {"host": node.host, "port": node.port, **({"user": node.user} if node.user else {})}
    return said | {"owns": list(node.owns), "also": list(node.also), "never": list(node.never)}
