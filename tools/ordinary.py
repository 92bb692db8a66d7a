"""Runs tests once more as an ordinary user, where all the others ran as root: it may do less."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

if not __package__:  # started by its path, Python looks for modules beside this file alone
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools.interpreters import SUPPORTED, candidates
from tools.sources import ROOT

USER, LIMIT_S, LOOK_S = 65533, 900.0, 20.0  # a user without an account, and not `nobody`
BECOME = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
TESTS = ("tests/node/processes",)
TAKEN = ("agent_node", "arc", "sensors", "tests", "tools", "pyproject.toml")
NEEDED = ("pytest", "pytest-asyncio", "hypothesis")


def main(words: Sequence[str]) -> int:
    """The tests' own exit code; 0 where nobody is root anyway. Where they cannot run that is 0 by
    hand, and a failure where a machine was set up for every tier.
    """
    if os.geteuid() != 0:
        print("ordinary: nobody here is root; the tests have run so already")
        return 0
    python = find_python()
    if python is None:
        print("ordinary: NOT RUN: every Python here is root's alone, or there is no setpriv",
              file=sys.stderr)  # fmt: skip
        return 1 if must_run() else 0
    with a_place() as place:
        run = [*BECOME, str(python), "-m", "pytest", "-p", "tools.tiers", "-q", *(words or TESTS)]
        return subprocess.run(run, cwd=place, env=surroundings(place), check=False,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S).returncode  # fmt: skip


def must_run() -> bool:
    """Whether this is a machine of CI, which was set up so that nothing is left out."""
    return bool(os.environ.get("TIERS_MUST_RUN", "").split()) or os.environ.get("CI") == "true"


def find_python() -> Path | None:
    """One that this user may read, its modules too: root's own often lies in root's home."""
    found = (path for version in SUPPORTED for path in candidates(version))
    return next((path for path in found if starts(path)), None)


def starts(python: Path) -> bool:
    """Whether it starts as that user, and finds its modules."""
    words = ["sh", "-c", 'exec "$0" -I -c "import ctypes, sqlite3, ssl"', str(python)]
    try:
        ran = subprocess.run([*BECOME, *words], cwd="/", capture_output=True, check=False,
                             timeout=LOOK_S)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0


@contextmanager
def a_place() -> Iterator[Path]:
    """A copy of all that the tests need, which that user can read wherever the clone lies."""
    with tempfile.TemporaryDirectory(prefix="arc-ordinary-", dir="/tmp") as place:
        folder = Path(place)
        for name in TAKEN:
            copy(ROOT / name, folder / name)
        for name in sorted(with_requirements(NEEDED)):
            for file in metadata.files(name) or ():
                if file.parts[0] not in ("..", "__pycache__"):
                    copy(Path(str(file.locate())), folder / "packages" / file)
        for part in (folder, *folder.rglob("*")):
            os.chown(part, USER, USER, follow_symlinks=False)
        yield folder


def copy(here: Path, there: Path) -> None:
    """A file, or a folder without what Python made of it."""
    there.parent.mkdir(parents=True, exist_ok=True)
    if here.is_dir():
        shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(here, there)


def with_requirements(names: Iterable[str]) -> set[str]:
    """These packages and all that they need, as far as it is installed."""
    todo, met = list(names), set()
    for name in todo:  # grows while we walk it
        met.add(name)
        for wanted in metadata.requires(name) or ():
            found = re.match(r"[\w.-]+", wanted)
            if found and "extra ==" not in wanted and is_installed(found[0]):
                todo += [found[0]] if found[0] not in todo else []
    return met


def is_installed(name: str) -> bool:
    """Some are needed by other Pythons alone."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def surroundings(place: Path) -> dict[str, str]:
    """Nothing of root's own, neither its home nor where it looks for programs."""
    home = place / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home),
            "PYTEST_DEBUG_TEMPROOT": str(home), "PYTHONPATH": str(place / "packages"),
            "LANG": "C.UTF-8", "TIERS_MUST_RUN": ""}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
