"""A node whose agent's program is not there keeps its tasks, and draws in no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, until

SCRIPT = "#!/bin/sh\nexec sh -s\n"


def with_program(program: Path, *, slots: int = 2, cwd: Path | None = None) -> str:
    """An agent that runs this program, which does what a task's body says once it is there."""
    more = f'cwd = "{cwd}"\n' if cwd else ""
    return (f'[[agent]]\nname = "iris"\nrun = ["{program}"]\nstdin = "body"\n'
            f"slots = {slots}\n{more}")  # fmt: skip


def install(program: Path, text: str = SCRIPT) -> None:
    """Whole and executable before anybody finds it."""
    draft = program.with_suffix(".new")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.rename(program)


def until_there(node: Node) -> None:
    """Work that comes is a reason to look again."""
    until(lambda: node.add("true") and not all(one["paused"] for one in stands(node)[1]),
          "an agent that takes work")  # fmt: skip


def stands(node: Node) -> tuple[int, list[dict[str, Any]], list[str]]:
    with node.one_talk() as talk:
        said = talk.ask("status")
    return said["free_slots"], said["agents"], said["needs_you"]


def test_nothing_is_claimed_for_a_program_that_is_not_there_until_it_is(
    make_node: MakeNode, tmp_path: Path, bell: Bell
) -> None:
    """Seen to fail: such a node tried each task in turn until all of them were dead, told the hub
    of free slots meanwhile, and was given more.
    """
    program = tmp_path / "claude"
    node = make_node(agents=with_program(program))
    daemon = node.start()
    assert f"there is no program {program} here" in daemon.hear("program_missing")
    uids = [node.add(f"echo {number} > {bell.path}", max_attempts=1) for number in range(3)]
    free, (agent,), needs = stands(node)
    assert (free, agent["held"], agent["paused"]) == (0, "missing", True)
    assert agent["reason"] == f"there is no program {program} here"
    again = "it is given work again once it can be started: agent-node doctor"
    assert needs == [f"agent iris: there is no program {program} here; {again}"]
    for uid in uids:
        shown = node.show(uid)
        assert (shown["task"]["state"], shown["attempts"]) == ("READY", [])
    install(program)
    until_there(node)
    for uid in uids:
        assert node.until(uid, "COMPLETED")["failures"] == 0
    daemon.hear("program_found")
    assert daemon.said.count("program_missing") == 1, "said once, however often it was looked for"
    assert stands(node)[2] == []


def test_a_program_that_vanishes_costs_no_task_a_try(
    make_node: MakeNode, tmp_path: Path, bell: Bell
) -> None:
    """Seen to fail: with one try a task was dead within a second, with three soon after."""
    program = tmp_path / "claude"
    install(program)
    node = make_node(agents=with_program(program, slots=1))
    daemon = node.start()
    node.until(node.add("true"), "COMPLETED")
    program.unlink()
    uid = node.add(f"echo on > {bell.path}", max_attempts=1)
    daemon.hear("program_missing")
    task = node.until(uid, "READY")
    assert (task["failures"], task["interruptions"]) == (0, 0)
    (attempt,) = node.attempts(uid)
    assert (attempt["outcome"], attempt["message"]) == (
        "requeued", f"could not start: there is no program {program} here")
    assert stands(node)[0] == 0
    install(program)
    until_there(node)
    assert bell.hear() == "on"
    node.until(uid, "COMPLETED")


def test_a_file_that_may_not_be_run_and_a_folder_that_is_gone_hold_their_agents(
    make_node: MakeNode, tmp_path: Path
) -> None:
    """Seen to fail with a look at the name alone, and with none at the folder."""
    program, place = tmp_path / "claude", tmp_path / "work"
    program.write_text(SCRIPT)
    node = make_node(agents=with_program(program) + an_agent("loom", more=f'cwd = "{place}"'))
    node.start()
    uid = node.add("true")
    free, agents, _ = stands(node)
    assert (free, [one["reason"] for one in agents]) == (0, [
        f"there is no program {program} here", f"there is no folder {place} here, its cwd"])
    place.mkdir()
    until_there(node)
    node.until(uid, "COMPLETED")


def test_where_a_starter_cannot_begin_no_task_pays(make_node: MakeNode, tmp_path: Path) -> None:
    """Seen to fail: only the node's own look knew of folders, and it does not look for others."""
    place = tmp_path / "work"
    more = f'cwd = "{place}"\nprefix = ["/usr/bin/env"]'
    node = make_node(agents=an_agent("iris", more=more))
    daemon = node.start()
    uid = node.add("true", max_attempts=1)
    daemon.hear("its program could not be started")
    assert node.until(uid, "READY")["failures"] == 0
    free, (agent,), _ = stands(node)
    assert (free, agent["held"]) == (0, "missing")
    assert str(place) in agent["reason"]


