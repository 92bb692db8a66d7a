"""Faults that were found where a running node meets others: peers, files, settings, readers."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.builders import xfer
from tests.node.daemon.living import PATIENCE_S, ROOT, Node, until


def works(node: Node) -> None:
    """A task that comes now is done."""
    node.until(node.add("true"), "COMPLETED")


# Who talks to it.


@contextmanager
def a_serve(node: Node) -> Iterator[subprocess.Popen[bytes]]:
    """A `serve` whose hub does not read; it has been greeted."""
    serve = subprocess.Popen(
        [sys.executable, "-m", "agent_node", "serve", "--stdio"], cwd=ROOT, env=node.env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
    )  # fmt: skip
    try:
        yield serve
    finally:
        serve.kill()
        serve.wait()
        for pipe in (serve.stdin, serve.stdout):
            if pipe is not None:
                pipe.close()


def test_ctrl_c_on_a_serve_leaves_no_pipe_that_blocks_the_daemon(node: Node) -> None:
    """Fails when `serve` gives its pipes their old mode back while the daemon still has them.

    The daemon stands still meanwhile, so that it meets room in the pipe before the end of `serve`.
    """
    daemon = node.start()
    node.cli("pause")
    with node.one_talk() as talk:
        talk.ask("add", tasks=[{"subject": "s" * 500, "extra": {"a": "b" * 900}}] * 300)
    with a_serve(node) as serve:
        assert serve.stdin is not None
        assert serve.stdout is not None
        serve.stdout.readline()
        for number in range(8):
            request = {"id": number, "do": "list", "limit": 300}
            serve.stdin.write(json.dumps(request).encode() + b"\n")
        os.read(serve.stdout.fileno(), 1)
        with node.one_talk() as talk:
            talk.ask("status")
        daemon.signal(signal.SIGSTOP)
        os.read(serve.stdout.fileno(), 30_000)
        serve.send_signal(signal.SIGINT)
        serve.wait(PATIENCE_S)
        daemon.signal(signal.SIGCONT)
        with node.one_talk() as talk:
            assert talk.ask("status")["node"] == "iris"


def connect(node: Node) -> socket.socket:
    """A peer that has said nothing yet."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(PATIENCE_S)
    folder = os.open(node.home, os.O_PATH)
    try:
        peer.connect(f"/proc/self/fd/{folder}/node.sock")
    finally:
        os.close(folder)
    return peer


@pytest.mark.parametrize("opening", [b"", b'{"session":"owner"}\n'])
def test_more_peers_than_descriptors_do_not_end_the_daemon(node: Node, opening: bytes) -> None:
    """Fails when the error of accept leaves `_admit`; and who never spoke makes room for others."""
    daemon = node.start()
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (64, 64))
    peers = [connect(node) for _ in range(80)]
    try:
        for peer in peers:
            with suppress(BrokenPipeError):
                peer.sendall(opening)
        if not opening:
            with node.one_talk() as talk:
                assert talk.ask("status")["node"] == "iris"
    finally:
        for peer in peers:
            peer.close()
    with node.one_talk() as talk:
        assert talk.ask("status")["node"] == "iris"


def test_a_plain_file_handed_over_ends_that_talk_alone(node: Node, tmp_path: Path) -> None:
    """Fails when it reaches the selector, which takes no file that is always ready."""
    node.start()
    with connect(node) as peer, open(tmp_path / "plain", "w+b") as plain:
        socket.send_fds(peer, [b'{"session":"hub"}\n'], [plain.fileno(), plain.fileno()])
        assert peer.recv(100) == b""
    works(node)


# Where it writes.


def test_a_full_disk_below_stderr_ends_nothing(node: Node) -> None:
    """Fails when the error of writing a line of log reaches what the line is about."""
    (added,) = node.cli("add", "x", "--body", "true")["data"]["results"]
    with open("/dev/full", "w", encoding="ascii") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "agent_node", "run", "--until-idle"], cwd=ROOT, env=node.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=full,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    assert ran.returncode == 0
    assert node.status_file()["dispatcher"] == "stopped", "it left in good order"
    assert node.cli("show", added["uid"])["data"]["task"]["state"] == "COMPLETED"


def test_a_report_that_cannot_be_written_ends_nothing(node: Node) -> None:
    """Fails when `_failed` cannot take the file away either, and says so by raising."""
    (node.home / "fleet-status.json").mkdir()
    node.start().hear("report_unwritten")
    works(node)


def test_the_report_of_a_killed_daemon_is_put_right_by_whoever_looks(node: Node) -> None:
    """Fails when a command that only reads leaves the file as it found it: running, and idle."""
    daemon = node.start()
    until(lambda: node.status_file()["idle"], "an idle report")
    daemon.kill()
    assert node.status_file()["dispatcher"] == "running"
    node.cli("status")
    said = node.status_file()
    assert (said["dispatcher"], said["idle"], said["free_slots"]) == ("stopped", False, 0)


# What it finds when it starts.


def test_a_new_name_in_the_settings_is_refused_with_both(node: Node) -> None:
    """Fails when a node goes on under a name that its queue and its peers do not know."""
    node.start().stop()
    node.name = "loom"
    node.configure()
    daemon = node.start(ready=False)
    assert daemon.ended() == 2
    for word in ("bad_settings", "loom", "iris"):
        assert word in daemon.said
    assert "Traceback" not in daemon.said


@pytest.mark.parametrize("name", ["queue.db", "heard.json"])
def test_what_is_no_plain_file_is_refused_in_a_sentence(node: Node, name: str) -> None:
    """Fails when the queue is opened through a link, or hearsay read from a FIFO: it would hang."""
    node.start().stop()
    place = node.home / name
    place.unlink(missing_ok=True)
    if name == "queue.db":
        place.symlink_to(node.home / "elsewhere.db")
    else:
        os.mkfifo(place)
    daemon = node.start(ready=False)
    assert daemon.ended() != 0
    assert name in daemon.said
    assert "store_" in daemon.said
    assert "Traceback" not in daemon.said


# What is told of it.


def test_a_node_that_takes_no_work_has_no_free_slot(node: Node) -> None:
    """Fails when slots count that nothing will fill: a hub would send work to them."""
    node.start()
    with node.one_talk() as talk:
        for word, free in (("pause", 0), ("resume", 2), ("drain", 0), ("resume", 2)):
            talk.ask(word)
            assert talk.ask("status")["free_slots"] == free


def test_a_moved_task_is_shown_by_a_part_of_its_uid(node: Node) -> None:
    node.start()
    node.cli("pause")
    task = node.add("true")
    settle = {"xfer": xfer(), "uid": task, "peer": "loom"}
    with node.one_talk() as talk:
        move = {"xfer": xfer(), "uid": task, "epoch": 1}
        talk.ask("escrow", to="loom", why="moved", moves=[move])
        talk.ask("commit", moves=[settle])
    assert node.cli("show", task[-8:].lower())["data"]["task"]["state"] == "MOVED"


def test_a_log_asked_for_behind_its_end_is_empty_text(node: Node) -> None:
    node.start()
    task = node.add("echo said")
    node.until(task, "COMPLETED")
    with node.one_talk() as talk:
        assert talk.ask("log", uid=task, attempt=1, offset=2**62)["text"] == ""
