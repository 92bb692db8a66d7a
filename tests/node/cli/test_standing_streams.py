"""Whoever starts a command without its streams gets no traceback, and loses no file of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.node.daemon.living import ROOT

CLOSED = ("0>&-", "1>&-", "2>&-", "0>&- 1>&- 2>&-", "0>&- 2>&-")


def typed(place: Path, command: str, closed: str) -> subprocess.CompletedProcess[bytes]:
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(place),
           "AGENT_NODE_HOME": str(place / "iris")}  # fmt: skip
    return subprocess.run(["/bin/sh", "-c", f"exec {sys.executable} -m {command} {closed}"],
                          env=env, cwd=place, capture_output=True, timeout=60,
                          check=False)  # fmt: skip


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    ("command", "code"),
    [("agent_node version", 0), ("agent_node --json status", 2), ("arc --version", 0),
     ("arc --json --fleet none.yaml status", 2)],
)  # fmt: skip
def test_a_closed_stream_is_no_fault(
    tmp_path: Path, command: str, code: int, closed: str
) -> None:
    """Seen to fail: tracebacks, of each of them, and exit 1 or 120."""
    ran = typed(tmp_path, command, closed)
    assert (ran.returncode, b"Traceback" in ran.stderr) == (code, False)
    assert bool(ran.stdout) is ("1>&-" not in closed)


def test_what_is_opened_next_never_takes_the_place_of_a_stream(tmp_path: Path) -> None:
    """Seen to fail: with stderr closed, the queue's database was descriptor 2."""
    (tmp_path / "looks.py").write_text(
        "from agent_node.standing_streams import open_all\n"
        "open_all()\n"
        "import os, subprocess, sys\n"
        "opened = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "print('x', file=sys.stderr)\n"
        "sys.stdin.buffer.read()\n"
        "subprocess.run(['/bin/sh', '-c', 'echo y >&2 && cat'], check=True, close_fds=False)\n"
        "os.write(opened, b'%d' % (opened > 2))\n"
    )
    ran = typed(tmp_path, "looks queue.db", "0>&- 1>&- 2>&-")
    assert (ran.returncode, (tmp_path / "queue.db").read_text()) == (0, "1")
