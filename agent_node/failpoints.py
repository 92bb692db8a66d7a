"""Named places where a test may make the node die, stop or meet a failing disk."""

from __future__ import annotations

import errno
import os

_NAME, _, _REST = os.environ.get("ARC_FAILPOINT", "").partition(":")
_ACTION, _, _NTH = _REST.partition(":")
_left = int(_NTH) if _NTH.isdigit() else 1
_SEEN = os.environ.get("ARC_FAILPOINT_SEEN", "")


def failpoint(name: str) -> None:
    """Do nothing, unless ARC_FAILPOINT=name:action[:nth] names this place and its turn has come.

    Then it is first noted in the file that ARC_FAILPOINT_SEEN names, if any, by name and process.
    """
    if name == _NAME:
        _reach(name)


def _reach(name: str) -> None:
    global _left  # noqa: PLW0603 - the count of passes is the process's own
    _left -= 1
    if _left != 0:
        return
    import signal

    if _SEEN:
        _note(name)
    if _ACTION == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif _ACTION == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif _ACTION in ("EIO", "ENOSPC"):
        number = getattr(errno, _ACTION)
        raise OSError(number, os.strerror(number), f"failpoint {name}")
    else:
        raise ValueError(f"ARC_FAILPOINT: {_ACTION!r} is not kill, stop, EIO or ENOSPC")


def _note(name: str) -> None:
    seen = os.open(_SEEN, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(seen, f"{name} {os.getpid()}\n".encode())
    finally:
        os.close(seen)
