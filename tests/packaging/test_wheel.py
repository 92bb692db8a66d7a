"""Builds the wheel, installs it into an empty venv, and runs the command it brings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import agent_node
from tools.sources import ROOT

BUILD_WITHIN_S = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run([sys.executable, *build], capture_output=True, text=True,
                           timeout=BUILD_WITHIN_S, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_holds_the_three_packages_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert tops == {"arc", "agent_node", "sensors",
                    f"arc_fleet-{agent_node.__version__}.dist-info"}


def test_the_wheel_carries_every_module_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(".py")}
    there = {file.relative_to(ROOT).as_posix() for package in ("arc", "agent_node", "sensors")
             for file in (ROOT / package).rglob("*.py")}
    assert packed == there


def test_the_wheel_needs_python_3_11_and_what_the_hub_leans_on(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = f"arc_fleet-{agent_node.__version__}.dist-info/METADATA"
        metadata = archive.read(name).decode().splitlines()
    assert "Requires-Python: >=3.11" in metadata
    needs = [line for line in metadata if line.startswith("Requires-Dist")]
    of_the_page = {line for line in needs if "extra == 'web'" in line}
    assert _named(set(needs) - of_the_page) == _asked_for("run.in")
    assert _named(of_the_page) == _asked_for("web.in")


def _named(needs: set[str]) -> set[str]:
    return {re.split("[<>]", line.split()[1])[0].replace("-", ".") for line in needs}


def _asked_for(source: str) -> set[str]:
    """The packages that a requirements file names itself."""
    lines = (ROOT / "requirements" / source).read_text(encoding="utf-8").splitlines()
    return {line.split(">")[0].replace("-", ".") for line in lines if line and line[0] not in "#-"}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new venv into which the wheel was installed, and nothing else."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    install = ["-m", "pip", "--python", str(venv / "bin" / "python"), "install", "--quiet",
               "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    done = subprocess.run([sys.executable, *install], capture_output=True, text=True,
                          timeout=BUILD_WITHIN_S, check=False)
    assert done.returncode == 0, done.stderr
    return venv / "bin"


def run(program: Path, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=home,
                          timeout=BUILD_WITHIN_S, env={"PATH": os.defpath, "HOME": str(home)})


def test_the_node_works_from_an_empty_venv(installed: Path, tmp_path: Path) -> None:
    said = run(installed / "agent-node", "version", home=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == f"agent-node {agent_node.__version__}\n"


def test_the_hub_works_from_a_venv_that_has_what_it_leans_on(
    installed: Path, tmp_path: Path
) -> None:
    """The packages that it leans on are those of this interpreter: nothing is fetched here."""
    (ours,) = installed.parent.glob("lib/python*/site-packages")
    theirs = sysconfig.get_path("purelib")
    (ours / "leans_on.pth").write_text(f"{theirs}\n", encoding="utf-8")
    where = "import agent_node, arc, sensors; print(agent_node.__file__, arc.__file__, sensors)"
    from_where = run(installed / "python", "-c", where, home=tmp_path).stdout
    assert from_where.count(str(ours)) == 3, from_where
    for words in (("--help",), ("init",), ("config", "check")):
        said = run(installed / "arc", *words, home=tmp_path)
        assert (said.returncode, said.stderr) == (0, ""), (words, said.stdout)
    assert said.stdout.strip().endswith("fleet.yaml: no findings")
    assert (tmp_path / "fleet.yaml").is_file()
