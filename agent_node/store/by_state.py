"""Says how tasks are found by their state."""

from __future__ import annotations

from ..task import State

# What the index holds, word for word: SQLite takes it only where a query says the same. READY tasks
# have an index of their own, and completed ones are found by their events (end_tables.py).
_INDEXED = "{of}state <> 'READY' AND ({of}state <> 'COMPLETED' OR {of}life IS NULL)"


def by_state(*states: State, of: str = "") -> str:
    """SQL for tasks in these states; without any, for all that the index holds. `of` is the name
    of the table there.
    """
    name = f"{of}." if of else ""
    indexed = _INDEXED.format(of=name)
    words = ", ".join(f"'{state}'" for state in states)
    return f"{indexed} AND {name}state IN ({words})" if states else indexed
