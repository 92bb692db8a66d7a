"""A fleet over real SSH: container nodes with daemons and real tasks, a real hub, and the books."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from agent_node.strict import JsonObject
from agent_node.ulid import fresh_ulid
from arc import door
from arc.cli.around import Around
from arc.cli.asking import ask_the_hub
from arc.cli.running import WallClock, run_command
from arc.keys import make_key_pair
from arc.links.hostkeys import HostKeys, parse_host_key
from tests.chaos import program
from tests.chaos.checker import Findings, judge, read_ledger
from tests.hub.cli.desk import ENVIRON, Ran
from tests.ssh.breaking import faults_in
from tests.ssh.lab import Lab
from tests.ssh.lab_node import Home, LabNode
from tools.sources import ROOT

NAMES = ("iris", "loom", "spark", "forge", "quill")
PROGRAM = "/opt/arc/program.py"
PATIENCE_S = 40.0
RECORDED_S = 10.0
LOOK_S = 0.05
SETTINGS = """\
version: 1
fleet: arc0
policy: {policy}
router: {{every: {every}}}
health: {{every: {every}}}
rebalance: {{every: {every}}}
nodes:
"""
Value = TypeVar("Value")


class SshFleet:
    """Nodes by name, each with its home and its daemon; `up` starts the hub.

    Tasks run tests/chaos/program.py, which writes to one ledger that all nodes share.
    """

    def __init__(
        self, lab: Lab, place: Path, names: Sequence[str] = NAMES, *, disk_mb: int = 64,
        policy: str = "swift", every: str = "1s", more: str = "",
    ) -> None:  # fmt: skip
        self.lab, self.place, self.file = lab, place, place / "fleet.yaml"
        self.state = place / ".arc"
        self.state.mkdir(mode=0o700)
        self.public = make_key_pair(self.state, comment="arc-hub")
        self.homes: dict[str, Home] = {}
        self.added: list[str] = []
        self.tried: list[str] = []  # and those whose addition nobody answered for
        self.faults: list[str] = []  # of ours, as any command told of one, whoever read it
        lines = []
        for name, node in zip(names, lab.start(len(names), disk_mb=disk_mb), strict=True):
            self._furnish(name, node)
            lines.append(f"  - {{name: {name}, host: {node.address}, user: agent}}\n")
        top = SETTINGS.format(policy=policy, every=every)
        self.file.write_text(top + "".join(lines) + more, encoding="utf-8")
        for home in self.homes.values():
            home.start_daemon()
        self.hub: subprocess.Popen[bytes] | None = None

    def also(self, name: str) -> Home:
        """One more machine, at work, for an entry of fleet.yaml that stands there already."""
        self._furnish(name, *self.lab.start(1))
        self.homes[name].start_daemon()
        return self.homes[name]

    def _furnish(self, name: str, node: LabNode) -> None:
        run = [node.python, "-I", "-S", PROGRAM, "/shared"]
        node.write(PROGRAM, Path(program.__file__).read_bytes())
        self.homes[name] = node.install(name=name, hub_key=self.public, run=run, slots=2)
        self.trust(name)

    def trust(self, name: str) -> None:
        """Pin the host key that the node has now."""
        key = parse_host_key(self.homes[name].node.host_key)
        keys = HostKeys(self.state / "known_hosts")
        keys.pin(name, key, fingerprint=key.fingerprint)

    # --- The hub ----------------------------------------------------------------------------------

    def up(self, *words: str, within: Sequence[str] = ()) -> None:
        """`arc up` as a process of its own, started by this command if any, and it answers."""
        argv = [*within, sys.executable, "-m", "arc", "--fleet", str(self.file), "up", *words]
        with (self.place / "hub.log").open("ab") as log:
            self.hub = self.lab.child(
                argv, cwd=self.place, env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.until(lambda: door.ask(self.file, "sensors.list", {}, by="human:ada") is not None,
                   "the hub answers")  # fmt: skip

    def needs(self, name: str) -> str:
        """What `arc status` says that this node needs of a person; empty: nothing."""
        said = [one for one in self.data("status")["needs_you"] if one.get("node") == name]
        return str(said[0]["text"]) if said else ""

    def kill_hub(self) -> None:
        """-9."""
        assert self.hub is not None
        self.hub.send_signal(signal.SIGKILL)
        self.hub.wait(PATIENCE_S)

    def arc(self, *words: str) -> Ran:
        """One command of the operator, asked of the hub that runs or, without one, in its place."""
        out, err = io.StringIO(), io.StringIO()
        around = Around(environ=ENVIRON, stdin=io.BytesIO(), stdout=out, stderr=err,
                        ask=ask_the_hub, clock=WallClock(), fleet=self.file)  # fmt: skip
        ran = Ran(run_command(list(words), around), out.getvalue(), err.getvalue())
        self.faults += faults_in(ran.out + ran.err)
        return ran

    def data(self, *words: str) -> Any:
        """The same as JSON; a refusal is a failure of the test."""
        ran = self.arc(*words, "--json")
        said = json.loads(ran.out)
        assert "data" in said, said
        return said["data"]

    def shown(self, name: str) -> JsonObject:
        """What `arc status` says of a node."""
        (node,) = [node for node in self.data("status")["nodes"] if node["node"] == name]
        return node  # type: ignore[no-any-return]

    def until(self, what: Callable[[], Value], told: str, *, limit_s: float = PATIENCE_S) -> float:
        """How many seconds it took until this was so."""
        began = time.monotonic()
        while not what():
            took = time.monotonic() - began
            assert took < limit_s, f"not within {limit_s:g}s: {told}"
            time.sleep(LOOK_S)  # between two looks at what tells nobody when it changes
        return time.monotonic() - began

    # --- Work and books ---------------------------------------------------------------------------

    def add(self, count: int, *more: str, body: str = "", pinned: bool = False) -> list[str]:
        """So many tasks, given to the hub; their uids once they were acknowledged."""
        every = {"priority": 7, "body": body, "pinned": pinned}
        named = self.name_tasks(count)
        lines = "".join(f"{json.dumps({'uid': uid, 'subject': f'task {n}', **every})}\n"
                        for n, uid in enumerate(named))  # fmt: skip
        source = self.place / "tasks.jsonl"
        source.write_text(lines, encoding="utf-8")
        said = self.data("tasks", "import", str(source), *more)
        uids = [str(one["uid"]) for one in said["results"]]
        assert uids == named
        self.added += uids
        return uids

    def name_tasks(self, count: int) -> list[str]:
        """The uids that so many tasks are to have; whatever becomes of them, they were meant."""
        named = [fresh_ulid() for _ in range(count)]
        self.tried += named
        return named

    def done(self, uids: Sequence[str]) -> bool:
        """Whether their programs have come to their end, by what they wrote themselves."""
        ended = {line.uid for line in read_ledger(self.lab.shared / "ledger") if line.word == "end"}
        return ended >= set(uids)

    def books(self) -> Findings:
        """Lost and twice, by the ledger and the queues. The daemons are killed for it, not before
        they had time to record what a program that has just ended left.
        """
        for home in self.homes.values():
            if home.node.runs and home.answers():
                _let_it_record(home)
                home.kill_daemon()
        databases = dict[str, Path]()
        for name, home in self.homes.items():
            with _nobody_writes(home.node.path(home.path)):
                databases[name] = self._copied(name, home.node.path(home.path))
        databases["inbox"] = self._copied("inbox", self.state / "inbox")
        return judge(read_ledger(self.lab.shared / "ledger"), databases, self.added)

    def _copied(self, name: str, home: Path) -> Path:
        """The queue as it lies there; SQLite would follow /proc's links out of the node."""
        place = self.place / "books" / name
        place.mkdir(parents=True)
        for file in home.glob("queue.db*"):
            shutil.copy(file, place / file.name)
        return place / "queue.db"


@contextmanager
def _nobody_writes(home: Path) -> Iterator[None]:
    """The home's lock is ours: without a daemon the hub's own `serve` opens the queue for each
    request, and what lies there comes and goes. Whoever is frozen holds it, and writes nothing.
    """
    give_up = time.monotonic() + RECORDED_S
    with (home / "lock").open("rb") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up:
                    break
                time.sleep(LOOK_S)
            else:
                break
        yield


def _let_it_record(home: Home) -> None:
    """Until nothing runs there; after a while the books say what became of what still does."""
    give_up = time.monotonic() + RECORDED_S
    while home.run("status")["running_count"] and time.monotonic() < give_up:
        time.sleep(LOOK_S)
