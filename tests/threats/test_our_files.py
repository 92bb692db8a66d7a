"""Whatever somebody put in the place of one of our files is refused by its name, and left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.node.daemon.living import ROOT

LIMIT_S = 20.0  # a reader that waits at a FIFO waits for ever
VICTIM = b"somebody else's only copy\n"
HUB_FILES = (
    "fleet.yaml", ".arc/hub.json", ".arc/lock", ".arc/fences.json", ".arc/known_hosts",
    ".arc/journal.db", ".arc/keys/hub_ed25519", ".arc/inbox/queue.db", ".arc/inbox/generation",
    ".arc/inbox/heard.json", ".arc/hub.sock",
)  # fmt: skip
NODE_FILES = (
    "node.toml", "queue.db", "generation", "heard.json", "lock", "fleet-status.json", "node.sock",
    "operators",
)  # fmt: skip
Planting = Callable[[Path, Path], None]


def a_link(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def a_hard_link(place: Path, victim: Path) -> None:
    place.hardlink_to(victim)


def a_fifo(place: Path, victim: Path) -> None:
    os.mkfifo(place)


def an_endless_link(place: Path, victim: Path) -> None:
    place.symlink_to("/dev/zero")


def a_folder(place: Path, victim: Path) -> None:
    place.mkdir()


PLANTED: dict[str, Planting] = {
    "link": a_link, "hard link": a_hard_link, "fifo": a_fifo, "endless": an_endless_link,
    "folder": a_folder,
}  # fmt: skip
WORST = ("link", "hard link", "fifo")  # where the others are met by the same line of ours


def run(*words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "USER": "ada", "PYTHONPATH": str(ROOT)}
    if home is not None:
        env["AGENT_NODE_HOME"] = str(home)
    try:
        return subprocess.run(
            [sys.executable, "-m", *words], cwd="/", env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], 99, "", "never ended")


def judge(ran: subprocess.CompletedProcess[str], what: str, victim: Path) -> list[str]:
    """Everything that is wrong with how a command met what was planted."""
    said = ran.stdout + ran.stderr
    wrong = []
    if "Traceback" in said or "ARC-FAULT" in said or "fault" in said.split("]")[0]:
        wrong.append(f"{what}: a fault: {said[-800:]}")
    if ran.returncode not in (0, 1, 2, 3, 4, 6, 7, 8):
        wrong.append(f"{what}: exit {ran.returncode}: {said[-300:]}")
    if victim.read_bytes() != VICTIM:
        wrong.append(f"{what}: the victim was written")
    return wrong


def planted(place: Path, kind: str, victim: Path) -> None:
    """This in the place of one of our files, whatever stood there."""
    if place.is_dir() and not place.is_symlink():
        place.rmdir()
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    PLANTED[kind](place, victim)


@pytest.fixture(scope="module")
def a_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub's folder as `arc init` leaves it, with one node that nobody answers for."""
    folder = tmp_path_factory.mktemp("fleets") / "fleet"
    assert run("arc", "init", str(folder)).returncode == 0
    node = "{name: iris, host: 127.0.0.1, port: 1, user: agent}"
    (folder / "fleet.yaml").write_text(f"fleet: arc0\nnodes: [{node}]\n")
    return folder


@pytest.fixture(scope="module")
def a_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's home as `agent-node init` leaves it."""
    home = tmp_path_factory.mktemp("homes") / "home"
    made = run("agent_node", "init", "--name", "iris", "--run", "true", home=home)
    assert made.returncode == 0, made.stderr
    return home


def all_kinds(kinds: Iterable[str], meet: Callable[[str], list[str]]) -> list[str]:
    """What is wrong with how each kind of thing was met; two at a time, as there are CPUs."""
    with ThreadPoolExecutor(2) as pool:
        return [one for wrong in pool.map(meet, kinds) for one in wrong]


