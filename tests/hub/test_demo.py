"""The demo as a newcomer runs it, and its check of itself, which has to be able to fail."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from agent_node.task import task_from
from agent_node.ulid import new_ulid
from arc.config import parse_fleet
from arc.demo import nodes as demo_nodes
from arc.demo.evidence import BEGIN, END, Ledger, Line, Verdict, judge
from arc.demo.fleet import NAMES, fleet_text, shortened
from arc.demo.nodes import DemoNode, end_nodes, kill_all, processes_of
from arc.demo.picture import LivePicture, PlainPicture, render
from arc.demo.result import Result
from arc.demo.sight import NodeLine, Sight, short
from arc.demo.signalling import Ending
from arc.demo.tasks import COUNT, COUNT_MAX, LATER, demo_tasks
from arc.demo.work import is_alone, seconds_of
from arc.errors import StateBroken
from arc.sensor import Moved, SensorReport

ENDS_WITHIN_S = 120
ROOT = Path(__file__).parents[2]
ULIDS = [new_ulid(1, bytes([n] * 10)) for n in range(9)]
ONE, TWO = ULIDS[0], ULIDS[1]


def started(place: Path, *words: str) -> subprocess.Popen[str]:
    """The demo with an empty HOME, its temporary folders below `place`, and no terminal."""
    home, tmpdir = place / "empty-home", place / "tmp"
    home.mkdir()
    tmpdir.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "arc", "demo", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmpdir)}, cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def arc(fleet: str, *words: str) -> dict[str, Any]:
    """One command in another terminal."""
    argv = [sys.executable, "-m", "arc", "--fleet", fleet, *words, "--json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return cast("dict[str, Any]", json.loads(done.stdout)["data"])


def nothing_left(place: Path) -> bool:
    """No file of the demo, and no process that was started below its folder."""
    mark = os.fsencode(place)
    left = []
    for process in Path("/proc").iterdir():
        try:
            environ = (process / "environ").read_bytes() if process.name.isdigit() else b""
        except OSError:
            continue  # it has ended, or is somebody else's
        if mark in environ:
            left.append(process.name)
    return not left and list((place / "tmp").iterdir()) == []


@contextmanager
def ended_in_any_case(demo: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        if demo.poll() is None:
            demo.terminate()
        demo.communicate(timeout=ENDS_WITHIN_S)


# --- As a newcomer runs it ------------------------------------------------------------------------


def test_once_moves_work_over_real_ssh_loses_nothing_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    """Its folder lies so deep that no socket path of it fits into the 107 bytes there are."""
    place = tmp_path / ("deep" * 30)
    place.mkdir()
    demo = started(place, "--once", "--json")
    with ended_in_any_case(demo):
        said, talk = demo.communicate(timeout=ENDS_WITHIN_S)

    assert demo.returncode == 0, said + talk
    data = json.loads(said)["data"]
    assert (data["tasks"], data["done"]) == (COUNT, COUNT)
    assert (data["doubts"], data["lost"], data["twice"]) == (0, 0, 0)
    assert data["moved"] > 0
    assert data["routed"] > 0
    assert data["nodes"] == list(NAMES)
    assert data.keys() == {"tasks", "done", "moved", "routed", "doubts", "lost", "twice",
                           "stranded_node_s", "seconds", "nodes"}  # fmt: skip
    assert "real SSH" in talk
    assert "shortened: rebalance.idle_min 1s (else 2m), reb" in talk.splitlines()[0]
    assert nothing_left(place)


@pytest.mark.parametrize(("until", "number"), [
    ("arc demo:", signal.SIGTERM), ("stolen", signal.SIGINT),
])  # fmt: skip
def test_who_stops_it_at_any_moment_finds_nothing_left(
    tmp_path: Path, until: str, number: int
) -> None:
    """At the first line the daemons are not up yet; at the first move programs run everywhere."""
    demo = started(tmp_path)
    with ended_in_any_case(demo):
        assert demo.stdout is not None
        assert any(until in line for line in demo.stdout)
        demo.send_signal(number)
        said, talk = demo.communicate(timeout=ENDS_WITHIN_S)

    assert demo.returncode == 130, said + talk
    assert "Traceback" not in said + talk
    assert "twice 0" in said
    assert nothing_left(tmp_path)


def test_signals_that_come_while_it_ends_change_nothing_about_that(tmp_path: Path) -> None:
    """A terminal that closes after Ctrl-C sends SIGHUP when the demo's loop is closed already."""
    demo = started(tmp_path)
    with ended_in_any_case(demo):
        assert demo.stdout is not None
        assert any("stolen" in line for line in demo.stdout)
        demo.send_signal(signal.SIGINT)
        for _ in range(ENDS_WITHIN_S * 20):
            with suppress(subprocess.TimeoutExpired):
                demo.wait(0.05)
            if not any((tmp_path / "tmp").glob("*/nodes")):
                break
            demo.send_signal(signal.SIGHUP)
        said, talk = demo.communicate(timeout=ENDS_WITHIN_S)

    assert demo.returncode == 130, said + talk
    assert "Traceback" not in said + talk
    assert nothing_left(tmp_path)


