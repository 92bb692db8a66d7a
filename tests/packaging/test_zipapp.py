"""Builds the node's zipapp and runs it by every interpreter that answers on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import agent_node
from agent_node.packing import PackingRefused, archive_members, build_zipapp
from tools.interpreters import SUPPORTED, TOO_OLD, find_interpreters

OLDEST = SUPPORTED[0]
ANSWER_WITHIN_S = 30


@pytest.fixture(scope="module")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("zipapp") / "agent-node.pyz"
    build_zipapp(target)
    return target


def all_of(versions: Sequence[str]) -> list[tuple[str, Path | None]]:
    """Each interpreter with its version; a version of which none answers stands there without."""
    return [(version, found) for version in versions
            for found in (*find_interpreters(version),) or (None,)]  # fmt: skip


def named(one: tuple[str, Path | None]) -> str:
    return f"{one[0]} {one[1] or 'none'}"


def there(version: str, found: Path | None) -> Path:
    """The interpreter; the test is skipped without one, but for the oldest, which has to be."""
    if found is None:
        assert version != OLDEST, f"no python{OLDEST} answers here, and it must be there"
        pytest.skip(f"needs python{version}: none answers, neither on PATH nor among pyenv's")
    return found


@pytest.fixture(params=all_of(SUPPORTED), ids=named)
def python(request: pytest.FixtureRequest) -> Path:
    return there(*request.param)


def run(python: Path, zipapp: Path, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """As on a bare node: no site packages, nothing of the caller's environment."""
    return subprocess.run(
        [python, "-I", "-S", "-W", "error", zipapp, *words],
        env={"PATH": os.defpath, "HOME": str(home), "AGENT_NODE_HOME": str(home / "node")},
        capture_output=True,
        text=True,
        timeout=ANSWER_WITHIN_S,
        check=False,
    )


def test_a_node_says_its_version(python: Path, zipapp: Path, tmp_path: Path) -> None:
    said = run(python, zipapp, "version", home=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == f"agent-node {agent_node.__version__}\n"


def test_a_new_node_takes_a_task_and_lists_it(python: Path, zipapp: Path, tmp_path: Path) -> None:
    made = run(python, zipapp, "init", "--name", "iris", home=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    added = run(python, zipapp, "add", "rotate logs", "-p", "8", "--json", home=tmp_path)
    assert (added.returncode, added.stderr) == (0, ""), added.stdout
    listed = run(python, zipapp, "list", "--json", home=tmp_path)
    assert listed.returncode == 0, listed.stderr
    tasks = json.loads(listed.stdout)["data"]["tasks"]
    assert [(task["subject"], task["priority"], task["state"]) for task in tasks] == [
        ("rotate logs", 8, "READY")
    ]


def test_its_daemon_runs_a_task_to_its_end(python: Path, zipapp: Path, tmp_path: Path) -> None:
    """The daemon, its zygote and the shim: each is a process that starts from the zipapp."""
    words = ("init", "--name", "iris", "--run", "/bin/sh -c 'cat >heard; echo done'")
    made = run(python, zipapp, *words, home=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    added = run(python, zipapp, "add", "rotate logs", "--json", home=tmp_path)
    assert (added.returncode, added.stderr) == (0, ""), added.stdout
    ran = run(python, zipapp, "run", "--until-idle", "--json", home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    uid = json.loads(added.stdout)["data"]["results"][0]["uid"]
    shown = run(python, zipapp, "show", uid, "--json", home=tmp_path)
    assert json.loads(shown.stdout)["data"]["task"]["state"] == "COMPLETED", shown.stdout
    log = tmp_path / "node" / "tasks" / uid / "1" / "stdout.log"
    assert log.read_text(encoding="utf-8") == "done\n"


def test_every_module_can_be_imported_with_the_standard_library_alone(
    python: Path, zipapp: Path
) -> None:
    start = "import sys; sys.path.insert(0, sys.argv[1]); [__import__(n) for n in sys.argv[2:]]"
    said = subprocess.run(
        [python, "-I", "-S", "-W", "error", "-c", start, zipapp, *sorted(module_names(zipapp))],
        capture_output=True, text=True, timeout=ANSWER_WITHIN_S, check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize("old", all_of(TOO_OLD), ids=named)
def test_a_python_too_old_is_told_so_in_one_line(
    old: tuple[str, Path | None], zipapp: Path, tmp_path: Path
) -> None:
    said = run(there(*old), zipapp, "version", home=tmp_path)
    assert said.returncode == 1
    assert said.stderr == f"agent-node: needs Python 3.11 or newer, this is {old[0]}\n"


def test_the_same_sources_give_the_same_bytes(zipapp: Path, tmp_path: Path) -> None:
    """Also from another process, with another hash seed: neither leaks into the bytecode."""
    build = (f"import pathlib, sys; from {build_zipapp.__module__} import build_zipapp as build\n"
             "print(build(pathlib.Path(sys.argv[1])))")
    for seed in ("1", "2"):
        said = subprocess.run(
            [sys.executable, "-c", build, tmp_path / "again.pyz"], check=True, text=True,
            capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(agent_node.__file__).parents[1],
        )
        assert (tmp_path / "again.pyz").read_bytes() == zipapp.read_bytes()
        assert said.stdout.strip() == hashlib.sha256(zipapp.read_bytes()).hexdigest()


def test_it_is_one_executable_file_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    build_zipapp(tmp_path / "node.pyz", interpreter="/usr/bin/python3.11")
    assert [(file.name, file.stat().st_mode & 0o777) for file in tmp_path.iterdir()] == [
        ("node.pyz", 0o755)
    ]
    assert (tmp_path / "node.pyz").read_bytes().startswith(b"#!/usr/bin/python3.11\n")


def test_it_holds_modules_alone(zipapp: Path) -> None:
    with zipfile.ZipFile(zipapp) as archive:
        names = archive.namelist()
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}
    assert names == sorted(names)
    assert {Path(name).suffix for name in names} == {".py", ".pyc"}
    assert {name.split("/")[0] for name in names} == {
        "agent_node", "__main__.py", "__main__.pyc", "handover.py", "handover.pyc", "importlib",
    }  # fmt: skip


def test_packing_where_no_sources_are_says_so_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(PackingRefused, match="no source files"):
        archive_members(tmp_path)
    assert list(tmp_path.iterdir()) == []


def module_names(zipapp: Path) -> set[str]:
    """Every module in the archive by its dotted name, `__main__` aside, which would run."""
    with zipfile.ZipFile(zipapp) as archive:
        files = [name for name in archive.namelist() if name.endswith(".py")]
    dotted = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
              for name in files}
    return {name for name in dotted if not name.endswith("__main__")}
