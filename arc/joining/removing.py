"""Takes a node out of the fleet: the hub's key off its machine, its entry, its host key."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text
from arc.decisions.domains import Role
from arc.editing import remove_node
from arc.errors import ArcError, NeedsWord, NodeUnreachable, NotFound
from arc.keys import read_public_key
from arc.links.ssh import where
from arc.settings import NodeEntry

from .installing import shut_hub_out
from .left_behind import Asked, comes_back, heard_last, open_tasks, undecided, what_stays
from .login import own_login
from .steps import Steps
from .story import Here

FENCE = "arc nodes fence {} --yes-it-is-off gives back what had been moved to it"


@dataclass(frozen=True)
class Ways:
    """What the hub says of the node, and what it is told about it.

    `shown`: how it is. `would_fence`: which tasks a fence would give back. `held`: it is given
    nothing from now on, and how it is then. `given_again`: that is taken back.
    """

    shown: Asked
    would_fence: Asked
    held: Asked
    given_again: Asked


@dataclass(frozen=True)
class Leaving:
    """Which node is to leave, and a person's words about it."""

    name: str
    forget: bool = False
    reason: str = ""
    yes: bool = False
    identity: Path | None = None


def leave(leaving: Leaving, here: Here, steps: Steps, ways: Ways) -> None:
    """Let the node go. Nothing that runs there is stopped, and its queue stays where it is."""
    entry = here.settings.node(leaving.name)
    if entry is None:
        raise NotFound(f"{here.settings.file}: has no node {leaving.name}", hint="arc nodes list")
    told = check_work(leaving, steps, ways)
    if not steps.dry_run:
        told = hold(leaving, steps, ways)
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
        role = Role(home=entry.home or "")
        steps.hints.append(what_stays(leaving.name, told, role))


def check_work(leaving: Leaving, steps: Steps, ways: Ways) -> JsonObject:
    """How the node is, once nothing would be lost from sight, or a person said that it may be.

    A dry run goes on where a person's word is missing, and says that it takes one.
    """
    with steps.step("its work") as step:
        told = ways.shown().data
        if told.get("state") == "suspended":
            step.text = "it is suspended, and asked all the same before it leaves"
            return told
        step.text, against = judge(leaving, told, ways)
        if against is None:
            return told
        if leaving.yes and leaving.reason:
            step.text += f"; all the same, because: {leaving.reason}"
        elif not steps.dry_run:
            raise against
        else:
            step.text += "; this takes --yes with a --reason"
        return told


def hold(leaving: Leaving, steps: Steps, ways: Ways) -> JsonObject:
    """How the node is once the hub gives it nothing any more: work may have come since the look.

    What speaks against it now takes that back, but for a node that a person had suspended before.
    """
    with steps.step("the hub") as step:
        told = ways.held().data
        mine = not told.get("was_suspended")
        if mine:
            step.changed = f"{leaving.name} is suspended until {told.get('until')}"
        try:
            text, against = judge(leaving, told, ways)
            if against is not None and not (leaving.yes and leaving.reason):
                raise against
        except ArcError:
            if mine:
                ways.given_again()
                step.changed = ""
            raise
        step.text = f"gives it nothing from now on; {text}"
        return told


def judge(
    leaving: Leaving, told: JsonObject, ways: Ways
) -> tuple[str, NeedsWord | None]:  # fmt: skip
    """What the node has, and what speaks against letting it go; None: nothing."""
    about = of_one_that_answers if told.get("seen") else of_one_out_of_reach
    return about(leaving, told, ways)


def of_one_that_answers(
    leaving: Leaving, told: JsonObject, ways: Ways
) -> tuple[str, NeedsWord | None]:
    """What it has, and what speaks against letting it go: that nobody would see that any more."""
    left, drained = open_tasks(told), told.get("state") in {"drained", "draining"}
    dead, name = undecided(told), leaving.name
    if not left and not dead:
        return "it has none", None
    has = [counted(left, "open task")] if left else []
    has += [counted(dead, "dead letter")] if dead else []
    many = " and ".join(has)
    first = f"which: arc tasks list --node {name}" if drained else f"arc nodes drain {name}"
    decide = f"decide about the dead: arc dead list --node {name}"
    first = "; ".join([first] * bool(left) + [decide] * bool(dead))
    although = f", although it is {told.get('state')}" if drained else ""
    return f"{many} there{although}", NeedsWord(
        f"{name}: has {many}{although}, which nobody would see any more",
        hint=f"{first}; or --yes with a --reason", where=name)  # fmt: skip


def of_one_out_of_reach(
    leaving: Leaving, told: JsonObject, ways: Ways
) -> tuple[str, NeedsWord | None]:
    """What was heard of it last, and that a fence cannot come after it was forgotten."""
    name, reason = leaving.name, safe_text(str(told.get("reason")), 300)
    text, fence = f"cannot be asked ({reason}); {heard_last(told)}", FENCE.format(name)
    if not leaving.forget:
        hint = f"is it off for good? {fence}; then --forget"
        raise NodeUnreachable(name, text, hint=hint)
    text += f"; {comes_back(name, ways.would_fence)}"
    return text, NeedsWord(f"{name}: {text}", where=name, hint=f"first: {fence}; then, or "
                           "instead: --forget --yes --reason WHY")  # fmt: skip


async def take_key(entry: NodeEntry, leaving: Leaving, here: Here, steps: Steps) -> None:
    """The hub's key off the machine, by the operator's login; `forget` lets it lie if it must."""
    with steps.step("hub key") as step:
        key = here.pins.pinned(entry.name)
        try:
            if key is None:
                raise NodeUnreachable(entry.name, "no host key is trusted, so nobody logs in")
            public = read_public_key(here.settings.state)
            async with await own_login(entry, here.settings, key, identity=leaving.identity,
                                       environ=here.environ) as login:  # fmt: skip
                if steps.dry_run:
                    step.text = f"would be taken out of authorized_keys at {where(entry)}"
                    return
                taken = await shut_hub_out(await login.begin(), public)
        except ArcError as error:
            if not leaving.forget:
                or_else = "or --forget, which leaves the hub's key there"
                error.hint = "; ".join(one for one in (error.hint, or_else) if one)
                raise
            left = "would be left there" if steps.dry_run else "left there"
            step.text = f"{left}, as the machine was not reached: {error}"
            stays = "would stay" if steps.dry_run else "is still"
            steps.warnings.append(f"{entry.name}: the hub's key {stays} in authorized_keys at "
                                  f"{where(entry)}; take its line out there")  # fmt: skip
            return
        step.text = "taken out of authorized_keys" if taken else "was in no line there"
        step.changed = f"the hub's key is off {entry.name}" if taken else ""
