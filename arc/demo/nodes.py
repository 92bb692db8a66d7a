"""Starts the demo's nodes as processes of their own, and ends every process that came of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent_node.door import ask
from agent_node.errors import NodeError
from agent_node.home import Home
from agent_node.new_toml import toml_list, toml_text
from arc.links.pipes import environment

AGAIN_S = 10.0  # a daemon that was killed is started again, as a service manager would
LEAVE_S = 4.0  # for all daemons together, after each SIGTERM
DRAIN_S = 3.0
GONE_S = 3.0

_TOML = """\
name = {name}
disk_floor = "16MiB"
grace_s = 1
stop_grace_s = 2

[[agent]]
name = {name}
run = {run}
"""


@dataclass(eq=False)
class DemoNode:
    """One home, its log, and at most one daemon, which a person may kill."""

    name: str
    root: Path
    daemon: subprocess.Popen[bytes] | None = None
    ended_at: float | None = None  # when its daemon was found gone; None: it runs
    started: int = 0

    @property
    def home(self) -> Home:
        """Where its queue is."""
        return Home(self.root)

    @property
    def log(self) -> Path:
        """What its daemons say."""
        return self.root.with_suffix(".log")

    def set_up(self, program: Path, evidence: Path) -> None:
        """A home with one agent, named like the node."""
        for folder in (self.root, self.home.tasks, self.home.backups):
            folder.mkdir(mode=0o700, parents=True)
        run = (sys.executable, "-I", "-S", str(program), str(evidence))
        text = _TOML.format(name=toml_text(self.name), run=toml_list(run))
        self.home.config.write_text(text, encoding="utf-8")
        self.home.config.chmod(0o600)

    def start(self) -> None:
        """Begin to start the daemon, in a session of its own: Ctrl-C here is not meant for it."""
        argv = [sys.executable, "-m", "agent_node", "run"]
        with self.log.open("ab") as log:
            self.daemon = subprocess.Popen(
                argv, env=environment(self.root, os.environ), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.ended_at, self.started = None, self.started + 1

    @property
    def is_up(self) -> bool:
        """Whether its daemon answers at its door, or will in a moment."""
        return self.runs and self.home.socket.exists()

    @property
    def runs(self) -> bool:
        """Whether its daemon is there."""
        return self.daemon is not None and self.daemon.poll() is None

    def look(self, now: float) -> str:
        """See to the daemon; what happened to it in words, empty when nothing did."""
        if self.runs or self.daemon is None:
            return ""
        if self.ended_at is None:
            self.ended_at = now
            return (f"its daemon, pid {self.daemon.pid}, is gone ({how(self.daemon.returncode)}); "
                    f"in {AGAIN_S:.0f} s it is started again, as by a service manager")  # fmt: skip
        if now - self.ended_at < AGAIN_S:
            return ""
        self.start()
        return f"its daemon is started again (pid {self.daemon.pid}); its queue lay on the disk"


def how(code: int | None) -> str:
    """How a process ended."""
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit {code}"


def end_nodes(nodes: Iterable[DemoNode]) -> int:
    """End every process of these nodes; how many had to be killed. It takes 15 seconds at most.

    What runs is told to stop by its own daemon, the daemons get SIGTERM, those that stay a second
    one. Only what is left then is killed, each by its pid.
    """
    every = list(nodes)
    running = [node for node in every if node.runs]
    if running:
        with ThreadPoolExecutor(len(running)) as pool:
            list(pool.map(_stop_work, running))
    for _ in range(2):
        for node in running:
            if node.daemon is not None and node.runs:
                node.daemon.terminate()
        _wait(lambda: not any(node.runs for node in running), LEAVE_S)
    for node in running:
        if node.daemon is not None and node.runs:
            node.daemon.kill()
            node.daemon.wait(LEAVE_S)
    homes = [node.root for node in every]
    _wait(lambda: not processes_of(homes), GONE_S)
    return kill_all(homes)


def _stop_work(node: DemoNode) -> None:
    """Let the daemon end its programs; a node without any is left alone, a dead one too."""
    with suppress(NodeError, OSError):
        if not ask(node.home, {"do": "status"}, timeout_s=DRAIN_S).get("running_count"):
            return
        ask(node.home, {"do": "drain", "by": "human:demo", "reason": "the demo ends",
                        "deadline_s": 0, "then": "requeue"}, timeout_s=DRAIN_S)  # fmt: skip


def _wait(over: Callable[[], bool], within_s: float) -> None:
    until = time.monotonic() + within_s
    while not over() and time.monotonic() < until:
        time.sleep(0.02)


def processes_of(homes: Iterable[Path]) -> set[int]:
    """Every other process that was started for one of these homes, by its environment in /proc."""
    marks = [b"AGENT_NODE_HOME=" + os.fsencode(home) + b"\0" for home in homes]
    return {
        int(entry.name) for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _carries(entry, marks)
    }  # fmt: skip


def _carries(process: Path, marks: list[bytes]) -> bool:
    """Whether it runs with one of these words in its environment; one that has ended does not."""
    try:
        said = (process / "environ").read_bytes() + b"\0"
    except OSError:
        return False
    return any(mark in said for mark in marks)


def kill_all(homes: Iterable[Path]) -> int:
    """Kill what still runs for these homes, by pid and never another process that got the pid."""
    wanted, killed = list(homes), set[int]()
    while found := processes_of(wanted) - killed:
        for pid in found:
            with suppress(ProcessLookupError):
                process = os.pidfd_open(pid)
                try:
                    if pid in processes_of(wanted):
                        signal.pidfd_send_signal(process, signal.SIGKILL)
                finally:
                    os.close(process)
        killed |= found
    return len(killed)


@dataclass
class DemoNodes:
    """All nodes of one demo, in one folder beside their evidence."""

    folder: Path
    names: tuple[str, ...]
    every: dict[str, DemoNode] = field(default_factory=dict)

    @property
    def evidence(self) -> Path:
        """Where programs write what they did."""
        return self.folder / "evidence"

    def set_up(self) -> None:
        """Every home, and the program that all of them run."""
        (self.evidence / "locks").mkdir(parents=True)
        program = self.folder / "work.py"
        program.write_bytes(Path(__file__).with_name("work.py").read_bytes())
        for name in self.names:
            node = self.every[name] = DemoNode(name, self.folder / "nodes" / name)
            node.set_up(program, self.evidence)

    def start(self) -> None:
        """Begin to start all of them at once."""
        for node in self.every.values():
            node.start()
