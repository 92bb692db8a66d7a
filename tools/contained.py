"""Runs a command and leaves nothing of it running: `python tools/contained.py COMMAND …`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # started by its path, Python looks for modules beside this file alone
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from agent_node.killing import kill_round, reap_all
from agent_node.processes import become_subreaper

PATIENCE_S = 10.0


def main(command: Sequence[str]) -> int:
    """The command's exit code, once everything that descends from it has ended or been killed."""
    become_subreaper()
    # A Ctrl-C is for the command, which gets it, too; handlers are not inherited, SIG_IGN is.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    code = subprocess.call(command)
    give_up = time.monotonic() + PATIENCE_S
    while not reap_all()[1] and time.monotonic() < give_up:
        kill_round()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
