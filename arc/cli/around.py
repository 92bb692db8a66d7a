"""What surrounds one command: its streams, its environment, the fleet it means and its clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol, TextIO

from agent_node.author import author
from agent_node.clock import iso
from agent_node.strict import JsonObject
from agent_node.text import safe_text, terminal_width
from arc.errors import ArcError
from arc.operations import Told


class ReaderLeft(Exception):
    """Nobody reads our output any more."""


class OutputFailed(ArcError):
    """The answer could not be written where it was sent; the command itself was carried out."""

    code = "ARC-OUTPUT"
    hint = "what was asked may have happened; look before you repeat it"


class Now(Protocol):
    """Wall time, aware and in UTC."""

    def now(self) -> datetime: ...


class Ask(Protocol):
    """The one way to a hub, running or not: an operation goes in, what came of it comes out."""

    def __call__(self, around: Around, op: str, args: JsonObject, *, timeout_s: float) -> Told: ...


@dataclass(frozen=True, kw_only=True)
class Around:
    """Everything a command may touch besides its own words."""

    environ: Mapping[str, str]
    stdin: IO[bytes]
    stdout: TextIO
    stderr: TextIO
    clock: Now
    ask: Ask
    as_json: bool = False
    fleet: Path | None = None  # as it was named on the command line

    @property
    def by(self) -> str:
        """Who gives this order: the running task's agent, else the person at the keyboard."""
        return author(self.environ)

    @property
    def width(self) -> int | None:
        """How many columns the reader has; None: no terminal, so nothing is cut."""
        return terminal_width(self.stdout, self.environ)

    @property
    def colour(self) -> bool:
        """Whether colours may be used: on a terminal, and nobody said no."""
        plain = self.environ.get("NO_COLOR") or self.environ.get("TERM") == "dumb"
        return self.stdout.isatty() and not plain

    @property
    def asks_people(self) -> bool:
        """Whether somebody sits at the keyboard who can be asked."""
        return self.stdin.isatty() and self.stdout.isatty() and not self.as_json

    def stamp(self) -> str:
        """The time now as text, for envelopes."""
        return iso(self.clock.now())

    def say(self, text: str) -> None:
        """Write to stdout at once; `ReaderLeft` when nobody reads."""
        try:
            self.stdout.write(text)
            self.stdout.flush()
        except BrokenPipeError as error:
            raise ReaderLeft from error
        except OSError as error:
            raise OutputFailed(f"stdout: could not be written: {error.strerror}") from error

    def talk(self, text: str) -> None:
        """Write to stderr, which is talk: nobody has to read it."""
        try:
            self.stderr.write(text)
            self.stderr.flush()
        except OSError:
            return

    def warn(self, text: str) -> None:
        """One line of warning, made safe."""
        self.talk(f"warning: {safe_text(text)}\n")


_CURRENT: ContextVar[Around] = ContextVar("around")


def here() -> Around:
    """The surroundings of the command that runs."""
    return _CURRENT.get()


@contextmanager
def surrounded_by(around: Around) -> Iterator[None]:
    """While this lasts, `here()` answers with these surroundings."""
    token = _CURRENT.set(around)
    try:
        yield
    finally:
        _CURRENT.reset(token)
