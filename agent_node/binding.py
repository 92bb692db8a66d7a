"""Listens and connects at paths of any length; a listening socket appears in one step."""

from __future__ import annotations

import os
import select
import socket
import time
from pathlib import Path

BACKLOG = 128
KNOCK_EVERY_S = 0.02


def listen_at(path: Path, mode: int) -> socket.socket:
    """A socket that answers at `path`, in the place of what may have been left there.

    It appears by a rename, already listening, so that nobody ever meets a socket that refuses.
    """
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    fresh = path.with_name(f"{path.name}.new")
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fresh.unlink(missing_ok=True)
        # The kernel takes 107 bytes of path; through the folder's descriptor any home fits.
        door.bind(f"/proc/self/fd/{folder}/{fresh.name}")
        os.chmod(fresh, mode)
        door.listen(BACKLOG)
        os.rename(fresh, path)
    except BaseException:
        door.close()
        raise
    finally:
        os.close(folder)
    return door


def connect_at(path: Path, *, timeout_s: float) -> socket.socket:
    """A connection to who listens there; FileNotFoundError or ConnectionRefusedError: nobody.

    TimeoutError: somebody does, and lets nobody in; the kernel lets so many callers wait.
    """
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    door.settimeout(timeout_s)
    folder = -1
    try:
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        _knock(door, f"/proc/self/fd/{folder}/{path.name}", time.monotonic() + timeout_s)
    except BaseException:
        door.close()
        raise
    finally:
        if folder >= 0:
            os.close(folder)
    return door


def _knock(door: socket.socket, place: str, until: float) -> None:
    """A socket with a limit does not wait in the crowd by itself: it is told to try again."""
    while True:
        try:
            return door.connect(place)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                text = "so many wait there that nobody is let in"
                raise TimeoutError(error.errno, text) from error
        select.select([], [], [], KNOCK_EVERY_S)
