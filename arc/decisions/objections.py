"""Says why not: a rule by its name, and the reason in a sentence; pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Objection:
    """Why not: the rule by its name, and the reason in a sentence."""

    rule: str
    because: str
