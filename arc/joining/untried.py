"""Takes a hub key that was not found restricted back out, or puts the line of before back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent_node.errors import NodeError
from arc.errors import ArcError

from .asking import There
from .errors import KeyTooStrong, LeftUndone
from .installing import FILE_S, shut_hub_out
from .look import Look
from .steps import Steps
from .there.keyline import has_other_hub

OUT = "the hub's key was taken out of authorized_keys again"
BACK = "the hub's line of before is in authorized_keys again"
UNTRIED = "not tried to the end"
Talk = Callable[[], Awaitable[There]]


@dataclass(frozen=True)
class Letting:
    """How the hub is let in. `before`: the line that may stay instead; empty: none may."""

    public: str
    line: str
    before: str


def line_of_before(look: Look, *, tried: bool) -> str:
    """The line with which the hub was let in before, where an earlier run tried it to the end;
    empty: there is none. A line of somebody else's words was never tried.
    """
    ours = look.line.startswith("restrict,") and has_other_hub(look.line) is not None
    return look.line if tried and ours else ""


@asynccontextmanager
async def no_untried_key(
    there: There, again: Talk, letting: Letting, steps: Steps
) -> AsyncIterator[None]:
    """Whatever fails in here, no line stays that nobody has tried to the end; the error says what
    became of it. A talk in which something broke off may answer no more: then in another one.
    """

    async def at_once() -> There:
        return there

    try:
        yield
    except (LeftUndone, asyncio.CancelledError) as error:
        loose = isinstance(error.__cause__, KeyTooStrong)
        if steps.dry_run or (letting.line == letting.before and not loose):
            raise
        before = "" if loose else letting.before
        done, said = await _take_back((at_once, again), letting.public, before)
        if isinstance(error, asyncio.CancelledError):
            raise
        _say(steps, said if loose or not said else f"{said}, {UNTRIED}", done=done)
        cause = error.__cause__
        assert isinstance(cause, ArcError | NodeError)
        raise LeftUndone(cause, steps.so_far(), error.problems) from cause


async def _take_back(talks: tuple[Talk, ...], public: str, before: str) -> tuple[bool, str]:
    """Whether it was done, and in words what; no words: nothing had to be."""
    failed = ""
    for talk in talks:
        try:
            return True, await _undo(await talk(), public, before)
        except (ArcError, NodeError) as error:
            failed = f"the hub's key could not be taken out again ({error})"
    return False, failed


async def _undo(there: There, public: str, before: str) -> str:
    if before:
        said = await there.ask("let_in", {"line": before}, FILE_S)
        return "" if said.flag("there") else BACK
    return OUT if await shut_hub_out(there, public) else ""


def _say(steps: Steps, said: str, *, done: bool) -> None:
    step = steps.under_way
    assert step is not None
    for one in (*steps.done, step):
        if done and one.name == "hub key":
            one.changed = ""
    step.changed = ", ".join(one for one in (step.changed, said) if one)
