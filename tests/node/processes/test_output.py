"""Claims about logs of bounded size."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.output import HeadAndTail


def a_log(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


@given(chunks=st.lists(st.binary(max_size=40)), cap=st.integers(0, 30))
def test_head_and_tail_are_kept_and_the_middle_is_counted(chunks: list[bytes], cap: int) -> None:
    log = os.memfd_create("log")
    keeper = HeadAndTail(log, cap)
    for chunk in chunks:
        keeper.take(chunk)
    count = keeper.finish()
    whole = b"".join(chunks)
    kept = os.pread(log, 10_000, 0)
    os.close(log)

    assert count.bytes == len(whole)
    if len(whole) <= cap:
        assert kept == whole
        assert count.dropped == 0
    else:
        head, tail = whole[: cap - cap // 2], whole[len(whole) - cap // 2 :]
        assert count.dropped == len(whole) - cap
        assert kept.startswith(head)
        assert kept.endswith(tail)
        assert f"{count.dropped} bytes dropped here".encode() in kept


def test_the_head_is_in_the_file_at_once(tmp_path: Path) -> None:
    log = a_log(tmp_path / "log")
    keeper = HeadAndTail(log, 100)
    keeper.take(b"first words")

    assert (tmp_path / "log").read_bytes() == b"first words"
    keeper.finish()
    os.close(log)


def test_a_disk_that_refuses_is_counted_and_never_raised(tmp_path: Path) -> None:
    """The limit on file size stands in for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    log = a_log(tmp_path / "log")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        keeper = HeadAndTail(log, 100)
        keeper.take(b"x" * 30)
        count = keeper.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
        os.close(log)

    assert count == (30, 20)
    assert (tmp_path / "log").read_bytes() == b"x" * 10


def test_a_closed_log_loses_bytes_and_not_the_program() -> None:
    keeper = HeadAndTail(os.open(os.devnull, os.O_RDONLY), 100)
    keeper.take(b"lost")

    assert keeper.finish() == (4, 4)


@pytest.mark.parametrize("cap", [1000])
def test_memory_is_bounded_by_half_the_cap(cap: int) -> None:
    keeper = HeadAndTail(os.open(os.devnull, os.O_WRONLY), cap)
    for _ in range(10_000):
        keeper.take(b"y" * 64)

    assert len(keeper._tail._kept) == cap // 2
