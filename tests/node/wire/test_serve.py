"""A hub on stdin and stdout is answered with a daemon, without one, and while one comes or goes."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_node.home import Home, HomeLock
from agent_node.requests import MARKS_MAX
from agent_node.strict import LINE_MAX
from tests.builders import uid
from tests.node.wire.processes import IMPATIENT, RELAYED, Program, a_daemon, a_serve, read_some
from tests.node.wire.talking import a_home, a_move, a_settle, offers_of

HELLO = {"fleet": "arc0", "hub": "arc", "term": 3, "wire": [1, 1]}
ONE_LINE = 220 * 1024 * 1024  # bytes, as docs/wire.md tells
WAYS = ["alone", "handed over", "relayed"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "iris")


class Talk(NamedTuple):
    """Who is spoken to, and who it is that reads what was said."""

    serve: Program
    reader: Program


@pytest.fixture(params=WAYS)
def talk(request: pytest.FixtureRequest, home: Home) -> Iterator[Talk]:
    """A serve that answers by itself, one that gave its pipes away, and one that relays."""
    with ExitStack() as stack:
        daemon = None if request.param == "alone" else stack.enter_context(a_daemon(home.root))
        serve = stack.enter_context(
            a_serve(home.root, before=RELAYED if request.param == "relayed" else "pass")
        )
        yield Talk(serve, daemon or serve)


@pytest.fixture
def serve(talk: Talk) -> Program:
    """The same, for whom it does not matter who reads."""
    return talk.serve


def peak_of(program: Program) -> int:
    """The most bytes of memory that it ever had."""
    status = Path(f"/proc/{program.process.pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def assert_it_grew_little(reader: Program, before: int, most: int, *, unless_over: Program) -> None:
    """By no more bytes than these; who answered by itself has ended, its memory with it."""
    if reader is not unless_over:
        assert peak_of(reader) - before < most


def test_a_talk_begins_with_the_greeting_and_ends_with_stdin(serve: Program) -> None:
    greeting = serve.hear()
    assert (greeting["node"], greeting["wire"]) == ("iris", 1)
    assert (
        serve.ask("add", tasks=[{"uid": uid(1), "subject": "a"}])["results"][0]["outcome"]
        == "added"
    )
    assert serve.ask("show", uid=uid(1))["task"]["subject"] == "a"
    serve.no_more()
    assert serve.ended() == 0
    assert serve.line() == b""
    assert serve.complaint() == ""


def test_requests_that_overlap_are_all_answered_under_their_ids(serve: Program) -> None:
    serve.hear()
    lines = [json.dumps({"id": n, "do": "doubts"}).encode() + b"\n" for n in range(200)]
    serve.write(b"".join(lines))
    assert [serve.hear()["id"] for _ in range(200)] == list(range(200))


def test_what_was_asked_before_stdin_ended_is_answered(serve: Program) -> None:
    serve.write(b"".join(b'{"id":%d,"do":"doubts"}\n' % n for n in range(50)))
    serve.no_more()
    serve.hear()
    assert [serve.hear()["id"] for _ in range(50)] == list(range(50))
    assert serve.ended() == 0


def test_a_line_that_is_no_request_is_answered_and_ends_the_talk(serve: Program) -> None:
    serve.hear()
    serve.write(b"hello\n" + b'{"id":1,"do":"doubts"}\n')
    assert serve.hear()["error"]["code"] == "bad_input"
    assert serve.line() == b""
    assert serve.ended() == 1


def test_an_endless_line_is_answered_in_flat_memory_and_ends_the_talk(talk: Talk) -> None:
    serve, reader = talk
    serve.hear()
    before, sent = peak_of(reader), 0
    try:
        while sent < 16 * LINE_MAX:
            serve.write(b"x" * 65_536)
            sent += 65_536
    except BrokenPipeError:
        pass  # it has hung up on us, as it should
    assert_it_grew_little(reader, before, 4 * LINE_MAX, unless_over=serve)
    assert serve.hear()["error"]["code"] == "bad_input"
    assert LINE_MAX <= sent < 16 * LINE_MAX
    assert serve.ended() == 1


DEEP = b"[" * 12 + b"1.5" + b"]" * 12


@pytest.mark.parametrize("unit", [b'"ab"', b'["ab"]', b'{"":{"":{}}}', DEEP],
                         ids=["texts", "lists", "objects", "deep"])  # fmt: skip
def test_lines_without_end_cost_no_more_than_one(talk: Talk, unit: bytes) -> None:
    """As many values as a line may have, in a field that nobody reads: docs/wire.md says 220 MiB.
    Fails where anything of a line stays when it is answered.
    """
    serve, reader = talk
    serve.hear()
    before = peak_of(reader)
    marks = 1 + sum(unit.count(mark) for mark in b":[{")
    times = min((LINE_MAX - 100) // (len(unit) + 1), (MARKS_MAX - 8) // marks)
    line = b'{"id":1,"do":"doubts","x":[%s]}\n' % b",".join([unit] * times)
    peaks = list[int]()
    for _ in range(4):
        serve.write(line)
        assert serve.hear()["ok"]
        peaks.append(peak_of(reader) - before)
    assert peaks[-1] < ONE_LINE
    assert peaks[-1] - peaks[0] < 2 * LINE_MAX


def test_a_line_of_too_many_values_costs_its_bytes_alone_and_ends_the_talk(talk: Talk) -> None:
    """Fails where they are counted when they are there: this line took 230 MB."""
    serve, reader = talk
    serve.hear()
    before = peak_of(reader)
    serve.write(b'{"id":1,"do":"doubts","x":[%s[]]}\n' % (b"[]," * (LINE_MAX // 3 - 20)))
    error = serve.hear()["error"]
    assert (error["code"], f"more than {MARKS_MAX}" in error["message"]) == ("bad_input", True)
    assert_it_grew_little(reader, before, 8 * LINE_MAX, unless_over=serve)
    assert serve.ended() == 1


def test_large_requests_and_replies_come_through_whole(serve: Program) -> None:
    serve.hear()
    body = "é" * 120_000
    tasks = [{"uid": uid(n), "subject": "a", "body": body} for n in range(1, 21)]
    assert len(serve.ask("add", tasks=tasks)["results"]) == 20
    moves = [a_move(n) for n in range(1, 21)]
    results = serve.ask("escrow", to="loom", why="stolen", moves=moves)["results"]
    assert [one["task"]["body"] == body for one in results] == [True] * 20


def test_the_term_of_a_hello_binds_the_whole_talk(serve: Program, home: Home) -> None:
    serve.hear()
    assert serve.ask("hello", **HELLO)["term"] == 3
    with a_serve(home.root) as other:
        other.hear()
        other.say(id=1, do="pause")
        assert other.hear()["error"]["code"] == "old_term"
        assert other.ask("hello", **{**HELLO, "term": 4})["term"] == 4
    serve.say(id=2, do="pause")
    assert serve.hear()["error"]["code"] == "old_term"


def test_two_nodes_exchange_a_task_over_pipes(tmp_path: Path) -> None:
    iris, loom = a_home(tmp_path / "iris"), a_home(tmp_path / "loom", "loom")
    with a_daemon(iris.root), a_daemon(loom.root), a_serve(iris.root) as a, a_serve(loom.root) as b:
        a.hear(), b.hear()
        a.ask("add", tasks=[{"uid": uid(1), "subject": "a"}])
        taken = a.ask("escrow", to="loom", why="stolen", moves=[a_move(1)])
        assert b.ask("hold", why="stolen", moves=offers_of(taken), **{"from": "iris"})
        assert a.ask("commit", moves=[a_settle(1, "loom")])["results"][0]["outcome"] == "committed"
        assert (
            b.ask("activate", moves=[a_settle(1, "iris")])["results"][0]["outcome"] == "activated"
        )
        assert b.ask("status")["pending_count"] == 1
        assert a.ask("status")["counts"] == {}


def test_a_daemon_that_starts_takes_over_in_the_middle_of_a_talk(home: Home) -> None:
    """Guard: the term in the opening line. Without it the hub would be a stranger; seen."""
    with a_serve(home.root) as serve:
        serve.hear()
        assert serve.ask("hello", **HELLO)["term"] == 3
        assert serve.ask("status")["dispatcher"] == "stopped"
        with a_daemon(home.root):
            assert serve.ask("status")["dispatcher"] == "running"
            assert serve.ask("pause", reason="rest")["state"] == "paused"
            serve.no_more()
            assert serve.ended() == 0


@pytest.mark.parametrize("before", ["pass", RELAYED])
def test_when_the_daemon_is_killed_the_hub_is_told_to_ask_again(home: Home, before: str) -> None:
    with a_daemon(home.root) as daemon, a_serve(home.root, before=before) as serve:
        serve.hear()
        serve.ask("doubts")
        daemon.kill()
        assert serve.ended() == 1
        assert "ask again" in serve.complaint()


@pytest.mark.parametrize("before", ["pass", RELAYED])
def test_a_request_that_was_never_answered_is_no_success(home: Home, before: str) -> None:
    with a_daemon(home.root) as daemon, a_serve(home.root, before=before) as serve:
        serve.hear()
        os.kill(daemon.process.pid, signal.SIGSTOP)
        serve.say(id=1, do="doubts")
        serve.no_more()
        daemon.kill()
        assert serve.ended() == 1
        assert "ask again" in serve.complaint()


def test_a_serve_that_is_killed_leaves_the_daemon_and_others_in_peace(home: Home) -> None:
    with a_daemon(home.root), a_serve(home.root) as one, a_serve(home.root) as other:
        one.hear(), other.hear()
        one.kill()
        assert other.ask("doubts") == {"doubts": []}


def test_a_hub_that_stops_reading_holds_up_nobody_else(home: Home) -> None:
    with a_daemon(home.root), a_serve(home.root) as deaf, a_serve(home.root) as other:
        other.hear()
        big = {"uid": uid(1), "subject": "a", "body": "x" * 250_000}
        other.ask("add", tasks=[big])
        assert deaf.process.stdin is not None
        os.set_blocking(deaf.process.stdin.fileno(), False)
        show = json.dumps({"id": 1, "do": "show", "uid": uid(1)}).encode() + b"\n"
        for _ in range(100):
            deaf.write(show)
        for _ in range(20):
            assert other.ask("doubts") == {"doubts": []}


def test_a_lock_that_is_held_without_a_socket_is_answered_as_starting(home: Home) -> None:
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock, a_serve(home.root, before=IMPATIENT) as serve:
        assert serve.hear()["error"]["code"] == "starting"
        assert serve.ended() == 1


def test_a_lock_that_is_held_in_the_middle_of_a_talk_ends_one_request_only(home: Home) -> None:
    with a_serve(home.root, before=IMPATIENT) as serve:
        serve.hear()
        lock = HomeLock.try_take(home)
        assert lock is not None
        with lock:
            serve.say(id=8, do="doubts")
            reply = serve.hear()
            assert (reply["id"], reply["error"]["code"]) == (8, "starting")
        assert serve.ask("doubts") == {"doubts": []}


def test_without_a_daemon_the_lock_is_free_between_requests_and_the_report_is_true(
    home: Home,
) -> None:
    with a_serve(home.root) as serve:
        serve.hear()
        serve.ask("add", tasks=[{"uid": uid(1), "subject": "a"}])
        lock = HomeLock.try_take(home)
        assert lock is not None
        lock.release()
        report = json.loads(home.status.read_text(encoding="utf-8"))
        assert (report["dispatcher"], report["idle"], report["pending_count"]) == (
            "stopped",
            False,
            1,
        )
        assert home.database.exists()


def test_a_home_that_cannot_be_opened_is_one_error_line(tmp_path: Path) -> None:
    home = a_home(tmp_path / "iris")
    home.database.write_bytes(b"this is no database" * 100)
    with a_serve(home.root) as serve:
        assert serve.hear()["error"]["code"] == "store_corrupt"
        assert serve.ended() == 1
        assert "Traceback" not in serve.complaint()


def test_a_reader_that_leaves_is_no_fault(home: Home) -> None:
    ours, theirs = os.pipe()
    with a_serve(home.root, stdout=theirs) as serve:
        os.close(theirs)
        assert b"agent-node" in read_some(ours)
        os.close(ours)
        serve.say(id=1, do="doubts")
        assert serve.ended() == 141
        assert serve.complaint() == ""


def test_stdin_and_stdout_may_be_one_socket(home: Home) -> None:
    """As sshd gives them to its command."""
    ours, theirs = socket.socketpair()
    with ours, a_daemon(home.root), a_serve(home.root, stdin=theirs, stdout=theirs) as serve:
        theirs.close()
        ours.settimeout(20)
        with ours.makefile("rb") as lines:
            assert json.loads(lines.readline())["node"] == "iris"
            ours.sendall(b'{"id":4,"do":"doubts"}\n')
            assert json.loads(lines.readline())["id"] == 4
            ours.shutdown(socket.SHUT_WR)
            assert lines.readline() == b""
        assert serve.ended() == 0


def test_requests_may_come_from_a_file(home: Home, tmp_path: Path) -> None:
    """A file cannot be waited for by the daemon, so it is relayed."""
    asked = tmp_path / "asked"
    asked.write_bytes(b'{"id":1,"do":"doubts"}\n' * 3)
    with a_daemon(home.root), asked.open("rb") as file, a_serve(home.root, stdin=file) as serve:
        serve.hear()
        assert [serve.hear()["id"] for _ in range(3)] == [1, 1, 1]
        assert serve.ended() == 0


def test_the_pipes_are_given_back_as_they_were(home: Home) -> None:
    """Guard: the `finally` of the hand-over. O_NONBLOCK would stay on the caller's own pipe."""
    ours, theirs = os.pipe()
    try:
        with a_daemon(home.root), a_serve(home.root, stdout=theirs) as serve:
            assert b"agent-node" in read_some(ours)
            assert not os.get_blocking(theirs)
            serve.no_more()
            assert serve.ended() == 0
        assert os.get_blocking(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_who_answers_alone_leaves_once_its_disk_failed(home: Home) -> None:
    """Seen to fail: the same process opened the queue again, and answered `hello` from there."""
    fails = ("from agent_node import failpoints;"
             "failpoints._ARMED['generation.before_file'] = 'EIO', 2")  # fmt: skip
    with a_serve(home.root, before=fails) as serve:
        serve.hear()
        serve.say(id=1, do="hello", **HELLO)
        assert serve.hear()["error"]["code"] == "disk_broken"
        assert serve.line() == b""
        assert serve.ended() == 1
    assert not home.status.exists(), "no report is not an idle node"
    with a_serve(home.root) as serve:
        serve.hear()
        assert serve.ask("hello", **HELLO)["term"] == 3
