"""Gives every node of fleet.yaml its link, by the way that fleet.yaml says; opens none of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from agent_node.clock import Clock
from arc.settings import FleetSettings, NodeEntry

from . import HelloWords, Link
from .inbox import NAME, InboxLink
from .pipes import PipeWay
from .standing import Fenced, StandingLink
from .way import Way


def open_links(
    settings: FleetSettings,
    words: HelloWords,
    *,
    clock: Clock,
    rng: random.Random,
    is_fenced: Fenced,
    broke: Callable[[str], None] = lambda because: None,
    skip: frozenset[str] = frozenset(),
) -> dict[str, Link]:
    """Every node's link by its name, and `inbox`; those in `skip` (suspended) have none.

    Nothing is connected yet: the first request, `meet` or `listen` does that. `broke` is told when
    the disk under the hub's own queue failed.
    """
    inbox = InboxLink(settings.state / NAME, words, clock=clock, broke=broke,
                      assume_usd=settings.assume_usd)  # fmt: skip
    links: dict[str, Link] = {NAME: inbox}
    for node in settings.nodes:
        if node.name not in skip:
            links[node.name] = StandingLink(
                node.name,
                way_to(node, settings),
                words,
                clock=clock,
                rng=random.Random(rng.getrandbits(64)),  # noqa: S311 - spreads pauses, no secret
                is_fenced=is_fenced,
                mend=mend_of(node),
            )
    return links


def way_to(node: NodeEntry, settings: FleetSettings) -> Way:
    """By pipe on this machine, by SSH elsewhere; asyncssh is loaded for the first SSH node."""
    if node.local:
        return PipeWay(node.name, None if node.home is None else Path(node.home).expanduser())
    from .ssh import SshWay

    return SshWay(node, settings)


def mend_of(node: NodeEntry) -> str:
    """What to correct where another node answers on this machine; "": host and port, by SSH."""
    if not node.local:
        return ""
    where = node.home or "none: the hub's $AGENT_NODE_HOME, else ~/.agent-node"
    return f"in fleet.yaml, correct its home ({where}) or its name"
