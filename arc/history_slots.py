"""Reads how many slots each node said that it has, when it was heard last."""

from __future__ import annotations

from .history_file import Reader

# A look that got no answer says nothing of slots; a row that is not the newest says what was.
_SLOTS = """
SELECT node, slots FROM sample WHERE id IN
  (SELECT max(id) FROM sample WHERE state <> 'unknown' AND slots > 0 GROUP BY node)
"""


def read_slots(reader: Reader) -> dict[str, int]:
    """By node; of one that was never heard nothing."""
    return {str(node): int(str(slots)) for node, slots in reader.rows(_SLOTS)}
