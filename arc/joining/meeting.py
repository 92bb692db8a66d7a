"""Asks a node that has just joined how it is, the way that the hub will ask it from now on."""

from __future__ import annotations

from agent_node import __version__
from agent_node.text import safe_text
from arc.errors import WrongNode
from arc.links.ssh import SshWay
from arc.links.talk import Talk
from arc.settings import FleetSettings, NodeEntry

from .installing import is_newer
from .steps import Steps

GREET_S = 10.0
ASK_S = 10.0


async def meet(node: NodeEntry, settings: FleetSettings, steps: Steps) -> None:
    """By the pinned host key and the hub's own key: who greets, and how it says it is."""
    with steps.step("status") as step:
        if steps.dry_run:
            step.text = "would ask the node how it is, with the hub's key"
            return
        way, talk = SshWay(node, settings), Talk(node.name, lambda event: None)
        try:
            await way.open(talk)
            greeting = await talk.greeted(GREET_S)
            if greeting.node != node.name:
                text = f"the node that answers there is {safe_text(greeting.node, 40)}"
                raise WrongNode(node.name, text, hint="its node.toml says so; see name there")
            status = await talk.ask("status", {}, ASK_S)
        finally:
            talk.close()
            await way.close()
        version, daemon = (safe_text(str(status.get(key)), 40) for key in ("version", "dispatcher"))
        step.text = f"agent-node {version}, dispatcher {daemon}"
        told = any("its daemon still runs" in one for one in steps.warnings)
        if version != __version__ and not is_newer(version) and not told:
            steps.warnings.append(f"{node.name}: still runs {version}, and {__version__} lies there"
                                  " now: restart its daemon, or: arc nodes upgrade")  # fmt: skip
        if daemon != "running":
            steps.warnings.append(f"{node.name}: no daemon dispatches there: nothing is started")
