"""Remembers what became of the last upgrade, so that asking again gives the same answer."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, cast

from . import program
from .attempts import read_untrusted
from .errors import BadInput
from .fields import moment
from .home import Home
from .requests import Fields
from .strict import JsonObject, decode_object

RECORD = "upgrade.json"
LOCK = "lock"
RECORD_MAX = 16 * 1024
BECAUSE_MAX = 1000

Outcome = Literal["under_way", "upgraded", "went_back", "failed", "stuck"]


@dataclass(frozen=True)
class Upgrade:
    """One upgrade that was accepted here. `failed`: the old program was in its place throughout,
    and so was its daemon; `went_back`: the old program is in its place again, with a daemon where
    one ran before; `stuck`: neither answers, and a person has to look.
    """

    statement_id: str
    made_at: str
    program: str  # the sha256 of the new one
    version: str
    was: str  # the file name of the old one
    was_version: str
    signed_by: str
    outcome: Outcome = "under_way"
    because: str = ""
    one_way: bool = False
    dispatched: bool = False  # a daemon ran when it began, so one has to run when it is over

    def ended(self, outcome: Outcome, because: str = "") -> Upgrade:
        """The same, over."""
        return replace(self, outcome=outcome, because=because[:BECAUSE_MAX])

    def answer(self) -> JsonObject:
        """What the wire says of it."""
        said: JsonObject = {
            "outcome": self.outcome, "version": self.version, "program": self.program,
            "was": {"version": self.was_version, "program": self.was},
            "signed_by": self.signed_by,
        }  # fmt: skip
        return {**said, "because": self.because} if self.because else said


def read_record(home: Home) -> Upgrade | None:
    """The last upgrade; None: there was none. `BadInput` when the file is not ours."""
    raw = read_untrusted(str(_path(home)), RECORD_MAX)
    if raw is None:
        return None
    said = Fields(decode_object(raw, RECORD_MAX), RECORD)
    because = said.values.get("because")
    return Upgrade(
        statement_id=said.text("statement_id", 64),
        made_at=cast("str", said.take("made_at", moment)),
        program=said.text("program", 64),
        version=said.text("version", 32),
        was=said.text("was", 64),
        was_version=said.text("was_version", 32),
        signed_by=said.text("signed_by", 100),
        outcome=said.word("outcome", "under_way", "upgraded", "went_back", "failed", "stuck"),
        because=because if isinstance(because, str) else "",
        one_way=said.flag("one_way"),
        dispatched=said.flag("dispatched"),
    )


def write_record(home: Home, upgrade: Upgrade) -> None:
    """Durably, in one step."""
    content = json.dumps(asdict(upgrade), ensure_ascii=True, indent=1) + "\n"
    program.replace(_path(home), content.encode())


@contextmanager
def alone(home: Home) -> Iterator[bool]:
    """Whether this process is the only one that upgrades this home, for as long as it lasts."""
    path = program.folder_of(home) / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield _taken(descriptor)
    finally:
        os.close(descriptor)


def is_carried_out(home: Home) -> bool:
    """Whether some process carries an upgrade out at this moment."""
    with alone(home) as nobody_else:
        return not nobody_else


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _path(home: Home) -> Path:
    return program.folder_of(home) / RECORD


def unreadable(home: Home, error: BadInput) -> str:
    """What to do about a record that cannot be read."""
    return f"{_path(home)} cannot be read ({error}): look at it, and remove it"
