"""Wraps what a command found out into the one JSON line and the one exit code others rely on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class Exit(IntEnum):
    """What the exit code of every command means."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    LOGIN = 4
    NOT_FOUND = 5
    FINDINGS = 6
    REFUSED = 7
    NO_DAEMON = 8
    TIMEOUT = 9
    INTERRUPTED = 130
    CLOSED_PIPE = 141


ANSWERED = frozenset({Exit.DONE, Exit.PARTIAL, Exit.FINDINGS})


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure as machines read it."""

    code: str
    message: str
    hint: str = ""
    where: str = ""
    rule: str = ""

    def as_json(self) -> dict[str, str]:
        """The fields that say something; code and message always."""
        rest = {"hint": self.hint, "where": self.where, "rule": self.rule}
        said = {name: value for name, value in rest.items() if value}
        return {"code": self.code, "message": self.message, **said}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found out: once for machines, once for people, with its exit code."""

    data: object
    text: str
    exit: int = Exit.DONE
    warnings: tuple[str, ...] = ()
    partial: tuple[Mapping[str, object], ...] = field(default=())
    trouble: Trouble | None = None  # why what was asked was not done; None: it was


def success(schema: str, as_of: str, answer: Answer) -> str:
    """One line for an answer; `ok` is true when the command did what it was asked.

    `partial` names what could not be read, findings are data: both are answers, not failures.
    """
    error = {} if answer.trouble is None else {"error": answer.trouble.as_json()}
    return _line(
        {
            "schema": schema,
            "ok": answer.exit in ANSWERED,
            **error,
            "as_of": as_of,
            "data": answer.data,
            "partial": list(answer.partial),
            "warnings": list(answer.warnings),
        }
    )


def failure(schema: str, as_of: str, trouble: Trouble) -> str:
    """One line for a command that could not do what it was asked; also on stdout."""
    return _line(
        {
            "schema": schema,
            "ok": False,
            "error": trouble.as_json(),
            "as_of": as_of,
            "partial": [],
            "warnings": [],
        }
    )


def _line(document: Mapping[str, object]) -> str:
    # ASCII only: what a task put into its subject can neither drive a terminal nor meet an
    # encoding that cannot write it.
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"))
