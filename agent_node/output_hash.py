"""Hashes what a task left, so that whoever is given it knows whether it was changed. Pure."""

from __future__ import annotations

import hashlib

from .compact import writer
from .strict import JsonValue

OUTPUT_SHA256 = "output_sha256"  # its name in the event of an end, and in `show`
canonical = writer(sorted_keys=True)  # the text that both ends hash: compact, sorted, and UTF-8


def digest(text: str) -> str:
    """Its sha256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_output(output: JsonValue) -> str | None:
    """The hash by which an output is known; None: there is no output."""
    return None if output is None else digest(canonical(output))


def is_as_told(output: JsonValue, sha256: str | None) -> bool:
    """Whether it is what its task left; where nobody told its hash that cannot be known."""
    return sha256 is None or hash_of_output(output) == sha256
