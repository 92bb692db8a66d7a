"""A daemon in wrong surroundings: one clear word, nothing moved, no work lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, an_agent, is_gone, until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounting a small disk")


def test_a_home_with_a_very_long_path_works(make_node: MakeNode, tmp_path: Path) -> None:
    """The kernel takes 107 bytes for the path of a socket; homes may lie deeper."""
    deep = tmp_path / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    node = make_node(home=deep / "home")
    node.start()
    uid = node.add("true")
    node.until(uid, "COMPLETED")
    assert node.cli("show", uid)["data"]["task"]["state"] == "COMPLETED"


@pytest.mark.parametrize("mode", [0o750, 0o705])
def test_a_home_that_others_can_reach_is_refused_with_the_mend(node: Node, mode: int) -> None:
    node.home.chmod(mode)
    daemon = node.start(ready=False)
    assert daemon.ended() == 2
    assert f"chmod 700 {node.home}" in daemon.said
    assert not (node.home / "queue.db").exists()


def test_a_damaged_database_is_refused_as_it_lies(node: Node) -> None:
    node.start()
    node.until(node.add("true"), "COMPLETED")
    node.daemons[0].stop()
    database = node.home / "queue.db"
    raw = bytearray(database.read_bytes())
    raw[4096 * 2 : 4096 * 6] = b"\xa5" * (4096 * 4)
    database.write_bytes(raw)
    before = {path: path.read_bytes() for path in node.home.glob("queue.db*")}
    daemon = node.start(ready=False)
    assert daemon.ended() != 0
    assert "store_corrupt" in daemon.said
    assert str(database) in daemon.said
    assert "Traceback" not in daemon.said
    assert {path: path.read_bytes() for path in before} == before


def test_a_database_that_is_none_is_refused_as_it_lies(node: Node) -> None:
    (node.home / "queue.db").write_bytes(b"once upon a time" * 1000)
    daemon = node.start(ready=False)
    assert daemon.ended() != 0
    assert "store_corrupt" in daemon.said
    assert (node.home / "queue.db").read_bytes() == b"once upon a time" * 1000


def test_wrong_settings_are_named_with_their_line(node: Node) -> None:
    (node.home / "node.toml").write_text('name = "iris"\nslotz = 3\n')
    daemon = node.start(ready=False)
    assert daemon.ended() == 2
    assert "node.toml:2" in daemon.said


def test_a_restored_database_is_quarantined_and_runs_nothing(node: Node, bell: Bell) -> None:
    daemon = node.start()
    node.until(node.add("true"), "COMPLETED")
    node.cli("pause")
    waiting = node.add(f"echo ran > {bell.path}")
    daemon.stop()
    copy = node.home.parent / "copy.db"
    shutil.copy(node.home / "queue.db", copy)
    node.start()
    node.cli("resume")
    assert bell.hear() == "ran"
    node.until(waiting, "COMPLETED")
    node.daemons[-1].stop()
    before = node.status_file()["incarnation"]
    shutil.copy(copy, node.home / "queue.db")
    (node.home / "queue.db").chmod(0o600)
    node.start()
    status = node.cli("status")["data"]
    assert (status["state"], status["idle"]) == ("quarantined", False)
    assert status["incarnation"] != before
    assert status["needs_you"]
    assert bell.next(0.3) is None, "the task that ran already does not run again"
    assert node.cli("add", "x", code=None)["ok"] is False
    assert node.cli("list")["ok"]


def test_below_the_floor_of_free_space_nothing_is_claimed_and_all_else_works(
    make_node: MakeNode, bell: Bell
) -> None:
    node = make_node(disk_floor="900TiB")
    daemon = node.start()
    uid = node.add(f"echo on > {bell.path}")
    assert bell.next(0.3) is None
    assert "disk_low" in daemon.hear("disk_low")
    assert node.cli("list")["data"]["tasks"][0]["uid"] == uid
    daemon.stop()
    node.configure(disk_floor=0)
    node.start()
    assert bell.hear() == "on"
    node.until(uid, "COMPLETED")


def test_below_the_floor_of_free_disk_what_runs_finishes_and_can_be_read(
    node: Node, bell: Bell, gate: Bell
) -> None:
    """Finishing goes on, and reading; nothing new begins until there is room again. Fails when a
    daemon that adopts a program below the floor ends it, or does not take its result.
    """
    daemon = node.start()
    runs = node.add(f"echo $$ > {bell.path}; read x < {gate.path}; echo written")
    program = int(bell.hear())
    node.until(runs, "RUNNING")
    daemon.kill()
    node.configure(disk_floor="900TiB")
    daemon = node.start()
    daemon.hear("attempt_adopted")
    assert not is_gone(program, 0)
    waits = node.add(f"echo on > {bell.path}")
    gate.ring()
    node.until(runs, "COMPLETED")
    assert [one["outcome"] for one in node.attempts(runs)] == ["completed"]
    assert (node.folder(runs) / "stdout.log").read_text() == "written\n"
    assert bell.next(0.3) is None, "a slot is free, and room is not"
    states = {task["uid"]: task["state"] for task in node.cli("list")["data"]["tasks"]}
    assert states == {runs: "COMPLETED", waits: "READY"}
    daemon.stop()
    node.configure(disk_floor=0)
    node.start()
    assert bell.hear() == "on"
    node.until(waits, "COMPLETED")


@as_root
def test_a_disk_that_gets_room_again_is_noticed_without_a_restart(
    make_node: MakeNode, bell: Bell, tmp_path: Path
) -> None:
    with a_small_disk(tmp_path / "disk", "16m") as disk:
        node = make_node(home=disk / "home", disk_floor="8MiB")
        filler = disk / "filler"
        filler.write_bytes(b"x" * (9 << 20))
        node.start().hear("node_started")
        uid = node.add(f"echo on > {bell.path}")
        node.daemons[0].hear("disk_low")
        filler.unlink()
        assert bell.hear() == "on"
        node.until(uid, "COMPLETED")
        node.clean_up()
        node.daemons.clear()


@as_root
def test_on_a_full_disk_what_runs_ends_and_its_result_waits_for_room(
    make_node: MakeNode, bell: Bell, gate: Bell, tmp_path: Path
) -> None:
    """Seen to fail: with disk_floor = 0 the node told of a free slot that it could not fill."""
    with a_small_disk(tmp_path / "disk", "8m") as disk:
        node = make_node(home=disk / "home", agents=an_agent("iris", slots=2))
        daemon = node.start()
        uid = node.add(f"echo on > {bell.path}; read x < {gate.path}; echo over > {bell.path}")
        bell.hear()
        node.until(uid, "RUNNING")
        filler = _fill(disk)
        gate.ring()
        assert bell.hear() == "over"
        with node.one_talk() as talk:
            assert talk.ask("show", uid=uid)["task"]["state"] in {"RUNNING", "COMPLETED"}
            status = talk.ask("status")
            assert status["free_slots"] == 0, "disk_floor is 0, and there is no room all the same"
            assert "1.0 MiB" in status["needs_you"][0]
            looks = node.cli("doctor", code=None)["data"]["checks"]
            room = next(one for one in looks if one["check"] == "disk")
            assert (room["level"], room["fix"]) == ("finding", "free some space")
        assert daemon.process.poll() is None, daemon.said
        filler.unlink()
        node.until(uid, "COMPLETED")
        assert [one["outcome"] for one in node.attempts(uid)] == ["completed"]
        node.until(node.add("true"), "COMPLETED")
        node.clean_up()
        node.daemons.clear()


def _fill(disk: Path) -> Path:
    """A file that takes all the room there is."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (65536, 4096):
            while _write(file.fileno(), size):
                pass
    return filler


def _write(descriptor: int, size: int) -> bool:
    try:
        return os.write(descriptor, b"x" * size) > 0
    except OSError:
        return False


@contextmanager
def a_small_disk(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", place], check=False
    )
    if mounted.returncode:
        pytest.skip("needs mount: this machine lets nobody mount a tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_task_whose_stored_text_was_changed_does_not_run(node: Node, bell: Bell) -> None:
    """Bit rot or a hand in the database: the hash no longer fits, and that task alone waits."""
    import sqlite3

    node.start()
    node.cli("pause")
    uid, other = node.add(f"echo on > {bell.path}"), node.add("true")
    node.daemons[0].stop()
    with sqlite3.connect(node.home / "queue.db") as queue:
        queue.execute("UPDATE task SET spec = replace(spec, 'echo', 'ECHO') WHERE uid = ?", (uid,))
    queue.close()
    node.start()
    node.cli("resume")
    node.until(other, "COMPLETED")
    assert "hash" in str(node.until(uid, "PARKED")["failure_reason"])
    until(lambda: node.status_file()["needs_you"], "a word to a person")
    assert bell.next(0.1) is None
