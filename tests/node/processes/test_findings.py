"""Faults that were found in a finished node, where one of its parts alone can show them."""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_node import dispatch, endings, wardens
from agent_node.attempts import AttemptFolder, EvidenceUnreadable, create_folder
from agent_node.clock import iso
from agent_node.commands import Add, AgentRow, Claim, Claimed, Command, Finish, SetAgents
from agent_node.commands import Result as End
from agent_node.config import read_settings
from agent_node.daemon import Daemon
from agent_node.dispatch import Dispatcher
from agent_node.endings import look_at_end
from agent_node.errors import DiskTrouble
from agent_node.evidence import Alive, Unprovable
from agent_node.home import Home
from agent_node.logs import read_piece
from agent_node.processes import identify, read_boot_id
from agent_node.queries import ShowTask
from agent_node.runs import Judging, Run
from agent_node.starters import Starters
from agent_node.store.sqlite import SqliteStore, open_store
from agent_node.timers import Timers
from agent_node.upkeep import FORGET_EVERY_S, LOOK_WAIT_S, Upkeep
from agent_node.zygote_link import Spawned
from tests.builders import DAY, START, a_clock, a_task, uid
from tests.node.test_missing import AT, COULD_NOT
from tests.node.wire.talking import a_home

Later = Callable[[float, Callable[[], None]], None]
BEFORE_THE_POWER_CUT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    """An attempt whose record of its shim is empty; nothing of it runs."""
    folder = create_folder(str(tmp_path), uid(), 1)
    folder.add("shim.json", b"")
    return folder


def a_run(folder: AttemptFolder, *, boot: str | None = None, started: bool = False) -> Run:
    token = f"nobody-carries-{os.getpid()}-{folder.path}"
    run = Run(folder.uid, 1, "iris", token, boot or read_boot_id(), folder)
    run.started = started
    return run


def kind_of_end(run: Run) -> str:
    end = look_at_end(run)
    assert isinstance(end, End)
    return end.kind


# How an attempt without a verdict ended.


def test_an_attempt_that_never_started_costs_nothing(folder: AttemptFolder) -> None:
    assert kind_of_end(a_run(folder)) == "requeued"


def test_after_a_power_cut_an_empty_record_proves_nothing(folder: AttemptFolder) -> None:
    """Fails when the record of another boot counts: what was not synced came back empty."""
    assert kind_of_end(a_run(folder, boot=BEFORE_THE_POWER_CUT)) == "interrupted"


def test_a_start_that_was_heard_of_is_not_undone_by_an_empty_record(folder: AttemptFolder) -> None:
    """Fails when the file alone is asked: its program can empty it, and run for ever at no cost."""
    assert kind_of_end(a_run(folder, started=True)) == "interrupted"


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_what_a_program_said_that_it_cost_counts_when_its_shim_is_killed(
    folder: AttemptFolder, *, requeue: bool, before: bool
) -> None:
    """Seen to fail: only a verdict's attempt was asked what it had cost, and who kills the shim, or
    cuts the power, had the money for nothing. What else it wrote counts for nothing.
    """
    folder.add("answer.json", b'{"cost_usd": "0.12", "tokens": {"input": 9}, "output": 7}')
    run = a_run(folder, boot=BEFORE_THE_POWER_CUT if before else None, started=not before)
    run.requeue = requeue
    end = look_at_end(run)
    assert isinstance(end, End)
    assert (end.kind, end.cost_usd, end.tokens, end.output) == (
        "requeued" if requeue else "interrupted", "0.12", {"input": 9}, None,
    )  # fmt: skip


@pytest.mark.parametrize("judged", [True, False])
def test_what_a_program_said_that_it_cost_counts_where_nothing_is_proved(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch, *, judged: bool
) -> None:
    """Seen to fail: nobody asked, and money was spent that no book had. Of an output that is judged
    its program's own word counts; the folder is a validator's by then.
    """
    run = a_run(folder, started=True)
    if judged:
        run.judging = Judging(folder, End("completed", cost_usd="0.12", tokens={"input": 9}), 1)
    else:
        folder.add("answer.json", b'{"cost_usd": "0.12", "tokens": {"input": 9}, "output": 7}')
    monkeypatch.setattr(endings, "judge_attempt", lambda *_, **__: Unprovable("it hides"))
    end = look_at_end(run)
    assert isinstance(end, End)
    assert (end.kind, end.message, end.cost_usd, end.tokens, end.output) == (
        "unproved", "it hides", "0.12", {"input": 9}, None)  # fmt: skip


