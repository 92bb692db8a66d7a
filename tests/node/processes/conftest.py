"""Gives each test a daemon of its own to play, and takes it down whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from agent_node import cgroups
from agent_node.processes import become_subreaper, reap_children
from agent_node.zygote_link import Zygote
from tests.node.processes.harness import FakeDaemon, children_of_ours, open_descriptors, wait_until
from tools.laboratory import cgroup_base

RestartAt = Callable[[str], None]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[FakeDaemon]:
    """Afterwards no descriptor and no child may be left: every test checks for leaks."""
    before = open_descriptors()
    known = set(children_of_ours(but=0))
    become_subreaper()
    zygote = Zygote()
    zygote.start()
    yield FakeDaemon(tmp_path, zygote)
    zygote.close()
    wait_until(lambda: reap_children(keep=known) == 0 and set(children_of_ours(but=0)) <= known)
    become_subreaper(on=False)
    assert open_descriptors() <= before


@pytest.fixture
def at(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> RestartAt:
    """A zygote whose family meets this failpoint."""

    def restart(failpoint: str) -> None:
        monkeypatch.setenv("ARC_FAILPOINT", failpoint)
        daemon.zygote.start()
        monkeypatch.delenv("ARC_FAILPOINT")

    return restart


@pytest.fixture
def real_base() -> Iterator[str]:
    """A cgroup of this test's own, where the machine lets us make one."""
    if cgroup_base() is None:
        pytest.skip("needs cgroup: no part of the tree of version 2 is ours to divide")
    base = f"{cgroup_base()}/arc-test-{os.getpid()}"
    os.mkdir(base)
    yield base
    for entry in os.scandir(base):
        if entry.is_dir():
            wait_until(partial(cgroups.remove, entry.path))
    os.rmdir(base)
