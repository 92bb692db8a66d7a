"""Named places where a test may make the node die, stop or meet a failing disk."""

from __future__ import annotations

import errno
import os

_ARMED: dict[str, tuple[str, int]] = {}  # by name: what happens there, and at which pass
_ONCE: set[str] = set()  # of these, at the first pass of all processes together
for _one in os.environ.get("ARC_FAILPOINT", "").split(","):
    _name, _, _rest = _one.partition(":")
    _action, _, _nth = _rest.partition(":")
    _ARMED[_name] = _action, int(_nth) if _nth.isdigit() else 1
    if _nth == "once":
        _ONCE.add(_name)
_SEEN = os.environ.get("ARC_FAILPOINT_SEEN", "")


def failpoint(name: str) -> None:
    """Do nothing, unless ARC_FAILPOINT=name:action[:nth],… names this place and its turn has come.

    Then it is first noted in the file that ARC_FAILPOINT_SEEN names, if any, by name and process.
    `once` for nth: this process's first pass, unless that file has the name already.
    """
    if name in _ARMED:
        _reach(name)


def _reach(name: str) -> None:
    action, left = _ARMED[name]  # the count of passes is the process's own
    _ARMED[name] = action, left - 1
    if left != 1 or (name in _ONCE and _was_noted(name)):
        return
    import signal

    if _SEEN:
        _note(name)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action in ("EIO", "ENOSPC"):
        number = getattr(errno, action)
        raise OSError(number, os.strerror(number), f"failpoint {name}")
    else:
        raise ValueError(f"ARC_FAILPOINT: {action!r} is not kill, stop, EIO or ENOSPC")


def _was_noted(name: str) -> bool:
    try:
        with open(_SEEN, encoding="ascii") as seen:
            return any(line.split()[0] == name for line in seen)
    except FileNotFoundError:
        return False


def _note(name: str) -> None:
    seen = os.open(_SEEN, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(seen, f"{name} {os.getpid()}\n".encode())
    finally:
        os.close(seen)