def test_what_a_program_cost_counts_where_some_of_it_survived(folder: AttemptFolder) -> None:
    """Its supervisor says so, in a verdict."""
    folder.add("answer.json", b'{"cost_usd": "0.12", "output": 7}')
    none = {"bytes": 0, "dropped": 0}
    said = {"schema": "verdict/1", "uid": folder.uid, "n": 1, "kind": "exited", "exit_code": 0,
            "signal": None, "started_at": iso(START), "ended_at": iso(START), "duration_s": 2.5,
            "stdout": none, "stderr": none, "leftovers_killed": 0, "survivors": 1,
            "because": "exit 0"}  # fmt: skip
    folder.add("verdict.json", json.dumps(said).encode())
    end = look_at_end(a_run(folder, started=True))
    assert isinstance(end, End)
    assert (end.kind, end.cost_usd, end.duration_s, end.output) == ("unproved", "0.12", 2.5, None)


def test_a_bad_answer_of_what_was_cut_short_costs_nothing(folder: AttemptFolder) -> None:
    folder.add("answer.json", b'{"cost_usd": "0.12", "tok')
    end = look_at_end(a_run(folder, started=True))
    assert isinstance(end, End)
    assert (end.kind, end.cost_usd, end.error_kind) == ("interrupted", None, None)


def test_an_answer_proves_no_start(folder: AttemptFolder) -> None:
    folder.add("answer.json", b'{"cost_usd": "0.12"}')
    end = look_at_end(a_run(folder))
    assert isinstance(end, End)
    assert (end.kind, end.cost_usd) == ("requeued", None)


@pytest.mark.parametrize("name", ["tree.lock", "shim.lock"])
def test_a_lock_that_is_a_link_proves_nothing_either_way(folder: AttemptFolder, name: str) -> None:
    """Fails when the system's own error leaves `is_locked`: nobody above it expects one."""
    os.symlink("/dev/null", folder.file(name))
    with pytest.raises(EvidenceUnreadable, match=name):
        look_at_end(a_run(folder))


# The dispatcher on a disk that says no.


class Stubborn:
    """A store whose disk refuses the end of an attempt so many times."""

    def __init__(self, store: SqliteStore, refusals: int) -> None:
        self._store, self.refusals = store, refusals

    def apply(self, command: Command[object]) -> object:
        if isinstance(command, Finish) and self.refusals:
            self.refusals -= 1
            raise DiskTrouble("no space left")
        return self._store.apply(command)

    def together(self, commands: Sequence[Command[object]]) -> list[object]:
        return [self.apply(command) for command in commands]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Desk:
    """A dispatcher with one task to claim, and the timers it sets, run by hand."""

    def __init__(self, home: Home, *, refusals: int) -> None:
        clock = a_clock()
        self.real = open_store(home.root, name="iris", clock=clock, machine="here")
        self.real.live.dispatching = True
        self.real.apply(SetAgents((AgentRow("iris", 2, ()),)))
        self.real.apply(Add((a_task(),)))
        self.store = Stubborn(self.real, refusals)
        self.due: list[Callable[[], None]] = []
        selector = selectors.DefaultSelector()
        later = cast("Later", lambda seconds, do: self.due.append(do))
        self._starters = Starters({}, selector, later)
        self.dispatcher = Dispatcher(
            cast("SqliteStore", self.store), home=home, settings=read_settings(home.config),
            clock=clock, selector=selector, starters=self._starters, later=later,
        )  # fmt: skip
        self._selector = selector

    @property
    def state(self) -> str:
        shown = self.real.read(ShowTask(uid()))
        assert shown is not None
        return str(shown.task.state)

    @property
    def kept(self) -> list[int]:
        """Whoever is at hand, who is dismissed now."""
        pids = self._starters.at_hand.pids
        while (kept := self._starters.at_hand.take("iris")) is not None:
            kept.dismiss()
        return pids

    def hear(self) -> None:
        """What has been said by now is listened to."""
        for key, mask in self._selector.select(0):
            key.data(mask)

    @property
    def listened_to(self) -> list[int]:
        return [key.fd for key in self._selector.get_map().values()]

    def pass_time(self) -> None:
        due, self.due = self.due, []
        for do in due:
            do()

    def close(self) -> None:
        self._selector.close()
        self.real.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(a_home(tmp_path / "iris"), refusals=3)
    yield desk
    desk.close()


