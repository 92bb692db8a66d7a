"""Sees to it that descriptors 0, 1 and 2 are open, so that no file of ours ever becomes one."""

from __future__ import annotations

import posix
import sys

_NAMES = ("stdin", "stdout", "stderr")
_HOW = ("r", "w", "w")


def open_all() -> None:
    """Put /dev/null where whoever started us closed one. What is written there is lost, as they
    wished; the queue's database, opened next, would else take the errors for itself.
    """
    for descriptor, (name, how) in enumerate(zip(_NAMES, _HOW, strict=True)):
        try:
            posix.fstat(descriptor)
        except OSError:
            _fill(descriptor)
        if getattr(sys, name) is None:
            stream = open(descriptor, how, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _fill(descriptor: int) -> None:
    """The lowest free one is opened; those below it are open by now."""
    opened = posix.open("/dev/null", posix.O_RDWR)
    if opened != descriptor:
        posix.dup2(opened, descriptor)
        posix.close(opened)
    posix.set_inheritable(descriptor, True)  # noqa: FBT003 - its own form