def test_who_is_told_to_end_when_the_loop_is_closed_hears_it_all_the_same() -> None:
    """A signal handler that raises would end the tidying up that it interrupts."""
    ending = Ending()

    async def until_told() -> None:
        asyncio.get_running_loop().call_soon(ending.tell)
        await ending.wait()

    asyncio.run(until_told())
    ending.tell()
    assert ending.told


def test_the_lines_that_it_says_to_try_work_while_it_runs(tmp_path: Path) -> None:
    demo = started(tmp_path)
    with ended_in_any_case(demo):
        assert demo.stdout is not None
        tried = {}
        for line in demo.stdout:
            words = line.split()
            if "export" in words:
                fleet = words[1].removeprefix("ARC_FLEET=")
            if "why" in words and "--node" not in words:
                tried["why"] = words[words.index("why") + 1]
            if words[:2] == ["kill", "-9"]:
                tried["pid"] = words[2]
                break

        status = arc(fleet, "status")
        why = arc(fleet, "why", tried["why"])
        arc(fleet, "nodes", "pause", "loom", "--reason", "lunch")
        paused = {one["node"]: one["state"] for one in arc(fleet, "status")["nodes"]}
        os.kill(int(tried["pid"]), signal.SIGKILL)
        told = next(line for line in demo.stdout if "forge: its daemon" in line)
        demo.send_signal(signal.SIGTERM)
        said, talk = demo.communicate(timeout=ENDS_WITHIN_S)

    assert [one["node"] for one in status["nodes"]] == sorted(NAMES)
    assert short(why["uid"]) == tried["why"]
    assert paused["loom"] == "paused"
    assert "SIGKILL" in told
    assert demo.returncode == 130, said + talk
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("words", [
    ["--tasks", "0"], ["--tasks", str(COUNT_MAX + 1)], ["--policy", "seed"], ["--json"],
])  # fmt: skip
def test_what_makes_no_sense_is_wrong_use_and_starts_nothing(
    tmp_path: Path, words: list[str]
) -> None:
    demo = started(tmp_path, *words)
    with ended_in_any_case(demo):
        said, talk = demo.communicate(timeout=ENDS_WITHIN_S)

    assert demo.returncode == 2
    assert "ARC-USAGE" in said + talk
    assert nothing_left(tmp_path)


# --- Its check of itself --------------------------------------------------------------------------


def a_line(uid: str = ONE, what: str = BEGIN, at: float = 1.0, **fields: Any) -> Line:
    found = {"attempt": 1, "node": "iris", "pid": 7, "alone": True, **fields}
    return Line(uid=uid, what=what, at=at, **found)


def a_run(uid: str = ONE, *, at: float = 1.0, took: float = 1.0, **fields: Any) -> list[Line]:
    return [a_line(uid, BEGIN, at, **fields), a_line(uid, END, at + took, **fields)]


def test_a_task_whose_program_came_to_its_end_once_is_done() -> None:
    assert judge([ONE], a_run()) == Verdict(frozenset({ONE}), frozenset(), frozenset())


def test_a_task_that_never_ran_or_never_ended_is_lost() -> None:
    assert judge([ONE, TWO], [a_line()]).lost == {ONE, TWO}


def test_an_attempt_that_was_cut_off_and_made_again_is_not_twice() -> None:
    verdict = judge([ONE], [a_line(at=1.0), *a_run(at=5.0, attempt=2, node="loom")])
    assert verdict == Verdict(frozenset({ONE}), frozenset(), frozenset())


@pytest.mark.parametrize("lines", [
    [*a_run(), *a_run(at=5.0, attempt=2, node="loom")],
    [*a_run(took=3.0), a_line(at=2.0, attempt=2, node="loom")],
    [a_line(), a_line(at=2.0, attempt=2, alone=False)],
    [a_line(), *a_run(at=2.0, node="loom")],
], ids=["done again", "at the same time", "met another one", "an attempt began again"])  # fmt: skip
def test_a_second_run_counts_as_twice_however_it_shows(lines: list[Line]) -> None:
    """Create-then-close does this. Each clause of `ran_twice` taken out makes its row fail."""
    assert judge([ONE], lines).twice == {ONE}


