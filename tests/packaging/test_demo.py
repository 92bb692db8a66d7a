"""Runs the demo as a newcomer does, and shows that its own checks can fail."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.demonstration.evidence import LedgerNote, lost, run_twice
from tools.demonstration.picture import Picture, cut
from tools.demonstration.sight import Sight
from tools.demonstration.tasks import planned_tasks
from tools.sources import ROOT

ENDS_WITHIN_S = 120


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


def start_demo(tmpdir: Path) -> subprocess.Popen[str]:
    """The demo with an empty HOME, its temporary folders below `tmpdir`, and no terminal."""
    home = tmpdir.with_name("empty-home")
    home.mkdir()
    tmpdir.mkdir()
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tools" / "demo.py")],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmpdir)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def processes_below(folder: Path) -> list[str]:
    """Processes whose environment names this folder: the demo's daemon, shims and programs."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            environ = (process / "environ").read_bytes() if process.name.isdigit() else b""
        except OSError:
            continue  # it has ended, or is somebody else's
        if os.fsencode(folder) in environ:
            found.append(process.name)
    return found


def test_the_demo_kills_a_daemon_and_still_loses_nothing_and_runs_nothing_twice(
    tmp_path: Path,
) -> None:
    """Its home lies so deep that no socket path of it fits into the 107 bytes there are."""
    tmpdir = tmp_path / ("deep" * 30)
    demo = start_demo(tmpdir)
    out, err = demo.communicate(timeout=ENDS_WITHIN_S)

    assert (demo.returncode, err) == (0, ""), out
    assert "added 30, spawned 2, completed 29, cancelled 1, given up 2, twice 0, lost 0" in out
    assert "kill -9" in out
    assert "\x1b" not in out
    assert (list(tmpdir.iterdir()), processes_below(tmpdir)) == ([], [])


def test_a_demo_that_is_interrupted_takes_everything_with_it(tmp_path: Path) -> None:
    tmpdir = tmp_path / "t"
    demo = start_demo(tmpdir)
    assert demo.stdout is not None
    try:
        while "you cancel" not in (line := demo.stdout.readline()):
            assert line, "the demo ended before it ran anything"
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=ENDS_WITHIN_S)
    finally:
        demo.kill()
        demo.communicate()

    assert demo.returncode == 130
    assert (list(tmpdir.iterdir()), processes_below(tmpdir)) == ([], [])


@pytest.mark.parametrize("again", [
    LedgerNote("A", 1, "began", 12),
    LedgerNote("A", 2, "began_twice", 12),
    LedgerNote("A", 2, "done", 12),
])
def test_the_demo_would_notice_a_task_that_ran_twice(again: LedgerNote) -> None:
    honest = [LedgerNote("A", 1, "began", 11), LedgerNote("A", 1, "done", 11),
              LedgerNote("B", 1, "began", 13), LedgerNote("B", 1, "failed", 13),
              LedgerNote("B", 2, "began", 14), LedgerNote("B", 2, "done", 14)]

    assert run_twice(honest) == set()
    assert run_twice([*honest, again]) == {"A"}


def test_the_demo_would_notice_a_lost_task() -> None:
    notes = [LedgerNote("A", 1, "done", 11), LedgerNote("C", 1, "began", 12)]

    assert lost({"A": "COMPLETED", "B": "CANCELLED"}, notes) == set()
    assert lost({"A": "RUNNING", "C": "COMPLETED"}, notes) == {"A", "C"}


def test_the_demo_adds_thirty_tasks_and_none_of_them_twice() -> None:
    keys = [task.document["key"] for task in planned_tasks()]

    assert len(keys) == len(set(keys)) == 30


@pytest.mark.parametrize(("environ", "colours"), [
    ({"TERM": "xterm"}, True),
    ({"TERM": "xterm", "NO_COLOR": "1"}, False),
])
def test_a_terminal_sees_one_picture_that_changes(
    environ: dict[str, str], colours: bool
) -> None:
    out = Terminal()
    picture = Picture(out, environ)
    sight = Sight()
    sight.tasks = {"A": {"uid": "A", "state": "READY", "subject": "x", "claim": None}}
    picture.happened(0.1, "something \x1b[2J happened")
    picture.draw(sight, 0.1)
    first = out.getvalue()
    picture.draw(sight, 0.2)

    height = first.count("\n")
    assert out.getvalue()[len(first):].startswith(f"\x1b[{height}A\r")
    assert "\\x1b[2J happened" in first
    assert ("\x1b[36m#\x1b[0m" in first) is colours


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {}])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(environ: dict[str, str]) -> None:
    out = Terminal()
    picture = Picture(out, environ)
    picture.happened(1.5, "a task completed")
    picture.draw(Sight(), 1.5)

    assert out.getvalue() == "  1.5 s  a task completed\n"


def test_a_line_is_cut_to_the_terminal_and_colours_take_no_room() -> None:
    assert cut("abcdef", 4) == "abcd"
    assert cut("ab\x1b[36mcd\x1b[0m", 4) == "ab\x1b[36mcd\x1b[0m"
    assert cut("ab\x1b[36mcdef\x1b[0m", 4) == "ab\x1b[36mcd\x1b[0m"
