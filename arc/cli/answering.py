"""Says what came of a command: text for people, one line of JSON for machines, one exit code."""

from __future__ import annotations

from collections.abc import Callable

from agent_node.envelope import Answer, success
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
        from agent_node.envelope import Exit

        answer = Answer(told.data, "", Exit(told.exit), told.warnings, told.partial)
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
