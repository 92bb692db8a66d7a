"""The command `arc unit`: the hub as a service."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.operations import Told
from arc.text.look import Look

from .answering import say
from .around import here


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(unit)


def unit() -> int:
    """Print a systemd user unit that keeps the hub of this fleet.yaml running."""
    from arc.door import fleet_of
    from arc.unit import render_hub_unit

    around = here()
    fleet = Path(fleet_of(around.fleet, around.environ)).absolute()
    text = render_hub_unit(own_command(), fleet=fleet)
    data: JsonObject = {"unit": text, "fleet": str(fleet)}
    return say("unit", Told(data), _shown, around)


def _shown(data: JsonObject, look: Look) -> str:
    """It is a file, so nothing of it is cut; what is in it was quoted for systemd."""
    return safe_text(str(data["unit"]), keep="\n").rstrip("\n")


def own_command() -> tuple[str, ...]:
    """How this very installation is started, whatever folder and PATH a service has."""
    beside = Path(sys.executable).with_name("arc")
    if os.access(beside, os.X_OK):
        return (str(beside),)
    return (sys.executable, "-P", "-m", "arc")
