"""The command `arc metrics`."""

from __future__ import annotations

import typer

from .answering import tell


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(metrics)


def metrics() -> int:
    """Everything that is counted, as Prometheus reads it; exit 3 where a node was not seen."""
    from arc.text.metrics import render_metrics

    return tell("metrics", "metrics", {}, render_metrics)
