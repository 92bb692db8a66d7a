"""A node of the fleet: its own queue, its own dispatcher, its own word on what happens to it."""

from __future__ import annotations

__version__ = "0.1.0"
