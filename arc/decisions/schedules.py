"""Says when work of a schedule is due: by a clock of its own zone, each time once; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

FIELDS = 5
HOURS = 24
TEXT_MAX = 120
LATE_S = 120.0  # a time that passed longer ago was missed, and catching up decides about it
# How far back is looked for the newest time that passed: near first, so that a schedule of every
# minute is not counted through a year without a hub.
LOOK_BACK = tuple(timedelta(hours=hours) for hours in (2, 48, 40 * 24, 400 * 24, 10 * 366 * 24))
MISSED_MAX = 1000  # times that passed, as they are counted
_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_EXAMPLE = "such as 0 9 * * 1, for Mondays at nine"


@dataclass(frozen=True)
class Due:
    """A time that has come, and how many before it nobody was there for; None: nothing to do."""

    at: datetime | None  # UTC
    missed: int = 0  # at least so many; they get no task of their own
    seen_to: datetime | None = None  # up to here every time was considered


def parse_cron(value: object) -> str:
    """Five fields of cron that name at least one time."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text or len(text) > TEXT_MAX or len(text.split()) != FIELDS or not text.isascii():
        raise ValueError(f"should be five fields: minute hour day month weekday, {_EXAMPLE}")
    try:
        next(CronSim(text, _SOME_DAY))
    except StopIteration as error:
        raise ValueError("names a time that never comes") from error
    except (CronSimError, AssertionError, ValueError, TypeError) as error:
        raise ValueError(f"{_in_words(error)}, {_EXAMPLE}") from error
    return text


def _in_words(error: Exception) -> str:
    said = str(error) if isinstance(error, CronSimError) else ""
    field = said.removeprefix("Bad ") if said.startswith("Bad ") else ""
    return f"has a {field} that cron does not know" if field else "is no time of cron"


def parse_zone(value: object) -> str:
    """The name of a time zone that this machine knows."""
    if isinstance(value, str) and value.isascii() and 0 < len(value) <= TEXT_MAX:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
        else:
            return value
    raise ValueError("should be a time zone that is known here, such as UTC or Europe/Berlin")


def times_after(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Every time in order, in UTC, later than `after`.

    A time that the clock skips in spring comes when the clock goes on, and so do all that it skips
    there, as one; one that it shows twice in autumn comes the first time. What names every hour
    goes by the hours that pass: it runs through both of autumn, and leaves out the one of spring.
    """
    last = after
    for at in _through(cron, ZoneInfo(zone), after):
        if at > last:
            last = at
            yield at


def _through(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The same, with some that are not later than the one before."""
    there = after.astimezone(zone)
    if len(CronSim(cron, _SOME_DAY).hours) == HOURS:
        minute, _, *days = cron.split()
        for time in CronSim(" ".join([minute, "*", *days]), there):
            yield time.astimezone(UTC)
        return
    for time in CronSim(cron, there.replace(tzinfo=None)):  # whatever a clock without a zone shows
        yield _moment(time, zone)


def _moment(shown: datetime, zone: ZoneInfo) -> datetime:
    """When the clock there shows this first, or stands beyond it for the first time."""
    while True:
        at = shown.replace(tzinfo=zone).astimezone(UTC)
        if at.astimezone(zone).replace(tzinfo=None) == shown:
            return at
        shown += timedelta(minutes=1)


def next_time(cron: str, zone: str, now: datetime) -> datetime | None:
    """When it is due next; None: never again."""
    return next(times_after(cron, zone, now), None)


def due(cron: str, zone: str, last: datetime, now: datetime, *, catch_up: bool) -> Due:
    """The newest time in (last, now], if there is one; older ones are only counted.

    Without `catch_up`, a time that passed more than two minutes ago counts as missed, too. Where
    `last` lies in the future (the clock was wrong), it goes on from now.
    """
    for back in LOOK_BACK:
        start = max(last, now - back)
        passed = _until(times_after(cron, zone, start), now)
        if passed is not None:
            newest, count = passed
            late = (now - newest).total_seconds() > LATE_S
            if late and not catch_up:
                return Due(None, count, now)
            return Due(newest, count - 1, now)
        if start == last:
            break
    return Due(None, 0, now)


def _until(times: Iterator[datetime], now: datetime) -> tuple[datetime, int] | None:
    """The newest of these that has come, and how many have; None: none has."""
    newest, count = None, 0
    for time in islice(times, 100_000):
        if time > now:
            break
        newest, count = time, count + 1
    return None if newest is None else (newest, min(count, MISSED_MAX))
