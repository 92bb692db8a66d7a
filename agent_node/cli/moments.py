"""Reads the times people type: a zoned time, or so much from now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from agent_node.clock import iso, parse_iso
from agent_node.errors import BadInput

_FROM_NOW = re.compile(r"\+(\d{1,9})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str, field: str, now: datetime) -> str:
    """UTC text for `2026-03-10T03:45:02Z` or `+90m`; a time without a zone is refused."""
    from_now = _FROM_NOW.fullmatch(text)
    try:
        if from_now:
            seconds = int(from_now[1]) * _SECONDS[from_now[2]]
            return iso(now + timedelta(seconds=seconds))
        return iso(parse_iso(text))
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"{error}; write 2026-03-10T03:45:02Z or +90m (s, m, h, d, w from now)", field
        ) from error
