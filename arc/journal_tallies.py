"""Keeps counts that only grow, day by day: what the fleet's metrics are made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import orjson

from agent_node.clock import Clock, iso

from .decisions.tallying import Labels

if TYPE_CHECKING:
    from .journal import Rows

DAYS_KEPT = 35  # one by one; what is older is one row for all days before
BEFORE = ""
SERIES_MAX = 20_000  # different names with labels; beyond, counts go to the same name without any


class TallyBook:
    """Counts in millionths by name and labels. What was counted is never taken back."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock
        self._series: set[tuple[str, str]] | None = None

    def add(self, tally: Mapping[tuple[str, Labels], int]) -> None:
        """Add to today's counts; inside a transaction of the caller's it counts with that."""
        day = iso(self._clock.now())[:10]
        rows = [(day, *self._place(name, labels), value)
                for (name, labels), value in tally.items() if value]  # fmt: skip
        if not rows:
            return
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT INTO tally (day, name, labels, value) VALUES (?,?,?,?)"
                " ON CONFLICT DO UPDATE SET value = value + excluded.value",
                rows,
            )

    def _place(self, name: str, labels: Labels) -> tuple[str, str]:
        if self._series is None:
            known = self._rows.read("SELECT DISTINCT name, labels FROM tally")
            self._series = {(str(row["name"]), str(row["labels"])) for row in known}
        place = (name, orjson.dumps(dict(labels)).decode())
        if place not in self._series:
            if len(self._series) >= SERIES_MAX:
                return name, "{}"
            self._series.add(place)
        return place

    def all(self) -> dict[tuple[str, Labels], int]:
        """Every count since the journal began."""
        return self._sums("SELECT name, labels, sum(value) AS value FROM tally"
                          " GROUP BY name, labels ORDER BY name, labels")  # fmt: skip

    def of_today(self, name: str) -> dict[tuple[str, Labels], int]:
        """What was counted under this name since midnight, UTC."""
        return self._since(name, 0)

    def of_a_day(self, name: str) -> dict[tuple[str, Labels], int]:
        """What was counted under this name today and yesterday, UTC."""
        return self._since(name, 1)

    def _since(self, name: str, days: int) -> dict[tuple[str, Labels], int]:
        first = iso(self._clock.now() - timedelta(days=days))[:10]
        return self._sums("SELECT name, labels, sum(value) AS value FROM tally WHERE name = ?"
                          " AND day >= ? GROUP BY name, labels ORDER BY labels",
                          name, first)  # fmt: skip

    def _sums(self, query: str, *values: str) -> dict[tuple[str, Labels], int]:
        return {
            (str(row["name"]), tuple(sorted(orjson.loads(str(row["labels"])).items()))):
                cast("int", row["value"])
            for row in self._rows.read(query, list(values))
        }  # fmt: skip

    def fold(self) -> None:
        """Put the days of long ago together into one; no sum changes by it."""
        first = iso(self._clock.now() - timedelta(days=DAYS_KEPT))[:10]
        with self._rows.transaction():
            self._rows.write(
                "INSERT INTO tally (day, name, labels, value)"
                " SELECT ?, name, labels, sum(value) FROM tally WHERE day <> ? AND day < ?"
                " GROUP BY name, labels"
                " ON CONFLICT DO UPDATE SET value = value + excluded.value",
                [BEFORE, BEFORE, first],
            )
            self._rows.write("DELETE FROM tally WHERE day <> ? AND day < ?", [BEFORE, first])
