"""Reads and writes the small words of fleet.yaml: lengths of time, shares and priorities."""

from __future__ import annotations

import re

DURATION_PATTERN = r"^(?=[0-9])([0-9]{1,6}d)?([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,9}s)?$"
SHARE_PATTERN = r"^[0-9]{1,3}%$"
PRIORITY_PATTERN = r"^[Pp]([1-9]|10)$"
PRIORITY_MAX = 10
WHOLE = 100  # percents

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(DURATION_PATTERN)
_SHARE = re.compile(SHARE_PATTERN)
_PRIORITY = re.compile(PRIORITY_PATTERN)
_FAILING = re.compile(r"^(?P<share>\S+) of (?P<of>[0-9]{1,6}) in (?P<within>\S+)$")


class BadWord(ValueError):
    """A word that means nothing here; the text says what to write instead."""


def parse_duration(word: object) -> float:
    """Seconds, from `90s`, `5m`, `1h`, `2d` or several of them in that order: `1h30m`.

    A bare number is refused: nobody can see in it whether it means seconds or minutes.
    """
    if isinstance(word, int) and not isinstance(word, bool) and word >= 0:
        raise BadWord(f"should be a length of time with its unit; did you mean {word}s?")
    found = _DURATION.fullmatch(word) if isinstance(word, str) else None
    if found is None:
        raise BadWord("should be a length of time, such as 90s, 5m, 1h30m or 2d")
    return float(sum(int(part[:-1]) * _SECONDS[part[-1]] for part in found.groups() if part))


def render_duration(seconds: float) -> str:
    """The shortest word that reads back as these seconds, of which parts are cut off."""
    left, parts = int(seconds), []
    for unit, size in _SECONDS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_share(word: object) -> float:
    """A part of one, from `80%`."""
    found = word if isinstance(word, str) else ""
    if not _SHARE.fullmatch(found):
        raise BadWord(f"should be a share in percent{_meant_percent(word)}")
    share = int(found[:-1]) / WHOLE
    if not 0 < share <= 1:
        raise BadWord(f"should lie between 1% and 100%, not {found}")
    return share


def _meant_percent(word: object) -> str:
    if isinstance(word, bool) or not isinstance(word, int | float) or not 0 < word <= WHOLE:
        return ", such as 80%"
    return f"; did you mean {round(word * WHOLE if word <= 1 else word)}%?"


def render_share(share: float) -> str:
    """`80%`."""
    return f"{round(share * WHOLE)}%"


def parse_priority(word: object) -> int:
    """1 (most urgent) to 10, from `P5` or `5`."""
    if isinstance(word, str) and _PRIORITY.fullmatch(word):
        return int(word[1:])
    if isinstance(word, int) and not isinstance(word, bool) and 1 <= word <= PRIORITY_MAX:
        return word
    raise BadWord("should be a priority from P1 (most urgent) to P10")


def parse_failing(word: object) -> tuple[float, int, float]:
    """Share, attempts and seconds, from `50% of 4 in 1h`."""
    found = _FAILING.fullmatch(word) if isinstance(word, str) else None
    if found is None:
        raise BadWord("should read like: 50% of 4 in 1h")
    share, within = parse_share(found["share"]), parse_duration(found["within"])
    attempts = int(found["of"])
    if attempts < 1 or within <= 0:
        raise BadWord("needs at least one attempt and some time, as in: 50% of 4 in 1h")
    return share, attempts, within


def render_failing(share: float, attempts: int, within_s: float) -> str:
    """`50% of 4 in 1h`."""
    return f"{render_share(share)} of {attempts} in {render_duration(within_s)}"
