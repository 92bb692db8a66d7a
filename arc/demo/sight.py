"""Holds what the demo shows: its nodes, what moved and by which rule, and what to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agent_node.strict import JsonObject
from arc.demo.evidence import BEGIN, END, Ledger
from arc.demo.tasks import DemoTask
from arc.sensor import Moved, SensorReport

SHORT = 6
ANYONE_FROM = 8  # as in the fleet.yaml of the demo
VERBS = {"routed": "routed", "stolen": "stolen", "drained": "drained",
         "retried": "retried"}  # fmt: skip


@dataclass(frozen=True)
class NodeLine:
    """One node in the picture; `waiting` None: it could not be seen."""

    name: str
    state: str
    waiting: int | None = None
    running: int = 0
    done: int = 0
    owns: str = ""
    reached: str = ""
    reason: str = ""


@dataclass(eq=False)
class Sight:
    """Everything about the demo that changes while it runs."""

    folder: Path
    policy: str
    ledger: Ledger
    reached: dict[str, str] = field(default_factory=dict)  # node: its address
    page: str = ""  # its address; "": there is none
    tasks: dict[str, DemoTask] = field(default_factory=dict)
    nodes: tuple[NodeLine, ...] = ()
    inbox: int | None = None
    counts: Counter[str] = field(default_factory=Counter)  # moves by why, each once
    first_s: dict[str, float] = field(default_factory=dict)  # why: when the first one was made
    stranded_s: float = 0.0
    _moves: set[str] = field(default_factory=set)

    def add(self, tasks: Iterable[DemoTask]) -> None:
        """These tasks are planned, and have to be done."""
        self.tasks |= {task.uid: task for task in tasks}

    def hear(self, report: SensorReport, seconds: float) -> list[str]:
        """A sensor has run: what it did, a line each; nothing when nothing happened."""
        said = []
        for move in report.moves:
            if move.outcome == "moved" and move.xfer not in self._moves:
                self._moves.add(move.xfer)
                self.counts[move.why] += 1
                self.first_s.setdefault(move.why, seconds)
            said.append(self.moved(move))
        if report.outcome in ("failed", "could_not_look"):
            said.append(f"{report.sensor}: {report.summary}")
        return said

    def moved(self, move: Moved) -> str:
        """One move in a line: what, from where to where, and the rule behind it."""
        task = self.tasks.get(move.uid)
        what = f'"{task.subject}"' if task else "a task that you added"
        verb = VERBS.get(move.why, move.why) if move.outcome == "moved" else move.outcome
        rule = f"{move.rule}: {move.because}" if move.rule else move.because
        return (f"{verb:<7} {short(move.uid)}  P{move.priority or '?':<3}{move.busy:>5} -> "
                f"{move.idle:<6} {rule:<63} {what}")  # fmt: skip

    def look(self, status: JsonObject) -> None:
        """Take over what `arc status` says now."""
        found = status.get("nodes")
        lines = found if isinstance(found, list) else []
        self.nodes = tuple(self._node(one) for one in lines if isinstance(one, dict))
        inbox = status.get("inbox")
        pending = inbox.get("pending") if isinstance(inbox, dict) else None
        self.inbox = pending if isinstance(pending, int) else None
        stranded = status.get("stranded")
        today = stranded.get("today_s") if isinstance(stranded, dict) else None
        self.stranded_s = float(today) if isinstance(today, int | float) else 0.0

    def _node(self, one: JsonObject) -> NodeLine:
        name, owns = str(one.get("node")), one.get("owns")
        waiting, running = one.get("pending"), one.get("running")
        return NodeLine(
            name, str(one.get("state")), waiting if isinstance(waiting, int) else None,
            running if isinstance(running, int) else 0, self.ledger.count(END, name),
            ", ".join(map(str, owns)) if isinstance(owns, list) else "",
            self.reached.get(name, ""), str(one.get("reason") or ""),
        )  # fmt: skip

    @property
    def done(self) -> int:
        """How many of the planned tasks; what somebody else added counts at its node alone."""
        return len(self.ledger.uids(END) & self.tasks.keys())

    @property
    def is_quiet(self) -> bool:
        """Whether every node was seen, and nothing waits or runs anywhere."""
        return self.inbox == 0 and bool(self.nodes) and not any(
            node.waiting is None or node.waiting or node.running for node in self.nodes
        )  # fmt: skip

    @property
    def waits_longest(self) -> DemoTask | None:
        """A task that its node keeps, to ask `arc why` about; None: all have begun."""
        begun = self.ledger.uids(BEGIN)
        left = [task for task in self.tasks.values()
                if task.uid not in begun and task.place == "iris"]  # fmt: skip
        return max(left, key=_stays, default=None)


def _stays(task: DemoTask) -> tuple[bool, bool, int]:
    """Work that is nobody's else, rather than what anyone may take at any moment."""
    return task.priority < ANYONE_FROM, not task.skill, task.priority


def short(uid: str) -> str:
    """The end of a uid, which every command takes; uids made in one moment begin alike."""
    return uid[-SHORT:].lower()
