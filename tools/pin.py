"""Compiles requirements/*.in into pinned, hashed files that name no index and no path."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = {
    "run.txt": (
        "# Pinned and hashed: what a user's machine needs beside Python.\n"
        "# All of it is the hub's; a node uses the standard library alone.\n"
        "# Install:  pip install --require-hashes -r requirements/run.txt\n"
        "# Made by `python tools/pin.py` from run.in; do not edit.\n"
    ),
    "web.txt": (
        "# Pinned and hashed: what `arc web` needs, the hub's own packages included.\n"
        "# Install:  pip install --require-hashes -r requirements/web.txt\n"
        "# Made by `python tools/pin.py` from web.in; do not edit.\n"
    ),
    "dev.txt": (
        "# Pinned and hashed: what tests, checks and builds need, on every platform with wheels.\n"
        "# Install:  pip install --require-hashes -r requirements/dev.txt\n"
        "# Made by `python tools/pin.py` from dev.in; do not edit.\n"
    ),
    "peers.txt": (
        "# Pinned and hashed: what `make bench` measures beside ours. The product needs none.\n"
        "# Made by `python tools/pin.py` from peers.in; do not edit.\n"
    ),
}
# A local index or folder may hold rebuilt files, whose hashes would fit no other machine.
LOCAL_SOURCES = ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX")
OPTIONS = (
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    "--upgrade",
    "--quiet",
    "--no-header",
    "--no-config",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--no-emit-options",
)


def main() -> int:
    """Rewrites every requirement file with today's versions; needs the network."""
    with tempfile.TemporaryDirectory() as folder:
        python = venv_with_pip_tools(Path(folder))
        for name, header in HEADERS.items():
            pins = compile_pins(python, f"requirements/{Path(name).stem}.in", Path(folder))
            (ROOT / "requirements" / name).write_text(header + pins)
    return 0


def venv_with_pip_tools(folder: Path) -> Path:
    """pip-tools lives in a throw-away venv: it pins the tools and is none of them."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "pip-tools"], check=True)
    return python


def compile_pins(python: Path, source: str, folder: Path) -> str:
    """The pinned lines of one source file, with the hashes of every file the registry offers."""
    target = folder / "pins.txt"
    call = [str(python), "-m", "piptools", "compile"]
    command = [*call, *OPTIONS, "--output-file", str(target), source]
    environ = {key: value for key, value in os.environ.items() if key not in LOCAL_SOURCES}
    environ["PIP_CONFIG_FILE"] = os.devnull
    target.unlink(missing_ok=True)
    subprocess.run(command, cwd=ROOT, env=environ, check=True)
    return target.read_text()


if __name__ == "__main__":
    sys.exit(main())