def test_a_claim_given_up_on_a_full_disk_is_given_back_once_that_can_be_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the refusal leaves `fill`: the task stays CLAIMED, and nothing watches it."""

    def full(uid: str, n: int) -> AttemptFolder:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(desk.dispatcher.folders, "create", full)
    desk.dispatcher.fill()
    assert (desk.state, len(desk.dispatcher.runs)) == ("CLAIMED", 0)
    desk.dispatcher.claiming = False
    for left in (1, 0):
        desk.pass_time()
        assert (desk.store.refusals, desk.state) == (left, "CLAIMED")
    desk.pass_time()
    assert desk.state == "READY"
    assert desk.due == []
    shown = desk.real.read(ShowTask(uid()))
    assert shown is not None
    told = shown.task.attempts[-1]
    assert isinstance(told, dict)
    assert os.strerror(errno.ENOSPC) in str(told["message"])


def its_attempt(desk: Desk, home: Home) -> Run:
    """The task, claimed and in the dispatcher's hands; nothing of it ever started."""
    desk.dispatcher.claiming = False
    claimed = desk.real.apply(Claim("iris"))
    assert isinstance(claimed, Claimed)
    folder = create_folder(str(home.tasks), uid(), claimed.n)
    run = Run(uid(), claimed.n, "iris", claimed.token, read_boot_id(), folder)
    desk.dispatcher.runs.add(run)
    return run


def test_an_end_that_the_disk_refuses_is_recorded_once_it_can_be_written(
    tmp_path: Path,
) -> None:
    """Fails when nobody tries again: its process is gone, so nothing else tells of it, and its slot
    and its task stay taken; or when the refusal leaves `look`, which ends the daemon.
    """
    home = a_home(tmp_path / "iris")
    desk = Desk(home, refusals=3)
    try:
        run = its_attempt(desk, home)
        desk.dispatcher.look(run)
        for left in (2, 1, 0):
            assert (desk.store.refusals, desk.state) == (left, "CLAIMED")
            assert desk.dispatcher.runs.find(uid(), run.n) is run
            desk.pass_time()
        assert (desk.state, len(desk.dispatcher.runs)) == ("READY", 0)
        assert desk.dispatcher.news == ["task_finished"]
        assert desk.due == []
    finally:
        desk.close()


