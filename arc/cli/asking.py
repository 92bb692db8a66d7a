"""Asks the hub of this fleet: the one that runs or, without one, by taking its place a moment."""

from __future__ import annotations

from agent_node.strict import JsonObject
from arc.operations import Told

from .around import Around


def ask_the_hub(around: Around, op: str, args: JsonObject, *, timeout_s: float) -> Told:
    """What came of one operation. The settings are read only where no hub runs."""
    from arc import door

    fleet = door.fleet_of(around.fleet, around.environ)
    told = door.ask(fleet, op, args, by=around.by, timeout_s=timeout_s)
    return told if told is not None else door.ask_alone(fleet, op, args, by=around.by)
