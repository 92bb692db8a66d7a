"""Brings a busy and an idle node to named places, lets it happen there, and has the fleet go on."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.crash_table import NodePoint
from tests.chaos.fleet import NAMES, Fleet
from tests.node.daemon.living import is_ready

LOOKS_MAX = 500  # and no time: a machine that has much else to do gives each look less of it
STANDS_S = 0.05
BUSY, IDLE = NAMES
Pair = tuple[NodePoint | None, NodePoint | None]  # for the busy one, and for the idle one
DISK = ("EIO", "ENOSPC")


class NodeCells:
    """One fleet, one action; in each step up to two nodes meet it, each at a place of its own."""

    def __init__(self, fleet: Fleet, action: str) -> None:
        self.fleet, self.action = fleet, action
        self.reached: list[str] = []
        self.problems: list[str] = []
        self._armed: dict[str, str] = {}
        self._words: dict[str, str] = {}
        for name, node in fleet.nodes.items():
            node.env["ARC_FAILPOINT_SEEN"] = str(self._seen(name))
        fleet.add_waiting()
        fleet.start_hub(gives_up=0.5)

    def step(self, pair: Pair) -> None:
        """Both are started where they will meet it, and work until they have."""
        self._armed = {name: f"{point.name}:{self.action}:{point.nth}"
                       for name, point in zip(NAMES, pair, strict=True) if point}  # fmt: skip
        for name in NAMES:
            self._seen(name).unlink(missing_ok=True)
            self._end(name)
            self.fleet.start(name, self._armed.get(name, ""))
        looks = 0
        while self._armed:
            assert looks < LOOKS_MAX, f"never reached: {self._armed}: {self.problems}"
            if looks % 10 == 0:
                self.fleet.add(3, at=self._next_to(looks))
            looks += 1
            is_ready(self.fleet.rest, STANDS_S)
            self.fleet.wake_stopped()
            for name in NAMES:
                self._tend(name)
        is_ready(self.fleet.rest, STANDS_S)
        self.fleet.wake_stopped()

    def _next_to(self, looks: int) -> str:
        """Whom work is given: what the idle one does comes to it by moves, or late, but where it is
        to meet something as it is given work: then as soon as its daemon is up, for `serve` alone
        meets nothing.
        """
        adds = self._armed.get(IDLE, "").startswith("add.")
        if adds and "node_started" in self.fleet.daemons[IDLE].said:
            return IDLE
        return IDLE if looks and looks % 40 == 0 else BUSY

    def _tend(self, name: str) -> None:
        """Note what was reached; start again who has ended, and judge how it did."""
        armed = self._armed.get(name)
        if armed and self._seen(name).exists():
            self.reached.append(f"{name} {armed}")
            self._words[name] = self._armed.pop(name)
        daemon = self.fleet.daemons[name]
        daemon.drain()
        if daemon.process.poll() is not None:
            self._end(name)
            self.fleet.start(name, self._armed.get(name, ""))

    def _end(self, name: str) -> None:
        """This daemon is over, by us or by itself; what it said and how it ended is judged."""
        daemon = self.fleet.daemons.get(name)
        if daemon is None:
            return
        by_itself = daemon.process.poll() is not None
        self.fleet.kill(name)
        code, what = daemon.process.returncode, self._words.get(name, "nothing")
        if "Traceback" in daemon.said:
            self.problems.append(f"{name} {what}: a traceback: {daemon.said[-1500:]}")
        if by_itself and self.action in DISK and code == 0:
            self.problems.append(f"{name} {what}: ended with 0: {daemon.said[-500:]}")
        if by_itself and self.action in DISK and not daemon.said.strip():
            self.problems.append(f"{name} {what}: ended with {code}, without a word")

    def end(self) -> None:
        """All are healed; the books are right and nobody printed a traceback."""
        for name in NAMES:
            self._end(name)
        self.fleet.heal()
        findings = self.fleet.end()
        serve = self.fleet.place / "serve.log"
        if serve.exists() and b"Traceback" in serve.read_bytes():
            self.problems.append(f"serve: {serve.read_text()[-1500:]}")
        assert findings.clean, (findings, self.fleet.done[-20:])
        assert not self.problems, "\n".join(self.problems)

    def _seen(self, name: str) -> Path:
        return self.fleet.place / f"seen-{name}"
