"""Kills the daemon, or who carries an upgrade out, at each of its steps, with work under way."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agent_node.program import hash_of_file
from tests.chaos.crash_table import UPGRADE
from tests.chaos.fleet import _is_stopped
from tests.node.daemon.living import PATIENCE_S, Bell, until
from tests.node.upgrading.conftest import gate, keys, new, node, old
from tests.node.upgrading.programs import Keys, ProgramNode, Pyz, a_broken_program

__all__ = ["gate", "keys", "new", "node", "old"]
IN_THE_DAEMON, BESIDE_IT = UPGRADE.places[:6], UPGRADE.places[6:11]
ON_THE_WAY_BACK = UPGRADE.places[11:]
KILLED_AT = UPGRADE.places
AT_LAST = "2026-03-01T00:00:00Z"


@pytest.mark.parametrize("action", ["kill"])
@pytest.mark.parametrize("place", KILLED_AT)
def test_death_at_any_step_leaves_one_whole_program_and_a_daemon_that_starts(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz, gate: Bell, tmp_path: Path, place: str,
    action: str,
) -> None:  # fmt: skip
    """Kill there, look at what is left, start again, ask again: an outcome, and no task twice."""
    log = tmp_path / "log"
    node.start(failpoint=f"{place}:{action}")
    uid = node.add(f"echo began >> {log}; read x < {gate.path}; echo ended >> {log}")
    until(lambda: log.exists() and "began" in log.read_text(), "the task")
    wanted = a_broken_program() if place in ON_THE_WAY_BACK else new
    offer = keys.offer(wanted)
    node.wire(offer)  # whoever would answer may die over it
    until(lambda: someone_died(node, place), f"death at {place}")

    whole = {pyz.name: pyz.sha256 for pyz in (old, wanted)}
    runs = node.runs  # once: whoever goes back to the old program may do so at any moment
    assert runs in whole
    assert hash_of_file(node.home / "program" / runs) == whole[runs]
    if node.daemons[0].process.poll() is None:
        node.daemons[0].kill()
    start_again(node)
    ended = node.upgrade(offer)
    assert ended["outcome"] in ("upgraded", "went_back", "failed"), ended
    status = node.cli("status")["data"]
    assert status["dispatcher"] == "running"
    expected = wanted if ended["outcome"] == "upgraded" else old
    assert (node.runs, status["program"]) == (expected.name, expected.sha256[:12])
    gate.ring()
    node.until(uid, "COMPLETED")
    assert log.read_text() == "began\nended\n"
    leftovers = [path.name for path in (node.home / "program").glob(".*")]
    assert ended["outcome"] != "upgraded" or leftovers == []


@pytest.mark.parametrize("place", [*IN_THE_DAEMON[:-1], *BESIDE_IT[:-2], BESIDE_IT[-1]])
def test_death_without_a_daemon_leaves_one_whole_program_that_answers(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz, place: str
) -> None:
    """The `serve` that takes the program, or whoever carries it out, dies there."""
    node.env["ARC_FAILPOINT"] = f"{place}:kill"
    offer = keys.offer(new)
    node.wire(offer)
    until(lambda: not node.processes(), f"death at {place}")
    del node.env["ARC_FAILPOINT"]

    assert hash_of_file(node.home / "program" / node.runs) in (old.sha256, new.sha256)
    assert node.upgrade(offer)["outcome"] == "upgraded"
    assert node.runs == new.name
    assert [*(node.home / "program").glob(".*")] == []


@pytest.mark.parametrize("action", ["EIO", "ENOSPC", "stop"])
def test_an_upgrade_that_meets_a_fault_at_each_step_goes_through_in_the_end(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz, gate: Bell, tmp_path: Path, action: str
) -> None:
    """One node, offered the program anew after each fault. Seen to fail where a disk that failed on
    the way back was the end of it: `stuck` was recorded for good, though the old program was there.
    """
    met = Met(node, tmp_path, action)
    uid = node.add(f"echo began >> {met.log}; read x < {gate.path}; echo ended >> {met.log}")
    until(lambda: met.log.exists() and "began" in met.log.read_text(), "the task")
    broken = a_broken_program()
    for day in range(1, 2 * len(KILLED_AT)):
        if not met.left(*KILLED_AT):
            break
        forward = met.left(*IN_THE_DAEMON, *BESIDE_IT) and node.runs != new.name
        met.offered(keys.offer(new if forward else broken, made_at=f"2026-02-{day:02}T00:00:00Z"))
    assert met.left(*KILLED_AT) == []
    met.disarm()
    assert node.upgrade(keys.offer(new, made_at=AT_LAST))["outcome"] in ("upgraded", "already")
    assert (node.runs, node.cli("status")["data"]["dispatcher"]) == (new.name, "running")
    gate.ring()
    node.until(uid, "COMPLETED")
    assert met.log.read_text() == "began\nended\n"


@pytest.mark.parametrize("action", ["kill", "EIO", "ENOSPC"])
def test_a_daemon_that_was_ended_on_the_way_back_runs_again_when_the_upgrade_is_over(
    node: ProgramNode, keys: Keys, old: Pyz, gate: Bell, tmp_path: Path, action: str
) -> None:
    """Nobody starts it by hand. Fails where only who ended it knows that there was one: asked again
    the broken program is tried without a daemon, and `upgraded` while nothing is dispatched.
    """
    log = tmp_path / "log"
    daemon = node.start(failpoint=f"upgrade.after_end:{action}")
    uid = node.add(f"echo began >> {log}; read x < {gate.path}; echo ended >> {log}")
    until(lambda: log.exists() and "began" in log.read_text(), "the task")
    offer = keys.offer(a_broken_program())
    node.wire(offer)
    until(lambda: daemon.process.poll() is not None and not upgraders(node), "both have ended")
    record = (node.home / "program" / "upgrade.json").read_text()
    assert '"under_way"' in record
    assert node.cli("status")["data"]["dispatcher"] == "stopped"

    assert node.upgrade(offer)["outcome"] == "went_back"
    assert (node.runs, node.cli("status")["data"]["dispatcher"]) == (old.name, "running")
    gate.ring()
    node.until(uid, "COMPLETED")
    assert log.read_text() == "began\nended\n"


class Met:
    """A node of which each process meets the action where no other has, one place after another."""

    def __init__(self, node: ProgramNode, place: Path, action: str) -> None:
        self.node, self.log, self._seen = node, place / "log", place / "seen"
        self._seen.touch()
        armed = ",".join(f"{one}:{action}:once" for one in KILLED_AT)
        node.env |= {"ARC_FAILPOINT": armed, "ARC_FAILPOINT_SEEN": str(self._seen)}
        start(node)

    def left(self, *places: str) -> list[str]:
        """Those of these places that nobody has come to."""
        met = self._seen.read_text().split()[::2]
        return [place for place in places if place not in met]

    def offered(self, offer: dict[str, Any]) -> None:
        """Ask until it is over; whoever stands still goes on, and a daemon that ended starts again.
        """
        before = self._seen.read_text()
        asked = Thread(target=self.node.wire, args=(offer,))
        asked.start()
        until(lambda: wake_all(self.node) and not asked.is_alive() and not upgraders(self.node),
              "the upgrade is over", 2 * PATIENCE_S)  # fmt: skip
        asked.join()
        assert self._seen.read_text() != before, "it met nothing"
        for log in (self.node.home / "program" / "upgrade.log", self.node.home / "daemon.log"):
            assert not log.exists() or "Traceback" not in log.read_text(), log.read_text()
        record = self.node.home / "program" / "upgrade.json"
        assert not record.exists() or '"stuck"' not in record.read_text(), record.read_text()
        content = (self.node.home / "program" / self.node.runs).read_bytes()
        assert hashlib.sha256(content).hexdigest()[:12] in self.node.runs, "a whole program"
        start(self.node)

    def disarm(self) -> None:
        for name in ("ARC_FAILPOINT", "ARC_FAILPOINT_SEEN"):
            del self.node.env[name]


@pytest.mark.soak
@pytest.mark.parametrize("action", ["EIO", "ENOSPC", "stop"])
@pytest.mark.parametrize("place", KILLED_AT)
def test_a_fault_at_any_step_leaves_a_node_that_can_be_upgraded(
    node: ProgramNode, keys: Keys, new: Pyz, gate: Bell, tmp_path: Path, place: str, action: str
) -> None:
    """The disk fails there, or who is there stands still for a moment: one line, and no task twice.
    """
    log, seen = tmp_path / "log", tmp_path / "seen"
    node.env["ARC_FAILPOINT_SEEN"] = str(seen)
    daemon = node.start(failpoint=f"{place}:{action}")
    uid = node.add(f"echo began >> {log}; read x < {gate.path}; echo ended >> {log}")
    until(lambda: log.exists() and "began" in log.read_text(), "the task")
    offer = keys.offer(a_broken_program() if place in ON_THE_WAY_BACK else new)
    asked = Thread(target=node.wire, args=(offer,))  # its answer waits where the daemon stands
    asked.start()
    until(seen.exists, f"{place} is reached")
    until(lambda: wake_all(node) and not asked.is_alive(), "nobody stands still")
    asked.join()
    if daemon.process.poll() is None:  # it and all that it starts would meet it again
        daemon.kill()
    until(lambda: wake_all(node) and not upgraders(node), "the upgrade is over")
    said = (node.home / "program" / "upgrade.log")
    heard = said.read_text() if said.exists() else ""
    daemon.drain()
    assert "Traceback" not in daemon.said + heard, daemon.said + heard
    start_again(node)
    assert node.upgrade(offer)["outcome"] in ("upgraded", "went_back", "failed", "exists")
    gate.ring()
    node.until(uid, "COMPLETED")
    assert log.read_text() == "began\nended\n"


def wake_all(node: ProgramNode) -> bool:
    """CONT to who stands still; true once nobody does."""
    stopped = [pid for pid in node.processes() if _is_stopped(pid)]
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    return not stopped


def someone_died(node: ProgramNode, place: str) -> bool:
    """The daemon by the signal; who stands beside it leaves its lock, and no outcome."""
    if place in IN_THE_DAEMON:
        return node.daemons[0].process.poll() == -signal.SIGKILL
    said = (node.home / "program" / "upgrade.log")
    begun = said.exists() and "upgrade_began" in said.read_text()
    return begun and not upgraders(node)


def upgraders(node: ProgramNode) -> list[int]:
    found = []
    for pid in node.processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"agent_node.upgrader" in words:
            found.append(pid)
    return found


def start_again(node: ProgramNode) -> None:
    """As a person would, or systemd: `agent-node start`, without any failpoint."""
    start(node, {name: value for name, value in node.env.items() if name != "ARC_FAILPOINT"})


def start(node: ProgramNode, env: dict[str, str] | None = None) -> None:
    """The same, in these surroundings; by itself in the node's own."""
    ran = subprocess.run([*node.command, "start"], env=env or node.env, capture_output=True,
                         text=True, timeout=PATIENCE_S, check=False, cwd=os.sep)  # fmt: skip
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
