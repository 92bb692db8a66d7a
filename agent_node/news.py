"""Says which events lie between two reports, for whoever subscribed."""

from __future__ import annotations

from .strict import JsonObject

Seen = tuple[object, ...]


def news_between(before: Seen, report: JsonObject) -> tuple[list[str], Seen]:
    """The events that lead from what was seen before to this report, and what is seen now."""
    now: Seen = (
        report["idle"],
        report["free_slots"],
        report["pending_count"],
        report["state"],
        bool(report.get("needs_you")),
    )
    if not before:
        before = (False, 0, 0, report["state"], False)
    said = [event for event, is_true in _rules(before, now) if is_true]
    return said, now


def _rules(before: Seen, now: Seen) -> tuple[tuple[str, bool], ...]:
    idle, free, pending, state, needs = now
    return (
        ("idle", idle is True and before[0] is not True),
        ("busy", idle is not True and before[0] is True),
        ("free_slot", _number(free) > _number(before[1])),
        ("task_ready", _number(pending) > _number(before[2])),
        ("state_changed", state != before[3]),
        ("needs_you", needs is True and before[4] is not True),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
