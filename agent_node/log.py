"""Writes one line of fields for each thing worth knowing; never a subject, a body or a key."""

from __future__ import annotations

import json
import os
import sys
from io import UnsupportedOperation

from .clock import SystemClock, iso

_CLOCK = SystemClock()


def log(event: str, **fields: str | float | None) -> None:
    """`event` is a noun and what happened to it; the fields are always called the same.

    A log that cannot be written ends nothing: what it would tell of is worse.
    """
    line = json.dumps({"at": iso(_CLOCK.now()), "event": event, **fields}, ensure_ascii=True)
    try:
        # Unbuffered: what a full disk did not take must not be tried again at the exit.
        os.write(sys.stderr.fileno(), line.encode() + b"\n")
    except UnsupportedOperation:
        print(line, file=sys.stderr)  # somebody reads along inside this process
    except (OSError, ValueError):
        return
