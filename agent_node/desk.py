"""Holds what answering needs: the store, the settings, the asker, and the daemon if one runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeVar

from .apart import start_upgrader
from .artifacts import Shelf, shelf_of
from .clock import Clock
from .commands import Command, Sender
from .config import NodeSettings
from .errors import NotRunning
from .failpoints import failpoint
from .home import Home
from .looks import Looks
from .moves import Hello
from .requests import Request
from .store import Store
from .strict import JsonObject
from .uploads import Uploads

Outcome = TypeVar("Outcome")

SessionKind = Literal["hub", "owner", "task"]
FOR_ALL: tuple[SessionKind, ...] = ("hub", "owner")  # whoever may enter the home
FOR_TASKS: tuple[SessionKind, ...] = ("task",)
BRINGS_NO_WORK = frozenset({"escrow", "hold", "commit"})  # steps of a move: none makes a task READY


@dataclass(eq=False)
class Session:
    """One peer for as long as it is connected: whose word it is, and whether it may go on."""

    kind: SessionKind
    term: int = 0  # a hub's, from its hello on; the owner of the machine is bound by none
    hub: str | None = None
    instance: str | None = None  # which hub of that term; None: it did not say
    over: bool = False
    left_s: int | None = None
    """How long it may last from its opening on; None: it did not come by SSH, and has no limit."""
    wants: frozenset[str] = field(default_factory=frozenset)
    attempt: tuple[str, int] | None = None
    """Whose socket it came through, where it is a task; None: it came in by the home's own."""

    def sender(self, request: Request) -> Sender:
        """Whose word this request is, and whom it means."""
        said_by = request.fields.maybe_text("by")
        incarnation = request.fields.maybe_text("incarnation")
        if self.kind == "owner":
            return Sender(by=said_by or "owner", term=None, incarnation=incarnation)
        by = said_by or (f"fleet:{self.hub}" if self.hub else "fleet")
        return Sender(by=by, term=self.term, incarnation=incarnation, instance=self.instance)


class Host(Protocol):
    """What only a running daemon can do; `NoDaemon` stands in its place without one."""

    @property
    def dispatching(self) -> bool:
        """Whether work that becomes READY here is also started here."""

    def stop_attempt(self, uid: str, n: int, why: str) -> None:
        """End the program of this attempt; its result is recorded when it has ended."""

    def changed(self, *, work: bool = True) -> None:
        """Something was written: work may have come, the report is old. Only notes it.

        `work` False: nothing became READY by it, so whatever follows from it may wait a little.
        """

    def drain(self, deadline_s: float | None, then: str, agent: str | None) -> None:
        """See to it that what runs has ended or been stopped by the deadline."""

    def subscribe(self, session: Session, events: frozenset[str]) -> None:
        """Push these events to the session from now on."""

    def disk_free(self) -> int:
        """Bytes that are free where the home lies."""

    def carry_out_upgrade(self) -> None:
        """Start the process that carries out the upgrade which is recorded."""

    def take_in(self, store: Store, command: Command[Outcome], tasks: int) -> Outcome:
        """Carry out what brings so many tasks; what is free here may be given some of them in the
        same transaction.
        """


class NoDaemon:
    """Nothing runs here: what has to be stopped is recorded, and the next daemon stops it."""

    dispatching = False

    def __init__(self, home: Home) -> None:
        self._home = home
        self.wrote = False

    def stop_attempt(self, uid: str, n: int, why: str) -> None:
        self.changed()

    def changed(self, *, work: bool = True) -> None:
        self.wrote = True

    def drain(self, deadline_s: float | None, then: str, agent: str | None) -> None:
        self.changed()

    def subscribe(self, session: Session, events: frozenset[str]) -> None:
        raise NotRunning("no daemon runs here, so there is no news to subscribe to")

    def disk_free(self) -> int:
        return free_bytes(self._home)

    def carry_out_upgrade(self) -> None:
        start_upgrader(self._home)

    def take_in(self, store: Store, command: Command[Outcome], tasks: int) -> Outcome:
        return store.apply(command)


def free_bytes(home: Home) -> int:
    """What this user may still write where the home lies."""
    found = os.statvfs(home.root)
    return found.f_bavail * found.f_frsize


@dataclass(frozen=True)
class Desk:
    """Where requests are answered: every handler gets it, with the request and the session."""

    store: Store
    home: Home
    settings: NodeSettings
    clock: Clock
    host: Host
    fault: str = ""
    """Why `settings` only stand in for those of node.toml; "" when they are those."""

    @cached_property
    def shelf(self) -> Shelf:
        """The files that tasks left here, or are to be given."""
        return shelf_of(self.home.root)

    @cached_property
    def settings_digest(self) -> str:
        """By which node.toml answers go: a status tells it, and is asked for often."""
        return self.settings.digest()

    @cached_property
    def uploads(self) -> Uploads:
        """Those that are on their way here."""
        return Uploads(self.shelf)

    def apply(self, request: Request, command: Command[Outcome]) -> Outcome:
        """One durable transaction, or with `dry_run` what it would have answered."""
        failpoint(f"{request.do}.before")
        outcome = self.store.apply(command, dry_run=request.dry_run)
        self._applied(request)
        return outcome

    def take_in(self, request: Request, command: Command[Outcome], tasks: int) -> Outcome:
        """The same for tasks that come, which a daemon may claim in the transaction that brings
        them.
        """
        if request.dry_run:
            return self.apply(request, command)
        failpoint(f"{request.do}.before")
        outcome = self.host.take_in(self.store, command, tasks)
        self._applied(request)
        return outcome

    def greet(self, request: Request, hello: Hello) -> None:
        """The same for a hub's hello. One that says nothing new makes no report old: it would be
        written and synced again, before the hub's next question is answered.
        """
        failpoint(f"{request.do}.before")
        is_news = self.store.apply(hello)
        failpoint(f"{request.do}.after")
        if is_news:
            self.host.changed()

    def apply_all(self, request: Request, commands: Sequence[Command[Outcome]]) -> list[Outcome]:
        """The same for several commands: one transaction for all of them."""
        if len(commands) == 1 or request.dry_run:
            return [self.apply(request, command) for command in commands]
        failpoint(f"{request.do}.before")
        outcomes: list[Outcome] = self.store.together(commands)  # type: ignore[assignment]
        self._applied(request)
        return outcomes

    def _applied(self, request: Request) -> None:
        failpoint(f"{request.do}.after")
        if not request.dry_run:
            self.host.changed(work=request.do not in BRINGS_NO_WORK)

    @cached_property
    def looks(self) -> Looks:
        """How the node is told to stand, anew or once more."""
        return Looks(self.store, self.home, self.settings, self.clock, self.host, self.fault)

    def report(self) -> JsonObject:
        """fleet-status.json as it is at this moment."""
        return self.looks.now().report
