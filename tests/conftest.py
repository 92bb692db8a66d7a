"""Makes every run of the tests the same run, and shared asserts explain themselves."""

from __future__ import annotations

import os
import posix
from collections.abc import Iterator

import pytest
from hypothesis import settings

from agent_node import wreck

ROOM = 4 * 1024**3  # bytes that must be free in memory before tests use it as their disk

pytest.register_assert_rewrite("tests.builders", "tests.store_contract", "tests.node.store")
# A test that fails has to fail again: examples come from the code, not from chance. The soak tests
# say otherwise in their own settings.
settings.register_profile("steady", derandomize=True, database=None, deadline=None)
settings.load_profile("steady")


for _said_by_sshd in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"):
    # In an old login each real `serve` would refuse to begin, and one of this process, too.
    os.environ.pop(_said_by_sshd, None)
    posix.environ.pop(_said_by_sshd.encode(), None)


def pytest_configure(config: pytest.Config) -> None:
    """Homes of tests lie in memory where there is room: thousands of them fsync all the time."""
    shm = "/dev/shm"
    if os.access(shm, os.W_OK) and os.statvfs(shm).f_bavail * os.statvfs(shm).f_frsize > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", shm)


_wrecks: list[object] = []  # of all tests: nobody closes them, as in a process that ends


@pytest.fixture(autouse=True)
def _no_wreck_of_another_test() -> Iterator[None]:
    """A connection over a disk that failed in one test would end what the next ones start here."""
    yield
    _wrecks.extend(wreck._LEFT)
    wreck._LEFT.clear()
