"""Starts the command line: `python -m agent_node`, and the zipapp."""

from __future__ import annotations

import sys

from agent_node.cli import main

if __name__ == "__main__":
    sys.exit(main())
