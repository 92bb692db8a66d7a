"""The command `arc budget`."""

from __future__ import annotations

import typer

from .answering import tell


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(budget)


def budget() -> int:
    """What may be spent and what was, for the fleet, each node and each graph."""
    from arc.text.budgets import render_budget

    return tell("budget", "budget", {}, render_budget)
