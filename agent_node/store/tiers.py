"""Counts what is READY by tier; it reads every such task, so only whoever asks for it pays."""

from __future__ import annotations

from ..priority import GROWS_MS, POINT, TIER_NAMES, TIERS
from ..queries import ReadyByTier
from .transaction import Transaction
from .turns import milliseconds

# From the index that claims go by, without a look at the tasks themselves: 0.2 s for a million.
_COUNT = f"""
SELECT count(*), {", ".join(f"coalesce(sum(worth < {below * POINT}), 0)" for below, _ in TIERS)}
  FROM (SELECT turn - pace * ? / {GROWS_MS} AS worth
          FROM task INDEXED BY task_ready WHERE state = 'READY')
"""


def ready_by_tier(tx: Transaction, query: ReadyByTier) -> dict[str, int]:
    """How many READY tasks are in each tier at this moment; every tier is named, also with none."""
    total, *below = tx.db.execute(_COUNT, (milliseconds(tx.now),)).fetchone()
    found: dict[str, int] = {}
    for name, so_far in zip(TIER_NAMES, (*below, total), strict=True):
        found[name.lower()] = so_far - sum(found.values())
    return found
