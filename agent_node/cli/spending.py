"""The command `budget`: what may still be spent here, and by what."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agent_node.envelope import Answer
from agent_node.text import safe_text, table, terminal_width

from .around import Around, Result
from .catalogue import Runnable
from .shapes import objects, whole, words


def budget_arguments(parser: ArgumentParser) -> None:
    """The words of `budget`: none."""


def budget(options: Namespace, around: Around) -> Answer:
    """Every scope that has a limit here, and what the node itself spent today."""
    result = around.door({"do": "budget"})
    width = terminal_width(around.stdout, around.environ)
    return Answer(result, render_budget(objects(result, "scopes"), width))


def render_budget(scopes: list[Result], width: int | None) -> str:
    """A line for each scope; where none has a limit, that is said."""
    rows = [
        (words(scope, "scope"), words(scope, "limit_usd", "no limit"), words(scope, "spent_usd"),
         words(scope, "reserved_usd"), words(scope, "remaining_usd"),
         str(whole(scope, "waiting")))
        for scope in scopes
    ]  # fmt: skip
    text = table(("SCOPE", "LIMIT", "SPENT", "RESERVED", "REMAINING", "WAITING"), rows, width)
    if all(scope.get("limit_usd") is None for scope in scopes):
        text += "\nno limit is set; budget_usd in node.toml would set one for this node"
    return "\n".join(safe_text(line) for line in text.splitlines())


COMMANDS = {"budget": Runnable(budget_arguments, budget)}
