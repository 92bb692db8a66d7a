"""Accepts another host key of a node, only by the fingerprint that the machine itself shows."""

from __future__ import annotations

from arc.errors import NotFound, WrongUse
from arc.links.ssh import where
from arc.settings import FleetSettings, NodeEntry

from .confirming import confirm
from .login import shown_key
from .steps import Steps
from .story import Here


async def trust(name: str, fingerprint: str, here: Here, steps: Steps) -> None:
    """Pin the key that the node shows now in place of any other, once a person confirmed it."""
    entry = entry_of(here.settings, name)
    with steps.step("host key") as step:
        key, pinned = await shown_key(entry, here.settings), here.pins.pinned(name)
        if key == pinned and not fingerprint:
            step.text = f"{key}, trusted already"
            return
        confirmed = confirm(name, where(entry), key, fingerprint, here.ask, pinned=pinned)
        step.text = f"{key}, confirmed by its fingerprint"
    with steps.step("host key pinned") as step:
        was = "nothing" if pinned is None else str(pinned)
        if key == pinned:
            step.text = "already"
        elif steps.dry_run:
            step.text = f"would pin it for {name}, in place of {was}"
        else:
            here.pins.pin(name, key, fingerprint=confirmed)
            step.text = f"for {name}, in place of {was}"
            step.changed = f"{name} is trusted with {key}"
            steps.hints.append(f"a hub that runs reaches {name} again within half a minute; at "
                               f"once with: arc nodes show {name}")  # fmt: skip


def entry_of(settings: FleetSettings, name: str) -> NodeEntry:
    """The entry of a node that is reached over SSH."""
    entry = settings.node(name)
    if entry is None:
        raise NotFound(f"{settings.file}: has no node {name}", hint="arc nodes list")
    if entry.local or not entry.host:
        raise WrongUse(f"{name}: is a node of this machine: nothing goes over SSH")
    return entry
