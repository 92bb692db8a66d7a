"""Runs a node as `python -m agent_node` does, but its last resort comes after 0.2 s, not 45."""

from __future__ import annotations

import sys

from agent_node.cli import main
from agent_node.stopping import Stopping

if __name__ == "__main__":
    Stopping.patience_s = 0.2
    sys.exit(main())
