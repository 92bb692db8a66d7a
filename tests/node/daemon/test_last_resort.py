"""A shim that its own program keeps from working is killed once its time is up, whoever began it.

Each program here stops its own shim. Where that comes too late, on a slow machine, the shim ends
the attempt itself: such a run proves nothing, and fails nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import pytest

from agent_node.adoption import left_s
from agent_node.attempts import AttemptFolder
from agent_node.processes import Identity, Seen, ran_below
from agent_node.runs import Run, Runs
from agent_node.stopping import Stopping
from agent_node.wardens import Wardens
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, is_gone
from tests.node.daemon.test_validation import a_validator, answering, by_command

ENDS: dict[str, Any] = {"on_interrupt": "park", "max_attempts": 1}
TICKS = os.sysconf("SC_CLK_TCK")  # a second
SHIM = Identity(7, 1 * TICKS, "this boot")


def impatient(make_node: MakeNode, **settings: object) -> Node:
    """A node that waits 0.2 s longer than a shim may take, and not 45."""
    node = make_node(grace_s=0, **settings)
    node.command = [sys.executable, "-m", "tests.node.daemon.impatient"]
    return node


def stopping_its_shim(bell: Bell) -> str:
    return f"kill -STOP $PPID; echo $$ > {bell.path}; sleep 987"


def ends(node: Node, uid: str, program: int) -> None:
    """The attempt ends, with all that it started."""
    node.until(uid, "PARKED", "DEAD_LETTERED", "CANCELLED")
    assert is_gone(program)


@pytest.mark.parametrize("whose", ["task", "agent"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_shim_that_stands_still_does_not_hold_its_slot_beyond_max_s(
    make_node: MakeNode, bell: Bell, whose: str, restarted: bool
) -> None:
    """Fails where nobody but the shim keeps `max_s`; `restarted`: where only the daemon that
    began the attempt does, or a new one knows the limits of tasks and not those of agents.
    """
    limit = "max_s = 1" if whose == "agent" else ""
    node = impatient(make_node, agents=an_agent("iris", more=limit))
    daemon = node.start()
    uid = node.add(stopping_its_shim(bell), **({"max_s": 1} if whose == "task" else {}), **ENDS)
    program = int(bell.hear())
    if restarted:
        daemon.kill()
        node.start()
    ends(node, uid, program)


def test_a_shim_that_a_dead_zygote_told_nobody_of_is_held_to_its_time(
    make_node: MakeNode, bell: Bell
) -> None:
    """It is found by what lies in its folder. Fails where only its own word starts a clock."""
    node = impatient(make_node)
    node.start(failpoint="shim.after_start:stop")
    uid = node.add(f"echo $$ > {bell.path}; sleep 987", max_s=1, **ENDS)
    ends(node, uid, int(bell.hear()))


@pytest.mark.parametrize(
    ("stop_why", "max_s", "after_s"),
    [
        (None, None, []),
        (None, 60.0, [109]),
        ("cancelled", None, [49]),
        ("cancelled", 60.0, [49, 109]),
    ],
)
def test_whoever_finds_a_shim_sees_to_its_end(
    stop_why: str | None, max_s: float | None, after_s: list[float]
) -> None:
    """What was told to stop before its daemon died is among it: asked again, it may not obey.

    Two graces of 2 s, and 45 s more. Fails where a new daemon only asks.
    """
    folder = AttemptFolder("/nowhere", "uid", 1)
    run = Run("uid", 1, "iris", "token", "boot", folder, stop_why=stop_why, max_s=max_s)
    timers: list[float] = []
    stopping = Stopping(
        Runs(), cast(Wardens, None), lambda seconds, _: timers.append(seconds), grace_s=2
    )
    stopping.follow(run)
    assert timers == after_s


@pytest.mark.parametrize("restarted", [False, True])
def test_a_validator_that_stops_its_shim_is_held_to_its_time(
    make_node: MakeNode, bell: Bell, restarted: bool
) -> None:
    """Fails, `restarted`, where a validator that a new daemon found goes by its program's limit."""
    node = impatient(make_node, agents=an_agent("iris") + a_validator(stopping_its_shim(bell)))
    daemon = node.start()
    uid = node.add(answering("good"), **by_command(timeout_s=1), **ENDS)
    program = int(bell.hear())
    if restarted:
        daemon.kill()
        node.start()
    programs = [program, *(int(bell.hear()) for _ in range(2))]  # it is tried three times
    node.until(uid, "PARKED")
    assert all(is_gone(one) for one in programs)


def seen(ppid: int, born_s: int) -> Seen:
    return Seen(ppid, born_s * TICKS, zombie=False)


def test_what_is_left_of_a_limit_is_told_by_the_age_of_what_the_shim_started() -> None:
    """Not by that of the shim, which waited for work; fails where the whole limit counts anew."""
    table = {7: seen(1, 1), 8: seen(7, 10), 9: seen(8, 13)}
    assert left_s(60, ran_below(SHIM, table, now_s=30.0)) == 40
    assert left_s(15, ran_below(SHIM, table, now_s=30.0)) == 0


@pytest.mark.parametrize("shim", [seen(1, 2), None])
def test_who_shows_nothing_of_its_age_has_its_whole_time(shim: Seen | None) -> None:
    """Its pid is another's by now, or nobody's, or nothing that it started is left."""
    table = {8: seen(7, 10)} if shim is None else {7: shim, 8: seen(7, 10)}
    assert ran_below(SHIM, table, now_s=30.0) == 0
    assert ran_below(SHIM, {7: seen(1, 1), 8: seen(1, 10)}, now_s=30.0) == 0
