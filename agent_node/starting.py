"""Starts the daemon where none runs, and comes back when it answers."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import daemon_log, program
from .apart import spawn
from .door import ask_daemon
from .errors import NodeError
from .home import Home
from .opening import daemon_of
from .systemd import quoted

PATIENCE_S = 10.0
ANSWER_S = 5.0
SYSTEMD_S = 10.0
LOOK_EVERY_S = 0.05
UNIT = "agent-node.service"
_UCRED = "3i"

Said = Callable[[], str]


class CannotStart(NodeError):
    """The daemon was started and does not answer, or could not be started."""

    code = "cannot_start"
    hint = "agent-node doctor; what it said stands in daemon.log, or in: journalctl --user"


@dataclass(frozen=True)
class Started:
    """A daemon that answers, and how it came to run."""

    pid: int
    how: Literal["already", "systemd", "detached"]


def start_daemon(
    home: Home, command: Sequence[str], environ: Mapping[str, str], *,
    patience_s: float = PATIENCE_S,
) -> Started:  # fmt: skip
    """Leave a daemon running that answers; one that runs already is left alone.

    One that is about to leave is waited for, and followed by another.
    """
    until = time.monotonic() + patience_s
    while (pid := daemon_pid(home)) is not None:
        left = until - time.monotonic()
        if left <= 0:
            raise CannotStart(f"{home.root}: pid {pid} is leaving, or hangs: it takes no work")
        if program_that_answers(home, timeout_s=min(left, ANSWER_S)) is not None:
            return Started(pid, "already")
        select.select([], [], [], LOOK_EVERY_S)
    if has_unit(home, environ):
        systemctl("restart", environ)
        return Started(_answering(home, until, None, _of_systemd), "systemd")
    log = daemon_log.path_of(home)
    daemon_log.shorten(home)
    said = daemon_log.size_of(log)
    own = {**environ, "AGENT_NODE_HOME": str(home.root)}
    child = spawn([*command, "run"], own, log)
    pid = _answering(home, until, os.pidfd_open(child), lambda: daemon_log.last_words(log, said))
    return Started(pid, "detached")


def daemon_pid(home: Home) -> int | None:
    """The process that listens at this home, by the kernel's own word; None: nobody does."""
    door = daemon_of(home, timeout_s=ANSWER_S)
    if door is None:
        return None
    with door:
        size = struct.calcsize(_UCRED)
        papers = door.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid: int = struct.unpack(_UCRED, papers)[0]
    return pid


def program_that_answers(home: Home, *, timeout_s: float = ANSWER_S) -> str | None:
    """The id of the program whose daemon dispatches here now, empty where it has none.

    None: no daemon answers, or it does not dispatch.
    """
    try:
        said = ask_daemon(home, {"do": "status"}, timeout_s=timeout_s)
    except (NodeError, OSError):
        return None
    if said is None or said.get("dispatcher") != "running":
        return None
    return str(said.get("program") or "")


def _answering(home: Home, until: float, child: int | None, last_words: Said) -> int:
    """The daemon's pid, once it dispatches; `CannotStart` with what it said before it ended."""
    try:
        while time.monotonic() < until:
            pid = daemon_pid(home)
            if pid is not None and program_that_answers(home) is not None:
                return pid
            if child is not None and select.select([child], [], [], LOOK_EVERY_S)[0]:
                raise CannotStart(f"{home.root}: the daemon ended at once: {last_words()}")
            if child is None:
                select.select([], [], [], LOOK_EVERY_S)
    finally:
        if child is not None:
            os.close(child)
    raise CannotStart(f"{home.root}: the daemon does not answer yet: {last_words() or 'no word'}")


def has_unit(home: Home, environ: Mapping[str, str]) -> bool:
    """Whether systemd keeps a unit of ours for this home, and answers."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", "/"), ".config")
    unit = Path(config, "systemd", "user", UNIT)
    try:
        ours = quoted(f"AGENT_NODE_HOME={home.root}") in unit.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return ours and _systemctl(["is-enabled", UNIT], environ) == 0


def systemctl(
    verb: Literal["start", "stop", "restart"], environ: Mapping[str, str], *,
    patience_s: float = SYSTEMD_S,
) -> None:  # fmt: skip
    """Let systemd do this to our unit; `CannotStart` when it says no, or not yet."""
    if _systemctl([verb, UNIT], environ, patience_s) != 0:
        raise CannotStart(f"systemctl --user {verb} {UNIT} failed")


def _systemctl(
    words: Sequence[str], environ: Mapping[str, str], patience_s: float = SYSTEMD_S
) -> int | None:
    """Its exit code; None: there is no systemd, or it does not answer."""
    try:
        done = subprocess.run(
            ["systemctl", "--user", "--no-pager", *words], env=dict(environ), check=False,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode


def _of_systemd() -> str:
    return f"see: journalctl --user -u {UNIT}"


def start_command(home: Home) -> list[str]:
    """The home's current program, by its own name; only where it has one."""
    current = program.current(home)
    if current is None:
        raise CannotStart(f"{home.root}: has no program of its own to start")
    return program.start_words(current)
