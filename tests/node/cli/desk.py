"""A desk to run commands at: its own streams, a clock that stands, a door told what to say."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

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
    requests: list[Request] = field(default_factory=list)

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
    def envelope(self) -> dict[str, object]:
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


class Clock:
    def now(self) -> datetime:
        return NOW


@dataclass
class Desk:
    """Where a test types its commands."""

    environ: dict[str, str]
    door: FakeDoor = field(default_factory=FakeDoor)

    def run(self, *words: str, stdin: bytes = b"", stdout: io.TextIOBase | None = None) -> Ran:
        out = stdout or io.StringIO()
        err = io.StringIO()
        around = Around(
            environ=self.environ,
            stdin=io.BytesIO(stdin),
            stdout=out,
            stderr=err,
            ask=self.door,
            clock=Clock(),
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
