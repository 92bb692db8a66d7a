"""Lists the keys of fleet.yaml, with default and meaning, for pages and for suggestions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from .config_kinds import Section
from .config_model import FleetFile


def keys_at(loc: tuple[str | int, ...]) -> list[str]:
    """The keys that may stand at a path of the file."""
    here: type[Section] = FleetFile
    for part in loc:
        if isinstance(part, str) and part in here.model_fields:
            here = _section_of(here, part) or here
    return [field.alias or name for name, field in here.model_fields.items()]


@dataclass(frozen=True)
class Key:
    """One key of the file, for pages about it."""

    name: str  # `router.soft`, `nodes.host`, `domains.words`
    default: object  # as a person would write it; None: none
    sentence: str
    needed: bool


def keys_of(top: type[Section] = FleetFile, above: str = "") -> list[Key]:
    """Every key that fleet.yaml may hold, in its order."""
    found: list[Key] = []
    for name, one in top.model_fields.items():
        needed = one.is_required()
        default = None if needed else one.default
        found.append(Key(f"{above}{one.alias or name}", default, one.description or "", needed))
        below = _section_of(top, name)
        if below is not None:
            found.extend(keys_of(below, f"{above}{name}."))
    return found


def _section_of(top: type[Section], name: str) -> type[Section] | None:
    """The section behind a key, also in a list or under names; None: it has a value."""
    kind = top.model_fields[name].annotation
    inside = (kind, *get_args(kind))
    return next((part for part in inside
                 if isinstance(part, type) and issubclass(part, Section)), None)  # fmt: skip
