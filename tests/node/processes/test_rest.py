"""A spare shim rehearses once it is at rest, and not while one task follows the other."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator

import pytest

from agent_node import zygote
from agent_node.processes import Identity, read_boot_id


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    daemon, spare = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with daemon, spare:
        yield daemon, spare


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Identity]]:
    """Who rehearsed; of what makes a process a spare nothing happens to this one."""
    found: list[Identity] = []
    monkeypatch.setattr(zygote, "rehearse", found.append)
    monkeypatch.setattr(zygote, "die_with_parent", lambda *, on: None)
    monkeypatch.setattr(zygote, "become_subreaper", lambda: None)
    monkeypatch.setattr(os, "setsid", lambda: None)
    before = signal.getsignal(signal.SIGCHLD)
    yield found
    signal.signal(signal.SIGCHLD, before)


def get_ready(spare: socket.socket) -> None:
    setting = zygote._Setting(os.getppid(), read_boot_id(), "")
    kit = zygote._get_ready(spare, setting)
    for number in (*kit.stdout, *kit.stderr, *kit.wake):
        os.close(number)


def test_a_spare_at_rest_rehearses(
    ends: tuple[socket.socket, socket.socket], rehearsed: list[Identity]
) -> None:
    get_ready(ends[1])
    assert [one.pid for one in rehearsed] == [os.getpid()]


def test_one_for_which_work_waits_begins_without(
    ends: tuple[socket.socket, socket.socket], rehearsed: list[Identity]
) -> None:
    ends[0].send(b"work")
    get_ready(ends[1])
    assert rehearsed == []


def test_one_whose_daemon_has_gone_does_not_rehearse_either(
    ends: tuple[socket.socket, socket.socket], rehearsed: list[Identity]
) -> None:
    ends[0].close()
    get_ready(ends[1])
    assert rehearsed == []
