"""The owner ends every tree of the user that tasks run as, whoever of ours died before."""

from __future__ import annotations

import json
import time

import pytest

from tests.node.processes.test_hostile_trees import TREES, the_script
from tests.ssh.lab import Lab
from tests.ssh.two_users import LOOK_S, PATIENCE_S, TwoUsers

OWNERS = ("agent", "root")
ROUNDS = 2
FREE = "free of lock, token and session"


@pytest.fixture(params=OWNERS)
def two(lab: Lab, request: pytest.FixtureRequest) -> TwoUsers:
    """Once with a node that has to ask sudo, and once with one that is root and gives it up."""
    return TwoUsers(lab.start(1)[0], request.param, slots=len(TREES) * ROUNDS)


def plant(two: TwoUsers, before: str = "", *but: str, **fields: object) -> list[str]:
    """Every kind of tree, so many rounds of each; its mark is in every command line of it."""
    uids = []
    for round_ in range(ROUNDS):
        for number, kind in enumerate(TREES):
            if kind not in but:
                body = before + the_script(kind, f"97{round_}{number}.77", two.node.python)
                uids.append((body, fields))
    return two.add_all(uids)


def until_grown(two: TwoUsers, uids: list[str]) -> None:
    """Some trees have more branches than others, so that counting alone would miss a late shim."""
    shims = [two.node.path(f"{two.home.path}/tasks/{uid}/1/shim.json") for uid in uids]
    two.wait(lambda: all(shim.exists() for shim in shims), "shims")
    two.wait(lambda: len(two.processes(".77")) >= 2 * len(uids) - ROUNDS, "trees")


def assert_nobody_is_left(two: TwoUsers) -> None:
    """What is left of that user is the zygote and those that wait with it for work."""
    two.wait(lambda: two.processes(".77") == [], "the end of all trees")
    two.wait(lambda: len(two.processes("")) == 3, "only zygote and spares")


def test_trees_whose_time_is_up_are_ended(two: TwoUsers) -> None:
    two.start()
    uids = plant(two, max_s=1, max_attempts=1)
    for uid in uids:
        two.until(uid, "DEAD_LETTERED", "PARKED")
        verdict = json.loads(two.file(uid, "verdict.json"))
        assert (verdict["kind"], verdict["survivors"]) == ("timeout", 0)
    assert_nobody_is_left(two)


def test_trees_that_are_asked_to_stop_are_ended(two: TwoUsers) -> None:
    """Seen to fail without the warden's signal: a node that is not root may not end the shim."""
    two.start()
    uids = plant(two)
    until_grown(two, uids)
    two.home.run("cancel", *uids)
    for uid in uids:
        assert two.until(uid, "CANCELLED", "PARKED")["state"] == "CANCELLED"
    assert_nobody_is_left(two)


def test_trees_whose_shim_is_killed_are_ended_and_proven_dead(two: TwoUsers) -> None:
    two.start()
    uids = plant(two, on_interrupt="park")
    until_grown(two, uids)
    kill_shims(two, uids)
    all_interrupted(two, uids)
    assert_nobody_is_left(two)


def test_trees_that_kill_their_own_shim_are_ended_and_proven_dead(two: TwoUsers) -> None:
    two.start()
    uids = plant(two, "(sleep 0.1; kill -9 $PPID) & ", on_interrupt="park")
    all_interrupted(two, uids)
    assert_nobody_is_left(two)


def test_trees_are_ended_when_daemon_zygote_and_shims_are_all_dead(two: TwoUsers) -> None:
    """What dropped lock and token before is nobody's any more, and left out: a published limit."""
    two.start()
    uids = plant(two, "", FREE, on_interrupt="park")
    until_grown(two, uids)
    two.home.kill_daemon()
    kill_shims(two, uids)
    two.wait(lambda: two.processes("exec(os.read") == [], "the end of zygote and shims")
    two.start()
    all_interrupted(two, uids)
    assert_nobody_is_left(two)


def test_a_daemon_killed_with_nine_adopts_the_other_users_shims(two: TwoUsers) -> None:
    """They go on under the next daemon, which can stop one and hears the others, also speak."""
    two.start()
    script = "until [ -e ~/go ]; do sleep 0.05; done; agent-node progress 'still here'"
    uids = two.add_all([(script, {})] * 4)
    for uid in uids:
        two.until(uid, "RUNNING")
    two.home.kill_daemon()
    two.start()
    two.home.run("cancel", uids[0])
    assert two.until(uids[0], "CANCELLED", "PARKED")["state"] == "CANCELLED"
    two.node.exec(["touch", "/home/arc-run/go"], user="arc-run")
    for uid in uids[1:]:
        task = two.until(uid, "COMPLETED", "PARKED", "RETRYING")
        assert (task["state"], task["progress"]) == ("COMPLETED", "still here")
        assert len(two.show(uid)["attempts"]) == 1
    assert_nobody_is_left(two)


