"""Lets a hub be asked to end by its terminal or its machine."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals(ended: asyncio.Event) -> Iterator[None]:
    """SIGTERM and SIGINT end the hub in order. Only the main thread hears signals."""
    loop = asyncio.get_running_loop()
    heard: list[signal.Signals] = []
    for one in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(one, ended.set)
        except (RuntimeError, ValueError, NotImplementedError):
            continue
        heard.append(one)
    try:
        yield
    finally:
        for one in heard:
            loop.remove_signal_handler(one)
