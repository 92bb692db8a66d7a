"""Files that programs leave are kept before their task counts as done, and reach who reads them."""

from __future__ import annotations

import base64
import hashlib
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.crash_table import ACTIONS, DISK, FILES_LEFT
from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Daemon, Node, Refusal, an_agent, is_stopped, until

CONTENT = b"seven rows\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
LEAVES = (
    "printf 'seven rows\\n' > report.txt\n"
    """printf '{"output": 7, "artifacts": ["report.txt"]}' > "$AGENT_ANSWER"\n"""
)
ENTRY = {"name": "report.txt", "sha256": SHA256, "size": len(CONTENT)}
PUT = {"sha256": SHA256, "size": len(CONTENT), "offset": 0,
       "data": base64.b64encode(CONTENT).decode()}  # fmt: skip
READS = (
    'path=$(sed \'s/.*"path":"\\([^"]*\\)".*/\\1/\' "$AGENT_CONTEXT")\n'
    'printf \'{"output": "%s"}\' "$(cat "$path")" > "$AGENT_ANSWER"\n'
)


def on_shelf(node: Node, sha256: str = SHA256) -> Path:
    return node.home / "artifacts" / sha256[:2] / sha256


def reader_of(node: Node, uid: str) -> str:
    return node.add(READS, depends_on=[{"uid": uid}],
                    context_refs=[f"task:{uid}:artifact:report.txt"])  # fmt: skip


def test_a_file_is_kept_and_read_by_the_next_task_under_its_own_path(node: Node) -> None:
    node.start()
    uid = node.add(LEAVES)
    child = reader_of(node, uid)
    task = node.until(uid, "COMPLETED")
    assert task["artifacts"] == [ENTRY]
    assert on_shelf(node).read_bytes() == CONTENT
    assert node.until(child, "COMPLETED")["output"] == "seven rows"
    context = json.loads((node.folder(child) / "context.json").read_text())
    path = node.folder(child) / "inputs" / "report.txt"
    assert context[f"task:{uid}:artifact:report.txt"] == {
        "name": "report.txt", "sha256": SHA256, "size": len(CONTENT), "path": str(path),
    }  # fmt: skip


def test_paths_are_those_of_the_folder_that_the_agent_works_in(
    make_node: MakeNode, tmp_path: Path
) -> None:
    place = tmp_path / "project"
    place.mkdir()
    node = make_node(agents=an_agent("iris", more=f'cwd = "{place}"'))
    node.start()
    task = node.until(node.add(LEAVES), "COMPLETED")
    assert task["artifacts"][0]["sha256"] == SHA256


def test_a_file_that_cannot_be_taken_does_not_fail_its_task(node: Node) -> None:
    node.start()
    said = '{"artifacts": ["gone.txt", "/etc/passwd"]}'
    task = node.until(node.add(f"printf '{said}' > \"$AGENT_ANSWER\""), "COMPLETED")
    assert [sorted(one) for one in task["artifacts"]] == [["because", "name"]] * 2


@pytest.mark.parametrize("action", ["kill"])
@pytest.mark.parametrize("place", FILES_LEFT.places)
def test_a_daemon_that_dies_over_a_file_takes_it_again(node: Node, place: str, action: str) -> None:
    daemon = node.start(failpoint=f"{place}:{action}")
    uid = node.add(LEAVES)
    daemon.ended()
    node.start()
    assert kept_by(node, uid) == [ENTRY]
    assert len(node.attempts(uid)) == 1


@pytest.mark.parametrize("action", DISK)
def test_a_disk_that_fails_over_a_file_costs_the_file_alone(node: Node, action: str) -> None:
    """Each task meets it at the next place. What has its name already stays, and is nobody's."""
    *places, last = FILES_LEFT.places
    assert last == "artifact.before_result"  # all of them pass it
    daemon = node.start(failpoint=f"{armed(places, action)},{last}:{action}:{len(places) + 1}")
    for place in places:
        task = node.until(node.add(LEAVES), "COMPLETED")
        (entry,) = task["artifacts"]
        assert entry["because"].startswith("it could not be kept: "), place
        assert task["output"] == 7
        assert on_shelf(node).exists() == (place == "artifact.after_rename")
        assert [*(node.home / "artifacts").glob(".*")] == []
    uid = node.add(LEAVES)  # of this one nothing was written down: the next daemon takes it again
    assert daemon.ended() == 1
    assert "Traceback" not in daemon.said
    assert daemon.said.count("error[disk_broken]: ") == 1
    node.start()
    assert kept_by(node, uid) == [ENTRY]
    assert len(node.attempts(uid)) == 1


@pytest.mark.parametrize("action", ["stop"])
def test_a_daemon_that_stands_still_over_a_file_keeps_it_when_it_goes_on(
    node: Node, tmp_path: Path, action: str
) -> None:
    seen = tmp_path / "seen"
    node.env["ARC_FAILPOINT_SEEN"] = str(seen)
    daemon = node.start(failpoint=armed(FILES_LEFT.places, action))
    uid = node.add(LEAVES)
    wake_at_each(daemon, FILES_LEFT.places, seen)
    assert kept_by(node, uid) == [ENTRY]
    assert len(node.attempts(uid)) == 1
    assert "Traceback" not in daemon.said