@pytest.mark.parametrize("name", HUB_FILES)
def test_the_hub_meets_nothing_but_plain_files_of_its_own(
    tmp_path: Path, a_fleet: Path, name: str
) -> None:
    """Seen to fail: a FIFO as fences.json or hub.json held the hub up for ever, a hard link as lock
    was written over.
    """

    def meet(kind: str) -> list[str]:
        folder = tmp_path / kind.replace(" ", "-")
        victim = folder.with_suffix(".victim")
        victim.write_bytes(VICTIM)
        shutil.copytree(a_fleet, folder)
        planted(folder / name, kind, victim)
        ran = run("arc", "--fleet", str(folder / "fleet.yaml"), "status")
        return judge(ran, f"{kind} at {name}", victim)

    kinds = PLANTED if name in {".arc/hub.json", ".arc/fences.json"} else WORST
    assert all_kinds(kinds, meet) == []


@pytest.mark.parametrize("name", NODE_FILES)
def test_a_node_meets_nothing_but_plain_files_of_its_own(
    tmp_path: Path, a_home: Path, name: str
) -> None:
    """Seen to fail: a FIFO as node.toml or generation held the node up for ever, /dev/zero behind
    node.toml filled its memory, a hard link as generation or lock was written over.
    """

    def meet(kind: str) -> list[str]:
        home = tmp_path / kind.replace(" ", "-")
        victim = home.with_suffix(".victim")
        victim.write_bytes(VICTIM)
        shutil.copytree(a_home, home)
        planted(home / name, kind, victim)
        wrong: list[str] = []
        for words in (("add", "work"), ("run", "--until-idle")):
            ran = run("agent_node", *words, home=home)
            wrong += judge(ran, f"{kind} at {name}, {words[0]}", victim)
        return wrong

    assert all_kinds(PLANTED, meet) == []


def test_the_schema_that_doctor_mends_is_not_written_through_a_link(
    tmp_path: Path, a_fleet: Path
) -> None:
    """`--fix` once wrote to whatever the name led to."""
    folder, victim = tmp_path / "fleet", tmp_path / "victim"
    victim.write_bytes(VICTIM)
    shutil.copytree(a_fleet, folder)
    planted(folder / ".arc" / "fleet.schema.json", "link", victim)
    run("arc", "--fleet", str(folder / "fleet.yaml"), "doctor", "--fix")
    assert victim.read_bytes() == VICTIM
    assert not (folder / ".arc" / "fleet.schema.json").is_symlink()


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777])
def test_a_hub_does_not_start_in_a_folder_that_others_may_write(
    tmp_path: Path, a_fleet: Path, mode: int
) -> None:
    """Seen to fail without `_check_ours`: only `arc init` looked."""
    folder = tmp_path / "fleet"
    shutil.copytree(a_fleet, folder)
    (folder / ".arc").chmod(mode)
    ran = run("arc", "--fleet", str(folder / "fleet.yaml"), "status")
    assert ran.returncode == 1, ran.stdout
    assert "ARC-STATE" in ran.stderr
    assert f"chmod 700 {folder / '.arc'}" in ran.stderr


def test_a_key_that_others_may_read_is_not_used(tmp_path: Path, a_fleet: Path) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(a_fleet, folder)
    key = folder / ".arc" / "keys" / "hub_ed25519"
    key.chmod(0o640)
    (folder / ".arc" / "known_hosts").write_text(f"iris {key.with_suffix('.pub').read_text()}")
    ran = run("arc", "--fleet", str(folder / "fleet.yaml"), "status")
    assert ran.returncode == 3, ran.stderr
    assert f"others may read the hub's key; chmod 600 {key}" in ran.stdout


def test_all_that_a_hub_makes_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    old = os.umask(0)
    try:
        assert run("arc", "init", str(folder)).returncode == 0
        for words in (("tasks", "add", "work"), ("status",), ("sensors", "run", "fleet-health")):
            run("arc", "--fleet", str(folder / "fleet.yaml"), *words)
    finally:
        os.umask(old)
    made = [path for path in (folder / ".arc").rglob("*") if path.suffix != ".pub"]
    assert len(made) > 8
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []
