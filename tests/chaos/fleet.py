"""Runs two homes under kill -9, then heals them and has them judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.chaos.checker import Findings, judge, read_ledger
from tests.chaos.hub import ROOT, HubDouble, LinkDown, Side, new_ulid
from tests.node.daemon.living import Daemon, Node, children_of, end_all, is_ready, until

PROGRAM = Path(__file__).with_name("program.py")
HEAL_S = 90.0
Task = dict[str, object]
NAMES = ("iris", "loom")


class Fleet:
    """Two nodes, a hub double that remembers nothing, and a ledger that the tasks write."""

    def __init__(self, place: Path, seed: str, journal: str = "wal") -> None:
        self.dice = Random(seed)
        self.place, self.seed = place, seed
        self._journal = journal
        self.nodes = {name: Node(place / name, name) for name in NAMES}
        self._configure(skills=())
        self.daemons: dict[str, Daemon] = {}
        self.acked: list[str] = []
        self._unsure: dict[str, list[Task]] = {name: [] for name in NAMES}
        self.hub: subprocess.Popen[bytes] | None = None
        self.log = place / "hub.log"
        self.log.touch()
        self.marks = dict.fromkeys(NAMES, 0)  # the last event before the present daemon started
        self.rest, self._far = os.pipe()  # on which nothing ever comes, to wait at
        self.done: list[str] = []  # what was done to it, for whoever reads a failure

    def _configure(self, *, skills: Sequence[str]) -> None:
        run = [sys.executable, "-I", "-S", str(PROGRAM), str(self.place)]
        for name, node in self.nodes.items():
            table = f'[[agent]]\nname = "{name}"\nrun = {json.dumps(run)}\nslots = 2\n'
            table += f"skills = {json.dumps(skills)}\n"
            node.configure(agents=table, journal=self._journal, stop_grace_s=5)

    # --- what lives in it -----------------------------------------------------------------------

    def start(self, name: str, failpoint: str = "") -> Daemon:
        """A daemon for this home; one that meets the lock of a `serve` tries again."""
        self.done.append(f"start {name} {failpoint}")
        daemon = self.daemons[name] = self.nodes[name].start(failpoint=failpoint, ready=False)
        return daemon

    def start_surely(self, name: str, failpoint: str = "") -> None:
        """A daemon that answers."""
        end = time.monotonic() + HEAL_S
        while True:
            daemon = self.start(name, failpoint)
            with suppress(AssertionError):
                daemon.hear("node_started")
                with self.nodes[name].one_talk() as talk:
                    events = talk.ask("events", after_seq=self.marks[name], limit=10_000)["events"]
                self.marks[name] = events[-1]["seq"] if events else self.marks[name]
                return
            assert time.monotonic() < end, f"{name} does not start: {daemon.said}"
            assert "already_running" in daemon.said, daemon.said

    def kill(self, name: str) -> None:
        """-9 to the daemon, if there is one."""
        daemon = self.daemons.pop(name, None)
        if daemon is not None:
            self.done.append(f"kill {name}")
            with suppress(ProcessLookupError):
                daemon.signal(signal.SIGKILL)
            daemon.ended()

    def tend(self, name: str) -> None:
        """Now and then somebody starts the daemon again that has ended."""
        daemon = self.daemons.get(name)
        if daemon is not None and daemon.process.poll() is not None:
            del self.daemons[name]
        if name not in self.daemons and self.dice.random() < 0.5:
            self.start(name)

    def start_hub(self, failpoint: str = "", *, gives_up: float = 0.1) -> None:
        """A hub double that knows nothing, in place of an earlier one; `gives_up`: how often it
        leaves a move where it stands."""
        self.kill_hub()
        env = self.nodes["iris"].env | ({"ARC_FAILPOINT": failpoint} if failpoint else {})
        homes = [str(node.home) for node in self.nodes.values()]
        words = [self.dice.randbytes(4).hex(), str(self.log), str(gives_up), *homes]
        self.hub = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.hub", *words], cwd=ROOT,
            env=env | {"AGENT_NODE_HOME": str(self.place)}, start_new_session=True,
        )  # fmt: skip

    def kill_hub(self) -> None:
        """-9 to the hub double; its `serve` processes lose their pipes."""
        if self.hub is not None:
            self.done.append("kill hub")
            self.hub.kill()
            self.hub.wait()
            self.hub = None

    def kill_serve(self) -> None:
        """-9 to one of the `serve` processes of the hub double."""
        if self.hub is not None and (serves := children_of(self.hub.pid)):
            self._kill_pid(self.dice.choice(serves), "serve")

    def kill_zygote(self, name: str) -> None:
        """-9 to the zygote of this daemon."""
        daemon = self.daemons.get(name)
        if daemon is not None and (children := children_of(daemon.pid)):
            self._kill_pid(children[0], f"zygote of {name}")

    def kill_shim(self, name: str) -> None:
        """-9 to a shim of this home whose program runs."""
        zygotes = {pid for daemon in self.daemons.values() for pid in children_of(daemon.pid)}
        shims = [pid for pid in self.nodes[name].processes()
                 if b"agent_node.zygote" in _command(pid) and pid not in zygotes
                 and children_of(pid)]  # fmt: skip
        if shims:
            self._kill_pid(self.dice.choice(shims), f"shim of {name}")

    def _kill_pid(self, pid: int, what: str) -> None:
        self.done.append(f"kill {what}")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def stopped(self) -> list[int]:
        """Everything of ours that stands still."""
        return [pid for pid in self._processes() if _is_stopped(pid)]

    def wake_stopped(self) -> None:
        """CONT to everything of ours that a failpoint stopped."""
        for pid in self.stopped():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    # --- work -----------------------------------------------------------------------------------

    def add(self, count: int, *, at: str = "", needs: Sequence[str] = ()) -> None:
        """New tasks, to this home or to either; an addition without an answer is repeated later."""
        name = at or self.dice.choice(NAMES)
        retry = {"strategy": "immediate"}  # where a failpoint makes an attempt fail
        tasks: list[Task] = [
            {"uid": new_ulid(self.dice), "subject": "write it down", "needs": [*needs],
             "max_attempts": 50, "retry": retry} for _ in range(count)
        ]  # fmt: skip
        self._unsure[name] += tasks
        self.repeat_additions(name)

    def add_waiting(self) -> None:
        """A few tasks in each home that nobody there can run yet, so that there is always something
        to move; healing teaches both homes to run them."""
        for name in NAMES:
            self.add(6, at=name, needs=["later"])

    def repeat_additions(self, name: str) -> None:
        """Add what was never acknowledged: the same uid is only ever added once."""
        tasks = self._unsure[name]
        if not tasks:
            return
        with suppress(LinkDown):
            side = Side(self.nodes[name].home, self.nodes[name].env)
            try:
                side.ask("hello", fleet="chaos", hub="double", term=1, wire=[1, 1])
                results = side.ask("add", tasks=tasks)["results"]
            finally:
                side.close()
            assert {one["outcome"] for one in results} <= {"added", "exists"}, results
            self.acked += [one["uid"] for one in results]
            self._unsure[name] = []

    # --- its end ----------------------------------------------------------------------------------

    def heal(self) -> None:
        """Nothing is killed any more: everything ends, or it is a finding."""
        self.kill_hub()
        self.wake_stopped()
        self._configure(skills=["later"])
        for name, node in self.nodes.items():
            self.kill(name)
            assert node.home.exists()
            self.start_surely(name)
        homes = [node.home for node in self.nodes.values()]
        hub = HubDouble(homes, self.nodes["iris"].env, self.dice)
        try:
            end = time.monotonic() + HEAL_S
            while not self._is_over(hub) and time.monotonic() < end:
                self.wake_stopped()
                for name in NAMES:
                    self.repeat_additions(name)
                    self._decide(name)
        finally:
            hub.close()
        assert hub.stranded == []
        assert not any(self._unsure.values())

    def _is_over(self, hub: HubDouble) -> bool:
        hub.open()
        if hub.settle():
            return False
        counts = [side.ask("status")["counts"] for side in hub._sides.values()]
        if all(set(one) <= {"COMPLETED"} for one in counts) and not any(self._unsure.values()):
            return True
        for daemon in self.daemons.values():
            is_ready(daemon.process.stderr.fileno(), 0.02)  # type: ignore[union-attr]
            daemon.drain()
        return False

    def _decide(self, name: str) -> None:
        """A person's word on what was interrupted or failed too often: it shall run again, no other
        copy lives."""
        with self.nodes[name].one_talk() as talk:
            for state, do, more in (("PARKED", "resolve", {"as": "ready", "alone": True}),
                                    ("DEAD_LETTERED", "retry", {})):  # fmt: skip
                uids = [task["uid"] for task in talk.ask("list", states=[state])["tasks"]]
                if uids:
                    talk.ask(do, uids=uids, reason="a test", **more)
                    self.done.append(f"{do} {len(uids)} {state} at {name}")

    def end(self) -> Findings:
        """Stop the healed fleet in order, see that nothing is left of it, and have it judged."""
        for name in NAMES:
            code = self.daemons[name].stop()
            assert code == 0, self.daemons[name].said
        left = until(lambda: self._is_alone() or None, "the end of every process")
        assert left
        databases = {name: node.home / "queue.db" for name, node in self.nodes.items()}
        assert b"stranded" not in self.log.read_bytes(), self.log.read_text()
        return judge(read_ledger(self.place / "ledger"), databases, self.acked)

    def _is_alone(self) -> bool:
        """Who met its failpoint only after the fleet was woken is woken now, and then ends."""
        self.wake_stopped()
        return not self._processes()

    def _processes(self) -> list[int]:
        return [pid for node in self.nodes.values() for pid in node.processes()]

    def clean_up(self) -> None:
        """End whatever is left, by pid, however the test went."""
        self.kill_hub()
        for node in self.nodes.values():
            node.clean_up()
        end_all(self._processes)
        os.close(self.rest)
        os.close(self._far)


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _is_stopped(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False