def test_the_ledger_reads_on_and_leaves_half_a_line_for_later(tmp_path: Path) -> None:
    whole = json.dumps({"uid": ONE, "attempt": 1, "node": "iris", "pid": 7, "what": "begin",
                        "at": 12.5, "alone": True}) + "\n"  # fmt: skip
    file, ledger = tmp_path / "iris.jsonl", Ledger(tmp_path)
    file.write_text(whole + whole[:30])
    ledger.look()
    assert ledger.lines == [a_line(at=12.5)]
    with file.open("a") as more:
        more.write(whole[30:].replace("begin", "end"))
    ledger.look()
    assert [line.what for line in ledger.lines] == ["begin", "end"]
    assert (ledger.count(END, "iris"), ledger.count(END, "loom")) == (1, 0)
    assert ledger.uids(BEGIN) == {ONE}


def test_evidence_that_cannot_be_read_is_never_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "iris.jsonl").write_text('{"uid": "no ulid"}\n')
    with pytest.raises(StateBroken, match=r"iris\.jsonl"):
        Ledger(tmp_path).look()


def test_two_programs_at_one_task_notice_each_other(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("a") as first, (tmp_path / "lock").open("a") as second:
        assert is_alone(first.fileno())
        assert not is_alone(second.fileno())


@pytest.mark.parametrize(("body", "seconds"), [
    ('{"seconds": 0.25}', 0.25), ("of a person", 0.5), ("[1]", 0.5), ('{"seconds": "1"}', 0.5),
    ('{"seconds": 1e9}', 60.0), ('{"seconds": -1}', 0.0),
])  # fmt: skip
def test_a_body_of_anybody_is_some_work(body: str, seconds: float) -> None:
    assert seconds_of(body) == seconds


@pytest.mark.parametrize(("fields", "well"), [
    ({}, True), ({"twice": {ONE}}, False), ({"lost": {ONE}}, False), ({"doubts": 1}, False),
    ({"killed": 1}, False), ({"lost": {ONE}, "doubts": 1, "ended": False}, True),
])  # fmt: skip
def test_a_demo_that_broke_a_promise_says_so(fields: dict[str, Any], well: bool) -> None:
    """Stopped before its end, tasks are not done yet; that is no promise broken."""
    given = {"doubts": 0, "ended": True, "killed": 0, "lost": (), "twice": (), **fields}
    verdict = Verdict(frozenset(), frozenset(given.pop("lost")), frozenset(given.pop("twice")))
    result = Result(1, 1, 1, verdict=verdict, stranded_s=0.0, seconds=1.0, **given)
    assert result.is_well is well


# --- Its parts ------------------------------------------------------------------------------------


def test_every_task_is_one_that_a_node_takes_and_iris_has_most() -> None:
    rng = random.Random(1)
    tasks = demo_tasks(2 * COUNT, pace=1.0, mint=lambda: new_ulid(1, rng.randbytes(10)))

    for task in tasks:
        task_from(task.as_json())
    places = [task.place for task in tasks]
    assert set(places) == {"iris", "spark", "inbox", LATER}
    assert places.count("iris") >= 2 * 15
    assert len({task.subject for task in tasks}) == 2 * COUNT


def test_many_tasks_are_shorter_each() -> None:
    few, many = (demo_tasks(n, pace=1.0, mint=lambda: ONE) for n in (COUNT, 10 * COUNT))
    assert sum(task.seconds for task in many) == pytest.approx(
        sum(task.seconds for task in few), rel=0.1)  # fmt: skip


def test_a_daemon_that_was_killed_is_told_and_started_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = DemoNode("iris", tmp_path / "iris")
    node.daemon = subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    node.daemon.wait(10)
    again = []
    monkeypatch.setattr(DemoNode, "start", lambda self: again.append(self.name))

    assert "SIGKILL" in node.look(100.0)
    assert node.look(100.0 + demo_nodes.AGAIN_S - 0.1) == ""
    assert again == []
    assert "started again" in node.look(100.0 + demo_nodes.AGAIN_S)
    assert again == ["iris"]


def test_only_what_was_started_for_these_homes_is_killed(tmp_path: Path) -> None:
    def a_sleeper(home: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "60"], env={**os.environ, "AGENT_NODE_HOME": str(home)})

    with a_sleeper(tmp_path / "iris") as ours, a_sleeper(tmp_path / "iris2") as other:
        try:
            assert processes_of([tmp_path / "iris"]) == {ours.pid}
            assert kill_all([tmp_path / "iris"]) == 1
            assert ours.wait(10) == -signal.SIGKILL
            assert other.poll() is None
        finally:
            other.kill()
    assert end_nodes([DemoNode("iris", tmp_path / "iris")]) == 0


def a_sight(subject: str = "rotate the logs") -> Sight:
    sight = Sight(Path("/tmp/x"), "arc0", Ledger(Path("/nowhere")))
    sight.nodes = (NodeLine("iris", "working", 12, 1, 3, "research", "127.0.0.1:7"),
                   NodeLine("loom", "unseen", reason=subject))  # fmt: skip
    sight.inbox = 2
    return sight


