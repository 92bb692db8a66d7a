"""What surrounds one command: its streams, its environment, its clock and the door to the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Protocol, TextIO

from agent_node.author import author
from agent_node.errors import NodeError
from agent_node.home import Home, check_home, find_home
from agent_node.job import SOCKET_NAME

Request = dict[str, object]
LOOKS = frozenset(("status", "list", "show", "log", "graphs", "graph", "budget"))
Result = dict[str, object]


class Ask(Protocol):
    """The one door to the queue: a request goes in, its result comes out, or an error says why."""

    def __call__(self, home: Home, request: Request, *, timeout_s: float = 30) -> Result: ...


class Now(Protocol):
    """Wall time, aware and in UTC."""

    def now(self) -> datetime: ...


class ReaderLeft(Exception):
    """Nobody reads our output any more."""


class OutputFailed(NodeError):
    """The answer could not be written where it was sent; the command itself was carried out."""

    code = "output_failed"
    hint = "what was asked may have happened; look before you repeat it"


class Interrupted(NodeError):
    """Ctrl-C came while a change was asked for; whether it happened is not known here."""

    code = "interrupted"
    exit_code = 130
    hint = "look with agent-node status, list or show; what has a --key may be typed again"

    def __init__(self, do: object) -> None:
        super().__init__(f"interrupted: {do} was asked and may have happened")


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Everything a command may touch besides its own words."""

    environ: Mapping[str, str]
    stdin: IO[bytes]
    stdout: TextIO
    stderr: TextIO
    ask: Ask
    clock: Now

    @property
    def home(self) -> Home:
        """The node's home, only when a queue is safe in it."""
        home = find_home(self.environ)
        check_home(home)
        return home

    @property
    def by(self) -> str:
        """Who gives this order: the running task's agent, else the person at the keyboard."""
        return author(self.environ)

    def door(self, request: Request, *, timeout_s: float = 30) -> Result:
        """The answer to this request; who interrupts a change hears that it may have happened."""
        home = self.home
        try:
            return self.ask(home, request, timeout_s=timeout_s)
        except KeyboardInterrupt as error:
            if request.get("do") in LOOKS or request.get("dry_run") is True:
                raise
            raise Interrupted(request.get("do")) from error

    def own_door(self, request: Request) -> Result:
        """The answer to what a running task says of itself: another user's has its own socket."""
        place = self.environ.get(SOCKET_NAME, "")
        if not place:
            return self.door(request)
        from agent_node.door import ask_at

        return ask_at(place, request)

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
        """Write to stderr; who closed it did not want to hear, and that is no failure."""
        try:
            self.stderr.write(text)
            self.stderr.flush()
        except OSError:
            return


def real_door(home: Home, request: Request, *, timeout_s: float = 30) -> Result:
    """The daemon, or the queue itself when no daemon runs."""
    from agent_node.door import ask

    return ask(home, request, timeout_s=timeout_s)
