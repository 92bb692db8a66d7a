"""A secret that was said to us stands where it was said, and in no argv, log, status or journal."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.hub.cli.desk import RealFleet
from tests.node.daemon.living import Bell, until

SECRET = "canary-7f2a9c41d5"
IN_BODY, IN_OUTPUT, IN_ENV = f"body-{SECRET}", f"said-{SECRET}", f"env-{SECRET}"
# Where a task's own words belong: its queue, and what lies in its attempt's folder.
ITS_PLACE = ("queue.db", "queue.db-wal", "/tasks/")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealFleet]:
    """A hub and a node that were started with a secret in their environment."""
    monkeypatch.setenv("SOME_API_KEY", IN_ENV)
    made = RealFleet(tmp_path)
    try:
        made.up()
        yield made
    finally:
        made.close()


def files_with(place: Path, secret: str) -> list[str]:
    """Every file below this folder that holds these bytes."""
    found = []
    for folder, _, names in os.walk(place):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_fifo() and secret.encode() in path.read_bytes():
                found.append(str(path.relative_to(place)))
    return found


def argvs_with(secret: str) -> list[str]:
    """The command lines of all processes of this machine that show these characters."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if secret.encode() in line:
                found.append(line.decode("utf-8", "replace"))
    return found


def run_one(fleet: RealFleet, bell: Bell) -> str:
    """A task that waits while we look, with a secret in each of its inputs and outputs."""
    script = f"# {IN_BODY}\necho {IN_OUTPUT}; echo {IN_OUTPUT} >&2; read x < {bell.path}"
    body = fleet.place / "typed"
    body.write_text(script)
    ran = fleet.arc("tasks", "add", f"subject {SECRET}", "--body-file", str(body), "--to", "iris",
                    "--json")  # fmt: skip
    body.unlink()
    assert ran.code == 0, ran.out
    uid = str(ran.data["results"][0]["uid"])
    log = fleet.iris.folder(uid) / "stdout.log"
    until(lambda: log.exists() and SECRET in log.read_text(), "its output")
    return uid


def test_secrets_of_a_task_stand_only_where_tasks_are_kept(fleet: RealFleet) -> None:
    bell = Bell(fleet.place / "gate")
    try:
        uid = run_one(fleet, bell)
        assert argvs_with(SECRET) == []
        bell.ring()
        fleet.iris.until(uid, "COMPLETED")
    finally:
        bell.close()
    for words in (("status",), ("log", "--all"), ("nodes", "list"), ("doctor",), ("plan",)):
        ran = fleet.arc(*words)
        assert (SECRET in ran.out, SECRET in ran.err) == (False, False), words
    fleet.arc("sensors", "run", "fleet-health")
    fleet.iris.daemons[0].drain()
    assert SECRET not in fleet.iris.daemons[0].said
    strays = [name for name in files_with(fleet.place, SECRET)
              if not any(place in f"/{name}" for place in ITS_PLACE)]  # fmt: skip
    assert strays == []
    assert files_with(fleet.place / "iris", IN_BODY), "the search finds what is there"


def test_the_journal_of_the_hub_holds_no_words_of_a_task(fleet: RealFleet) -> None:
    ran = fleet.arc("tasks", "add", f"subject {SECRET}", "--body", IN_BODY, "--json")
    assert ran.code == 0
    fleet.arc("sensors", "run", "fleet-router")
    fleet.arc("tasks", "cancel", str(ran.data["results"][0]["uid"]), "--reason", "no more")
    with closing(sqlite3.connect(fleet.place / ".arc" / "journal.db")) as journal:
        dump = "\n".join(journal.iterdump())
    assert "task_cancelled" in dump
    assert SECRET not in dump


def test_no_environment_of_the_node_reaches_a_task_or_a_file(fleet: RealFleet) -> None:
    """What node.toml does not name stays with the daemon."""
    uid = fleet.iris.add("env; true")
    fleet.iris.until(uid, "COMPLETED")
    assert IN_ENV not in (fleet.iris.folder(uid) / "stdout.log").read_text()
    assert files_with(fleet.place, IN_ENV) == []
    assert argvs_with(IN_ENV) == []


def test_the_private_key_is_in_its_own_file_alone(fleet: RealFleet) -> None:
    from arc.keys import make_key_pair, private_key_path

    state = fleet.place / ".arc"
    make_key_pair(state, comment="arc-hub")
    heart = private_key_path(state).read_text().splitlines()[2]
    for words in (("status",), ("doctor",), ("config", "show"), ("log", "--all")):
        ran = fleet.arc(*words)
        assert heart not in ran.out + ran.err
    assert files_with(fleet.place, heart) == [".arc/keys/hub_ed25519"]
    assert argvs_with(heart) == []
