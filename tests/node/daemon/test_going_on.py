"""A busy slot goes on with its shim: what that saves, and that nobody pays for another's end."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_node import endings, shims
from agent_node.commands import Result as End
from agent_node.evidence import Dead
from agent_node.job import OVER
from agent_node.open_files import MAX
from agent_node.processes import identify
from agent_node.runs import Run
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, is_gone, is_stopped, until
from tests.node.daemon.test_validation import a_validator, answering, by_command
from tests.node.processes.test_findings import Desk, its_attempt
from tests.node.wire.talking import a_home

MANY = 6


@pytest.fixture
def busy(make_node: MakeNode) -> Node:
    """One slot, so that whatever waits is next when its task is over."""
    return make_node(agents=an_agent("iris"))


def in_a_row(node: Node, gate: Bell, *scripts: str, failpoint: str = "") -> list[str]:
    """The tasks of these scripts, all of which wait while another one holds the slot; then it goes,
    and its shim is the first to be free.
    """
    node.start(failpoint=failpoint)
    holder = node.add(f"read x < {gate.path}")
    node.until(holder, "RUNNING")
    uids = [node.add(script) for script in scripts]
    gate.ring()
    return uids


@contextmanager
def followed(
    tmp_path: Path, *, refusals: int
) -> Iterator[tuple[Desk, Run, socket.socket]]:
    """An attempt whose shim is followed, and that shim's end of its line."""
    home = a_home(tmp_path / "iris")
    desk = Desk(home, refusals=refusals)
    try:
        run, itself = its_attempt(desk, home), identify(os.getpid())
        assert itself is not None
        line, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        desk.dispatcher.shims.watch(run, itself, os.pidfd_open(os.getpid()), line)
        yield desk, run, its_end
        its_end.close()
    finally:
        desk.close()


def completed(node: Node, *uids: str) -> None:
    """Each of them, at the first attempt."""
    for uid in uids:
        node.until(uid, "COMPLETED")
        assert [one["outcome"] for one in node.attempts(uid)] == ["completed"]


def test_a_busy_slot_goes_on_with_its_shim_which_ends_with_the_work(
    busy: Node, bell: Bell, gate: Bell
) -> None:
    """Seen to fail: a shim for each, and one that waited on after the last."""
    uids = in_a_row(busy, gate, *[f"echo $PPID > {bell.path}"] * MANY)
    (shim,) = {int(bell.hear()) for _ in uids}
    completed(busy, *uids)
    assert {busy.shim(uid) for uid in uids} == {shim}
    assert is_gone(shim)


def test_a_shim_that_went_on_and_is_killed_costs_the_one_attempt_that_it_had(
    busy: Node, bell: Bell, gate: Bell
) -> None:
    tell = f"echo $PPID > {bell.path}"
    first, second = in_a_row(busy, gate, tell, f"{tell}; [ $AGENT_TASK_ATTEMPT = 2 ] || sleep 987")
    shims = [int(bell.hear()), int(bell.hear())]
    os.kill(shims[1], signal.SIGKILL)
    busy.until(second, "COMPLETED")
    completed(busy, first)
    assert shims[0] == shims[1] != int(bell.hear())
    assert [one["outcome"] for one in busy.attempts(second)] == ["interrupted", "completed"]


@pytest.mark.parametrize("action", ["kill", "stop", "EIO"])
@pytest.mark.parametrize("place", ["shim.before_over", "shim.before_next"])
def test_a_shim_that_fails_between_two_attempts_fails_neither(
    busy: Node, bell: Bell, gate: Bell, place: str, action: str
) -> None:
    """Each of this node does, with the next attempt in its hands or just before. Fails where what
    was handed over and never begun is lost, costs a try, or begins twice.
    """
    tell = f"echo $AGENT_TASK_UID > {bell.path}"
    uids = in_a_row(busy, gate, tell, tell, tell, failpoint=f"{place}:{action}")
    if (place, action) == ("shim.before_over", "stop"):  # who has not said so is not over
        (holder,) = (one for one in os.listdir(busy.home / "tasks") if one not in (*uids, ".next"))
        until(lambda: is_stopped(busy.shim(holder)), "the place where it stops")
        os.kill(busy.shim(holder), signal.SIGCONT)
    for uid in uids:
        busy.until(uid, "COMPLETED")
    assert sorted(bell.hear() for _ in uids) == sorted(uids)
    assert bell.next(0.2) is None
    for uid in uids:
        *given_back, last = [one["outcome"] for one in busy.attempts(uid)]
        assert (set(given_back) <= {"requeued"}, last) == (True, "completed")


