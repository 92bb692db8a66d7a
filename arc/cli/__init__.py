"""The operator's commands: words in, text or one line of JSON out."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; nothing is imported that the command does not use."""
    try:
        if None in (sys.stdin, sys.stdout, sys.stderr):  # Python found it closed
            from agent_node.standing_streams import open_all

            open_all()
        words = list(sys.argv[1:] if argv is None else argv)
        if words in (["--version"], ["version"]):
            from agent_node import __version__

            sys.stdout.write(f"arc {__version__}\n")
            return 0
        from .running import run_here

        return run_here(words)
    except KeyboardInterrupt:  # while importing: the command itself has its own answer to it
        return 130
