"""Every kind of finding makes a run of chaos unclean and its exit code 1, whoever found it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.checker import Findings
from tests.hub.cli.desk import Ran
from tests.ssh import chaos as chaos_module
from tests.ssh.breaking import faults_in
from tests.ssh.chaos import Chaos, main
from tests.ssh.chaos_report import Report
from tests.ssh.fleet import SshFleet
from tests.ssh.ground import CommandFailed

WRONG = {"lost": "lost", "duplicated": "duplicated", "unexpected": "unexpected",
         "stuck": "stuck", "broken": "tracebacks", "failed": "failed"}  # fmt: skip
HARMLESS: dict[str, Any] = {
    "refused": Counter({"not answered": 9}), "settled_by_hand": Counter({"PARKED": 2}),
    "interrupted": 3, "moved": 4, "faults": Counter({"cut": 5})}  # fmt: skip
TRACE = "Traceback (most recent call last):\n  File x\nKeyError: 'uid'"
BOOK = ("overlapped", "two_places", "lost", "accepted_twice", "invented")


@pytest.fixture
def fleet(tmp_path: Path) -> Any:
    """One in which nothing was done, nothing is left and nothing was found."""
    return SimpleNamespace(
        homes={}, added=[], tried=[], rows=[], faults=[], place=tmp_path, state=tmp_path,
        lab=SimpleNamespace(shared=tmp_path), books=findings,
        up=lambda: None, data=lambda *words: {"doubts": []},
        arc=lambda *words: Ran(0, "", ""))  # fmt: skip


@pytest.fixture
def chaos(fleet: Any, monkeypatch: pytest.MonkeyPatch) -> Chaos:
    monkeypatch.setattr(chaos_module, "QUIET_S", 0.01)
    monkeypatch.setattr(chaos_module, "PAUSE_S", 0.0)
    made = Chaos(fleet, "ada", policy="swift", broken=False)
    monkeypatch.setattr(made, "_rows", lambda table: fleet.rows)
    return made


def findings(**found: tuple[str, ...]) -> Findings:
    return Findings(**{**dict.fromkeys(BOOK, ()), **found})


def exit_of(report: Report, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """What `main` comes to after a run that came to this."""

    def has_run(asked: argparse.Namespace, place: Path) -> Report:
        return report

    monkeypatch.setattr(chaos_module, "run_chaos", has_run)
    monkeypatch.setattr(chaos_module, "missing_for_nodes", list)
    monkeypatch.setattr(chaos_module, "may_run_apart", lambda: False)
    return main(["--minutes", "0", *words])


@pytest.mark.parametrize("kind", WRONG)
def test_every_kind_of_finding_makes_a_run_unclean_and_ends_it_with_1(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guard: with any of the six out of `clean`, its row here is 0."""
    report = Report("ada", 2, "swift")
    setattr(report, kind, ["01J this one"])
    assert not report.clean
    assert exit_of(report, monkeypatch) == 1
    said = capsys.readouterr().out
    assert f"{WRONG[kind]:<14}1\n" in said
    assert "WRONG 01J this one" in said
    assert exit_of(report, monkeypatch, "--json") == 1
    assert json.loads(capsys.readouterr().out)["clean"] is False


def test_what_faults_do_to_a_fleet_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_of(Report("ada", 2, "swift", **HARMLESS), monkeypatch) == 0


@pytest.mark.parametrize("kind", BOOK)
def test_whatever_the_books_find_is_counted(chaos: Chaos, kind: str, fleet: Any) -> None:
    """Guard: with any of the five out of `count`, its row here is clean."""
    assert chaos.count().clean, "nothing found, nothing wrong"
    fleet.books = lambda: findings(**{kind: ("01J",)})
    assert not chaos.count().clean


@pytest.mark.parametrize("state", ["READY", "RUNNING", "PARKED", "DEAD_LETTERED", "missing"])
def test_what_has_not_ended_when_the_quiet_is_over_is_stuck(
    chaos: Chaos, state: str, fleet: Any
) -> None:
    fleet.rows = [] if state == "missing" else [{"uid": "01J", "state": state}]
    fleet.added = ["01J"]
    chaos.settle()
    assert not chaos.report.clean
    (stuck,) = chaos.report.stuck
    assert stuck.startswith("01J ")


@pytest.mark.parametrize("text", [
    f"it started\n{TRACE}\n",
    "error[ARC-FAULT]: arc tasks.import: ended early: KeyError: 'uid' (x.py:3)\n",
    '{"ok":false,"error":{"code":"ARC-FAULT","message":"a fault of ours: KeyError"}}',
    "error[fault]: agent-node add: ended early: KeyError: 'uid' (x.py:3)\n",
    '{"ok":false,"error":{"code":"fault","message":"KeyError while answering"}}',
    "{'ok': False, 'error': {'code': 'fault', 'message': 'KeyError while answering'}}",
    '{"at": "2026-03-01T00:00:00.000Z", "event": "request_failed", "do": "hold"}',
], ids=["python", "arc", "arc as JSON", "agent-node", "agent-node as JSON", "as read", "its log"],
)  # fmt: skip
def test_every_way_in_which_we_say_that_we_broke_is_known(chaos: Chaos, text: str) -> None:
    """Told in whatever is swallowed, in a log, or by a command that nobody reads."""
    assert len(faults_in(text)) == 1
    (chaos.fleet.place / "hub.log").write_text(text)
    assert len(chaos.count().broken) == 1


