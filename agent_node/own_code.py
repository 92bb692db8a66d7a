"""Puts this very program into a nameless file, for a process that may not read where it lies."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from pathlib import Path

_ALL_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@cache
def own_code() -> int:
    """A descriptor of a zip with all our modules, which nobody can change any more.

    It is made once, before anything can have replaced the program, and stays open.
    """
    content = b"#!/usr/bin/env python3\n" + _zip()
    descriptor = os.memfd_create("agent-node", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    written = 0
    while written < len(content):
        written += os.write(descriptor, memoryview(content)[written:])
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return descriptor


def _zip() -> bytes:
    """The zipapp we run from without its first line; or the sources, packed without bytecode."""
    package = Path(__file__).parent
    if package.parent.is_file():
        return package.parent.read_bytes().split(b"\n", 1)[1]
    from .packing import MAIN, zipped

    sources = sorted(package.rglob("*.py"))
    members = {source.relative_to(package.parent).as_posix(): source.read_bytes()
               for source in sources}  # fmt: skip
    return zipped({"__main__.py": MAIN, **members})
