"""Draws up who feeds whom: how many tasks went from which node to which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue

from .asked import window_of

if TYPE_CHECKING:
    from arc.history import History

DAY_S = 86_400.0
ENDS_MAX = 40  # rows and columns; the others are added up
OTHERS = "others"


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """The moves of a day; rows give, columns are given. `whole`: all of that day is remembered."""
    asked = {**query}
    asked.pop("span", None)
    window = window_of(asked, now, span_s=DAY_S)
    feeds = history.feeds(window.since, window.until)
    every: Counter[str] = Counter()
    for one in feeds:
        every[one.busy] += one.moves
        every[one.idle] += one.moves
    names = {name for name, _ in every.most_common(ENDS_MAX)}
    cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in feeds:
        busy, idle = (end if end in names else OTHERS for end in (one.busy, one.idle))
        cells[busy, idle][one.why] += one.moves
    listed: list[JsonValue] = [
        {"from": busy, "to": idle, "moves": whys.total(), "why": dict(whys.most_common())}
        for (busy, idle), whys in sorted(cells.items())
    ]  # fmt: skip
    shown = names | ({OTHERS} if len(every) > len(names) else set())
    known = min((one.since for one in history.nodes()), default=window.since)
    return {"span_s": window.seconds, "since": int(max(known, window.since).timestamp() * 1000),
            "whole": known <= window.since, "nodes": list[JsonValue](sorted(shown)),
            "cells": listed, "moves": sum(one.moves for one in feeds)}  # fmt: skip
