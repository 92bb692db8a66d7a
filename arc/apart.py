"""Does what may block for long in a thread of its own, which keeps no process from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Value = TypeVar("Value")


async def apart(
    work: Callable[[], Value], *, name: str, may_raise: tuple[type[Exception], ...]
) -> Value:
    """What `work` gives, or one of those that it may raise; anything else is a fault of ours.

    The loop's own threads are few, and looking up a machine's name needs one of them: what may
    hang must not hang there. Whoever stops waiting leaves the thread behind, so bound it inside.
    """
    done: Future[Value] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except may_raise as error:
            done.set_exception(error)
        finally:
            if not done.done():
                done.set_exception(RuntimeError(f"{name}: ended early"))

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)
