"""Notices reach a program, an address and a mail server: once each, grouped, tried again."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.server
import json
import os
import select
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from arc import delivering
from arc.decisions.alerts import Alert, Edge
from arc.decisions.notices import Happened
from arc.delivering import NotDelivered, deliver
from arc.sensor import SensorReport
from arc.settings import NotifyEntry, ScheduleEntry
from sensors.fleet_notices import FleetNotices
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies

ALL = ("dead_letter", "parked", "node_silent", "failing", "graph_failed", "graph_not_followed",
       "over_budget")  # fmt: skip
WRITES = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"


def a_program(file: Path, **more: Any) -> NotifyEntry:
    return NotifyEntry("pager", ALL, (sys.executable, "-c", WRITES, str(file)), **more)


@contextmanager
def a_desk(place: Path, *entries: NotifyEntry) -> Iterator[Desk]:
    desk = Desk(place, names=("iris",), notify=entries)
    look(desk)  # from here on things are news
    yield desk
    desk.close()


def look(desk: Desk) -> SensorReport:
    return asyncio.run(FleetNotices(desk.hub.settings).run(desk.hub, desk.clock.now()))


def happens(desk: Desk, *numbers: int, kind: str = "dead_letter") -> None:
    desk.hub.journal.notices.note(
        Happened(kind, f"t{n}", "iris", f"task {n}", desk.clock.now()) for n in numbers)


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_program_gets_it_on_stdin_once(tmp_path: Path) -> None:
    """Run once without writing down what was told: it came at every round."""
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        happens(desk, 1, 2)
        assert look(desk).acted == 1
        happens(desk, 1, 2)
        desk.minutes_pass(60)
        assert look(desk).outcome == "skipped"
        (notice,) = read(told)
        assert [one["count"] for one in notice["groups"]] == [2]
        assert notice["schema"] == "arc.notice/1"


def test_what_happens_meanwhile_comes_together_in_the_next_one(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        happens(desk, 1)
        look(desk)
        happens(desk, 2, 3)
        assert look(desk).outcome == "skipped"
        desk.minutes_pass(10)
        look(desk)
        assert [one["count"] for one in read(told)] == [1, 2]


def test_what_was_before_it_and_what_it_did_not_ask_for_is_not_told(tmp_path: Path) -> None:
    told = tmp_path / "told"
    entry = NotifyEntry("pager", ("parked",), (sys.executable, "-c", WRITES, str(told)))
    desk = Desk(tmp_path, names=("iris",), notify=(entry,))
    happens(desk, 1, kind="parked")
    assert look(desk).outcome == "skipped"
    happens(desk, 2, kind="failing")
    assert look(desk).outcome == "skipped"
    happens(desk, 3, kind="parked")
    assert look(desk).acted == 1
    desk.close()


def test_a_trouble_of_a_node_is_told_when_it_begins(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        desk.hub.journal.nodes.note(Edge(began=(Alert("iris", "node_answers", "gone"),)))
        assert [look(desk).acted for _ in range(2)] == [1, 0]
        assert read(told)[0]["groups"][0]["kind"] == "node_silent"


def begins(desk: Desk, told: Path, rule: str = "node_answers") -> int:
    """A trouble of iris begins, and somebody is told or not; how many notices there are then."""
    desk.hub.journal.nodes.note(Edge(began=(Alert("iris", rule, "gone"),)))
    look(desk)
    return len(read(told))


def test_of_one_node_three_troubles_a_day_are_told(tmp_path: Path) -> None:
    """Seen to fail: a node that came and went six times in two hours was told six times. What
    nobody is ever told of takes no room from what somebody is.
    """
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        for rule in ("clock_agrees", "disk_free", "version_agrees"):
            begins(desk, told, rule)
        counts = []
        for _ in range(6):
            counts.append(begins(desk, told))
            desk.hub.journal.nodes.note(Edge(ended=(Alert("iris", "node_answers", "gone"),)))
            desk.minutes_pass(20)
        assert counts == [1, 2, 3, 3, 3, 3]
        desk.minutes_pass(24 * 60)
        assert begins(desk, told) == 4


def comes_and_goes(desk: Desk, told: Path) -> None:
    """Three times, so that there is no room for one more until tomorrow."""
    for _ in range(3):
        begins(desk, told)
        desk.hub.journal.nodes.note(Edge(ended=(Alert("iris", "node_answers", "gone"),)))
        desk.minutes_pass(20)


@pytest.mark.parametrize("rule", ["node_answers", "work_succeeds"])
def test_a_trouble_that_stays_is_told_once_however_many_were(tmp_path: Path, rule: str) -> None:
    """Seen to fail: three restarts in the morning, and that the machine died at noon was told to
    nobody until the next day; nor that all its work failed, for both kinds are counted as one.
    """
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        comes_and_goes(desk, told)
        assert begins(desk, told, rule) == 3
        desk.minutes_pass(9.9)
        assert look(desk).outcome == "skipped"
        desk.minutes_pass(0.1)
        assert look(desk).acted == 1
        desk.minutes_pass(24 * 60)
        assert [look(desk).outcome for _ in range(3)] == ["skipped"] * 3


def test_a_trouble_that_stays_is_found_below_any_number_of_others(tmp_path: Path) -> None:
    """Seen to fail: it was looked for among the newest five hundred, those that ended included."""
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        comes_and_goes(desk, told)
        assert begins(desk, told) == 3
        for _ in range(501):
            for edge in ("began", "ended"):
                desk.hub.journal.nodes.note(Edge(**{edge: (Alert("loom", "clock_agrees", "x"),)}))
        desk.minutes_pass(10)
        assert look(desk).acted == 1


def test_a_trouble_that_stands_for_months_is_told_once(tmp_path: Path) -> None:
    """Seen to fail: after thirty days it was forgotten, began, and was told again."""
    told, gone = tmp_path / "told", Alert("iris", "node_answers", "gone")
    with a_desk(tmp_path, a_program(told)) as desk:
        journal = desk.hub.journal
        assert begins(desk, told) == 1
        for _ in range(3):
            desk.minutes_pass(31 * 24 * 60)
            journal.prune()
            look(desk)
        assert (journal.nodes.standing(), len(read(told))) == ((gone,), 1)
        journal.nodes.note(Edge(ended=(gone,)))
        journal.prune()
        assert journal.nodes.alerts() == ()
        journal.prune()
        assert journal._rows.read("SELECT * FROM notice") == []


def test_one_that_fails_is_tried_again_ever_less_often_and_then_given_up(tmp_path: Path) -> None:
    entry = NotifyEntry("pager", ALL, (sys.executable, "-c", "raise SystemExit(3)"), attempts=4)
    with a_desk(tmp_path, entry) as desk:
        happens(desk, 1)
        assert look(desk).summary == "0 receivers told; pager not: pager: the program ended with 3"
        assert look(desk).outcome == "skipped"
        for minutes in (0.5, 1):
            desk.minutes_pass(minutes)
            assert look(desk).outcome == "failed"
        (needs,) = [one for one in desk.arc("status", "--json").data["needs_you"]
                    if one["node"] == "notify pager"]
        assert needs["try"] == "arc notify test pager"
        desk.minutes_pass(2)
        assert "given up after 4 attempts" in look(desk).summary
        desk.minutes_pass(60)
        assert look(desk).outcome == "skipped"
        assert desk.arc("log", "--event", "notice_given_up", "--json").data["lines"] != []
        assert "given up" in desk.arc("notify", "list").out


def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "WHOLE_S", 0.5)
    pid = tmp_path / "pid"
    hangs = ("import os, subprocess, sys, time;"
             "p = subprocess.Popen(['sleep', '60']);"
             "open(sys.argv[1], 'w').write(str(p.pid)); time.sleep(60)")  # fmt: skip
    entry = NotifyEntry("pager", ALL, (sys.executable, "-c", hangs, str(pid)))
    with pytest.raises(NotDelivered, match="did not end"):
        asyncio.run(deliver(entry, {"text": "x"}, at_s=0))
    if pid.exists():  # it got so far in half a second
        assert is_over(int(pid.read_text()))


def is_over(pid: int) -> bool:
    """Whether the process has ended, or does so within ten seconds."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with open(process, "rb"):
        watch = select.poll()
        watch.register(process, select.POLLIN)
        return bool(watch.poll(10_000))