def raises(error: Exception) -> Callable[[], object]:
    def what() -> object:
        raise error

    return what


SWALLOWED: dict[str, Callable[[str], Exception]] = {
    "a command of a node": CommandFailed,
    "a command that did not end": lambda text: TimeoutExpired(["x"], 5.0, b"", text.encode()),
    "an answer of the hub": AssertionError,
    "what is no JSON": lambda text: json.JSONDecodeError("Expecting value", text, 0),
    "a field that is not there": KeyError,
}


@pytest.mark.parametrize("how", SWALLOWED)
def test_a_fault_of_ours_is_counted_where_an_addition_is_not_answered_for(
    chaos: Chaos, how: str
) -> None:
    """Guard: with `broken` left alone in `_try` the run is clean."""
    chaos._try(raises(SWALLOWED[how]("no answer in time")))
    assert chaos.report.refused.total() == 1
    assert chaos.count().clean, "nobody answering is what faults do"
    chaos._try(raises(SWALLOWED[how](TRACE)))
    assert chaos.report.refused.total() == 2
    assert not chaos.count().clean


def test_a_fault_of_ours_is_counted_in_a_command_that_nobody_reads(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def breaks(words: list[str], around: Any) -> int:
        around.stderr.write("error[ARC-FAULT]: arc pause: ended early: KeyError: 'uid' (x.py:3)\n")
        return 1

    monkeypatch.setattr("tests.ssh.fleet.run_command", breaks)
    fleet = SshFleet.__new__(SshFleet)  # without a laboratory there is only its keyboard
    fleet.file, fleet.faults = tmp_path / "fleet.yaml", []
    fleet.arc("pause", "--reason", "chaos")
    chaos.fleet.faults = fleet.faults
    (said,) = chaos.count().broken
    assert said.startswith("ARC-FAULT]: arc pause")


@pytest.mark.parametrize("part", ["up", "_night", "settle", "count"])
def test_a_run_that_does_not_come_to_its_end_is_told_with_what_it_counted(
    chaos: Chaos, fleet: Any, part: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A node that is not back, a fault that cannot be taken back, a hub that does not answer.

    Guard: with the `try` out of `whole` nothing is told but a traceback; seen.
    """
    nights = list[int]()

    def one_night() -> None:
        chaos.report.faults["cut"] += 1
        nights.append(1)

    monkeypatch.setattr(chaos, "_night", one_night)
    fleet.rows = [{"uid": "01J", "state": "COMPLETED", "outcome": None}]
    fleet.added = ["01J"]
    breaks = raises(AssertionError("not within 60s: iris is back after cut"))
    monkeypatch.setattr(fleet if part == "up" else chaos, part, breaks)
    report = chaos.whole(0.001)
    assert report.failed == ["AssertionError: not within 60s: iris is back after cut"]
    assert report.seconds >= 0
    assert report.acknowledged == (0 if part == "count" else 1)
    assert bool(nights) is (part != "_night")
    assert exit_of(report, monkeypatch) == 1
    said = capsys.readouterr().out
    assert "WRONG AssertionError: not within 60s: iris is back after cut" in said
    assert "  faults  " in said


def test_what_nobody_ever_meant_to_add_is_unexpected(chaos: Chaos, fleet: Any) -> None:
    """Guard: without `_of_nobody` a task out of nowhere counts for nothing; seen. One whose
    addition nobody answered for may be there.
    """
    fleet.tried, fleet.added = ["01A", "01B"], ["01B"]
    fleet.rows = [{"uid": uid, "state": "READY", "outcome": None} for uid in ("01A", "01B")]
    assert chaos.count().clean
    fleet.rows.append({"uid": "01C", "state": "CANCELLED", "outcome": None})
    assert chaos.count().unexpected == ["01C is queued, and nobody added it"]
    (fleet.lab.shared / "ledger").write_text(
        "".join(f"start {uid} 1 .agent-node 7 8 9.0\n" for uid in ("01A", "01C", "01D")))
    assert chaos.count().unexpected == ["01C is queued, and nobody added it",
                                        "01D ran, and nobody added it"]  # fmt: skip
    assert not chaos.count().clean


def test_every_log_of_a_fleet_is_read(chaos: Chaos, fleet: Any, tmp_path: Path) -> None:
    node = SimpleNamespace(path=lambda inside: tmp_path / inside)
    fleet.homes = {"iris": SimpleNamespace(node=node, path="iris")}
    (tmp_path / "iris").mkdir()
    for log in ("hub.log", "iris/daemon.log"):
        (tmp_path / log).write_text(TRACE)
    assert len(chaos.count().broken) == 2
