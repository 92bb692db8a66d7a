"""Tells each step with its result and its time, and what had been changed when one fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent_node.errors import NodeError
from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError

from .errors import LeftUndone


@dataclass
class Step:
    """One step: what it is called, what came of it, and what it changed."""

    name: str
    text: str = ""
    changed: str = ""  # in words; empty: nothing
    took_s: float = 0.0

    def as_json(self) -> JsonObject:
        """The step for machines."""
        return {"step": self.name, "text": self.text, "changed": bool(self.changed),
                "took_s": round(self.took_s, 3)}  # fmt: skip


@dataclass
class Steps:
    """All steps of one command, told as they end."""

    tell: Callable[[Step], None]
    dry_run: bool = False
    again: str = "run the same command again to go on"
    done: list[Step] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    under_way: Step | None = None

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """While this lasts, the step is under way. Its error says what was done before it."""
        self.under_way = step = Step(name)
        began = time.monotonic()
        try:
            yield step
        except (ArcError, NodeError) as error:
            raise LeftUndone(error, self.so_far(), self._told()) from error
        step.took_s = time.monotonic() - began
        self.done.append(step)
        self.tell(step)

    def so_far(self) -> str:
        """What has been changed until now, and what to do about it."""
        begun = [] if self.under_way is None or self.under_way in self.done else [self.under_way]
        changed = [one.changed for one in (*self.done, *begun) if one.changed]
        if not changed:
            return "nothing was changed, there or here"
        return f"changed so far: {', '.join(changed)}; {self.again}"

    def _told(self) -> tuple[JsonObject, ...]:
        return tuple(one.as_json() for one in self.done)

    def as_json(self) -> list[JsonValue]:
        """All of them for machines."""
        return [one.as_json() for one in self.done]
