"""Finds the Python interpreters of this machine that really answer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
TOO_OLD = ("3.10",)  # which must be refused in plain words
ANSWER_WITHIN_S = 10


def find_interpreter(version: str) -> Path | None:
    """The first interpreter of `version` that answers; None when this machine has none.

    A shim on PATH may be there and refuse, so being found is not enough.
    """
    for candidate in candidates(version):
        if answers(candidate, version):
            return candidate
    return None


def candidates(version: str) -> list[Path]:
    """Where an interpreter of `version` may lie: on PATH, then in pyenv's own folders."""
    name = f"python{version}"
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    on_path = [found for folder in folders if (found := shutil.which(name, path=folder))]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return [Path(found) for found in on_path] + sorted(pyenv.glob(f"versions/*/bin/{name}"))


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
