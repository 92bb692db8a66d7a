"""Claims about shims and zygotes that die, or meet a full disk, at the worst named moments."""

from __future__ import annotations

import os

import pytest

from agent_node.attempts import AttemptFolder
from agent_node.evidence import Alive, Dead, Leftovers, judge_attempt, read_shim_record
from agent_node.verdicts import read_verdict
from agent_node.zygote_link import ZygoteGone
from tests.node.processes.conftest import RestartAt
from tests.node.processes.harness import Attempt, FakeDaemon, a_mark, wait_readable, wait_until


def hand_over(daemon: FakeDaemon, script: str) -> Attempt:
    job, folder = daemon.lay_out(["/bin/sh", "-c", script])
    daemon.zygote.hand_over(job, folder)
    return Attempt(folder, job.token, None)  # type: ignore[arg-type]


def hear_to_the_end(daemon: FakeDaemon) -> None:
    while True:
        for spawned in daemon.zygote.replies():
            spawned.let_go()


def settled(folder: AttemptFolder, token: str) -> bool:
    """The handover is over and so is the shim: from here on the evidence stands still."""
    return not isinstance(judge_attempt(folder, token), Alive)


def test_a_shim_killed_before_the_start_started_nothing(daemon: FakeDaemon, at: RestartAt) -> None:
    at("shim.before_start:kill")
    attempt = hand_over(daemon, "touch started")
    wait_until(lambda: settled(attempt.folder, attempt.token))

    assert isinstance(attempt.judge(), Dead)
    assert not os.path.exists(attempt.folder.file("started"))
    assert read_shim_record(attempt.folder) is not None


def test_a_shim_killed_right_after_the_start_left_a_program_that_is_found(
    daemon: FakeDaemon, at: RestartAt
) -> None:
    at("shim.after_start:kill")
    attempt = hand_over(daemon, f"sleep {a_mark()}")
    wait_until(lambda: settled(attempt.folder, attempt.token))

    assert isinstance(attempt.judge(), Leftovers)
    assert isinstance(daemon.clear_all(attempt), Dead)
    assert read_verdict(attempt.folder) is None


def test_a_shim_killed_before_its_verdict_leaves_none(daemon: FakeDaemon, at: RestartAt) -> None:
    at("shim.before_verdict:kill")
    attempt = daemon.begin(["true"])

    assert daemon.end(attempt) is None
    assert isinstance(attempt.judge(), Dead)


def test_a_shim_killed_after_its_verdict_has_given_it(daemon: FakeDaemon, at: RestartAt) -> None:
    at("shim.after_verdict:kill")
    verdict = daemon.end(daemon.begin(["true"]))

    assert verdict is not None
    assert verdict.succeeded


@pytest.mark.parametrize("trouble", ["ENOSPC", "EIO"])
def test_a_verdict_waits_for_room_on_a_full_disk(
    daemon: FakeDaemon, at: RestartAt, trouble: str
) -> None:
    at(f"shim.before_verdict:{trouble}")
    verdict = daemon.end(daemon.begin(["true"]))

    assert verdict is not None
    assert verdict.succeeded


def test_a_disk_that_fails_before_the_start_is_a_reason_not_a_silence(
    daemon: FakeDaemon, at: RestartAt
) -> None:
    at("shim.before_start:EIO")
    verdict = daemon.end(daemon.begin(["true"]))

    assert verdict is not None
    assert verdict.kind == "could_not_start"
    assert "before_start" in verdict.because


@pytest.mark.parametrize("where", ["zygote.before_fork:kill", "zygote.after_fork:kill:3"])
def test_a_zygote_that_dies_forking_is_seen_and_can_be_started_again(
    daemon: FakeDaemon, at: RestartAt, where: str
) -> None:
    at(where)
    attempt = None
    if where.startswith("zygote.after"):
        attempt = hand_over(daemon, "exit 0")
    wait_readable(daemon.zygote.fileno())
    with pytest.raises(ZygoteGone):
        hear_to_the_end(daemon)
    daemon.zygote.start()

    assert daemon.end(daemon.begin(["true"])) is not None
    if attempt is not None:
        wait_until(lambda: settled(attempt.folder, attempt.token))