def test_a_shim_that_is_watched_and_has_not_signed_in_is_woken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when whoever is watched counts as followed: stopped once more, or just before it was to
    be woken, it waits for ever, and its slot with it.
    """
    home = a_home(tmp_path / "iris")
    desk, woken = Desk(home, refusals=0), list[int]()
    itself = identify(os.getpid())
    told = [*[Alive(itself, signed_in=False)] * 3, Alive(itself, signed_in=True)]
    monkeypatch.setattr(dispatch, "look_at_end", lambda run: told.pop(0))

    def rouse(pids: Collection[int]) -> int:
        woken.append(len(pids))
        return 0

    monkeypatch.setattr(wardens, "rouse", rouse)
    run = its_attempt(desk, home)
    try:
        desk.dispatcher.look(run)
        for times in (1, 2, 3):
            assert (run.pidfd is not None, run.signed_in, len(woken)) == (True, False, times)
            desk.pass_time()
        assert (run.signed_in, len(woken), told, desk.due) == (True, 3, [], [])
    finally:
        desk.close()
        run.let_go()


@pytest.mark.parametrize("judges", [True, False], ids=["a validator", "the program"])
def test_only_a_program_that_starts_ends_the_pause_of_one_that_did_not(
    tmp_path: Path, *, judges: bool
) -> None:
    """Seen to fail: a validator's start was taken for one, and the agent tried on without a pause
    for as long as outputs were judged.
    """
    home = a_home(tmp_path / "iris")
    desk = Desk(home, refusals=0)
    run, itself, programs = its_attempt(desk, home), identify(os.getpid()), desk.dispatcher.programs
    assert itself is not None
    try:
        run.unstarted = COULD_NOT
        assert programs.excused(run, End("failed")).kind == "requeued"
        assert programs.of("iris") is None
        run.judging = Judging(run.folder, End("completed"), 1) if judges else None
        its_shim, (line, its_end) = os.pidfd_open(os.getpid()), socket.socketpair()
        desk.dispatcher.shims._heard(Spawned(uid(), run.n, itself, its_shim, AT, None, line))
        its_end.close()
        programs.look(every_s=0)
        assert (programs.of("iris") is None) is judges
    finally:
        desk.close()
        run.let_go()


# Small parts.


def test_a_timer_that_raises_leaves_the_others_for_the_next_turn() -> None:
    """Fails when all that is due is taken off the heap first: the others would be lost."""
    clock, done = a_clock(), list[str]()
    timers = Timers(clock)

    def trouble() -> None:
        raise DiskTrouble("no space left")

    timers.later(1, lambda: done.append("before"))
    timers.later(2, trouble)
    timers.later(3, lambda: done.append("after"))
    clock.advance(10)
    with pytest.raises(DiskTrouble):
        timers.run_due()
    timers.run_due()
    assert done == ["before", "after"]


def test_what_a_timer_sets_waits_for_the_next_turn() -> None:
    """Fails when `run_due` goes on while anything is due: one callback could keep the loop."""
    timers, done = Timers(a_clock()), list[int]()

    def again() -> None:
        done.append(len(done))
        timers.later(0, again)

    again()
    timers.run_due()
    assert done == [0, 1]


def test_what_nobody_waits_for_is_looked_at_once_and_soon(tmp_path: Path) -> None:
    """Fails when each word sets a timer of its own (three looks where one sees it all), and when
    the first one is the last: a lease that a later escrow began would end unnoticed.
    """
    clock, looks = a_clock(), list[float]()
    timers, nobody = Timers(clock), cast("Any", None)
    upkeep = Upkeep(nobody, nobody, timers, a_home(tmp_path / "iris"))
    began = clock.boottime()
    for _ in range(2):
        for _ in range(3):
            upkeep.look_soon(lambda: looks.append(clock.boottime() - began))
        assert timers.wait_s(9) == pytest.approx(LOOK_WAIT_S)
        clock.advance(LOOK_WAIT_S)
        timers.run_due()
    assert looks == [pytest.approx(LOOK_WAIT_S), pytest.approx(2 * LOOK_WAIT_S)]
    assert timers.wait_s(9) == 9


def test_a_folder_that_stays_is_told_once_and_tried_again_every_hour(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Seen to fail: nobody was told, and it was not tried again before the next start."""
    home = a_home(tmp_path / "iris")
    clock = a_clock()
    store = open_store(home.root, name="iris", clock=clock)
    store.apply(SetAgents((AgentRow("iris", 1, ()),)))
    store.apply(Add((a_task(),)))
    claimed = store.apply(Claim("iris"))
    assert isinstance(claimed, Claimed)
    store.apply(Finish(uid(), claimed.n, End("completed")))
    in_its_place = home.tasks / uid()
    in_its_place.touch()
    clock.advance(31 * DAY)
    timers = Timers(clock)
    Upkeep(store, cast("Any", None), timers, home).begin()
    for hour in range(3):
        clock.advance(FORGET_EVERY_S)
        timers.run_due()
        told = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        assert [(one["event"], one["task"], one["because"]) for one in told] == (
            [("folder_kept", uid(), "Not a directory")] if hour == 0 else []
        )
        assert (store.read(ShowTask(uid())) is None) is (hour == 2)
        if hour == 1:
            in_its_place.unlink()
    assert store.live.stuck == {}
    store.close()


@pytest.mark.parametrize(("says_idle", "now"), [(True, True), (False, False)])
def test_an_idle_that_may_be_read_is_looked_at_now_whatever_was_written(
    says_idle: bool, now: bool
) -> None:
    """Seen to fail: an idle node that held a task said `idle` in its report for 20 ms more."""
    daemon, looks = Daemon.__new__(Daemon), list[object]()
    daemon._dirty = False
    daemon._reporter = cast("Any", SimpleNamespace(says_idle=says_idle))
    daemon._upkeep = cast("Any", SimpleNamespace(look_soon=looks.append))
    daemon.changed(work=False)
    assert (daemon._dirty, len(looks)) == (now, 0 if now else 1)


def test_a_log_read_far_behind_its_end_is_empty_text(tmp_path: Path) -> None:
    """Fails when the offset goes to the kernel as it came: it takes none beyond 2**63."""
    create_folder(str(tmp_path), uid(), 1).add("stdout.log", json.dumps("said").encode())
    for offset in (6, 2**62, 2**63 - 1):
        piece = read_piece(str(tmp_path), uid(), 1, stream="stdout", offset=offset, limit=100)
        assert (piece.text, piece.size) == ("", 6)
