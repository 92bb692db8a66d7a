"""Tells a want of descriptors from a broken file, and says it in one line a minute."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_node.clock import Clock

from .errors import MachineFailed, StateBroken, machine_failed

EVERY_S = 60.0
CANTOPEN = 14  # SQLite's word for it
NEEDED = 4  # what SQLite opens at once: the file, its log, its index and the folder


@contextmanager
def no_fault_of_the_file() -> Iterator[None]:
    """A file that cannot be opened for want of descriptors is sound, and nobody has to move it."""
    try:
        yield
    except StateBroken as error:
        if (failed := _want_of_descriptors(error.__cause__)) is not None:
            raise failed from error
        raise


def _want_of_descriptors(error: BaseException | None) -> MachineFailed | None:
    """The same error as this machine's; None: it is another one. SQLite says no more than that it
    cannot open a file, so it is tried whether anybody could.
    """
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return machine_failed(error)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != CANTOPEN:
        return None
    held: list[int] = []
    try:
        while len(held) < NEEDED:
            held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as full:
        return machine_failed(OSError(full.errno, full.strerror))  # not of that file
    finally:
        for one in held:
            os.close(one)
    return None


def say_what_is_exhausted(clock: Clock, who: str, say: Callable[[str], None]) -> None:
    """From now on the running loop tells of what this machine has too little of in one line, at
    most once a minute. All else that nobody caught is told as ever.
    """
    last_at = float("-inf")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last_at
        error = context.get("exception")
        if not isinstance(error, OSError) or machine_failed(error) is None:
            loop.default_exception_handler(context)
            return
        now = clock.boottime()
        if now - last_at >= EVERY_S:
            last_at = now
            say(_line(who, error))

    asyncio.get_running_loop().set_exception_handler(handle)


def _line(who: str, error: OSError) -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (f"{who} cannot answer who asks: {error.strerror} (ulimit -n is {soft} here); what runs"
            " goes on, and it tries again every second: end what asks so often, or raise the"
            " limit")  # fmt: skip
