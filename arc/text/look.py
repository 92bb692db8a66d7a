"""Says how text may look for whoever reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """`width` None: no terminal reads along, so nothing is cut; `colour`: it may be used."""

    width: int | None = None
    colour: bool = False
