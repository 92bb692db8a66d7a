"""Finds the Python interpreters of this machine that really answer."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
TOO_OLD = ("3.10",)  # which must be refused in plain words
ANSWER_WITHIN_S = 10


def find_interpreter(version: str) -> Path | None:
    """The first interpreter of `version` that answers; None when this machine has none."""
    return next(find_interpreters(version), None)


def find_interpreters(version: str) -> Iterator[Path]:
    """Every interpreter of `version` that answers, once each, however many names it has.

    A shim on PATH may be there and refuse, so being found is not enough.
    """
    known: set[Path] = set()
    for candidate in candidates(version):
        real = candidate.resolve()
        if real not in known and answers(candidate, version):
            known.add(real)
            yield candidate


def candidates(version: str) -> list[Path]:
    """Where an interpreter of `version` may lie: on PATH, then in pyenv's own folders."""
    name = f"python{version}"
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    on_path = [found for folder in folders if (found := shutil.which(name, path=folder))]
    inside = [found for root in pyenv_roots(folders) for found in
              sorted(root.glob(f"versions/*/bin/{name}"))]  # fmt: skip
    return [Path(found) for found in on_path] + inside


def pyenv_roots(folders: Sequence[str]) -> list[Path]:
    """Where pyenv may keep its interpreters; its shims on PATH tell it where HOME does not."""
    beside_shims = [Path(folder).parent for folder in folders if Path(folder).name == "shims"]
    named = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return list(dict.fromkeys([named, *beside_shims]))


def answers(python: Path, version: str) -> bool:
    """True when it starts, and is the version that its name claims."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        said = subprocess.run(
            [python, "-I", "-S", "-c", ask],
            capture_output=True,
            text=True,
            timeout=ANSWER_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and said.stdout.strip() == version
