"""Says what came of a command: text for people, one line of JSON for machines, one exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent_node.envelope import ANSWERED, Answer, Exit, Trouble, success
from agent_node.strict import JsonObject
from arc.operations import Told
from arc.text.look import Look

from .around import Around, here

ANSWER_S = 60.0


Render = Callable[[JsonObject, Look], str]


def tell(
    name: str, op: str, args: JsonObject, render: Render, *, wait_s: float = ANSWER_S,
    names_unread: bool = False,
) -> int:  # fmt: skip
    """Ask the hub for one operation, say what came of it, and give the exit code.

    `names_unread`: the text itself names the nodes that could not be read.
    """
    around = here()
    told = around.ask(around, op, args, timeout_s=wait_s)
    return say(name, told, render, around, names_unread=names_unread)


def say(
    name: str, told: Told, render: Render, around: Around, *, names_unread: bool = False
) -> int:
    """Print what was told; `--json` prints the same facts and never changes the exit code."""
    if around.as_json:
        answer = Answer(told.data, "", Exit(told.exit), told.warnings, told.partial,
                        _trouble(told, render))  # fmt: skip
        around.say(success(f"arc.{name}/1", around.stamp(), answer) + "\n")
        return told.exit
    text = render(told.data, Look(around.width, around.colour))
    around.say(text if text.endswith("\n") or not text else text + "\n")
    for line in told.warnings:
        around.warn(line)
    for entry in () if names_unread else told.partial:
        error, node = entry.get("error"), f"{entry.get('node')}: "
        message = str(error.get("message") if isinstance(error, dict) else "could not be read")
        around.warn(f"{node}{message.removeprefix(node)}")
    return told.exit


def _trouble(told: Told, render: Render) -> Trouble | None:
    """Why what was asked was not done, as the first result tells it; None: it was done."""
    if told.exit in ANSWERED:
        return None
    refusals = [*_refusals(told.data)]
    # `whole` only says that another task of the same request was refused.
    first = next((one for one in refusals if one.get("rule") != "whole"), None)
    if first is None:
        said = render(told.data, Look(None, colour=False)).strip()
        return Trouble("ARC-FAILED", said.partition("\n")[0])
    rule, who = str(first.get("rule") or ""), str(first.get("uid") or first.get("node") or "")
    why = str(first.get("because") or first.get("refused") or first.get("summary") or "")
    code = str(first.get("code") or "") or ("ARC-FAILED" if _failed(first) else "ARC-REFUSED")
    return Trouble(code, f"{who}: {why.removeprefix(f'{who}: ')}" if who else why, rule=rule)


def _refusals(data: JsonObject) -> Iterator[JsonObject]:
    """The answer itself, or those of its results, that say that something was not done."""
    lists = [value for value in data.values() if isinstance(value, list)]
    for one in (data, *(one for found in lists for one in found if isinstance(one, dict))):
        if one.get("outcome") in ("refused", "kept", "failed") or one.get("refused"):
            yield one


def _failed(one: JsonObject) -> bool:
    return one.get("outcome") == "failed"
