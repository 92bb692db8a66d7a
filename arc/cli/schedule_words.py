"""The commands `arc schedules …`: where work comes from by itself."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

from typing import Annotated

import typer

from .answering import tell
from .options import DryRun, only_said

schedules = typer.Typer(help="Where work comes from by itself.", invoke_without_command=True)
Name = Annotated[str, typer.Argument(help="Its name in fleet.yaml.", metavar="NAME")]


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(schedules, name="schedules")


@schedules.callback()
def schedules_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_schedules() if context.invoked_subcommand is None else None


@schedules.command("list")
def list_schedules() -> int:
    """Schedules, watched files and watch rules: when each adds work next, and what it did last."""
    from arc.text.schedules import render_schedules

    return tell("schedules.list", "schedules.list", {}, render_schedules)


@schedules.command("show")
def show_schedule(name: Name) -> int:
    """One of them whole, with its next times and the work that it adds."""
    from arc.text.schedules import render_schedule

    return tell("schedules.show", "schedules.show", {"name": name}, render_schedule)


@schedules.command("run")
def run_schedule(name: Name, dry_run: DryRun = False) -> int:
    """Add its work now, whatever the time; its own times stay what they are."""
    from arc.text.schedules import render_schedule_run

    args = only_said({"name": name, "dry_run": dry_run})
    return tell("schedules.run", "schedules.run", args, render_schedule_run)
