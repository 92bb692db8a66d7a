"""Looks for rubbish seldom, in a process that keeps most of what it has for as long as it lives."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# By Python's own 700, 10 and 10 a hub looks through all that it knows in the middle of a steal.
# Hardly anything of ours is a circle, which counting alone does not free.
_SELDOM = (20_000, 20, 50)


@contextmanager
def seldom() -> Iterator[None]:
    """Within this; afterwards as before."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