@pytest.mark.parametrize("action", ACTIONS)
def test_a_file_that_comes_while_that_happens_is_there_when_it_is_sent_again(
    node: Node, tmp_path: Path, action: str
) -> None:
    """Sent from its first byte on after each of them; the one that waits for it reads all of it."""
    seen, places = tmp_path / "seen", FILES_LEFT.places[:-1]
    node.env["ARC_FAILPOINT_SEEN"] = str(seen)
    daemon = node.start(failpoint="" if action == "kill" else armed(places, action))
    child = node.add(READS.replace("report.txt", SHA256), context_refs=[f"artifact:{SHA256}"])
    for place in places if action != "stop" else ():
        if action == "kill":
            daemon.stop()
            daemon = node.start(failpoint=armed([place], action))
        with node.one_talk() as talk, pytest.raises((ConnectionError, Refusal)) as told:
            talk.ask("artifact_put", **PUT)
        assert action == "kill" or str(told.value).startswith("disk: "), (place, told.value)
        if action == "kill":
            daemon.ended()
            daemon = node.start()
    with node.one_talk() as talk:
        talk.say("artifact_put", **PUT)
        if action == "stop":
            wake_at_each(daemon, places, seen)
        assert talk.answer("artifact_put") == {"have": len(CONTENT), "done": True}
    assert [line.split()[0] for line in seen.read_text().splitlines()] == [*places]
    assert node.until(child, "COMPLETED")["output"] == CONTENT.decode().strip()
    assert [*(node.home / "artifacts").glob(".*")] == []


def armed(places: Sequence[str], action: str) -> str:
    return ",".join(f"{place}:{action}" for place in places)


def kept_by(node: Node, uid: str) -> list[dict[str, Any]]:
    """What the task left, once it is done; on the shelf it is as it was left."""
    entries: list[dict[str, Any]] = node.until(uid, "COMPLETED")["artifacts"]
    assert on_shelf(node).read_bytes() == CONTENT
    return entries


def passed(seen: Path) -> int:
    return len(seen.read_text().splitlines()) if seen.exists() else 0


def wake_at_each(daemon: Daemon, places: Sequence[str], seen: Path) -> None:
    for number, place in enumerate(places, start=1):
        until(lambda number=number: passed(seen) == number  # type: ignore[misc]
              and is_stopped(daemon.pid), place)  # fmt: skip
        daemon.signal(signal.SIGCONT)


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_task_whose_file_is_lost_waits_for_it_and_runs_when_it_is_brought(
    node: Node, damage: str
) -> None:
    """Without the hash on the way in, the changed one is read as if it were the file."""
    node.start()
    uid = node.add(LEAVES)
    node.until(uid, "COMPLETED")
    if damage == "gone":
        on_shelf(node).unlink()
    else:
        on_shelf(node).write_bytes(b"eight rows\n")
    child = reader_of(node, uid)
    until(lambda: node.show(child)["task"]["state"] == "PENDING", "the reader waits")
    with node.one_talk() as talk:
        (missing,) = talk.ask("artifacts_missing")["artifacts"]
        assert (missing["sha256"], missing["uid"], missing["source"]) == (SHA256, child, uid)
        data = base64.b64encode(CONTENT).decode()
        said = talk.ask("artifact_put", sha256=SHA256, size=len(CONTENT), offset=0, data=data)
        assert said == {"have": len(CONTENT), "done": True}
    assert node.until(child, "COMPLETED")["output"] == "seven rows"


def test_a_file_that_is_waited_for_is_not_taken_onto_a_disk_without_room(
    make_node: MakeNode,
) -> None:
    """Seen to fail without the look at the disk: the bytes were kept below the floor."""
    node = make_node()
    daemon = node.start()
    node.add(READS, context_refs=[f"artifact:{SHA256}"])
    daemon.stop()
    node.configure(disk_floor="900TiB")
    daemon = node.start()
    put = {"sha256": SHA256, "size": len(CONTENT), "offset": 0,
           "data": base64.b64encode(CONTENT).decode()}  # fmt: skip
    with node.one_talk() as talk:
        with pytest.raises(Refusal) as refused:
            talk.ask("artifact_put", **put)
        assert (refused.value.rule or refused.value.code) == "disk_floor"
        assert len(talk.ask("artifacts_missing")["artifacts"]) == 1, "it is waited for all the same"
    assert not on_shelf(node).exists()
    assert [*(node.home / "artifacts").glob(".*")] == [], "and nothing of it was begun"
    daemon.stop()
    node.configure(disk_floor=0)
    node.start()
    with node.one_talk() as talk:
        assert talk.ask("artifact_put", **put) == {"have": len(CONTENT), "done": True}


def test_a_large_file_is_taken_while_the_node_answers(node: Node) -> None:
    node.start()
    script = "head -c 40000000 /dev/zero > big\nprintf '{\"artifacts\": [\"big\"]}' > $AGENT_ANSWER"
    uid = node.add(script)
    with node.one_talk() as talk:
        while talk.ask("show", uid=uid)["task"]["state"] != "COMPLETED":
            talk.listen(0.05)
    (entry,) = node.show(uid)["task"]["artifacts"]
    assert entry["size"] == 40_000_000
