"""The commands of every day: status, why and plan."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import time
from typing import Annotated

import typer

from arc.errors import WrongUse

from .answering import tell
from .around import here
from .options import only_said

WATCH_S = 2.0


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command()(status)
    app.command()(why)
    app.command()(plan)


def status(
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds.")] = False,
) -> int:
    """What needs you, every node with the age of what is known, stranded time, last moves."""
    from arc.text.status import render_status

    code = tell("status", "status", {}, render_status, names_unread=True)
    while watch:
        time.sleep(WATCH_S)
        if not here().as_json:
            here().say("\x1b[H\x1b[J" if here().stdout.isatty() else "\n")
        code = tell("status", "status", {}, render_status, names_unread=True)
    return code


def why(
    task: Annotated[str, typer.Argument(help="Beginning or end of a uid.", metavar="[TASK]")] = "",
    node: Annotated[str, typer.Option("--node", help="Why this node does or gets nothing.")] = "",
) -> int:
    """Rule by rule why a task is where it is, and what would change that."""
    from arc.text.why import render_why_node, render_why_task

    if bool(task) == bool(node):
        raise WrongUse("why: name one task, or one node with --node")
    if node:
        return tell("why", "why.node", {"node": node}, render_why_node, names_unread=True)
    return tell("why", "why.task", {"task": task}, render_why_task, names_unread=True)


def plan() -> int:
    """What a rebalance and the router would do now, and every refusal with its rule."""
    return plan_of("")


def plan_of(sensor: str) -> int:
    """The plan of one sensor that moves tasks; of both without a name."""
    from arc.text.plan import render_plan

    return tell("plan", "plan", only_said({"sensor": sensor}), render_plan, names_unread=True)
