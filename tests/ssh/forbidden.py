"""Tries what a task must not be able to do to its node; a program of its own, for any user.

    python forbidden.py HOME KEYS OTHER_ATTEMPT DAEMON_PID SHIM_PID

It prints a JSON object: each deed, and "done" or the name of the error that stopped it. Whatever
it can do it does harmlessly, so that the node's owner can show that each deed is possible at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
HERE = Path(__file__)


def read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def write(path: str) -> None:
    with open(path, "r+b") as file:
        file.write(b"")


def put_in(folder: str) -> None:
    path = f"{folder}/.forbidden"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(path)


def trace(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(pid, 0)
    libc.ptrace(PTRACE_DETACH, pid, None, None)


def use_what_it_has_open(pid: int) -> None:
    """A shim has its attempt's folder open, and the folder where the daemon hears tasks.

    What was closed since it was listed is no refusal: a daemon at work opens and closes all day.
    """
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            os.stat(f"/proc/{pid}/fd/{number}")


Deed = Callable[[], None]


def deeds(home: str, keys: str, other: str, daemon: int, shim: int) -> dict[str, Deed]:
    return {
        "read the queue": lambda: read(f"{home}/queue.db"),
        "write the queue": lambda: write(f"{home}/queue.db"),
        "read the settings": lambda: read(f"{home}/node.toml"),
        "read who may operate it": lambda: read(f"{home}/operators"),
        "read who may log in": lambda: read(f"{keys}/authorized_keys"),
        "write who may log in": lambda: write(f"{keys}/authorized_keys"),
        "read a hub's key": lambda: read(f"{keys}/hub_key"),
        "replace the status": lambda: put_in(home),
        "connect to the node's socket": lambda: connect(f"{home}/node.sock"),
        "read another attempt's output": lambda: read(f"{other}/stdout.log"),
        "write into another attempt's folder": lambda: put_in(other),
        "signal the daemon": lambda: os.kill(daemon, 0),
        "trace the daemon": lambda: trace(daemon),
        "read the daemon's environment": lambda: read(f"/proc/{daemon}/environ"),
        "use what another attempt's shim has open": lambda: use_what_it_has_open(shim),
        "trace another attempt's shim": lambda: trace(shim),
    }


def tried(deed: Deed) -> str:
    try:
        deed()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def main(words: list[str]) -> int:
    home, keys, other, daemon, shim = words
    todo = deeds(home, keys, other, int(daemon), int(shim))
    sys.stdout.write(json.dumps({name: tried(deed) for name, deed in todo.items()}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