def test_a_program_that_is_not_there_is_one_clear_line() -> None:
    entry = NotifyEntry("pager", ALL, ("/no/such/program",))
    with pytest.raises(NotDelivered, match="No such file"):
        asyncio.run(deliver(entry, {"text": "x"}, at_s=0))


class Heard(http.server.BaseHTTPRequestHandler):
    """An address that remembers what it was sent, and answers as it is told to."""

    got: list[tuple[dict[str, str], bytes]]
    status = 204

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((dict(self.headers), body))
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        return


@contextmanager
def serving(handler: Any) -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_an_address_gets_it_signed_over_time_and_body(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    secret.chmod(0o600)
    handler: Any = type("H", (Heard,), {"got": []})
    with serving(handler) as port:
        entry = NotifyEntry("chat", ALL, url=f"http://127.0.0.1:{port}/hook?a=b",
                            secret_file=secret)  # fmt: skip
        with a_desk(tmp_path, entry) as desk:
            happens(desk, 1)
            assert look(desk).acted == 1
    ((headers, body),) = handler.got
    text = headers["X-Arc-Timestamp"].encode() + b"." + body
    proof = hmac.new(b"s3cret", text, hashlib.sha256).hexdigest()
    assert headers["X-Arc-Signature"] == f"sha256={proof}"
    assert json.loads(body)["receiver"] == "chat"


@pytest.mark.parametrize("status", [302, 400, 500])
def test_an_address_that_says_anything_else_has_not_got_it(status: int) -> None:
    handler: Any = type("H", (Heard,), {"got": [], "status": status})
    with serving(handler) as port:
        entry = NotifyEntry("chat", ALL, url=f"http://127.0.0.1:{port}/")
        with pytest.raises(NotDelivered, match=f"answered {status}"):
            asyncio.run(deliver(entry, {"text": "x"}, at_s=0))
    assert len(handler.got) == 1  # no redirect was followed


def test_an_address_that_dribbles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run once without looking whether it was cut: half an answer counted as a whole one."""
    monkeypatch.setattr(delivering, "WHOLE_S", 0.3)

    class Dribbles(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.sendall(b"HTTP/1.1 200 OK\r\n")
                while self.request.recv(65_536):  # until the other end has enough of it
                    continue
            except OSError:
                return

    with serving(Dribbles) as port:
        entry = NotifyEntry("chat", ALL, url=f"http://127.0.0.1:{port}/")
        with pytest.raises(NotDelivered, match="longer than"):
            asyncio.run(deliver(entry, {"text": "x"}, at_s=0))


@pytest.mark.parametrize(("mode", "text", "says"), [
    (0o644, "s3cret", "others can read"), (0o600, "", "holds no secret"),
    (0o600, "x" * 5000, "holds no secret"), (None, "", "cannot be read"),
])
def test_a_secret_that_is_none_is_named_by_its_file_and_never_told(
    tmp_path: Path, mode: int | None, text: str, says: str
) -> None:
    secret = tmp_path / "secret"
    if mode is not None:
        secret.write_text(text)
        secret.chmod(mode)
    entry = NotifyEntry("chat", ALL, url="http://127.0.0.1:9/", secret_file=secret)
    with pytest.raises(NotDelivered, match=says) as caught:
        asyncio.run(deliver(entry, {"text": "x"}, at_s=0))
    assert not text or text not in str(caught.value)


def test_a_mail_server_gets_one_plain_mail() -> None:
    got: list[str] = []

    class Mail(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().decode().strip():
                got.append(line)
                if line.upper() == "DATA":
                    self.wfile.write(b"354 go\r\n")
                    while (part := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        got.append(part)
                self.wfile.write(b"221 bye\r\n" if line == "quit" else b"250 ok\r\n")
                if line == "quit":
                    return

    with serving(Mail) as port:
        entry = NotifyEntry("ada", ALL, mail_to="ada@example.org", mail_from="arc@example.org",
                            mail_host="127.0.0.1", mail_port=port)  # fmt: skip
        asyncio.run(deliver(entry, {"text": "arc0: 1 x parked\n  iris: T1"}, at_s=0))
    assert "Subject: arc0: 1 x parked" in got
    assert "To: ada@example.org" in got
    assert "  iris: T1" in got


def test_a_test_notice_is_sent_at_once_and_says_so(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        dry = desk.arc("notify", "test", "pager", "--dry-run", "--json")
        assert (dry.code, dry.data["delivered"], read(told)) == (0, False, [])
        assert desk.arc("notify", "test", "pager").code == 0
        (notice,) = read(told)
        assert (notice["test"], notice["count"]) == (True, 0)
        assert desk.arc("notify", "test", "ada").code == 5


def test_a_test_that_fails_is_exit_1_with_the_reason(tmp_path: Path) -> None:
    with a_desk(tmp_path, NotifyEntry("pager", ALL, ("/no/such",))) as desk:
        ran = desk.arc("notify", "test", "pager")
        assert (ran.code, "ARC-NOTICE" in ran.err, "No such file" in ran.err) == (1, True, True)


def test_the_list_tells_no_secret_of_an_address(tmp_path: Path) -> None:
    entry = NotifyEntry("chat", ALL, url="https://chat.example.org/hooks/T0K3N?key=x")
    with a_desk(tmp_path, entry) as desk:
        text, data = desk.both("notify")
        assert data["receivers"][0]["to"] == "https://chat.example.org"
        assert "T0K3N" not in text.out


def test_nobody_to_tell_is_said(tmp_path: Path) -> None:
    with a_desk(tmp_path) as desk:
        assert "nobody is told" in desk.arc("notify").out


def test_a_dead_letter_is_heard_from_its_node_and_told(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with a_desk(tmp_path, a_program(told)) as desk:
        dies(desk, "iris", 1)
        heard(desk)
        assert look(desk).acted == 1
        (notice,) = read(told)
        assert notice["groups"][0]["kind"] == "dead_letter"
        assert notice["groups"][0]["things"][0]["text"].startswith(uid(1))
        assert "work 1" not in json.dumps(notice)  # no word of the task itself


def test_a_graph_of_the_hub_that_ends_badly_is_told(tmp_path: Path) -> None:
    told = tmp_path / "told"
    graph: Any = {"title": "nightly", "tasks": {"build": {"subject": "build"}}}
    schedule = ScheduleEntry("g", "0 0 1 1 *", graph=graph)
    desk = Desk(tmp_path, names=("iris",), notify=(a_program(told),), schedules=(schedule,))
    look(desk)
    assert desk.arc("schedules", "run", "g").code == 0
    (task,) = desk.arc("tasks", "list", "--json").data["tasks"]
    assert desk.arc("tasks", "cancel", task["uid"], "--reason", "no").code == 0
    heard(desk)
    assert look(desk).acted == 1
    (group,) = read(told)[0]["groups"]
    assert group["kind"] == "graph_failed"
    assert group["things"][0]["text"].endswith(' "nightly": 1 of 1 task ended badly')
    desk.close()


def ends_early(desk: Desk, dag: str) -> None:
    """A graph of iris completes, and what follows it cannot: its key is taken. The hub hears it."""
    follows = {"title": "later", "tasks": {"ship": {"subject": "ship", "key": "k"}}}
    graph: Any = {"id": dag, "title": "nightly", "then": follows,
                  "tasks": {"build": {"uid": uid(1), "subject": "build"}}}  # fmt: skip
    asyncio.run(desk.nodes.link("iris").ask("submit", {"graph": graph, "by": "human:ann"}))
    store = desk.nodes.machines["iris"].store
    claimed = store.apply(c.Claim("iris"))
    assert isinstance(claimed, c.Claimed)
    desk.waits("iris", 2, key="k")
    store.apply(c.Started(uid(1), claimed.n, 4242, 99, desk.clock.boot_id()))
    store.apply(c.Finish(uid(1), claimed.n, c.Result("completed", duration_s=1.0)))
    heard(desk)


def heard(desk: Desk) -> None:
    """The hub hears what happened on its nodes."""
    health = next(one for one in desk.hub.sensors if one.name == "fleet-health")
    asyncio.run(health.run(desk.hub, desk.clock.now()))


def not_submitted(desk: Desk) -> list[tuple[str, str]]:
    return [(one["node"], one["try"]) for one in desk.arc("status", "--json").data["needs_you"]
            if "not submitted" in one["text"]]  # fmt: skip


def test_a_chain_of_graphs_that_ends_early_is_told_and_needs_a_person(tmp_path: Path) -> None:
    """Seen to fail: the first had completed, and nobody heard that the second never began."""
    told, dag = tmp_path / "told", uid(900)
    with a_desk(tmp_path, a_program(told)) as desk:
        ends_early(desk, dag)
        look(desk)
        (group,) = read(told)[0]["groups"]
        said = f"{dag}: it completed, and the graph that follows was not submitted: "
        assert (group["kind"], group["things"][0]["text"].startswith(said)) == (
            "graph_not_followed", True)  # fmt: skip
        assert not_submitted(desk) == [("iris", f"arc dag show {dag}")]
        desk.minutes_pass(8 * 24 * 60)
        assert "not submitted" not in desk.arc("status").out, "after a week it is history"


def test_a_chain_that_ends_early_needs_a_person_where_nobody_is_told(tmp_path: Path) -> None:
    """Seen to fail: it stood there only where `notify` named somebody. Nothing else is noted, and
    a receiver that comes back is told of nothing that happened without it.
    """
    told, dag = tmp_path / "told", uid(900)
    with a_desk(tmp_path, a_program(told)) as desk:
        pager = desk.hub.settings
        desk.hub.settings = replace(pager, notify=())
        dies(desk, "iris", 3)
        ends_early(desk, dag)
        assert not_submitted(desk) == [("iris", f"arc dag show {dag}")]
        noted = desk.hub.journal._rows.read("SELECT kind FROM notice")
        assert noted == [{"kind": "graph_not_followed"}]
        desk.hub.settings = pager
        assert look(desk).outcome == "skipped"
        assert read(told) == []
