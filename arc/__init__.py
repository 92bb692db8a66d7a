"""The hub of a fleet: watches the nodes, moves waiting work to idle ones, and says why."""

from __future__ import annotations

from agent_node import __version__

__all__ = ["__version__"]
