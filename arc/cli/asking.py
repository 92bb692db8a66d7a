"""Asks the hub of this fleet: the one that runs or, without one, by taking its place a moment."""

from __future__ import annotations

from agent_node.strict import JsonObject
from arc.errors import Interrupted
from arc.operations import Told, only_looks

from .around import Around


def ask_the_hub(around: Around, op: str, args: JsonObject, *, timeout_s: float) -> Told:
    """What came of one operation; who was interrupted hears that it may have happened."""
    try:
        return _asked(around, op, args, timeout_s)
    except KeyboardInterrupt as error:
        if only_looks(op, args):
            raise
        raise Interrupted(f"interrupted: {op} was asked and may have happened") from error


def _asked(around: Around, op: str, args: JsonObject, timeout_s: float) -> Told:
    """The settings are read only where no hub runs."""
    from arc import door

    fleet = door.fleet_of(around.fleet, around.environ)
    told = door.ask(fleet, op, args, by=around.by, timeout_s=timeout_s)
    return told if told is not None else door.ask_alone(fleet, op, args, by=around.by)
