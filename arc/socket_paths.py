"""Lets a socket lie at a path of any length: the kernel itself takes 107 bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reached(path: Path) -> Iterator[str]:
    """While this lasts, a short name for the same place; `OSError` where its folder is not."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
