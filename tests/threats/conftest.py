"""Gives these tests the nodes that the daemon's own tests have."""

from __future__ import annotations

from tests.node.daemon.conftest import make_node, node

__all__ = ["make_node", "node"]
