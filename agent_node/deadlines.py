"""Says of tasks that their deadline has passed; it makes urgent and ends nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from .clock import parse_iso
from .task import State
from .text import counted, duration


def late_s(task: Mapping[str, object], now: datetime) -> float | None:
    """By how many seconds a task, as it goes on the wire, missed its deadline, or has by now.

    None: it has none, met it or still may; or it lives elsewhere, and how it ends is not known.
    """
    deadline, ended = task.get("deadline"), task.get("completed_at")
    if not isinstance(deadline, str) or task.get("state") == State.MOVED:
        return None
    try:
        until = parse_iso(ended) if isinstance(ended, str) else now
        late = (until - parse_iso(deadline)).total_seconds()
    except ValueError:  # of a node that says it otherwise: it is shown as it came
        return None
    return late if late > 0 else None


def say_late(late: float, *, ended: bool) -> str:
    """The same for people, as it stands behind the deadline."""
    return f"missed by {duration(late)}" if ended else f"passed {duration(late)} ago"


def passed_already(tasks: Iterable[Mapping[str, object]], now: datetime) -> Iterator[str]:
    """What whoever adds these tasks is warned of; they are taken all the same."""
    late = sum(late_s(task, now) is not None for task in tasks)
    if late:
        yield (f"{counted(late, 'task')} with a deadline that has passed already: it makes urgent"
               " and ends nothing, so what comes late still runs")  # fmt: skip
