"""Ends, from the daemon, what a shim that died before its work was done has left behind."""

from __future__ import annotations

from collections.abc import Iterable

from . import cgroups
from .evidence import Leftovers
from .killing import kill_leftovers, kill_strays

_ROUNDS = 20


def end_strays(kept: Iterable[int]) -> None:
    """Whatever was handed to this process as the next subreaper, but for zygotes and shims."""
    spared = list(kept)
    for _ in range(_ROUNDS):
        if not kill_strays(spared):
            break


def end_leftovers(evidence: Leftovers) -> None:
    """What the evidence of one attempt names; whether it is gone, the next look will tell."""
    if evidence.cgroup is not None:
        cgroups.kill_all(evidence.cgroup)
    kill_leftovers(evidence.processes)