def a_report(*moves: Moved, outcome: str = "done") -> SensorReport:
    return SensorReport("fleet-rebalance", outcome, "a summary", moves=moves)


def a_move(xfer: str = "x", **fields: Any) -> Moved:
    given: dict[str, Any] = {
        "busy": "iris", "idle": "loom", "outcome": "moved", "priority": 9,
        "because": "untagged: anyone may do it", **fields,
    }  # fmt: skip
    return Moved(xfer, ONE, **given)


def test_a_move_is_told_with_its_rule_and_counted_once() -> None:
    sight = a_sight()
    said = sight.hear(a_report(a_move(), a_move("y", outcome="kept", rule="paused")), 2.0)
    sight.hear(a_report(a_move()), 4.0)

    assert "iris -> loom" in said[0]
    assert "untagged: anyone may do it" in said[0]
    assert "paused: " in said[1]
    assert (sight.counts["stolen"], sight.first_s) == (1, {"stolen": 2.0})


def test_a_sensor_that_failed_is_not_passed_over_in_silence() -> None:
    assert a_sight().hear(a_report(outcome="failed"), 1.0) == ["fleet-rebalance: a summary"]


def test_an_unseen_node_or_inbox_is_never_a_quiet_one() -> None:
    sight = a_sight()
    sight.look({"nodes": [{"node": "iris", "state": "idle", "pending": 0, "running": 0}],
                "inbox": {"pending": 0}})  # fmt: skip
    quiet = [sight.is_quiet]
    sight.look({"nodes": [{"node": "iris", "state": "unseen"}], "inbox": {"pending": 0}})
    quiet.append(sight.is_quiet)
    sight.look({"nodes": [{"node": "iris", "pending": 0, "running": 0}], "inbox": {"seen": False}})
    assert [*quiet, sight.is_quiet] == [True, False, False]


HOSTILE = "[red]\x1b[2J$(rm)\u202e"


def test_plain_lines_show_what_could_drive_a_terminal() -> None:
    said: list[str] = []
    picture = PlainPicture(said.append)
    picture.draw(a_sight(HOSTILE), 1.0, ())
    picture.happened(1.0, HOSTILE)
    assert "\x1b" not in "".join(said)
    assert "\u202e" not in "".join(said)
    assert "iris" in said[0]


def test_the_live_picture_reads_no_markup_and_lets_nothing_through() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, no_color=True, markup=False)
    picture = LivePicture(console)
    picture.happened(2.5, HOSTILE)
    picture.draw(a_sight(HOSTILE), 3.0, ("arc status",))
    picture.close()
    console.print(render(a_sight(HOSTILE), 3.0, [(2.5, HOSTILE)], ()))
    shown = out.getvalue()
    assert "[red]" in shown
    assert "\x1b[2J" not in shown
    assert "arc status" in shown


def test_of_the_planned_tasks_no_more_are_done_than_there_are() -> None:
    """Seen to fail: with tasks that a person added, `89 of 80 done`."""
    sight = a_sight()
    tasks = demo_tasks(2, pace=1.0, mint=iter((ONE, TWO)).__next__)
    sight.add(tasks)
    sight.ledger.lines = [Line(uid, 1, "iris", 7, END, 1.0) for uid in ULIDS[:3]]
    console = Console(file=io.StringIO(), width=120)
    with console.capture() as shown:
        console.print(render(sight, 3.0, [], ()))

    assert "   2 of 2 done   " in shown.get()


@pytest.mark.parametrize(("policy", "said"), [
    ("arc0", ("rebalance.idle_min 1s (else 2m), rebalance.every 2s (else 5m), "
             "router.every 2s (else 30m), health.every 2s (else 5m)")),
    ("swift", ("rebalance.transfer 0s (else 5s), rebalance.gain_min 0s (else 30s), "
              "rebalance.task_takes 1s (else 10m), rebalance.every 2s (else 1m), "
              "router.every 2s (else 1m), health.every 2s (else 5m)")),
])  # fmt: skip
def test_the_first_line_says_what_is_shortened_under_this_policy(policy: str, said: str) -> None:
    """Seen to fail with one line for both: swift has no idle minimum, and its router looks each
    minute.
    """
    text = fleet_text(policy, batch=20, nodes="  []\n")
    assert shortened(parse_fleet(text, Path("/nowhere/fleet.yaml"))) == said


def test_what_is_to_be_tried_is_first_shown_when_something_was_stolen() -> None:
    said: list[str] = []
    picture, sight = PlainPicture(said.append), a_sight()
    picture.draw(sight, 1.0, ("arc status",))
    assert "arc status" not in "".join(said)
    sight.hear(a_report(a_move()), 2.0)
    picture.draw(sight, 2.0, ("arc status",))
    picture.draw(sight, 3.0, ("arc status",))
    assert "".join(said).count("arc status") == 1
