"""Writes one line of fields for each thing worth knowing; never a subject, a body or a key."""

from __future__ import annotations

import json
import os
import sys

from .clock import SystemClock, iso

_CLOCK = SystemClock()


def log(event: str, **fields: str | float | None) -> None:
    """`event` is a noun and what happened to it; the fields are always called the same.

    A log that cannot be written ends nothing: what it would tell of is worse.
    """
    line = {"at": iso(_CLOCK.now()), "event": event, **fields}
    try:
        print(json.dumps(line, ensure_ascii=True), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        # What could not be written stays in the buffer, and would make the exit fail once more.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
