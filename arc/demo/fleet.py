"""Writes the demo's own fleet.yaml, over SSH servers in this process that lead to its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from arc.config import parse_fleet, read_fleet
from arc.demo.sshd import HOST, DemoSshd
from arc.durations import render_duration
from arc.keys import make_key_pair
from arc.links.hostkeys import HostKeys
from arc.settings import FleetSettings
from arc.setup import SCHEMA, render_schema

LOCAL = "arc"  # the hub's own machine works too
REMOTE = ("spark", "iris", "loom", "forge")
NAMES = (*REMOTE, LOCAL)
POLICIES = ("arc0", "swift")

_ROLES = {
    "spark": "owns: [protocol], also: [research]",
    "iris": "owns: [research], never: [protocol]",
    "loom": "owns: [integrations], also: [infra]",
    "forge": "owns: [infra], also: [integrations]",
}
_FLEET = """\
# The fleet of `arc demo`: real nodes on this machine, with shortened times.
version: 1
fleet: demo
hub: {{name: arc, state: .arc}}
policy: {policy}
router: {{every: 2s, batch: {batch}, fallback: arc}}
health: {{every: 2s, disk_over: 100%}}
rebalance:
  every: 2s
{limits}{web}domains:
  protocol: {{skills: [stacks-js, clarity]}}
  research: {{skills: [arc-research], prefix: ["Research:"]}}
  integrations: {{skills: [github-issues, webhooks]}}
  infra: {{skills: [github-ci, deploy], prefix: ["CI:"]}}
nodes:
{nodes}"""
_ARC0, _SWIFT = "  idle_min: 1s\n", "  transfer: 0s\n  gain_min: 0s\n  task_takes: 1s\n"


async def open_fleet(
    folder: Path, homes: Mapping[str, Path], *, policy: str, batch: int, stack: AsyncExitStack,
    page: int | None = None,
) -> FleetSettings:  # fmt: skip
    """The settings of a fleet that can be reached; its servers close with `stack`.

    `page`: the port of the page that may act; None: there is none.

    Keys are made for it alone, and every host key is pinned before anything is asked.
    """
    state = folder / ".arc"
    state.mkdir(mode=0o700)
    (state / SCHEMA).write_text(render_schema(), encoding="utf-8")
    public = make_key_pair(state, comment="arc demo")
    pins = HostKeys(state / "known_hosts")
    lines = []
    for name in REMOTE:
        server = await DemoSshd.serve(homes[name], authorized=public)
        stack.push_async_callback(server.close)
        pins.pin(name, server.host_key, fingerprint=server.host_key.fingerprint)
        lines.append(f"  - {{name: {name}, host: {HOST}, port: {server.port}, user: demo, "
                     f"{_ROLES[name]}}}\n")  # fmt: skip
    lines.append(f"  - {{name: {LOCAL}, local: true, home: nodes/{LOCAL}}}\n")
    file = folder / "fleet.yaml"
    file.write_text(fleet_text(policy, batch=batch, nodes="".join(lines), page=page), "utf-8")
    return read_fleet(file)


def fleet_text(policy: str, *, batch: int, nodes: str, page: int | None = None) -> str:
    """The demo's fleet.yaml under this policy; `nodes` are its last lines."""
    limits = _SWIFT if policy == "swift" else _ARC0
    web = "" if page is None else f"web: {{port: {page}, actions: true}}\n"
    return _FLEET.format(policy=policy, batch=batch, limits=limits, web=web, nodes=nodes)


def shortened(settings: FleetSettings) -> str:
    """Each time that is not the policy's own, by its key, with what it is in any other fleet."""
    usual = _times(parse_fleet(f"policy: {settings.policy}\nnodes: []\n", settings.file))
    return ", ".join(
        f"{key} {render_duration(now_s)} (else {render_duration(usual[key])})"
        for key, now_s in _times(settings).items() if now_s != usual[key]
    )  # fmt: skip


def _times(settings: FleetSettings) -> dict[str, float]:
    every = {name.removeprefix("fleet-"): one.every_s for name, one in settings.sensors.items()}
    steal = settings.steal
    return {
        "rebalance.idle_min": steal.idle_min_s, "rebalance.transfer": steal.transfer_s,
        "rebalance.gain_min": steal.gain_min_s, "rebalance.task_takes": steal.default_task_s,
        **{f"{name}.every": every[name] for name in ("rebalance", "router", "health")},
    }  # fmt: skip
