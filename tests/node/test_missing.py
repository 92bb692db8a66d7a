"""When an agent is held for want of its program, for how long, and what its task pays: nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_node.attempts import AttemptFolder
from agent_node.commands import Result
from agent_node.config import AgentSettings, NodeSettings
from agent_node.missing import HELD_MAX_S, LOOK_S, SOON_S, WRITTEN_S, Programs, why_missing
from agent_node.output import Count
from agent_node.runs import Judging, Run
from agent_node.shim import _is_absent
from agent_node.store.live import Live
from agent_node.verdicts import Verdict
from tests.builders import FakeClock, uid

NONE = Count(0, 0)
AT = datetime(2026, 3, 10, 3, 45, tzinfo=UTC)
COULD_NOT = Verdict(
    uid(1), 1, "could_not_start", None, None, None, AT, 0.0, NONE, NONE, leftovers_killed=0,
    survivors=0, because="no such file", missing=True,
)  # fmt: skip
FAILED = Result("failed", error_kind="crash", message="could not start: no such file")


class Held:
    """The programs of one agent, with a clock that is set by hand."""

    def __init__(self, agent: AgentSettings) -> None:
        self.clock, self.live = FakeClock(), Live()
        self.programs = Programs(NodeSettings(name="iris", agents=(agent,)), self.live, self.clock)

    def fails(self, verdict: Verdict = COULD_NOT) -> Result:
        folder = AttemptFolder("/nowhere", uid(1), 1)
        run = Run(uid(1), 1, "iris", "token", "boot", folder, unstarted=verdict)
        return self.programs.excused(run, FAILED)


def installed(place: Path) -> AgentSettings:
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return AgentSettings(name="iris", run=(str(place),))


def test_it_is_looked_for_every_30_s_and_sooner_only_when_work_comes(tmp_path: Path) -> None:
    """Guard: the bounds. Without the second one each task that comes looks at the disk."""
    held = Held(AgentSettings(name="iris", run=(str(tmp_path / "claude"),)))
    assert held.programs.look()
    assert held.programs.there() == []
    installed(tmp_path / "claude")
    assert (held.programs.there(), held.programs.look()) == ([], False)
    held.clock.advance(SOON_S)
    assert [agent.name for agent in held.programs.there()] == ["iris"]
    (tmp_path / "claude").unlink()
    held.clock.advance(LOOK_S - 0.1)
    assert not held.programs.look()
    assert [agent.name for agent in held.programs.there()] == ["iris"], "nobody looks on this way"
    held.clock.advance(0.1)
    assert held.programs.look()
    assert held.programs.of("iris") is None


def test_what_is_there_and_does_not_start_is_left_alone_twice_as_long_each_time(
    tmp_path: Path,
) -> None:
    """Guard: the pause, and that a start ends it. Without it such an agent tries for ever."""
    held = Held(installed(tmp_path / "claude"))
    for wait in (30.0, 60.0, 120.0, 240.0, HELD_MAX_S, HELD_MAX_S):
        assert held.fails().kind == "requeued"
        held.clock.advance(wait - 0.1)
        assert held.programs.there() == []
        held.clock.advance(SOON_S)
        assert len(held.programs.there()) == 1
    held.programs.started("iris")
    held.fails()
    held.clock.advance(30.0)
    assert len(held.programs.there()) == 1


def test_slots_that_fail_together_are_one_failure_and_are_told_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Seen to fail: five slots that ended at once held an agent for 300 s, with five lines of log,
    since each named the folder of its own task.
    """
    held = Held(installed(tmp_path / "claude"))
    for wait in (30.0, 60.0):
        for n in range(5):
            why = f"could not start 'claude' in '/tasks/{n}/{wait}': [Errno 8] Exec format error"
            held.fails(replace(COULD_NOT, because=why))
            held.clock.advance(0.1)
        held.clock.advance(wait - 0.6)
        assert held.programs.there() == []
        held.clock.advance(SOON_S)
        assert len(held.programs.there()) == 1
    assert capfd.readouterr().err.count('"program_') == 1
    held.programs.started("iris")
    assert '"program_found"' in capfd.readouterr().err
    held.fails(replace(COULD_NOT, because="[Errno 8] Exec format error"))
    held.clock.advance(30.0)
    held.programs.there()
    held.fails(replace(COULD_NOT, because="[Errno 26] Text file busy"))
    assert capfd.readouterr().err.count('"program_missing"') == 2, "another cause is told"


