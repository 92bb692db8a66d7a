"""Who was stopped goes on, also one that waits for a child which was stopped as it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from agent_node.processes import process_table
from agent_node.rousing import rouse
from tests.node.processes.harness import wait_until

STARTS = """\
import os, sys
opens = (os.POSIX_SPAWN_OPEN, 9, sys.argv[1], os.O_RDONLY, 0)
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[opens]), 0)
"""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def below(pid: int) -> list[int]:
    return [child for child, seen in process_table().items() if seen.ppid == pid]


def test_one_whose_child_was_stopped_as_it_started_goes_on(tmp_path: Path) -> None:
    """Seen to fail when the stopped alone are looked at: a spare that was starting its rehearsal
    stood still for ever, and was none that work could be handed to.

    The child opens the pipe before it becomes its program, and waits there until we do.
    """
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with subprocess.Popen([sys.executable, "-c", STARTS, str(gate)]) as starter:
        try:
            wait_until(lambda: bool(below(starter.pid)) and state(starter.pid) == "D")
            (child,) = below(starter.pid)
            os.kill(child, signal.SIGSTOP)
            os.kill(starter.pid, signal.SIGSTOP)
            wait_until(lambda: state(child) == "T")
            far = os.open(gate, os.O_RDWR)
            assert rouse([starter.pid]) == 2
            assert starter.wait(timeout=10) == 0
            os.close(far)
        finally:
            for pid in below(starter.pid):
                os.kill(pid, signal.SIGKILL)
            starter.kill()


def test_one_that_was_stopped_goes_on_and_its_program_stays_as_its_user_left_it() -> None:
    with subprocess.Popen(["sleep", "600"]) as program:
        try:
            program.send_signal(signal.SIGSTOP)
            wait_until(lambda: state(program.pid) == "T")
            assert rouse([os.getpid()]) == 0
            assert state(program.pid) == "T"
            assert rouse([program.pid]) == 1
            wait_until(lambda: state(program.pid) != "T")
        finally:
            program.kill()
