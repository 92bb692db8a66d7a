"""Knows an answer to status that says what an earlier one said, but when; and reads only that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_node.errors import BadInput
from agent_node.fields import is_stamp
from agent_node.reports import (
    BYTES_MAX,
    SECONDS_MAX,
    AgentReport,
    StatusReport,
    parse_report,
)
from agent_node.strict import JsonObject

from .asked import Asked

LEARNT_MAX = 64 * 1024  # bytes; a longer answer is always read whole
PATIENCE_MAX = 64  # answers that are let pass before one is learnt again, where none came back
DIGITS_MAX = 18  # of a number that surely fits in 64 bits
ID_ENDS = 26  # bytes of `{"id":` and of the longest number that we give
STAMP = 24  # bytes of a time as every node writes it

_HEAD = b'{"id":'
_seconds = re.compile(rb"(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,6})?").fullmatch
_Read = Callable[[bytes, int], tuple[str | int | float, int]]
_Found = tuple[int, int, _Read, str | int]  # from, to, how it is read, and what it is


@dataclass(frozen=True, slots=True)
class _Place:
    """A value that may move: the text before it, how it is read, and what it is."""

    before: bytes
    read: _Read
    what: str | int  # the report's field of this name, or the heartbeat of this agent
    last: bytes  # the same text, and the value as it was learnt


@dataclass(frozen=True, slots=True)
class _Learnt:
    """An answer, cut at every value that moves."""

    report: StatusReport
    places: tuple[_Place, ...]
    rest: bytes


class Familiar:
    """What one talk remembers of the last status, so that the next is read in a third of the time.

    Byte for byte the same, but for whole values of a known form in known places: such a line has
    the very structure of the one that was decoded and checked, and the very report but for these
    values, which are checked as ever. Whatever is different in any other way is not known, and is
    decoded and judged as if nothing had been learnt.
    """

    def __init__(self) -> None:
        self._learnt: _Learnt | None = None
        self._served = False
        self._patience, self._left = 1, 1

    def recall(self, line: bytes, asked: Mapping[int, Asked]) -> tuple[Asked, StatusReport] | None:
        """Which question is answered here, and with which report; None: it has to be decoded."""
        learnt = self._learnt
        if learnt is None:
            return None
        comma = line.find(b",", len(_HEAD), ID_ENDS)
        digits = line[len(_HEAD) : max(comma, 0)]
        if not digits.isdigit() or digits.startswith(b"0") or not line.startswith(_HEAD):
            return None
        question = asked.get(int(digits))
        if question is None or not question.reports:
            return None
        try:
            report = _report(learnt, line, comma)
        except (ValueError, BadInput):  # it says something else there, or what nobody may say
            return None
        self._served = True
        return question, report

    def learn(self, line: bytes, result: JsonObject) -> JsonObject | StatusReport:
        """Remember this answer, which was decoded; where none came back, ever more seldom.

        Gives the result back, or the report that it is where it had to be read for that.
        """
        if self._learnt is not None:
            self._learnt = None
            self._wait(1 if self._served else 2 * self._patience)
        self._left -= 1
        if self._left > 0 or len(line) > LEARNT_MAX or b"\\" in line:
            return result
        self._learnt, self._served = _learnt_from(line, result), False
        if self._learnt is None:
            self._wait(2 * self._patience)
            return result
        return self._learnt.report

    def _wait(self, patience: int) -> None:
        self._patience = self._left = min(patience, PATIENCE_MAX)


def _report(learnt: _Learnt, line: bytes, at: int) -> StatusReport:
    """The report with the values of this line; `ValueError` where it is another line."""
    said: dict[str, Any] = {}
    beats: dict[int, str] = {}
    for place in learnt.places:
        if line.startswith(place.last, at):
            at += len(place.last)
            continue
        if not line.startswith(place.before, at):
            raise ValueError("another text")
        value, at = place.read(line, at + len(place.before))
        if isinstance(place.what, str):
            said[place.what] = value
        else:
            beats[place.what] = str(value)
    if line[at:].removesuffix(b"\n") != learnt.rest:
        raise ValueError("another end")
    if beats:
        said["agents"] = _beating(learnt.report.agents, beats)
    report = learnt.report._replace(**said)
    if report.idle_since is not None and report.idle_since > report.written_at:
        raise ValueError("idle since a time to come")
    return report


def _beating(agents: tuple[AgentReport, ...], beats: Mapping[int, str]) -> tuple[AgentReport, ...]:
    """The same agents, and of some of them another heartbeat."""
    fresh = [*agents]
    for number, beat in beats.items():
        fresh[number] = fresh[number]._replace(last_heartbeat=beat)
    return tuple(fresh)


def _learnt_from(line: bytes, result: JsonObject) -> _Learnt | None:
    """What is known of a whole answer without a backslash; None: nothing that would help.

    Without a backslash a name in quotes is found wherever it is one, so if it stands there once,
    and the result has it, then it stands for that.
    """
    try:
        report = parse_report(result)
        places = [*_fields(line, result), *_heartbeats(line, report)]
    except (BadInput, ValueError):
        return None
    if report.idle_since != result.get("idle_since"):  # it was read as an earlier one
        return None
    found, at = [], line.find(b",")
    for begins, ends, read, what in sorted(places, key=lambda one: one[0]):
        found.append(_Place(line[at:begins], read, what, line[at:ends]))
        at = ends
    return _Learnt(report, tuple(found), line[at:].removesuffix(b"\n"))


def _fields(line: bytes, result: JsonObject) -> Iterator[_Found]:
    for name, read in _MOVING.items():
        if result.get(name) is not None:
            begins = _only(line, name, 1)[0]
            yield begins, read(line, begins)[1], read, name


def _heartbeats(line: bytes, report: StatusReport) -> Iterator[_Found]:
    """In the order of the agents, which is the order of the text."""
    beginnings = _only(line, "last_heartbeat", len(report.agents))
    for number, begins in enumerate(beginnings):
        if report.agents[number].last_heartbeat is not None:
            yield begins, _stamp(line, begins)[1], _stamp, number


def _only(line: bytes, name: str, times: int) -> list[int]:
    """Where the values of this name begin; `ValueError` where it stands more or less often."""
    quoted = b'"%b"' % name.encode()
    found = [one.end() for one in re.finditer(quoted + b":", line)]
    if len(found) != times or line.count(quoted) != times:
        raise ValueError(f"{name} stands there {len(found)} times, not {times}")
    return found


def _stamp(line: bytes, at: int) -> tuple[str, int]:
    """A time in its quotes, exactly as we write it."""
    quoted = line[at : at + STAMP + 2].decode("ascii")
    if quoted[:1] != '"' or quoted[STAMP + 1 :] != '"' or not is_stamp(quoted[1:-1]):
        raise ValueError("not a time as we write it")
    return quoted[1:-1], at + STAMP + 2


def _number(line: bytes, at: int) -> bytes:
    """What stands there up to the next comma, which is near."""
    return line[at : line.index(b",", at, at + DIGITS_MAX + 1)]


def _bytes(line: bytes, at: int) -> tuple[int, int]:
    """A whole number of bytes that a disk may have."""
    digits = _number(line, at)
    number = int(digits)
    if not digits.isdigit() or digits != b"%d" % number or number > BYTES_MAX:
        raise ValueError("not a number of bytes as we write it")
    return number, at + len(digits)


def _age(line: bytes, at: int) -> tuple[float, int]:
    """Seconds, to the microsecond at most."""
    digits = _number(line, at)
    if not _seconds(digits) or float(digits) > SECONDS_MAX:
        raise ValueError("not a number of seconds as we write it")
    return float(digits), at + len(digits)


_MOVING: Mapping[str, _Read] = {
    "written_at": _stamp, "idle_since": _stamp, "oldest_ready_s": _age, "disk_free_bytes": _bytes,
}  # fmt: skip
