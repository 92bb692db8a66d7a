"""Gives each test a daemon of its own to play, and takes it down whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_node.processes import become_subreaper, reap_children
from agent_node.zygote_link import Zygote
from tests.node.processes.harness import FakeDaemon, children_of_ours, open_descriptors, wait_until

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
