"""Kills the daemon, or who carries an upgrade out, at each of its steps, with work under way."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from agent_node.program import hash_of_file
from tests.chaos.fleet import _is_stopped
from tests.node.daemon.living import PATIENCE_S, Bell, until
from tests.node.upgrading.conftest import gate, keys, new, node, old
from tests.node.upgrading.programs import Keys, ProgramNode, Pyz, a_broken_program

__all__ = ["gate", "keys", "new", "node", "old"]
IN_THE_DAEMON = (
    "upgrade.before_program", "program.before_sync", "program.before_rename",
    "upgrade.before_record", "upgrade.before_start", "upgrade.before_exec",
)  # fmt: skip
BESIDE_IT = (
    "upgrade.in_trial", "program.before_link", "program.after_link", "upgrade.after_signal",
    "upgrade.before_outcome",
)  # fmt: skip
ON_THE_WAY_BACK = ("upgrade.after_back",)
KILLED_AT = (*IN_THE_DAEMON, *BESIDE_IT, *ON_THE_WAY_BACK)


@pytest.mark.parametrize("place", KILLED_AT)
def test_death_at_any_step_leaves_one_whole_program_and_a_daemon_that_starts(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz, gate: Bell, tmp_path: Path, place: str
) -> None:
    """Kill there, look at what is left, start again, ask again: an outcome, and no task twice."""
    log = tmp_path / "log"
    node.start(failpoint=f"{place}:kill")
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
    env = {name: value for name, value in node.env.items() if name != "ARC_FAILPOINT"}
    ran = subprocess.run([*node.command, "start"], env=env, capture_output=True, text=True,
                         timeout=PATIENCE_S, check=False, cwd=os.sep)  # fmt: skip
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
