"""Finds the places at which a program of ours says that it broke by a mistake of ours."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import TimeoutExpired

SHOWN = 300
# Python's own words; then arc's and agent-node's, in a line for people and as JSON, and in the log
# of a daemon, which answers a request that broke it and goes on.
_BROKE = re.compile(
    r"Traceback \(most recent call last\)|ARC-FAULT|error\[fault\]"
    r"|[\"']code[\"']: ?[\"']fault[\"']|[\"']event[\"']: ?[\"']request_failed[\"']"
)


def faults_in(text: str) -> list[str]:
    """What is said from each such place on; a mark soon after another tells of the same fault."""
    found, after = list[str](), 0
    for mark in _BROKE.finditer(text):
        if mark.start() >= after:
            after = mark.start() + SHOWN
            found.append(text[mark.start() : after].strip())
    return found


def faults_of(error: Exception) -> list[str]:
    """The same of an error that somebody catches: in its words, or in what it could not read."""
    said = [str(error), str(getattr(error, "doc", ""))]
    if isinstance(error, TimeoutExpired):
        said += [(part or b"").decode(errors="replace") for part in (error.stdout, error.stderr)]
    return [fault for text in said for fault in faults_in(text)]


def faults_in_log(log: Path) -> list[str]:
    """The same of a log; one that is not there tells of none."""
    if not log.exists():
        return []
    return [f"{log}: {said}" for said in faults_in(log.read_text("utf-8", errors="replace"))]
