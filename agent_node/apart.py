"""Starts a process that belongs to nobody: it outlives the session and the daemon it came from."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from . import program
from .home import Home
from .open_files import as_given
from .processes import become_subreaper, is_subreaper

REPLACE = signal.SIGUSR1  # what tells a daemon to make room for the home's current program
LOG = "upgrade.log"  # beside the programs: what whoever carries an upgrade out says
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # a folder, or the zipapp
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from importlib import import_module;"
    " sys.exit(import_module(sys.argv[2]).main(*sys.argv[3:]))"
)
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
_STDERR = 2
_FAILED = 71  # what sysexits.h calls an error of the system


def start_upgrader(home: Home) -> None:
    """Start the process that carries out the upgrade which is recorded at this home."""
    log = program.folder_of(home) / LOG
    log.unlink(missing_ok=True)  # the last one's
    start_module("agent_node.upgrader", str(home.root), output=log)


def spawn(argv: Sequence[str], environ: Mapping[str, str], output: Path) -> int:
    """A child in a session of its own: it reads nothing, and appends what it says to a file.

    Nothing else that is open here is open there: somebody may wait for the end of a pipe.
    """
    hand_nothing_on()
    opens = ((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
             (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
             (os.POSIX_SPAWN_OPEN, 2, str(output), _APPEND, 0o600))  # fmt: skip
    with as_given():
        return os.posix_spawnp(
            argv[0], [*argv], environ, file_actions=opens, setsid=True, setsigmask=()
        )


def hand_nothing_on() -> None:
    """No program that is started or becomes of this process inherits anything beyond 0, 1 and 2."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the listing's own descriptor is gone by now
            if number > _STDERR:
                os.set_inheritable(number, False)  # noqa: FBT003 - the standard library's


def start_module(module: str, *words: str, output: Path) -> None:
    """Run `main` of this module, of this very program, as no descendant of this process.

    A daemon ends every child that it does not know; this one is handed to whoever reaps here.
    """
    argv = [sys.executable, "-I", "-S", "-c", _START, _ROOT, module, *words]
    reaps = is_subreaper()
    if reaps:
        become_subreaper(on=False)
    try:
        if not _between(argv, output):
            raise OSError(f"{module} could not be started")
    finally:
        if reaps:
            become_subreaper()


def _between(argv: Sequence[str], output: Path) -> bool:
    """A process in between starts it and ends at once, so that it is no child of ours."""
    pid = os.fork()
    if pid == 0:
        code = _FAILED
        try:
            spawn(argv, os.environ, output)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
