"""Reads the shim's verdict: how an attempt ended, as its own witness wrote it down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .attempts import AttemptFolder, read_record
from .clock import parse_iso
from .job import VERDICT_SCHEMA
from .output import Count
from .strict import JsonObject, JsonValue

KINDS = ("exited", "signalled", "timeout", "stopped", "could_not_start")


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended. `survivors` > 0: what could not be killed, so it has not ended.

    `exit_code` and `signal` are the program's own; both None when it never started, or was not
    seen to end. `started_at` None: it never started.
    """

    uid: str
    n: int
    kind: str
    exit_code: int | None
    signal: int | None
    started_at: datetime | None
    ended_at: datetime
    duration_s: float
    stdout: Count
    stderr: Count
    leftovers_killed: int
    survivors: int
    because: str
    missing: bool = False  # it never started: there is nothing of that name that may be run
    no_folder: bool = False  # it never started: where it was to start is nothing, or not for it

    @property
    def succeeded(self) -> bool:
        """Exit 0 by itself, in time, unasked: the only success there is."""
        return self.kind == "exited" and self.exit_code == 0


def read_verdict(folder: AttemptFolder) -> Verdict | None:
    """The verdict on this attempt; None when there is none, or only a torn or foreign one."""
    record = read_record(folder.verdict)
    if record is None or record.get("schema") != VERDICT_SCHEMA:
        return None
    try:
        verdict = _parse(record)
    except (KeyError, ValueError, OverflowError):
        return None
    return verdict if (verdict.uid, verdict.n) == (folder.uid, folder.n) else None


def _parse(record: JsonObject) -> Verdict:
    kind = _text(record["kind"])
    if kind not in KINDS:
        raise ValueError(kind)
    started_at = record["started_at"]
    return Verdict(
        uid=_text(record["uid"]),
        n=_whole(record["n"]),
        kind=kind,
        exit_code=_whole_or_none(record["exit_code"]),
        signal=_whole_or_none(record["signal"]),
        started_at=None if started_at is None else parse_iso(_text(started_at)),
        ended_at=parse_iso(_text(record["ended_at"])),
        duration_s=_number(record["duration_s"]),
        stdout=_count(record["stdout"]),
        stderr=_count(record["stderr"]),
        leftovers_killed=_whole(record["leftovers_killed"]),
        survivors=_whole(record["survivors"]),
        because=_text(record["because"]),
        missing=record.get("missing") is True,
        no_folder=record.get("no_folder") is True,
    )


def _count(value: JsonValue) -> Count:
    if not isinstance(value, dict):
        raise ValueError(value)
    return Count(_whole(value["bytes"]), _whole(value["dropped"]))


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _whole(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(value)
    return value


def _whole_or_none(value: JsonValue) -> int | None:
    return None if value is None else _whole(value)


def _number(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    return float(value)
