"""Adds up stranded time by what kept a slot and its work apart: a rule, or nobody looked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from agent_node.strict import JsonObject
from arc.decisions.stranded import NOBODY_LOOKED
from arc.history_seen import StrandedStretch


def cause_of(one: StrandedStretch) -> str:
    """The rule that forbade the move, or `nobody_looked`, as `arc status` counts it."""
    return one.rule if one.cause == "rule" else NOBODY_LOOKED


def by_cause_of(
    stranded: Iterable[StrandedStretch], since: datetime, until: datetime
) -> JsonObject:
    """Seconds that fall into the window, by cause, the most first."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for one in stranded:
        seconds[cause_of(one)] += one.seconds_in(since, until)
    ranked = sorted(seconds.items(), key=lambda item: (-item[1], item[0]))
    return {cause: round(one, 1) for cause, one in ranked if one > 0}
