"""Answers one JSON line at a time on stdin and stdout; what is asked for comes as data only."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO

from .inquiring import daemon, version
from .keyline import let_in, shut_out
from .launcher import launch
from .looking import look
from .placing import list_operators, place, settle_in
from .starting import start
from .words import Fact, Refused

MARK = b"arc-joining "
LINE_MAX = 48 * 1024 * 1024
IDLE_S = 900  # between two requests, such as while the hub's key is tried
DO: dict[str, Callable[[Fact], Fact]] = {
    "look": look, "place": place, "settle_in": settle_in, "list_operators": list_operators,
    "let_in": let_in, "shut_out": shut_out, "start": start,
    "version": version, "daemon": daemon, "launch": launch,
}  # fmt: skip


def talk(inward: BinaryIO, outward: BinaryIO) -> None:
    """Until nobody asks any more; an alarm ends what takes longer than it was given."""
    os.umask(0o077)
    _say(outward, {"ready": True})
    signal.alarm(IDLE_S)
    while line := inward.readline(LINE_MAX):
        request = json.loads(line)
        signal.alarm(int(request["deadline_s"]))
        _say(outward, answer(request))
        signal.alarm(IDLE_S)


def answer(request: Fact) -> Fact:
    """What came of one request, or why nothing did."""
    try:
        return {"ok": True, "result": DO[str(request["do"])](request)}
    except Refused as error:
        return {"ok": False, "code": error.code, "message": str(error), "hint": error.hint}
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return {"ok": False, "code": "os_error", "message": what, "hint": ""}


def _say(outward: BinaryIO, said: Fact) -> None:
    outward.write(MARK + json.dumps(said).encode() + b"\n")
    outward.flush()


def main() -> None:
    """The program's one entry."""
    talk(sys.stdin.buffer, sys.stdout.buffer)
