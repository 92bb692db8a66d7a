"""How a daemon ends: told once, told twice, or by itself when nothing is left to do."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, is_gone


def test_told_to_stop_it_starts_nothing_more_and_lets_what_runs_finish(
    make_node: MakeNode, bell: Bell, gate: Bell
) -> None:
    node = make_node(agents=an_agent("iris", slots=1))
    daemon = node.start()
    script = f"echo on > {bell.path}; read x < {gate.path}"
    first, second = node.add(script), node.add(script)
    bell.hear()
    daemon.signal(signal.SIGTERM)
    daemon.hear("stop_asked")
    gate.ring(2)
    assert daemon.ended() == 0
    assert bell.next(0.2) is None
    assert node.status_file()["dispatcher"] == "stopped"
    assert node.processes() == []
    states = {task["uid"]: task["state"] for task in node.cli("list")["data"]["tasks"]}
    assert states == {first: "COMPLETED", second: "READY"}


def test_told_to_stop_it_says_for_how_many_it_waits_and_how_long(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Seen to fail: who pressed Ctrl-C saw that it was heard, and not what was waited for."""
    daemon = node.start()
    node.add(f"echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    daemon.signal(signal.SIGINT)
    said = daemon.hear('"grace_s"')
    gate.ring()
    assert daemon.ended() == 0
    assert '"event": "stop_asked", "because": "SIGINT", "running": 1, "grace_s": 30' in said


def test_after_its_grace_it_leaves_what_runs_to_the_shims(
    make_node: MakeNode, bell: Bell, gate: Bell
) -> None:
    node = make_node(stop_grace_s=0)
    daemon = node.start()
    uid = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    node.until(uid, "RUNNING")  # its shim reports a moment after the program has started
    assert daemon.stop() == 0
    assert not is_gone(program, 0)
    assert node.cli("show", uid)["data"]["task"]["state"] == "RUNNING"
    node.start().hear("attempt_adopted")
    gate.ring()
    node.until(uid, "COMPLETED")
    assert len(node.attempts(uid)) == 1


def test_told_twice_it_goes_at_once(node: Node, bell: Bell, gate: Bell) -> None:
    daemon = node.start()
    uid = node.add(f"echo $$ > {bell.path}; read x < {gate.path}")
    program = int(bell.hear())
    daemon.signal(signal.SIGTERM)
    daemon.hear("stop_asked")
    daemon.signal(signal.SIGTERM)
    assert daemon.ended(5) == 0, "the grace is 30 s"
    assert not is_gone(program, 0)
    gate.ring()
    assert is_gone(program)
    node.start()
    node.until(uid, "COMPLETED")


def test_ctrl_c_is_the_same_word(node: Node) -> None:
    daemon = node.start()
    daemon.signal(signal.SIGINT)
    assert daemon.ended() == 0


def test_until_idle_ends_with_0_when_all_is_done(node: Node) -> None:
    for _ in range(5):
        node.cli("add", "x", "--body", "true")
    assert node.start("--until-idle", ready=False).ended() == 0
    assert node.processes() == []
    assert node.cli("status")["data"]["counts"] == {"COMPLETED": 5}


def test_until_idle_waits_for_a_retry(node: Node) -> None:
    node.start()
    retry = {"strategy": "fixed", "initial_s": 0.5, "jitter": 0}
    uid = node.add('[ "$AGENT_TASK_ATTEMPT" = 2 ]', retry=retry)
    node.until(uid, "RETRYING")
    node.daemons[0].stop()
    assert node.start("--until-idle", ready=False).ended() == 0
    assert node.cli("show", uid)["data"]["task"]["state"] == "COMPLETED"


def left_by(node: Node) -> list[dict[str, Any]]:
    """What `run --until-idle` says that it leaves, to a program and in short words to a person."""
    left: list[dict[str, Any]] = node.cli("run", "--until-idle", code=3)["data"]["left"]
    daemon = node.start("--until-idle", ready=False)
    assert daemon.ended() == 3
    said = daemon.said.split("left undone: ")[1].splitlines()[0]
    for one in left:
        assert f"{one['count']} {one['state']} ({one['uids'][0]['short']}" in said
        assert all(uid["uid"].lower().endswith(uid["short"]) for uid in one["uids"])
    return left


def the_state(state: str, *uids: str, needs: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
    named = [{"uid": uid, "short": uid[-4:].lower()} for uid in uids]
    return {"state": state, "count": len(uids), "uids": named, "needs": [*map(list, needs)]}


def test_until_idle_ends_with_3_and_names_what_nothing_here_may_run(node: Node) -> None:
    uid = node.cli("add", "x", "--need", "tape")["data"]["results"][0]["uid"]
    assert left_by(node) == [the_state("READY", uid, needs=[["tape"]])]


def test_until_idle_says_which_agent_is_held(node: Node) -> None:
    """Seen to fail: the task was named, and the list said of it that no daemon runs."""
    node.start()
    node.cli("pause", "--agent", "iris", "--reason", "new key")
    node.daemons[0].stop()
    node.cli("add", "x")
    daemon = node.start("--until-idle", ready=False)
    assert daemon.ended() == 3
    assert "; agent iris is paused (new key); see:" in daemon.said.partition("left undone")[2]


def test_until_idle_names_the_first_ten_and_counts_the_others(node: Node) -> None:
    for _ in range(12):
        node.cli("add", "x", "--need", "tape")
    (left,) = left_by(node)
    assert (left["count"], len(left["uids"])) == (12, 10)
    assert ", 2 more)" in node.daemons[-1].said


def test_until_idle_ends_with_3_and_names_what_is_on_its_way(make_node: MakeNode) -> None:
    """ESCROW here and HELD there: neither is done, and neither runs."""
    iris, loom = make_node(), make_node("loom")
    iris_runs, loom_runs = iris.start(), loom.start()
    uid = iris.cli("add", "x", "--need", "tape")["data"]["results"][0]["uid"]
    with iris.one_talk() as talk:
        move = {"xfer": uid, "uid": uid, "epoch": 1}
        given = talk.ask("escrow", to="loom", why="moved", lease_s=600, moves=[move])["results"][0]
    with loom.one_talk() as talk:
        offer = {name: given[name] for name in ("xfer", "task", "sha256")}
        fields = {"from": "iris", "why": "moved", "moves": [offer]}
        held = talk.ask("hold", **fields)["results"]
    assert held[0]["outcome"] == "held", held
    assert (iris_runs.stop(), loom_runs.stop()) == (0, 0)
    assert left_by(iris) == [the_state("ESCROW", uid)]
    assert left_by(loom) == [the_state("HELD", uid)]


def test_until_idle_ends_with_3_when_the_node_is_paused(node: Node) -> None:
    node.cli("add", "x", "--body", "true")
    node.cli("pause", "--reason", "new disk")
    daemon = node.start("--until-idle", ready=False)
    assert daemon.ended() == 3
    assert "paused" in daemon.said


def test_until_idle_ends_with_3_when_a_task_waits_for_a_person(node: Node) -> None:
    words = ("add", "x", "--body", "kill -9 $PPID; sleep 9", "--on-interrupt", "park")
    uid = node.cli(*words)["data"]["results"][0]["uid"]
    assert left_by(node) == [the_state("PARKED", uid)]


def test_a_second_daemon_is_refused_and_told_who_works_here(node: Node) -> None:
    first = node.start()
    second = node.start(ready=False)
    assert second.ended() == 1
    assert "already_running" in second.said
    assert str(first.pid) in second.said
    assert "agent-node stop" in second.said
    node.until(node.add("true"), "COMPLETED")
