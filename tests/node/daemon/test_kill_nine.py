"""-9 to the daemon, a shim or the zygote: work goes on, ends once, or starts again proven dead."""

from __future__ import annotations

import os
import signal

from tests.node.daemon.conftest import MakeBell
from tests.node.daemon.living import Bell, Node, is_gone, is_stopped, until


def test_a_daemon_killed_with_programs_running_is_followed_by_one_that_takes_them_over(
    node: Node, bell: Bell, gate: Bell
) -> None:
    first = node.start()
    script = f"echo $AGENT_TASK_ATTEMPT > {bell.path}; read x < {gate.path}"
    uids = [node.add(script), node.add(script)]
    assert [bell.hear(), bell.hear()] == ["1", "1"]
    first.kill()
    second = node.start()
    assert second.hear("node_started").count("attempt_adopted") == 2
    for uid in uids:
        assert _told(node, uid) == ["a daemon that was started meanwhile follows attempt 1"]
    gate.ring(2)
    for uid in uids:
        node.until(uid, "COMPLETED")
        assert [one["outcome"] for one in node.attempts(uid)] == ["completed"]
    assert bell.next(0.2) is None, "nothing was started again"


def _told(node: Node, uid: str) -> list[str]:
    """Seen to fail: it stood in daemon.log alone that another daemon had taken it over."""
    return [one["because"] for one in node.show(uid)["events"] if one["event"] == "task_adopted"]


def test_a_shim_that_has_not_told_of_its_start_yet_outlives_daemon_and_zygote(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """The program rings before its shim says so. Fails where a shim that nobody hears any more
    ends of it: its program is killed as a leftover, and the task is interrupted.
    """
    first = node.start(failpoint="shim.after_start:stop")
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    assert bell.hear() == "on"
    zygote, shim = first.zygote, node.shim(uid)
    first.kill()
    assert is_gone(zygote)
    until(lambda: is_stopped(shim), "the place where it stops")
    os.kill(shim, signal.SIGCONT)
    node.start()
    gate.ring()
    node.until(uid, "COMPLETED")
    assert [one["outcome"] for one in node.attempts(uid)] == ["completed"]


def test_what_ended_while_no_daemon_was_there_is_accepted_exactly_once(
    node: Node, bell: Bell, gate: Bell
) -> None:
    node.start()
    answer = "echo '{\"output\":7}' > $AGENT_ANSWER"
    uid = node.add(f"echo $$ > {bell.path}; read x < {gate.path}; {answer}")
    program = int(bell.hear())
    node.daemons[0].kill()
    shim = node.shim(uid)
    gate.ring()
    assert is_gone(program)
    assert is_gone(shim)
    node.start().kill()
    node.start()
    assert node.until(uid, "COMPLETED")["output"] == 7
    assert [one["event"] for one in _events(node)].count("task_completed") == 1


def _events(node: Node) -> list[dict[str, object]]:
    with node.one_talk() as talk:
        events: list[dict[str, object]] = talk.ask("events", limit=1000)["events"]
    return events


def test_a_killed_shim_costs_its_tree_the_life_and_the_task_no_try(
    node: Node, bell: Bell, gate: Bell
) -> None:
    node.start()
    uid = node.add(
        f"setsid sh -c 'echo child $$ > {bell.path}; exec sleep 60' &\n"
        f"echo program $$ > {bell.path}; read x < {gate.path}"
    )
    pids = {word: int(pid) for word, pid in (bell.hear().split(), bell.hear().split())}
    os.kill(node.shim(uid), signal.SIGKILL)
    again = {word: int(pid) for word, pid in (bell.hear().split(), bell.hear().split())}
    assert is_gone(pids["program"], 0)
    assert is_gone(pids["child"], 0), "it was dead before the next attempt began"
    assert again.keys() == pids.keys()
    gate.ring()
    task = node.until(uid, "COMPLETED")
    assert (task["failures"], task["interruptions"]) == (0, 1)
    assert [(one["n"], one["outcome"]) for one in node.attempts(uid)] == [
        (1, "interrupted"), (2, "completed"),
    ]  # fmt: skip


def test_a_killed_zygote_is_replaced_and_what_ran_goes_on(
    node: Node, bell: Bell, gate: Bell
) -> None:
    daemon = node.start()
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    assert bell.hear() == "on"
    os.kill(daemon.zygote, signal.SIGKILL)
    daemon.hear("zygote_gone")
    other = node.add("true")
    node.until(other, "COMPLETED")
    gate.ring()
    node.until(uid, "COMPLETED")
    assert len(node.attempts(uid)) == 1


def test_a_task_interrupted_three_times_waits_for_a_person(
    node: Node, bell: Bell, gate: Bell
) -> None:
    node.start()
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    for n in (1, 2, 3):
        bell.hear()
        os.kill(node.shim(uid, n), signal.SIGKILL)
    task = node.until(uid, "PARKED")
    assert "interrupted 3 times" in task["failure_reason"]
    assert node.cli("status")["data"]["needs_you"]
    assert node.cli("resolve", uid, "--as", "ready", code=7)["error"]["code"] == "needs_alone"
    node.cli("resolve", uid, "--as", "ready", "--alone")
    assert bell.hear() == "on"
    gate.ring()
    node.until(uid, "COMPLETED")
    numbers = [one["n"] for one in node.attempts(uid)]
    assert numbers[:3] == [1, 2, 3]
    assert numbers[3:] > [3], "numbers go on, with room for what another owner may have counted"


def test_a_task_may_ask_to_be_parked_at_its_first_interruption(
    node: Node, bell: Bell, gate: Bell
) -> None:
    node.start()
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}", on_interrupt="park")
    bell.hear()
    os.kill(node.shim(uid), signal.SIGKILL)
    assert "on_interrupt" in node.until(uid, "PARKED")["failure_reason"]


def test_shim_and_daemon_killed_together_leave_no_program_behind(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Fails when what a dead shim left behind is not killed before its task starts again."""
    first = node.start()
    uid = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program, shim = int(bell.hear()), node.shim(uid)
    first.kill()
    os.kill(shim, signal.SIGKILL)
    assert not is_gone(program, 0), "nobody is there to end it"
    node.start()
    assert int(bell.hear()) != program
    assert is_gone(program, 0)
    gate.ring()
    assert node.until(uid, "COMPLETED")["interruptions"] == 1


def test_a_cancel_that_no_daemon_could_carry_out_is_carried_out_by_the_next(
    node: Node, bell: Bell, make_bell: MakeBell
) -> None:
    gate = make_bell("never")
    node.start()
    uid = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    node.daemons[0].kill()
    node.cli("cancel", uid)
    node.start()
    node.until(uid, "CANCELLED")
    assert is_gone(program, 0)