def kill_shims(two: TwoUsers, uids: list[str]) -> None:
    pids = [str(json.loads(two.file(uid, "shim.json"))["pid"]) for uid in uids]
    two.node.exec(["kill", "-9", *pids])


def all_interrupted(two: TwoUsers, uids: list[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    for uid in uids:
        task = two.until(uid, "PARKED", seconds=max(end - time.monotonic(), LOOK_S))
        assert "on_interrupt" in task["failure_reason"], task["failure_reason"]


HIDES = """\
({python} - <<'END' &
import ctypes, os, signal, time
os.setsid()
ctypes.CDLL(None).prctl(4, 0)  # its own user cannot look into it any more
os.closerange(0, 99)
os.kill({shim}, signal.SIGKILL)
time.sleep(600)
END
)
sleep 600
"""


def test_what_hides_from_its_own_user_is_ended_as_a_stray_or_parks_its_task(lab: Lab) -> None:
    """With the daemon alive it is the daemon's stray, and seen to outlive its attempt without the
    warden's hunt for those."""
    two = TwoUsers(lab.start(1)[0])
    two.start()
    script = HIDES.format(python=two.node.python, shim="int(os.environ['SHIM'])")
    uid = two.add(f"export SHIM=$PPID\n{script}", **{"on-interrupt": "park"})
    task = two.until(uid, "PARKED")
    assert "on_interrupt" in task["failure_reason"]
    assert_nobody_is_left(two)


def test_an_attempt_that_no_warden_can_look_at_is_parked_and_not_called_dead(lab: Lab) -> None:
    """Daemon and shim are gone, its program hides, and nothing of it holds a lock or a token."""
    two = TwoUsers(lab.start(1)[0])
    two.start()
    hides = "import ctypes, os, time; os.close(3); ctypes.CDLL(None).prctl(4, 0); time.sleep(600)"
    uid = two.add(f"exec {two.node.python} -c '{hides}'")
    two.until(uid, "RUNNING")
    two.wait(lambda: len(two.processes("prctl")) == 1, "the program")
    two.node.exec(["sh", "-c", "until [ $(stat -c %U /proc/$0/fd) = root ]; do sleep 0.02; done",
                   two.processes("prctl")[0].split()[0]])  # fmt: skip
    two.home.kill_daemon()
    kill_shims(two, [uid])
    two.start()
    task = two.until(uid, "PARKED", "READY", "RUNNING", "COMPLETED", seconds=60)
    while task["state"] == "RUNNING":
        task = two.until(uid, "PARKED", "READY", "COMPLETED", seconds=60)
    assert task["state"] == "PARKED"
    assert "cannot be looked into" in task["failure_reason"]
    assert len(two.processes("prctl")) == 1, "it runs, and was not started again"


def test_an_ended_attempt_of_another_user_does_not_bar_taking_its_task_back(lab: Lab) -> None:
    """The user's own warden is asked, as everything of that user's looks alike from outside."""
    two = TwoUsers(lab.start(1)[0])
    two.start()
    uid = two.add("sleep 600", **{"on-interrupt": "park"})
    two.until(uid, "RUNNING")
    kill_shims(two, [uid])
    two.until(uid, "PARKED")
    two.home.run("resolve", uid, "--as", "ready", "--alone", "--reason", "once more")
    two.until(uid, "RUNNING")


STOPS = """\
until [ "$all" ]; do
  ps -u $(id -u) -o pid=,ppid=,stat= > seen; all=stopped
  while read pid parent state; do
    case "$pid $parent $state" in $$\\ *|$PPID\\ *|*\\ $$\\ *|*\\ [TZ]*) continue;; esac
    case $state in D*) ;; *) all=;; esac  # one that waits inside the kernel stops at its end
    kill -STOP $pid || true
  done < seen
done
"""


def test_a_task_that_stops_all_that_waits_for_work_of_its_user_keeps_nobody_from_working(
    two: TwoUsers,
) -> None:
    """Seen to fail without the warden's CONT: each next task of that account kept its slot for
    ever, and nobody was told.

    The zygote may fork after the program's first look, so it looks until none goes on; and the
    next task may be over before the daemon hears from the warden who woke its shim.
    """
    two.start()
    two.until(two.add("true"), "COMPLETED")
    two.wait(lambda: len(two.processes("")) == 3, "a zygote and its spares")
    two.until(two.add(STOPS), "COMPLETED")
    two.until(two.add("true"), "COMPLETED")
    two.wait(lambda: "starters_woken" in two.said(), "word of the waking")
