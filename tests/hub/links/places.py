"""Makes homes, hubs and links for the tests of links."""

from __future__ import annotations

import random
from pathlib import Path

from agent_node.clock import Clock, SystemClock
from arc.links import HelloWords
from arc.links.standing import Fenced, StandingLink
from arc.links.way import Way
from arc.settings import FleetSettings, NodeEntry

HUB = "01HVB0000000000000000000AA"


def a_home(place: Path, name: str = "iris") -> Path:
    """A node's home in which nobody runs yet."""
    home = place / name
    home.mkdir(mode=0o700)
    agent = f'[[agent]]\nname = "{name}"\nrun = ["true"]\n'
    (home / "node.toml").write_text(f'name = "{name}"\ndisk_floor = 0\n{agent}')
    return home


def words(term: int = 1) -> HelloWords:
    """What a hub of this term says of itself."""
    return HelloWords("arc0", "arc", term, HUB, {"version": "1"})


def nobody_is_fenced(node: str, incarnation: str) -> bool:
    return False


def a_link(
    way: Way, *, name: str = "iris", term: int = 1, clock: Clock | None = None,
    is_fenced: Fenced = nobody_is_fenced,
) -> StandingLink:  # fmt: skip
    """A link over this way; its pauses end at once."""
    return StandingLink(
        name, way, words(term), clock=clock or SystemClock(), rng=random.Random(7),
        is_fenced=is_fenced,
    )  # fmt: skip


def settings_of(place: Path, *nodes: NodeEntry) -> FleetSettings:
    """A fleet whose state folder is there."""
    state = place / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    return FleetSettings("arc0", "arc", place / "fleet.yaml", state, nodes=nodes)