def test_a_program_that_was_replaced_is_tried_at_once_and_one_that_is_written_a_little_later(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Seen to fail: what was mended within a second was left alone for minutes."""
    held = Held(installed(tmp_path / "claude"))
    held.fails()
    installed(tmp_path / "new")
    (tmp_path / "new").rename(tmp_path / "claude")
    held.clock.advance(SOON_S)
    assert len(held.programs.there()) == 1
    assert '"program_found"' in capfd.readouterr().err
    held.fails()
    for moment in range(1, 5):
        os.utime(tmp_path / "claude", (moment, moment))
        held.clock.advance(WRITTEN_S - 1)
        assert held.programs.there() == [], "it is still being written"
    held.clock.advance(SOON_S)
    assert held.programs.there() == []
    held.clock.advance(WRITTEN_S)
    assert len(held.programs.there()) == 1


def test_only_what_could_not_start_for_want_of_its_program_is_excused(tmp_path: Path) -> None:
    held = Held(installed(tmp_path / "claude"))
    assert held.fails(replace(COULD_NOT, missing=False)) is FAILED, "E2BIG, a disk that failed"
    assert held.live.missing == {}
    validated = Run(uid(1), 1, "iris", "token", "boot", AttemptFolder("/nowhere", uid(1), 1),
                    unstarted=COULD_NOT)  # fmt: skip
    validated.judging = Judging(validated.folder, FAILED, 1)
    assert held.programs.excused(validated, FAILED) is FAILED, "a validator's program is not it"
    (tmp_path / "claude").unlink()
    excused = held.fails(replace(COULD_NOT, missing=False))
    assert (excused.kind, excused.error_kind) == ("requeued", None), "a shim of before says less"


@pytest.mark.parametrize(("fields", "path", "why"), [
    ({"run": ("sh",)}, None, ""),
    ({"run": ("no-such-program",)}, None, "there is no program no-such-program here"),
    ({"run": ("no-such-program",)}, "/bin:", "there is no program no-such-program here"),
    ({"run": ("no-such-program",)}, "/bin:bin", "there is no program no-such-program here"),
    ({"run": ("sh",)}, ":/bin", ""),
    ({"run": ("sh",)}, ":bin", "there is no program sh here"),
    ({"run": ("sh",), "cwd": "/"}, "/no:bin", ""),
    ({"run": ("sh",), "cwd": "/bin"}, "/no:", ""),
    ({"run": ("no-such-program",), "cwd": "/"}, ":bin", "there is no program no-such-program here"),
    ({"run": ("./tool",)}, None, ""),
    ({"run": ("./tool",), "cwd": "/"}, None, "there is no program ./tool here"),
    ({"run": ("sh",), "cwd": "/no/such"}, None, "there is no folder /no/such here, its cwd"),
    ({"run": ("no-such-program",), "run_as": "nix"}, None, ""),  # only nix can see
])  # fmt: skip
def test_what_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], path: str | None, why: str
) -> None:
    """Seen to fail: one entry that is empty or relative, as of `PATH="$PATH:"`, turned it all off,
    and a queue died for want of a program without a word.
    """
    monkeypatch.chdir("/")  # where a `bin` lies, which no task finds
    if path is not None:
        monkeypatch.setenv("PATH", path)
    agent = AgentSettings(name="iris", **fields)
    assert why_missing(agent) == why


def test_a_folder_that_may_not_be_entered_is_no_place_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: it is a folder, so each task was tried there until it was dead."""
    place = tmp_path / "work"
    place.mkdir()
    agent = AgentSettings(name="iris", run=("sh",), cwd=str(place))
    assert why_missing(agent) == ""
    may = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != str(place) and may(path, mode))
    assert why_missing(agent) == f"its cwd, {place}, may not be entered"


def test_where_another_user_cannot_begin_nothing_is_tried_until_it_is_dead() -> None:
    """Seen to fail: the folder was not the program, so each task of the agent died of it."""
    held = Held(AgentSettings(name="iris", run=("sh",), cwd="/no/cwd", run_as="nix"))
    gone = FileNotFoundError(2, "No such file or directory", "/no/cwd")
    said = replace(COULD_NOT, missing=_is_absent(gone, "sh"), no_folder=_is_absent(gone, "/no/cwd"))
    assert (said.missing, said.no_folder) == (False, True)
    assert held.fails(said).kind == "requeued"
    assert held.programs.there() == []
    own = Held(AgentSettings(name="iris", run=("/bin/sh",), run_as="nix"))
    assert own.fails(said) is FAILED, "a folder made for this task is not the agent's"
