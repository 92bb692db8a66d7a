"""Says what this node can do: which validators it has, and which optional packages."""

from __future__ import annotations

from importlib.machinery import PathFinder

from .config import NodeSettings
from .validation import validator_power

# A capability and the package that brings it; imported only by whoever needs it.
OPTIONAL = {"json-schema": "jsonschema", "postgresql": "psycopg"}


def capabilities(extras_path: str | None) -> tuple[str, ...]:
    """What tasks may ask for in `needs` on top of an agent's skills; nothing without a path."""
    if extras_path is None:
        return ()
    return tuple(
        name
        for name, package in sorted(OPTIONAL.items())
        if PathFinder.find_spec(package, [extras_path]) is not None
    )


def powers_of(settings: NodeSettings) -> tuple[str, ...]:
    """The same, and the validators that node.toml names: what every agent here has in common."""
    validators = (validator_power(one.name) for one in settings.validators)
    return (*capabilities(settings.extras_path), *sorted(validators))
