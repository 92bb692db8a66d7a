"""The commands `arc notify …`: who is told of what needs a person."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

from typing import Annotated

import typer

from .answering import tell
from .options import DryRun, only_said

notify = typer.Typer(help="Who is told of what needs a person.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(notify, name="notify")


@notify.callback()
def notify_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_receivers() if context.invoked_subcommand is None else None


@notify.command("list")
def list_receivers() -> int:
    """Every receiver: of what it is told, how, and how it fares."""
    from arc.text.notices import render_notices

    return tell("notify.list", "notify.list", {}, render_notices)


@notify.command("test")
def send_test(
    name: Annotated[str, typer.Argument(help="Its name in fleet.yaml.", metavar="NAME")],
    dry_run: DryRun = False,
) -> int:
    """Send one a notice that says it is a test; exit 1 with the reason where it was not taken."""
    from arc.text.notices import render_notice_test

    args = only_said({"name": name, "dry_run": dry_run})
    return tell("notify.test", "notify.test", args, render_notice_test)
