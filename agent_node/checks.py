"""Says what one look at a node found, and what would mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "finding"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. A finding has a fix; a note is worth knowing, no more."""

    name: str
    level: Level
    text: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """The check for machines."""
        return {"check": self.name, "level": self.level, "text": self.text, "fix": self.fix}
