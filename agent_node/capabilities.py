"""Says which optional powers this node has: packages found where node.toml says they lie."""

from __future__ import annotations

from importlib.machinery import PathFinder

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
