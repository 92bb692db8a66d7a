"""Who gives no sign of life is shown, and ended only where its owner said so, with proof."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.attempts import AttemptFolder, create_folder
from agent_node.beating import LOOK_EVERY_S, NOT_STARTED, STALLED, Beating
from agent_node.config import AgentSettings, NodeSettings
from agent_node.errors import DiskTrouble
from agent_node.home import Home
from agent_node.runs import Run, Runs
from agent_node.store.sqlite import SqliteStore, open_store
from agent_node.strict import JsonObject
from agent_node.task import task_from
from agent_node.validating import Validating
from tests.builders import FakeClock, a_task, an_agent, uid
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, carriers
from tests.node.daemon.living import an_agent as agent_table

# A daemon that looks five times a second instead of twice a minute: the same code, less patience.
HURRIED = (
    "import sys, agent_node.beating as b, agent_node.report as r;"
    "b.LOOK_EVERY_S = 0.2; r.EVERY_S = 0.2;"
    "from agent_node.cli import main; sys.exit(main())"
)


class Stage:
    """One attempt that runs, by a store of its own and a clock moved by hand."""

    def __init__(self, place: Path, on_stall: str = "show", *, started: bool = True) -> None:
        self.clock = FakeClock()
        self.store: SqliteStore = open_store(
            place, name="iris", clock=self.clock, rng=random.Random(7), machine="here"
        )
        self.store.live.dispatching = True
        self.store.apply(c.SetAgents((an_agent(),)))
        self.store.apply(c.Add((a_task(),)))
        got = self.store.apply(c.Claim("iris"))
        assert isinstance(got, c.Claimed)
        folder = AttemptFolder(str(place), uid(), 1)
        self.run = Run(uid(), 1, "iris", got.token, self.clock.boot_id(), folder, started=started)
        self.runs = Runs()
        self.runs.add(self.run)
        agent = AgentSettings(name="iris", run=("sh",), on_stall=on_stall)
        settings = NodeSettings(name="iris", agents=(agent,))
        self.stopped: list[str] = []
        self.beating = Beating(self.store, self.runs, settings, self.clock, self._stop)

    def _stop(self, run: Run, why: str) -> None:
        run.stop_why = why
        self.stopped.append(why)

    def look(self, *, shim: bool = False, own: bool = False) -> bool:
        """Half a minute passes, with or without these signs of life."""
        if shim:
            path = self.run.folder.heartbeat
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            moment = self.run.beat_at + 30
            os.utime(path, (moment, moment))
        if own:
            self.store.apply(c.Beat(uid(), 1, None, own=True))
        self.clock.advance(30)
        return self.beating.turn()

    def shown(self) -> tuple[str, ...]:
        return tuple(uid for uid, _ in self.store.read(q.Facts()).stalled)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.store.close()


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Stage]:
    """The same where a stall ends the attempt."""
    stage = Stage(tmp_path, "fail")
    yield stage
    stage.store.close()


def test_three_looks_without_a_beat_are_a_stall(stage: Stage) -> None:
    assert [stage.look(), stage.look(), stage.shown()] == [False, False, ()]
    assert stage.look() is True
    assert stage.shown() == (uid(),)
    assert stage.stopped == []


def test_a_shim_beats_for_a_program_that_does_not(stage: Stage) -> None:
    for _ in range(9):
        stage.look(shim=True)
    assert stage.shown() == ()
    claim = stage.store.read(q.ListTasks()).tasks[0].claim
    assert claim is not None
    assert claim["heartbeat_at"] == "2026-03-10T03:49:30.000Z"


def test_one_beat_in_time_is_enough(stage: Stage) -> None:
    for _ in range(4):
        stage.look()
        stage.look()
        stage.look(shim=True)
    assert stage.shown() == ()


def test_a_program_that_sent_heartbeats_of_its_own_is_to_go_on(stage: Stage) -> None:
    """Fails when its shim's beats go on counting: a program that hangs is never seen."""
    stage.look(shim=True, own=True)
    for _ in range(3):
        stage.look(shim=True)
    assert stage.shown() == (uid(),)
    assert stage.look(shim=True, own=True) is True
    assert stage.shown() == ()


def test_a_word_on_progress_promises_no_heartbeats(stage: Stage) -> None:
    """Fails when it does: whoever says once how far it is, is ended while it works on."""
    stage.store.apply(c.Beat(uid(), 1, "10%"))
    for _ in range(5):
        stage.look(shim=True)
    assert stage.shown() == ()


def begin_to_judge(
    stage: Stage, place: Path, flush: Callable[[], None] = lambda: None, *, waits: bool = False
) -> Callable[[], None]:
    """Its program has ended well, and the validator of its output is started, or waits for that.
    What is given lets that validator break and starts the next one.
    """
    timers: list[Callable[[], None]] = []

    class Starters:
        def hand_over(self, *_: object) -> None: ...

    stage.run.folder = create_folder(str(place), uid(), 1)
    pattern: JsonObject = {"kind": "regex", "pattern": "x"}
    stage.run.judged = task_from({"uid": uid(), "subject": "x", "validate": pattern})
    agent = AgentSettings(name="iris", run=("sh",))
    nothing: Any = None
    validating = Validating(
        stage.store, home=Home(place), settings=NodeSettings(name="iris", agents=(agent,)),
        starters=cast("Any", Starters()), later=lambda _wait, then: timers.append(then),
        look=nothing, record=nothing, flush=flush,
    )  # fmt: skip
    for _ in range(5 if waits else 1):
        assert validating.judge(stage.run, c.Result("completed", output="x")) is None
        if waits:
            assert stage.look() is False
    assert (stage.run.judging is None) is waits

    def break_it() -> None:
        timers.clear()
        assert validating.judge(stage.run, c.Result("interrupted", message="its shim died")) is None
        (again,) = timers
        again()
        assert stage.run.judging is not None
        assert stage.run.judging.tries == 2

    return break_it


