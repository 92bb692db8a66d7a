"""Is the floor below a steal: four durable messages for one task, then the start of its program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .measuring import Place
from .moving import Pair, floor_pair, plain_tasks
from .work import as_task

NAME = "the floor: escrow, hold, commit, activate of one task by hand, then posix_spawn"
TIMES = "ours : that floor"


@contextmanager
def bare_steal(place: Place, program: str, count: int) -> Iterator[Callable[[], float]]:
    """Milliseconds up to what the program itself printed, each time for another task.

    No hub looks, nobody plans, nothing is claimed: who gives what to whom stands there before.
    """
    body = place.folder / "body"
    body.write_text("0\n")
    tasks = [as_task(plain) for plain in plain_tasks(count)]
    with floor_pair(place, "floor-steal", tasks, batch=1) as pair:
        yield lambda: _steal_ms(pair, program, str(body))


def _steal_ms(pair: Pair, program: str, body: str) -> float:
    near, far = os.pipe()
    began = time.time()
    pair.move()
    pid = os.posix_spawn(program, [program], os.environ, file_actions=(
        (os.POSIX_SPAWN_OPEN, 0, body, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, far, 1),
    ))  # fmt: skip
    os.close(far)
    os.waitpid(pid, 0)
    with os.fdopen(near, "rb") as printed:
        start, _ = printed.read().split()
    return 1000 * (float(start) - began)
