"""Replaces programs under real daemons, with tasks that run, and goes back where it has to."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent_node.home import Home
from agent_node.program import folder_of, remove_old
from agent_node.status import SCHEMA
from agent_node.store.schema import VERSION
from tests.node.daemon.living import PATIENCE_S, Bell, until
from tests.node.processes.test_as_an_ordinary_user import as_nobody
from tests.node.upgrading.programs import (
    IMPATIENT,
    Keys,
    ProgramNode,
    Pyz,
    a_broken_program,
    a_program,
)
from tests.node.wire.processes import Program

OLD, GONE = (f"agent-node-{digit * 12}.pyz" for digit in "ab")


def a_task_that_waits(node: ProgramNode, gate: Bell, log: Path) -> str:
    """It writes a line when it begins and one when it ends, so that every run is seen."""
    uid = node.add(f"echo began >> {log}; read x < {gate.path}; echo ended >> {log}")
    until(lambda: log.exists() and "began" in log.read_text(), "the task")
    return uid


def test_a_daemon_gives_way_to_the_new_program_and_running_tasks_do_not_notice(
    node: ProgramNode, keys: Keys, new: Pyz, gate: Bell, tmp_path: Path
) -> None:
    daemon, log = node.start(), tmp_path / "log"
    uid = a_task_that_waits(node, gate, log)
    shim = node.shim(uid)
    ended = node.upgrade(keys.offer(new))

    assert (ended["outcome"], ended["was"]["version"]) == ("upgraded", "0.1.0")
    status = node.cli("status")["data"]
    assert (status["version"], status["program"]) == ("0.2.0", new.sha256[:12])
    assert daemon.process.poll() is None, "the same process, under whatever keeps it"
    assert node.shim(uid) == shim
    gate.ring()
    node.until(uid, "COMPLETED")
    assert log.read_text() == "began\nended\n"
    assert len(node.attempts(uid)) == 1
    node.until(node.add("true"), "COMPLETED")


def test_a_new_program_whose_daemon_ends_is_taken_back(
    node: ProgramNode, keys: Keys, old: Pyz, gate: Bell, tmp_path: Path
) -> None:
    node.start()
    log = tmp_path / "log"
    uid = a_task_that_waits(node, gate, log)
    offer = keys.offer(a_broken_program())
    ended = node.upgrade(offer)

    assert ended["outcome"] == "went_back"
    assert node.runs == old.name
    assert node.cli("status")["data"]["version"] == "0.1.0"
    gate.ring()
    node.until(uid, "COMPLETED")
    assert log.read_text() == "began\nended\n"
    assert node.upgrade(offer) == ended, "asked again, the same is told and nothing is done"


def test_a_new_program_whose_daemon_never_answers_is_taken_back(
    node: ProgramNode, keys: Keys, old: Pyz
) -> None:
    daemon = node.start()
    hangs = ("daemon.py", "        self._set_up()\n", "        import time; time.sleep(600)\n")
    ended = node.upgrade(keys.offer(a_program("0.3.0", hangs)))
    assert ended["outcome"] == "went_back"
    assert "within 3 s" in ended["because"]
    assert daemon.ended() != 0
    assert (node.runs, node.cli("status")["data"]["dispatcher"]) == (old.name, "running")


def test_without_a_daemon_the_next_request_is_answered_by_the_new_program(
    node: ProgramNode, keys: Keys, new: Pyz
) -> None:
    assert node.upgrade(keys.offer(new))["outcome"] == "upgraded"
    assert node.wire({"do": "status"})[0]["agent-node"] == "0.2.0"
    assert node.cli("status")["data"]["dispatcher"] == "stopped"


FAULTS = {
    "says another version": ("__init__.py", '__version__ = "0.3.0"', '__version__ = "0.4.0"'),
    "does not start": ("cli/__init__.py", "def main(", "raise SystemExit(9)\ndef main("),
    "speaks a wire of its own": (
        "wire.py", "WIRE = 1\nOLDEST_WIRE = 1", "WIRE = 9\nOLDEST_WIRE = 8"),
    "cannot read our settings": (
        "config.py", "def parse_settings(", "def other_settings("),
    "is silent on the wire": ("serve.py", "def _serve(", "def _serve(*_):\n    return 0\ndef _no("),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_program_that_fails_its_trial_changes_nothing(
    node: ProgramNode, keys: Keys, old: Pyz, fault: tuple[str, str, str]
) -> None:
    daemon = node.start()
    bad = a_program("0.3.0", fault)
    ended = node.upgrade(keys.offer(bad))
    assert ended["outcome"] == "failed", ended
    assert node.runs == old.name
    daemon.drain()
    assert "stop_asked" not in daemon.said
    assert not [*(node.home / "program").glob(".trial-*")]


def a_program_with_newer_tables(version: str = "0.3.0", *more: tuple[str, str, str]) -> Pyz:
    step = ("store/schema.py", "VERSION = len(STEPS)",
            'STEPS += ("CREATE TABLE later (x INTEGER);",)\nVERSION = len(STEPS)')  # fmt: skip
    return a_program(version, step, *more)


def test_newer_tables_need_a_word_because_there_is_no_way_back(
    node: ProgramNode, keys: Keys, old: Pyz
) -> None:
    node.start()
    later = a_program_with_newer_tables()
    ended = node.upgrade(keys.offer(later))
    assert (ended["outcome"], node.runs) == ("failed", old.name)
    assert f"from version {VERSION} to {VERSION + 1}" in ended["because"]

    offer = keys.offer(later, made_at="2026-05-01T00:00:00.000Z", one_way=True)
    assert node.upgrade(offer)["outcome"] == "upgraded"
    assert [*(node.home / "backups").glob(f"queue-v{VERSION}*.db")]


def test_who_runs_goes_on_reading_its_own_program_until_it_ends(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz
) -> None:
    """Fails when `__main__` no longer resolves its own path, or no longer holds its lock: the old
    `serve` then reads modules of another program, or of a file that is gone.
    """
    serve = Program("-I", "-S", node.command[-1], "serve", "--stdio", env=node.env)
    try:
        assert serve.hear()["agent-node"] == "0.1.0"
        third = a_program("0.3.0", IMPATIENT)
        assert node.upgrade(keys.offer(new))["outcome"] == "upgraded"
        assert node.upgrade(keys.offer(third))["outcome"] == "upgraded"
        assert node.programs == {old.name, new.name, third.name}
        assert serve.ask("status")["schema"] == SCHEMA
        serve.say(id=2, do="upgrade", statement="", signature="", sha256="")  # imported only now
        assert serve.hear()["error"]["code"] == "bad_input"
        assert serve.ask("status")["version"] == "0.1.0"
    finally:
        serve.no_more()
        assert serve.ended() == 0, serve.complaint()
        for pipe in (serve.process.stdout, serve.process.stderr):
            assert pipe is not None
            pipe.close()
    fourth = a_program("0.4.0")
    assert node.upgrade(keys.offer(fourth))["outcome"] == "upgraded"
    assert node.programs == {third.name, fourth.name}


@pytest.mark.parametrize("of_ours", [True, False], ids=["of this home", "of another home"])
def test_a_program_stays_while_a_process_of_this_home_is_named_by_it(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz, tmp_path: Path, of_ours: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = node.home / "program" if of_ours else elsewhere
    bystander = subprocess.Popen(
        [sys.executable, "-c", "input()", str(place / old.name)], stdin=subprocess.PIPE
    )
    try:
        assert node.upgrade(keys.offer(new))["outcome"] == "upgraded"
        third = a_program("0.3.0")
        assert node.upgrade(keys.offer(third))["outcome"] == "upgraded"
        assert node.programs == {new.name, third.name} | ({old.name} if of_ours else set())
    finally:
        bystander.communicate(b"\n", PATIENCE_S)


def test_a_program_whose_place_cannot_be_looked_at_is_taken_for_one_of_ours() -> None:
    """Another user's process names a program in a folder that is closed to us: it may be a link to
    our own, and what may be run is not taken away. Seen to fail without that: the program went.
    """

    def claim() -> None:
        with tempfile.TemporaryDirectory(dir="/tmp") as own:
            home = Home(Path(own))
            folder_of(home).mkdir()
            for name in (OLD, GONE):
                (folder_of(home) / name).write_bytes(b"")
            assert remove_old(home, frozenset()) == [GONE], "no folder that is not there is ours"

    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        open_, closed = Path(place), Path(place) / "closed"
        open_.chmod(0o755)
        closed.mkdir()
        closed.chmod(0 if os.geteuid() else 0o700)  # to root nothing is closed: it is nobody there
        bystander = subprocess.Popen(
            [sys.executable, "-c", "input()", f"{closed}/way/{OLD}", f"{open_}/gone/{GONE}"],
            stdin=subprocess.PIPE,
        )
        try:
            as_nobody(claim)
        finally:
            closed.chmod(0o700)
            bystander.communicate(b"\n", PATIENCE_S)


def test_a_zygote_of_the_old_program_goes_with_its_daemon_and_a_new_one_starts_tasks(
    node: ProgramNode, keys: Keys, new: Pyz
) -> None:
    daemon = node.start()
    before = daemon.zygote
    assert node.upgrade(keys.offer(new))["outcome"] == "upgraded"
    after = daemon.zygote
    assert before != after
    assert new.name in Path(f"/proc/{after}/cmdline").read_text()
    node.until(node.add("true"), "COMPLETED")


def test_an_older_program_is_taken_only_with_a_word_for_it(
    node: ProgramNode, keys: Keys, old: Pyz, new: Pyz
) -> None:
    assert node.upgrade(keys.offer(new))["outcome"] == "upgraded"
    (_, reply) = node.wire(keys.offer(old, made_at="2026-06-01T00:00:00.000Z"))
    assert reply["error"]["code"] == "upgrade_older"
    offer = keys.offer(old, made_at="2026-06-01T00:00:00.000Z", allow_older=True)
    assert node.upgrade(offer)["outcome"] == "upgraded"
    assert node.runs == old.name


def test_what_runs_here_already_is_said_and_not_done(
    node: ProgramNode, keys: Keys, old: Pyz
) -> None:
    (_, reply) = node.wire(keys.offer(old))
    assert reply["result"]["outcome"] == "already"
    assert not (node.home / "program" / "upgrade.json").exists()


def test_a_dry_run_checks_all_and_writes_nothing(
    node: ProgramNode, keys: Keys, new: Pyz
) -> None:
    before = node.programs
    (_, reply) = node.wire({**keys.offer(new), "dry_run": True})
    assert reply["result"]["outcome"] == "would"
    assert node.programs == before
    assert not (node.home / "program" / "upgrade.json").exists()


def test_an_installed_package_cannot_be_replaced(
    node: ProgramNode, keys: Keys, new: Pyz
) -> None:
    node.command = [sys.executable, "-m", "agent_node"]
    (_, reply) = node.wire(keys.offer(new))
    assert reply["error"]["code"] == "upgrade_not_ours"


def test_a_detached_daemon_says_why_it_does_not_come_up(node: ProgramNode) -> None:
    (node.home / "node.toml").write_text("name = 7\n")
    ran = subprocess.run([*node.command, "start"], env=node.env, capture_output=True, text=True,
                         timeout=PATIENCE_S, check=False)  # fmt: skip
    assert ran.returncode == 2
    assert "node.toml" in ran.stderr
