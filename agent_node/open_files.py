"""Lets a daemon have as many files open as it may, and its programs no more than before."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

MAX = 65_536  # some three for each attempt that runs, and one for each talk


class _Limit:
    """The soft limit that this process was started with; None: it was not raised."""

    given: int | None = None


def raise_limit() -> None:
    """Take what the hard limit allows. A usual one is 1,024, and an attempt holds two for as long
    as it runs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX if hard == resource.RLIM_INFINITY else min(hard, MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    _Limit.given = soft


@contextmanager
def as_given() -> Iterator[None]:
    """What is started within this has the limit that we were given: our programs are not to find
    another one, and some take a file for each number below it.
    """
    if _Limit.given is None:
        yield
        return
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = raised[1]  # which somebody may have lowered since
    given = _Limit.given if hard == resource.RLIM_INFINITY else min(_Limit.given, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, raised)
