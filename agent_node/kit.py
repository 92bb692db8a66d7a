"""What a shim has made ready before its work comes: pipes, and an ear for signals."""

from __future__ import annotations

import json
import os
import signal
from typing import NamedTuple

from .processes import Identity

_SIGNALS_MAX = 65_536  # a pipe holds no more of them


class Kit(NamedTuple):
    """What a waiting shim has made ready, so that none of it costs time once work comes."""

    me: Identity
    cgroup: str | None
    stdout: tuple[int, int]
    stderr: tuple[int, int]
    wake: tuple[int, int]
    entry: str  # shim.json up to the token, which only a job brings


def make_kit(me: Identity, cgroup: str | None) -> Kit:
    """Pipes whose near ends never block; everything closes by itself when a program starts."""
    entry = json.dumps({**me._asdict(), "cgroup": cgroup}).removesuffix("}") + ', "token": '
    kit = Kit(me, cgroup, os.pipe(), os.pipe(), os.pipe(), entry)
    for number in (kit.stdout[0], kit.stderr[0], *kit.wake):
        os.set_blocking(number, False)
    return kit


def renew(kit: Kit, cgroup: str | None) -> Kit:
    """Another one for another attempt: of these pipes nobody has held an end, nor filled them."""
    for number in kit.wake:
        os.close(number)
    return make_kit(kit.me, cgroup)


def listen_for_signals(kit: Kit) -> None:
    """From now on each SIGCHLD and SIGTERM is a byte in the wake pipe."""
    signal.set_wakeup_fd(kit.wake[1], warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _heard)


def listen_no_more() -> None:
    """As it was before."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def was_asked_to_stop(kit: Kit) -> bool:
    """Whether a SIGTERM came that nobody has heeded. One that comes from here on ends whoever is
    not listening: what was meant for one attempt, or for none, never stops the next.
    """
    listen_no_more()
    try:
        return signal.SIGTERM in os.read(kit.wake[0], _SIGNALS_MAX)
    except BlockingIOError:
        return False


def _heard(number: int, frame: object) -> None:
    """The byte in the wake pipe says it all; Python only needs somebody to call."""