def test_what_is_there_and_cannot_be_started_is_left_alone_and_no_task_pays(
    make_node: MakeNode, tmp_path: Path
) -> None:
    """Seen to fail: an interpreter that is missing killed tasks as a missing program did. Without
    the pause such a node would try for ever, as fast as it can.
    """
    program = tmp_path / "claude"
    install(program, "#!/no/such/interpreter\n")
    node = make_node(agents=with_program(program, slots=1))
    daemon = node.start()
    uid = node.add("true", max_attempts=1)
    daemon.hear("its program could not be started")
    task = node.until(uid, "READY")
    node.add("true")
    assert (task["failures"], len(node.attempts(uid))) == (0, 1)
    assert stands(node)[0] == 0


def test_a_program_that_is_being_replaced_costs_no_task_a_try(
    make_node: MakeNode, tmp_path: Path
) -> None:
    """Seen to fail: a file that was empty for a moment, or that somebody was still writing, killed
    the tasks of that moment, for a name that is found was all that counted.
    """
    empty, busy = tmp_path / "empty", tmp_path / "busy"
    install(empty, "")
    install(busy)
    two = with_program(empty, slots=1), with_program(busy, slots=1).replace("iris", "loom")
    node = make_node(agents="".join(two))
    with busy.open("ab"):
        daemon = node.start()
        uids = [node.add("true", max_attempts=1) for _ in range(2)]
        for word in ("Exec format error", "Text file busy"):
            daemon.hear(word)
        for uid in uids:
            assert node.until(uid, "READY")["failures"] == 0
    assert [one["held"] for one in stands(node)[1]] == ["missing"] * 2


def test_a_program_beside_its_task_is_the_tasks_own(make_node: MakeNode) -> None:
    """What is looked for in each task's folder may be there for the next one: no agent is held."""
    node = make_node(agents='[[agent]]\nname = "iris"\nrun = ["./tool"]\n')
    node.start()
    uid = node.add("true", max_attempts=1)
    assert node.until(uid, "DEAD_LETTERED")["failures"] == 1
    assert stands(node)[0] == 1


def test_another_agent_goes_on_and_a_run_until_idle_says_what_it_left(
    make_node: MakeNode, tmp_path: Path
) -> None:
    """Seen to fail: half of the tasks died with the agent that could start none."""
    gone = with_program(tmp_path / "claude").replace("iris", "loom")
    node = make_node(agents=an_agent("iris") + gone + 'skills = ["web"]\n')
    daemon = node.start()
    plain = [node.add("true", max_attempts=1) for _ in range(4)]
    only = node.add("true", needs=["web"])
    for uid in plain:
        node.until(uid, "COMPLETED")
    assert node.show(only)["task"]["state"] == "READY"
    daemon.stop()
    last = node.start("--until-idle", ready=False)
    assert last.ended() == 3
    assert "agent loom: there is no program" in last.said.rpartition("left undone")[2]


def test_a_verdict_found_after_a_restart_costs_no_try_either(
    make_node: MakeNode, tmp_path: Path
) -> None:
    """The daemon died between the shim's verdict and its record. Seen to fail as the others."""
    program = tmp_path / "claude"
    install(program)
    node = make_node(agents=with_program(program))
    daemon = node.start(failpoint="dispatch.before_result:kill")
    program.unlink()
    uid = node.add("true", max_attempts=1)
    daemon.ended()
    verdict = json.loads((node.folder(uid) / "verdict.json").read_text())
    assert (verdict["kind"], verdict["missing"]) == ("could_not_start", True)
    node.start()
    assert node.until(uid, "READY")["failures"] == 0


def test_start_warns_of_it_and_a_node_without_its_daemon_says_so_where_it_is_looked_at(
    make_node: MakeNode, tmp_path: Path
) -> None:
    """Seen to fail: after the daemon was killed, `status` was silent and `add` said `1 added`."""
    node = make_node(agents=with_program(tmp_path / "claude"))
    node.start().kill()
    (said,) = node.cli("add", "work")["warnings"]
    assert said.endswith(f"AGENT_NODE_HOME={node.home} agent-node start")
    needs = node.cli("status")["data"]["needs_you"]
    assert needs == ["1 READY, and no daemon runs here: agent-node start"]
    (said,) = node.cli("start", "--dry-run")["warnings"]
    assert said.startswith(f"agent iris: there is no program {tmp_path / 'claude'} here")
