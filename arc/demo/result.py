"""Says what a demo is asked for and what came of it, as one line and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError

from .evidence import Verdict
from .fleet import NAMES, POLICIES
from .tasks import COUNT


class DemoFailed(ArcError):
    """The demo could not be set up, or did not come to its end; nothing of it is left."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    tasks: int = COUNT
    policy: str = POLICIES[0]
    once: bool = False
    keep: bool = False
    web: bool = False
    arc: str = "arc"


@dataclass(frozen=True)
class Result:
    """How it went. `ended` False: somebody stopped it before its tasks were done."""

    tasks: int
    moved: int
    routed: int
    doubts: int
    verdict: Verdict
    stranded_s: float
    seconds: float
    ended: bool
    killed: int = 0  # processes that did not leave by themselves

    @property
    def is_well(self) -> bool:
        """Whether everything held that the product promises."""
        verdict = self.verdict
        return not (verdict.twice or self.killed or (self.ended and (verdict.lost or self.doubts)))

    def as_json(self) -> JsonObject:
        """For `--json`; durations in seconds."""
        return {
            "tasks": self.tasks, "done": len(self.verdict.done), "moved": self.moved,
            "routed": self.routed, "doubts": self.doubts, "lost": len(self.verdict.lost),
            "twice": len(self.verdict.twice), "stranded_node_s": round(self.stranded_s, 1),
            "seconds": round(self.seconds, 2), "nodes": list[JsonValue](NAMES),
        }  # fmt: skip

    def text(self) -> str:
        """For people, in one line."""
        lost = f"lost {len(self.verdict.lost)}" if self.ended else (
            f"not done {len(self.verdict.lost)}")  # fmt: skip
        return (
            f"demo: tasks {self.tasks}, done {len(self.verdict.done)}, moved {self.moved}, "
            f"routed {self.routed}, doubts {self.doubts}, {lost}, "
            f"twice {len(self.verdict.twice)}, stranded {self.stranded_s / 60:.2f} node-minutes, "
            f"{self.seconds:.1f} s"
        )
