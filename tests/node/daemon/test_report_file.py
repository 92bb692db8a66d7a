"""fleet-status.json while a daemon works: never idle too long, never ahead, never too often."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, until


def test_idle_is_taken_back_before_the_program_starts(node: Node, gate: Bell) -> None:
    """The program itself reads the file, as its first act, and prints what it says.

    What is counted in it may be from before; within a second the whole truth follows.
    """
    node.start()
    until(lambda: node.status_file()["idle"] and denials(node), "an idle report and its denial")
    uid = node.add(f'cat "$AGENT_NODE_HOME/fleet-status.json"; read x < {gate.path}')
    true = until(
        lambda: node.status_file()["running_count"] == 1 and node.status_file(), "a full report"
    )
    gate.ring()
    node.until(uid, "COMPLETED")
    seen = json.loads((node.folder(uid) / "stdout.log").read_text())
    assert (seen["idle"], seen["idle_since"]) == (False, None)
    assert (true["idle"], true["idle_since"]) == (False, None)
    assert true["written_at"] >= seen["written_at"]


def denials(node: Node) -> list[Path]:
    """The file that lies ready to take `idle` back, if there is one."""
    return [*node.home.glob(".fleet-status.json.*")]


def test_a_denial_that_somebody_took_away_is_written_anew(node: Node) -> None:
    node.start()
    until(lambda: node.status_file()["idle"] and denials(node), "an idle report and its denial")
    for path in denials(node):
        path.unlink()
    uid = node.add('cat "$AGENT_NODE_HOME/fleet-status.json"')
    node.until(uid, "COMPLETED")
    seen = json.loads((node.folder(uid) / "stdout.log").read_text())
    assert (seen["idle"], seen["idle_since"]) == (False, None)


def test_a_denial_of_a_daemon_that_was_killed_is_never_used(node: Node) -> None:
    daemon = node.start()
    until(lambda: node.status_file()["idle"] and denials(node), "an idle report and its denial")
    (old,) = denials(node)
    daemon.kill()
    assert old.exists()
    node.start()
    until(lambda: node.status_file()["idle"] and denials(node), "an idle report and its denial")
    assert not old.exists()


def test_an_idle_node_says_since_when(node: Node) -> None:
    node.start()
    uid = node.add("true")
    ended = node.until(uid, "COMPLETED")["completed_at"]
    report = until(lambda: node.status_file()["idle"] and node.status_file(), "an idle report")
    assert ended <= report["idle_since"] <= report["written_at"]
    assert report["last_task"]["uid"] == uid


def test_a_stopped_dispatcher_is_not_idle(node: Node) -> None:
    daemon = node.start()
    until(lambda: node.status_file()["idle"], "an idle report")
    daemon.stop()
    report = node.status_file()
    assert (report["dispatcher"], report["idle"], report["idle_since"]) == ("stopped", False, None)
    assert node.cli("status")["data"]["idle"] is False


def test_a_killed_daemon_leaves_a_report_that_grows_old_and_the_next_writes_a_new_one(
    node: Node,
) -> None:
    node.start().kill()
    old = node.status_file()["written_at"]
    node.start()
    assert node.status_file()["written_at"] > old


def test_many_changes_are_written_once_a_second(node: Node, tmp_path: Path) -> None:
    """Every write is a new file, so the number of inodes met is the number of writes."""
    node.start()
    uids = [node.add("true") for _ in range(20)]
    met: set[tuple[int, str]] = set()

    def look() -> bool:
        path = node.home / "fleet-status.json"
        met.add((os.stat(path).st_ino, json.loads(path.read_text())["written_at"]))
        with node.one_talk() as talk:
            return bool(talk.ask("status")["counts"].get("COMPLETED") == len(uids))

    until(look, "all of them")
    stamps = sorted({stamp for _, stamp in met})
    spans = [_seconds(later) - _seconds(sooner) for sooner, later in pairwise(stamps)]
    assert all(span > 0.9 for span in spans[1:]), "the first write may be the one that clears idle"


def _seconds(stamp: str) -> float:
    hours, minutes, seconds = stamp[11:-1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def test_the_file_is_never_ahead_of_the_database(node: Node, bell: Bell) -> None:
    """What the file counts as done can be read from the database by anybody at that moment."""
    node.start()
    for _ in range(15):
        node.add("true")
    for _ in range(5):
        report = node.status_file()
        rows = node.rows("task")
        done = sum(row["state"] == "COMPLETED" for row in rows)
        assert report["counts"].get("COMPLETED", 0) <= done
        (facts,) = node.rows("node")
        events = node.rows("event")
        reached = facts["generation"] + len(events) - facts["counted_event"]
        assert report["generation"] <= reached


def test_nothing_but_the_report_and_its_denial_is_left_beside_it(make_node: MakeNode) -> None:
    """A daemon killed in the middle of a write leaves a file that the next one takes away."""
    node = make_node()
    node.start(failpoint="report.before_rename:kill", ready=False).ended()
    (left,) = denials(node)
    daemon = node.start()
    until(lambda: denials(node), "a denial")
    assert left not in denials(node)
    assert len(denials(node)) == 1
    daemon.stop()
    assert denials(node) == []


def test_all_that_a_daemon_makes_is_for_its_owner_alone(node: Node) -> None:
    umask = os.umask(0)
    try:
        node.start()
    finally:
        os.umask(umask)
    uid = node.add("umask > mask; mkdir there")
    node.until(uid, "COMPLETED")
    others = {"node.toml", "mask", "there"}
    made = [path for path in (node.home, *node.home.rglob("*")) if path.name not in others]
    assert {path.name for path in made} >= {"queue.db", "fleet-status.json", "generation", "lock"}
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []
