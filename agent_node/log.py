"""Writes one line of fields for each thing worth knowing; never a subject, a body or a key."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from .clock import SystemClock, iso

_CLOCK = SystemClock()


def log(event: str, **fields: str | float | None) -> None:
    """`event` is a noun and what happened to it; the fields are always called the same."""
    line = {"at": iso(_CLOCK.now()), "event": event, **fields}
    with suppress(OSError, ValueError):  # a full disk below stderr must not end what it is about
        os.write(sys.stderr.fileno(), json.dumps(line, ensure_ascii=True).encode() + b"\n")
