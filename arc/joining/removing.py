"""Takes a node out of the fleet: the hub's key off its machine, its entry, its host key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_node.strict import JsonObject
from arc.editing import remove_node
from arc.errors import ArcError, NeedsWord, NodeUnreachable, NotFound
from arc.keys import read_public_key
from arc.links.ssh import where
from arc.operations import Told
from arc.settings import NodeEntry

from .installing import shut_hub_out
from .login import own_login
from .steps import Steps
from .story import Here

ENDED = frozenset("COMPLETED FAILED DEAD_LETTERED CANCELLED MOVED".split())
Shown = Callable[[], Told]  # the node as `nodes.show` tells of it


@dataclass(frozen=True)
class Leaving:
    """Which node is to leave, and a person's words about it."""

    name: str
    forget: bool = False
    reason: str = ""
    yes: bool = False
    identity: Path | None = None


def leave(leaving: Leaving, here: Here, steps: Steps, shown: Shown) -> None:
    """Let the node go. Nothing that runs there is stopped, and its queue stays where it is."""
    entry = here.settings.node(leaving.name)
    if entry is None:
        raise NotFound(f"{here.settings.file}: has no node {leaving.name}", hint="arc nodes list")
    check_work(leaving, steps, shown)
    if not entry.local:
        asyncio.run(take_key(entry, leaving, here, steps))
    with steps.step("fleet.yaml") as step:
        remove_node(here.settings.file, leaving.name, dry_run=steps.dry_run)
        step.text = f"{'would take' if steps.dry_run else 'took'} {leaving.name} out"
        step.changed = "" if steps.dry_run else f"{leaving.name} is out of fleet.yaml"
    with steps.step("host key") as step:
        if here.pins.pinned(leaving.name) is None:
            step.text = "none was pinned"
        elif steps.dry_run:
            step.text = "would be trusted no longer"
        else:
            here.pins.forget(leaving.name)
            step.text, step.changed = "trusted no longer", "its host key is trusted no longer"
    if not steps.dry_run:
        steps.hints.append(f"{leaving.name} works on with its own queue; to stop it, there: "
                           "agent-node drain, then stop its daemon")  # fmt: skip


def check_work(leaving: Leaving, steps: Steps, shown: Shown) -> None:
    """Return only when nothing would be lost from sight, or a person said that it may be."""
    with steps.step("its work") as step:
        told = shown()
        seen = bool(told.data.get("seen"))
        left = open_tasks(told.data)
        if seen and (not left or told.data.get("state") == "drained"):
            step.text = "drained" if left else "it has none"
            return
        step.text = f"{left} open tasks" if seen else f"unknown: {told.data.get('reason')}"
        if leaving.yes and leaving.reason:
            step.text += f"; all the same, because: {leaving.reason}"
        elif not seen and leaving.forget:
            step.text += "; forgotten all the same"
        elif seen:
            raise NeedsWord(
                f"{leaving.name}: has {left} open tasks, which nobody would see any more",
                hint=f"arc nodes drain {leaving.name}; or --yes with a --reason",
                where=leaving.name)  # fmt: skip
        else:
            raise NodeUnreachable(
                leaving.name, f"cannot be asked what it has ({told.data.get('reason')})",
                hint="is it off for good? arc nodes fence gives back what had been moved to it; "
                "then --forget")  # fmt: skip


def open_tasks(data: JsonObject) -> int:
    """How many tasks of a node are not over, by its own counts."""
    counts = data.get("counts")
    found = counts.items() if isinstance(counts, dict) else ()
    return sum(count for state, count in found if isinstance(count, int) and state not in ENDED)


async def take_key(entry: NodeEntry, leaving: Leaving, here: Here, steps: Steps) -> None:
    """The hub's key off the machine, by the operator's login; `forget` lets it lie if it must."""
    with steps.step("hub key") as step:
        key = here.pins.pinned(entry.name)
        try:
            if key is None:
                raise NodeUnreachable(entry.name, "no host key is trusted, so nobody logs in")
            if steps.dry_run:
                step.text = f"would be taken out of authorized_keys at {where(entry)}"
                return
            public = read_public_key(here.settings.state)
            async with await own_login(entry, here.settings, key, identity=leaving.identity,
                                       environ=here.environ) as login:  # fmt: skip
                taken = await shut_hub_out(await login.begin(), public)
        except ArcError as error:
            if not leaving.forget:
                or_else = "or --forget, which leaves the hub's key there"
                error.hint = "; ".join(one for one in (error.hint, or_else) if one)
                raise
            step.text = f"left there, as the machine was not reached: {error}"
            steps.warnings.append(f"{entry.name}: the hub's key is still in authorized_keys there")
            return
        step.text = "taken out of authorized_keys" if taken else "was in no line there"
        step.changed = f"the hub's key is off {entry.name}" if taken else ""
