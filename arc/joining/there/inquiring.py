"""Says which program lies in a home, and which one its daemon runs."""

from __future__ import annotations

import os
import socket
import struct

from .looking import LINK, PROGRAM
from .placing import run_program
from .words import Fact, Refused, checked_path

VERSION_S = 15.0
ANSWER_S = 5.0
_UCRED = "3i"


def version(request: Fact) -> Fact:
    """The version of the program that lies in this home, as it says itself; empty: it does not."""
    home = checked_path(request.get("home"), "the node's home")
    try:
        data = run_program(home, ["version"], VERSION_S)["data"]
    except Refused:
        return {"version": ""}
    said = data.get("version") if isinstance(data, dict) else None
    return {"version": said if isinstance(said, str) else ""}


def daemon(request: Fact) -> Fact:
    """The daemon that listens at this home by the kernel's word: its pid, 0: none; and its file.

    `program` is the name of the file that it was started from; empty: that cannot be told.
    `current` is the name of the one that the link leads to now.
    """
    home = checked_path(request.get("home"), "the node's home")
    folder = os.path.join(home, PROGRAM)
    pid = _listener(home)
    try:
        current = os.path.basename(os.readlink(os.path.join(folder, LINK)))
    except OSError:
        current = ""
    return {"pid": pid, "program": _started_from(pid, folder) if pid else "", "current": current}


def _listener(home: str) -> int:
    try:
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.settimeout(ANSWER_S)
        door.connect(f"/proc/self/fd/{folder}/node.sock")  # a home's path may be too long for it
        papers = door.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_UCRED))
    except OSError:
        return 0
    finally:
        door.close()
        os.close(folder)
    pid: int = struct.unpack(_UCRED, papers)[0]
    return pid


def _started_from(pid: int, folder: str) -> str:
    """A daemon keeps the file that it was started from open."""
    own = os.path.realpath(folder)
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            path = os.readlink(f"/proc/{pid}/fd/{number}").removesuffix(" (deleted)")
            if os.path.dirname(path) == own and path.endswith(".pyz"):
                return os.path.basename(path)
    except OSError:
        return ""
    return ""