def test_what_went_on_with_a_shim_is_taken_over_by_the_next_daemon(
    busy: Node, bell: Bell, gate: Bell
) -> None:
    tell = f"echo $PPID > {bell.path}"
    first, second = in_a_row(busy, gate, tell, f"{tell}; read x < {gate.path}")
    shims = [int(bell.hear()), int(bell.hear())]
    busy.daemons[0].kill()
    busy.start()
    gate.ring()
    completed(busy, first, second)
    assert shims[0] == shims[1]
    assert is_gone(shims[0])


def test_what_went_on_with_a_shim_is_stopped_when_it_is_cancelled(
    busy: Node, bell: Bell, gate: Bell
) -> None:
    work = f"trap 'echo bye > {bell.path}; exit' TERM; echo up > {bell.path};"
    waiting = f"{work} while :; do sleep 0.01; done"
    first, second, third = in_a_row(busy, gate, "true", waiting, "true")
    assert bell.hear() == "up"
    busy.cli("cancel", second)
    assert bell.hear() == "bye"
    busy.until(second, "CANCELLED")
    completed(busy, first, third)


@pytest.mark.parametrize("why", [None, "cancelled"])
def test_what_was_told_to_stop_leaves_its_shim_to_nobody(tmp_path: Path, why: str | None) -> None:
    """The word and the end cross. Fails where it is at hand all the same: it is about to end."""
    with followed(tmp_path, refusals=0) as (desk, run, its_end):
        run.stop_why = why
        its_end.send(OVER)
        desk.hear()
        assert desk.kept == ([os.getpid()] if why is None else [])
        assert desk.listened_to == []


def test_a_validator_has_another_shim_than_its_program(make_node: MakeNode, bell: Bell) -> None:
    """A shim that has to end is known by who it is: a program's last resort would end its judge."""
    judge = a_validator(f"echo $PPID > {bell.path}")
    node = make_node(agents=an_agent("iris") + judge)
    node.start()
    judged = node.add(f"echo $PPID > {bell.path}; {answering('good')}", **by_command())
    assert bell.hear() != bell.hear()
    completed(node, judged)


@pytest.mark.parametrize("whose", ["daemon", "zygote"])
def test_what_a_shim_that_stands_still_was_given_goes_on_without_its_daemon_or_zygote(
    busy: Node, bell: Bell, gate: Bell, whose: str
) -> None:
    """Seen to fail: its slot was held for a minute, or for ever, and the task paid for it. Where
    the shim was woken before they were killed, such a run proves nothing, and fails nothing.
    """
    (uid,) = in_a_row(busy, gate, f"echo on > {bell.path}", failpoint="shim.before_next:stop")
    (holder,) = (one for one in os.listdir(busy.home / "tasks") if one not in (uid, ".next"))
    until(lambda: is_stopped(busy.shim(holder)), "the place where it stops")
    daemon = busy.daemons[0]
    if whose == "daemon":
        daemon.kill()
        busy.start()
    else:
        os.kill(daemon.zygote, signal.SIGKILL)
    busy.until(uid, "COMPLETED")
    assert (bell.hear(), bell.next(0.2)) == ("on", None)
    *given_back, last = [one["outcome"] for one in busy.attempts(uid)]
    assert (set(given_back) <= {"requeued"}, last) == (True, "completed")


def test_a_shim_is_nobodys_while_its_end_waits_for_the_disk(tmp_path: Path) -> None:
    """Fails where it is at hand before its attempt is recorded: that one would be looked at again
    while its shim runs another.
    """
    with followed(tmp_path, refusals=1) as (desk, _, its_end):
        its_end.send(OVER)
        desk.hear()
        assert (desk.store.refusals, desk.kept, desk.state) == (0, [], "CLAIMED")


def test_a_shim_that_was_stopped_is_woken_whoever_its_zygote_was(tmp_path: Path) -> None:
    """Fails where only the children of today's zygotes are: these starters have none."""
    home = a_home(tmp_path / "iris")
    desk = Desk(home, refusals=0)
    run = its_attempt(desk, home)
    try:
        with subprocess.Popen(["sleep", "987"]) as stopped:
            run.pidfd = os.pidfd_open(stopped.pid)
            try:
                stopped.send_signal(signal.SIGSTOP)
                until(lambda: is_stopped(stopped.pid), "the stop")
                desk.dispatcher._wardens.wake(run, lambda run: None)
                until(lambda: not is_stopped(stopped.pid), "what wakes it")
            finally:
                stopped.kill()
    finally:
        desk.close()
        run.let_go()


