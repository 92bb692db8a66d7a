"""Says when so much failed that work has to be added for it, once in the time watched; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from arc.durations import BadWord, parse_failing, render_duration, render_failing

_WORD = re.compile(r"failing:? +(?P<limit>.+)")


@dataclass(frozen=True)
class Failing:
    """So large a share, of at least so many ends, within so long."""

    share: float
    of: int
    within_s: float


@dataclass(frozen=True)
class End:
    """How one attempt ended: where, in which domain, when by the hub's clock."""

    node: str
    domain: str | None  # None: the task had none, or the node did not say
    well: bool
    at: datetime


def parse_when(value: object) -> str:
    """`failing 40% of 5 in 1d`, as it is written best."""
    limit = failing_of(value)
    return f"failing {render_failing(limit.share, limit.of, limit.within_s)}"


def failing_of(value: object) -> Failing:
    """What such a text means."""
    found = _WORD.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise BadWord("should read like: failing 40% of 5 in 1d")
    return Failing(*parse_failing(found["limit"].strip()))


def why_now(
    limit: Failing, ends: Iterable[End], *, now: datetime, last: datetime | None,
    domain: str | None = None, node: str | None = None,
) -> str | None:  # fmt: skip
    """Why the task of a rule is to be added now; None: it is not.

    Within one window after `last` (when it was added last; None: never) it is not added again,
    and what ended before that does not count a second time.
    """
    window = timedelta(seconds=limit.within_s)
    if last is not None and last > now:  # by a clock that was wrong: it silences no rule for years
        last = None
    if last is not None and now - last < window:
        return None
    start = now - window if last is None else max(now - window, last)
    seen = [one for one in ends if start < one.at <= now
            and (domain is None or one.domain == domain) and (node is None or one.node == node)]
    failed = sum(not one.well for one in seen)
    if len(seen) < limit.of or failed < len(seen) * limit.share:
        return None
    where = "".join([f" in domain {domain}" if domain else "", f" on {node}" if node else ""])
    within = render_duration(limit.within_s)
    return f"{failed} of {len(seen)} attempts failed{where} within {within}"
