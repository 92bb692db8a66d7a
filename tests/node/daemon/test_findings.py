"""Faults that were found in a running node: each has its test, so that it does not come back."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent_node.spec import hash_of, spec_of
from agent_node.task import task_from, to_wire
from tests.builders import a_task, uid, xfer
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import PATIENCE_S, ROOT, Bell, Node, an_agent, is_gone, until

HERE = '"$AGENT_NODE_HOME/tasks/$AGENT_TASK_UID/$AGENT_TASK_ATTEMPT"'
EARLIER = "01LQQM00000000000000000000"


def change(node: Node, sql: str) -> None:
    """Write into the queue of a node that does not run, as no command of ours does."""
    with closing(sqlite3.connect(node.home / "queue.db")) as db, db:
        assert db.execute(sql).rowcount == 1


def works(node: Node) -> None:
    """A task that comes now is done."""
    node.until(node.add("true"), "COMPLETED")


# After a boot.


def test_a_lease_of_an_earlier_boot_ends_when_a_daemon_starts(node: Node) -> None:
    """Fails without the Wake of `_set_up` and the 0 of `next_lease`: it would wait for hours."""
    daemon = node.start()
    node.cli("pause")
    task = node.add("true")
    with node.one_talk() as talk:
        moves = [{"xfer": xfer(), "uid": task, "epoch": 1}]
        given = talk.ask("escrow", to="loom", why="moved", moves=moves)["results"]
        assert given[0]["outcome"] == "escrowed", given
        talk.ask("resume")
    daemon.kill()
    change(node, "UPDATE transfer SET lease_boot = 'another', lease_until = 1e12")
    node.start()
    node.until(task, "COMPLETED")


def test_a_started_attempt_is_interrupted_by_a_power_cut(
    make_node: MakeNode, bell: Bell, gate: Bell
) -> None:
    """Its record came back empty. Fails when that alone says that it never started."""
    node = make_node()
    daemon = node.start()
    task = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program, shim = int(bell.hear()), node.shim(task)
    node.until(task, "RUNNING")
    daemon.kill()
    for pid in (shim, program):
        os.kill(pid, signal.SIGKILL)
        assert is_gone(pid)
    os.truncate(node.folder(task) / "shim.json", 0)
    change(node, "UPDATE attempt SET boot_id = '00000000-0000-4000-8000-000000000000'")
    node.start()
    bell.hear()
    gate.ring()
    assert node.until(task, "COMPLETED")["interruptions"] == 1


def test_a_program_that_hides_its_start_is_interrupted_all_the_same(node: Node) -> None:
    """Fails when an empty record makes it look as if it never started: it would run for ever."""
    node.start()
    task = node.add(f"cd {HERE}; : > shim.json; kill -9 $PPID; sleep 60")
    assert node.until(task, "PARKED", "DEAD_LETTERED")["interruptions"] == 3


# Draining.


def test_a_drain_that_was_called_off_stops_nothing(node: Node, bell: Bell, gate: Bell) -> None:
    """Fails when the timer of a deadline does not ask whether the node still drains."""
    node.start()
    task = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    node.cli("drain", "--deadline-s", "0.5", "--then", "requeue")
    node.cli("resume")
    assert not is_gone(program, 1.0)
    gate.ring()
    node.until(task, "COMPLETED")
    assert len(node.attempts(task)) == 1


@pytest.mark.parametrize("later", [["--deadline-s", "60", "--then", "requeue"], []])
def test_a_later_drain_replaces_the_deadline_of_an_earlier_one(
    node: Node, bell: Bell, gate: Bell, later: list[str]
) -> None:
    """Fails when the timer of each deadline acts by itself."""
    node.start()
    task = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    with node.one_talk() as talk:
        talk.ask("drain", deadline_s=0.5, then="requeue")
    node.cli("drain", *later)
    assert not is_gone(program, 1.0)
    gate.ring()
    node.until(task, "COMPLETED")


def test_a_drain_said_again_with_a_nearer_deadline_counts(node: Node, bell: Bell) -> None:
    """Fails when the second word is taken for a repeat of the first."""
    node.start()
    task = node.add(f"echo $$ > {bell.path}; sleep 600")
    program = int(bell.hear())
    for seconds in ("600", "0.2"):
        node.cli("drain", "--deadline-s", seconds, "--then", "requeue")
    assert is_gone(program)
    node.until(task, "READY")


# What comes from elsewhere.


def offered(n: int) -> dict[str, Any]:
    """A task that was tried so often elsewhere, as another node would offer it."""
    tried = {"n": n, "node": "forge", "incarnation": EARLIER, "agent": "forge",
             "ended_at": "2026-03-10T03:00:00.000Z", "outcome": "interrupted"}  # fmt: skip
    task = a_task(body="true", attempts=[])
    document = {**to_wire(task), "attempts": [tried]}
    return {"xfer": xfer(), "task": document, "sha256": hash_of(spec_of(task_from(to_wire(task))))}


def test_an_attempt_number_that_no_folder_can_have_is_refused_at_the_door(node: Node) -> None:
    """Fails when the history of a task is taken unread: its next attempt would end the daemon."""
    node.start()
    with node.one_talk() as talk:
        asked = {"from": "forge", "why": "moved"}
        for n in (0, 900_000_001, 2**62):
            (held,) = talk.ask("hold", moves=[offered(n)], **asked)["results"]
            assert held["outcome"] == "refused"
            assert held["because"]["rule"] == "bad_task"
        (held,) = talk.ask("hold", moves=[offered(899_999_999)], **asked)["results"]
        assert held["outcome"] == "held", held
        settle = {"xfer": xfer(), "uid": uid(), "peer": "forge"}
        talk.ask("activate", moves=[settle])
    node.until(uid(), "COMPLETED")
    assert [one["n"] for one in node.attempts(uid())][-1] == 900_000_000
    works(node)


# What a program does in its own folder, and to its shim.


def test_a_lock_that_its_program_made_a_link_stops_no_other_task(node: Node) -> None:
    """Fails when the error of looking at it leaves `_close`: daemon after daemon would end."""
    daemon = node.start()
    task = node.add(f"cd {HERE}; ln -sf /dev/null tree.lock")
    daemon.hear("evidence_unreadable")
    works(node)
    daemon.kill()
    node.start().hear("evidence_unreadable")
    works(node)
    (node.folder(task) / "tree.lock").unlink()
    assert node.until(task, "COMPLETED", "PARKED")["failures"] == 0


def test_a_heartbeat_that_is_a_link_to_itself_is_no_heartbeat(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Fails when looking at it raises: every beat is recorded just before a report is written."""
    node.start()
    script = f"ln -sfn heartbeat {HERE}/heartbeat; echo on > {bell.path}; read x < {gate.path}"
    task = node.add(script)
    bell.hear()
    node.cli("pause", "--reason", "so that a report is due")
    until(lambda: node.status_file()["reason"].startswith("so that"), "the next report")
    gate.ring()
    node.until(task, "COMPLETED")


def test_a_program_that_stops_its_shim_is_cancelled_all_the_same(node: Node, bell: Bell) -> None:
    """Fails when the shim gets TERM alone: a stopped process never hears it."""
    node.start()
    task = node.add(f"kill -STOP $PPID; echo on > {bell.path}; sleep 600")
    bell.hear()
    node.until(task, "RUNNING")
    node.cli("cancel", task)
    node.until(task, "CANCELLED")


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
    task = node.cli("add", "x", "--body", "true")["data"]["uid"]
    with open("/dev/full", "w", encoding="ascii") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "agent_node", "run", "--until-idle"], cwd=ROOT, env=node.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=full,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    assert ran.returncode == 0
    assert node.cli("show", task)["data"]["task"]["state"] == "COMPLETED"


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