@pytest.mark.parametrize("left", ["nothing", "shim.json", "a word"])
def test_who_died_before_it_took_an_attempt_has_left_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """Seen to fail: strays were looked for, and the one found was another attempt's shim, whose
    zygote had just died, and which had not said yet who it was.
    """
    home, looked = a_home(tmp_path / "iris"), list[str]()
    desk = Desk(home, refusals=0)
    run = its_attempt(desk, home)
    try:
        with subprocess.Popen(["true"]) as gone:
            itself, pidfd = identify(gone.pid), os.pidfd_open(gone.pid)
        run.shim, run.signed_in = itself, left == "a word"
        desk.dispatcher.shims.watch(run, itself or (gone.pid, 1, "b"), pidfd)
        if left == "shim.json":
            run.folder.add("shim.json", b"{}")
        monkeypatch.setattr(shims, "end_strays", lambda kept: looked.append("for strays"))
        desk.hear()
        assert looked == ([] if left == "nothing" else ["for strays"])
    finally:
        desk.close()
        run.let_go()


@pytest.mark.parametrize("signed_in", [True, False])
def test_who_has_not_taken_an_attempt_yet_says_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, signed_in: bool
) -> None:
    """Fails where a shim at hand that died counts as one that had begun: what cannot be seen of
    others would park a task that never started.
    """
    home = a_home(tmp_path / "iris")
    desk, asked = Desk(home, refusals=0), list[object]()
    try:
        run = its_attempt(desk, home)
        run.shim, run.signed_in = identify(os.getpid()), signed_in

        def judge(*given: object, shim: object, **more: object) -> Dead:
            asked.append(shim)
            return Dead("it is")

        monkeypatch.setattr(endings, "judge_attempt", judge)
        endings.look_at_end(run)
        assert asked == [run.shim if signed_in else None]
    finally:
        desk.close()


def test_a_daemon_opens_what_it_may_and_its_programs_what_they_might(
    busy: Node, bell: Bell
) -> None:
    """Two files for each attempt are many for a limit of 1,024. Fails, too, where programs, be
    they of a second zygote, find the daemon's limit and not the one that it was given.
    """
    busy.command = ["sh", "-c", 'ulimit -Sn 400; exec "$@"', "sh", *busy.command]
    daemon = busy.start()
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    assert 400 < soft == (MAX if hard == resource.RLIM_INFINITY else min(hard, MAX))
    busy.add(f"ulimit -Sn > {bell.path}")
    assert bell.hear() == "400"
    zygote = daemon.zygote
    os.kill(zygote, signal.SIGKILL)
    until(lambda: daemon.zygote != zygote, "another zygote")
    busy.add(f"ulimit -Sn > {bell.path}")
    assert bell.hear() == "400"


def test_nothing_listens_to_the_shim_of_what_is_recorded(tmp_path: Path) -> None:
    """It may live still, where what became of it cannot be proved. Seen to fail: its number was
    another's a moment later, and the daemon ended as that one was to be listened to.
    """
    with followed(tmp_path, refusals=0) as (desk, run, _):
        assert len(desk.listened_to) == 2
        desk.dispatcher._record(run, End("unproved"))
        assert (desk.listened_to, len(desk.dispatcher.runs)) == ([], 0)


def test_starts_that_nobody_has_read_are_read_before_a_daemon_goes(tmp_path: Path) -> None:
    """Fails where only the shims' first words are: an attempt that runs would be CLAIMED still.
    That one is over is for the next daemon, which finds the verdict.
    """
    home = a_home(tmp_path / "iris")
    desk = Desk(home, refusals=0)
    try:
        run = its_attempt(desk, home)
        line, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        run.shim, run.line = identify(os.getpid()), line
        its_end.send(json.dumps({"uid": run.uid, "n": run.n, "started": 1.5}).encode())
        its_end.send(OVER)
        desk.dispatcher.shims.hear_starts()
        desk.dispatcher.flush_started()
        assert (run.started, desk.state, len(desk.dispatcher.runs)) == (True, "RUNNING", 1)
        its_end.close()
    finally:
        desk.close()
        run.let_go()