def test_a_program_that_has_ended_owes_no_heartbeats_while_its_output_is_judged(
    strict: Stage, tmp_path: Path
) -> None:
    """Fails when its promise holds for its validator: a good output is a stall, and is paid twice.
    It had been silent for two looks, which are no looks at the validator: fails when they count.
    """
    strict.look(shim=True, own=True)
    assert [strict.look(shim=True), strict.look(shim=True)] == [False, False]
    begin_to_judge(strict, tmp_path)
    strict.look()
    assert (strict.shown(), strict.stopped) == ((), [])
    for _ in range(5):
        strict.look(shim=True)
    assert (strict.shown(), strict.stopped) == ((), [])


def test_what_has_ended_well_and_waits_for_the_disk_is_no_stall(
    strict: Stage, tmp_path: Path
) -> None:
    """Seen to fail: where what is to be judged cannot be written down, and is tried each second,
    the program's promise held on, and good work was ended as a stall.
    """

    def full() -> None:
        raise DiskTrouble("no room")

    strict.look(shim=True, own=True)
    begin_to_judge(strict, tmp_path, full, waits=True)
    assert (strict.shown(), strict.stopped) == ((), [])


def test_a_validator_that_gives_no_sign_of_life_is_a_stall(stage: Stage, tmp_path: Path) -> None:
    stage.look(shim=True, own=True)
    begin_to_judge(stage, tmp_path)
    for _ in range(3):
        stage.look()
    assert stage.shown() == (uid(),)


def test_a_second_validator_owes_nothing_for_the_first_that_was_silent(
    strict: Stage, tmp_path: Path
) -> None:
    """Seen to fail: it was ended at the first look for 90 s of silence, and good work was lost."""
    break_it = begin_to_judge(strict, tmp_path)
    assert [strict.look(), strict.look(), strict.run.silent] == [False, False, 2]
    break_it()
    assert [strict.look(), strict.look(), strict.look(shim=True)] == [False] * 3
    assert (strict.shown(), strict.stopped) == ((), [])


def test_a_second_validator_is_not_shown_as_the_stall_of_the_first(
    stage: Stage, tmp_path: Path
) -> None:
    break_it = begin_to_judge(stage, tmp_path)
    assert [stage.look(), stage.look(), stage.look()] == [False, False, True]
    assert stage.shown() == (uid(),)
    break_it()
    assert stage.shown() == ()
    assert [stage.look(), stage.look(), stage.look()] == [False, False, True]
    assert stage.shown() == (uid(),)


def test_a_machine_that_slept_has_looked_once(stage: Stage) -> None:
    """Fails when seconds are counted: everything that runs stalls when the lid is opened."""
    stage.look(shim=True)
    stage.clock.advance(8 * 3600)
    stage.beating.turn()
    assert stage.shown() == ()


def test_looks_are_half_a_minute_apart_however_often_it_is_asked(stage: Stage) -> None:
    for _ in range(100):
        stage.clock.advance(LOOK_EVERY_S / 51)
        stage.beating.turn()
    assert (stage.run.silent, stage.shown()) == (1, ())


def test_a_stall_ends_the_attempt_only_where_the_owner_said_so(strict: Stage) -> None:
    for _ in range(5):
        strict.look()
    assert strict.stopped == [STALLED]
    assert strict.run.stalled


def test_what_does_not_start_within_a_minute_is_stopped_and_counts_as_interrupted(
    tmp_path: Path,
) -> None:
    """Fails without the limit: an attempt that was claimed and never begun holds its slot."""
    stage = Stage(tmp_path, started=False)
    stage.look()
    assert stage.stopped == []
    stage.look()
    assert stage.stopped == [NOT_STARTED]
    assert not stage.run.stalled
    stage.store.close()


def test_a_stalled_program_is_proven_dead_and_tried_again(make_node: MakeNode, bell: Bell) -> None:
    """It says once that it lives, then hangs; its tree is gone before it is tried again."""
    agents = agent_table("iris", more='on_stall = "fail"')
    node = make_node(agents=agents, grace_s=1)
    node.command = [sys.executable, "-c", HURRIED]
    node.start()
    beat = f"PYTHONPATH={node.env['PYTHONPATH']} {sys.executable} -m agent_node heartbeat"
    script = f"{beat}; echo beaten > {bell.path}; sleep 600 & sleep 600"
    uid = node.add(script, max_attempts=1)
    assert bell.hear() == "beaten"
    task = node.until(uid, "DEAD_LETTERED")
    assert task["failure_reason"] == f"stalled: {STALLED}"
    (attempt,) = node.attempts(uid)
    assert (attempt["error_kind"], attempt["counted"]) == ("stalled", True)
    assert carriers(f"AGENT_TASK_UID={uid}".encode()) == []


def test_a_stall_is_shown_to_whoever_asks(make_node: MakeNode, bell: Bell) -> None:
    node = make_node()
    node.command = [sys.executable, "-c", HURRIED]
    daemon = node.start()
    uid = node.add("sleep 600")
    daemon.hear("attempt_stalled")
    (said,) = node.cli("status")["data"]["needs_you"]
    assert said.startswith(f"{uid} runs and gives no sign of life since ")
    node.cli("cancel", uid)
    node.until(uid, "CANCELLED")
    assert node.cli("status")["data"]["needs_you"] == []
