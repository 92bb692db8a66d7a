"""The node's command line: `version` at once, everything else when it is needed."""

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
        if words in (["version"], ["--version"]):
            from agent_node import __version__

            sys.stdout.write(f"agent-node {__version__}\n")
            return 0
        if words == ["serve", "--stdio"]:
            from agent_node.handover import at_once

            code = at_once()
            if code is not None:
                return code
        from .running import run_here

        return run_here(words)
    except KeyboardInterrupt:  # while importing: the command itself has its own answer to it
        return 130
