"""Runs the tests: every tier that this machine can run, that of real SSH without root, too.

`python -m tools.all_tiers [ARGS…]` is `make test`. Who is root, or names tests, gets one run of
pytest. Who is not root, but may have a user namespace, gets the container nodes in there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tools.laboratory import APART, may_run_apart

RUN = (sys.executable, "-m", "pytest", "-p", "tools.tiers")
FOLDER = "tests/ssh"


def runs(args: Sequence[str], *, apart: bool) -> list[list[str]]:
    """The commands to run one after the other; `apart`: container nodes need a user namespace."""
    named = [arg for arg in args if arg.startswith("tests")]
    inside = any(arg.startswith(FOLDER) for arg in named)
    if not apart or (named and not inside):
        return [[*RUN, *args]]
    if named:
        return [[*APART, *RUN, *args]]
    return [[*RUN, *args, f"--ignore={FOLDER}"], [*APART, *RUN, *args, FOLDER]]


def main() -> int:
    """All of them are run, whatever becomes of the first; the worst exit code counts."""
    apart = os.geteuid() != 0 and may_run_apart()
    commands = runs(sys.argv[1:], apart=apart)
    return max(subprocess.run(command, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
