"""Creates the project's private .venv with pinned, hashed tools; needs no root."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".ready"
OLDEST = (3, 11)
NO_PIP = """\
make: could not create .venv: {python} has neither `ensurepip` nor `pip`.
On Debian and Ubuntu: apt install python3-venv, then run make again."""


def main() -> int:
    """Leaves a working .venv and its stamp behind, or says what is missing."""
    if sys.version_info < OLDEST:
        print("make: needs Python 3.11 or newer", file=sys.stderr)
        return 1
    STAMP.unlink(missing_ok=True)
    try:
        prepare()
    except LookupError as missing:
        print(missing.args[0], file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"make: could not prepare .venv: {error}", file=sys.stderr)
        return 1
    STAMP.touch()
    return 0


def prepare() -> None:
    """Creates the venv unless a working one is there, then installs what is pinned."""
    pip = installer()
    pins = str(ROOT / "requirements" / "dev.txt")
    print("make: installing the pinned tools into .venv (once)", file=sys.stderr)
    subprocess.run([*pip, "install", "--quiet", "--require-hashes", "-r", pins], check=True)
    project = ["install", "--quiet", "--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    subprocess.run([*in_venv_pip(), *project], check=True)


def installer() -> list[str]:
    """How to call pip for the venv: its own, or the system's where the venv has none.

    Debian splits `ensurepip` from Python; its own pip can then fill a venv that lacks one.
    """
    if not works([str(PYTHON), "-c", "pass"]):
        shutil.rmtree(VENV, ignore_errors=True)
        own_pip = importlib.util.find_spec("ensurepip") is not None
        without = [] if own_pip else ["--without-pip"]
        subprocess.run([sys.executable, "-m", "venv", *without, str(VENV)], check=True)
    if works([*in_venv_pip(), "--version"]):
        return in_venv_pip()
    if works([sys.executable, "-m", "pip", "--version"]):
        return [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    raise LookupError(NO_PIP.format(python=sys.executable))


def in_venv_pip() -> list[str]:
    """The venv's own pip, which the pinned tools bring along."""
    return [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]


def works(command: list[str]) -> bool:
    """True when the command starts and ends well; what it says is nobody's business."""
    if not shutil.which(command[0]):
        return False
    environ = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(command, env=environ, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
