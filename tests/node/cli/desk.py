"""A desk to run commands at: its own streams, a clock that stands, a door told what to say."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO

from agent_node.cli.around import Around, Request, Result
from agent_node.cli.running import run_command
from agent_node.home import Home

NOW = datetime(2026, 3, 10, 3, 45, 2, tzinfo=UTC)
UID = "01JNXQ5B2M7Z8K4V3T9R0W6C1D"
OTHER_UID = "01JNXQ5B2MAAAAAAAAAAAA6C1D"
Reply = Result | BaseException | Callable[[Request], Result]


@dataclass
class FakeDoor:
    """Answers each `do` as it was told, and remembers what it was asked."""

    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, home: Home, request: Request, *, timeout_s: float = 30) -> Result:
        self.requests.append(request)
        reply = self.replies.get(str(request["do"]), {})
        if isinstance(reply, BaseException):
            raise reply
        return reply(request) if callable(reply) else reply


@dataclass
class Ran:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        assert self.out.count("\n") == 1, self.out
        envelope: dict[str, Any] = json.loads(self.out)
        return envelope


@dataclass
class Clock:
    at: datetime

    def now(self) -> datetime:
        return self.at


@dataclass
class Desk:
    """Where a test types its commands."""

    environ: dict[str, str]
    door: FakeDoor = field(default_factory=FakeDoor)
    now: datetime = NOW

    def run(self, *words: str, stdin: bytes = b"", stdout: TextIO | None = None) -> Ran:
        out = stdout or io.StringIO()
        err = io.StringIO()
        around = Around(
            environ=self.environ,
            stdin=io.BytesIO(stdin),
            stdout=out,
            stderr=err,
            ask=self.door,
            clock=Clock(self.now),
        )
        code = run_command(list(words), around)
        return Ran(code, out.getvalue() if isinstance(out, io.StringIO) else "", err.getvalue())


def a_task(uid: str = UID, **fields: object) -> Result:
    base: Result = {
        "uid": uid,
        "subject": "rotate logs",
        "state": "READY",
        "priority": 8,
        "skills": [],
        "created_at": "2026-03-10T03:40:02.000Z",
    }
    return {**base, **fields}


CHANGED: Result = {"uid": UID, "outcome": "changed", "task": a_task()}


def added(request: Request) -> Result:
    tasks = request["tasks"]
    assert isinstance(tasks, list)
    return {"results": [{"uid": task["uid"], "outcome": "added"} for task in tasks]}


def refused(rule: str, text: str, uid: str = UID) -> Result:
    return {"uid": uid, "outcome": "refused", "because": {"rule": rule, "text": text}}
