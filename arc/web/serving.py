"""Listens for the page: on loopback or on a socket of its own, until it is told to end."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from arc.errors import ArcError
from arc.socket_paths import reached

from .peers import PEER, uid_at
from .presence import Presence, pages_of
from .surroundings import WebSettings

if TYPE_CHECKING:
    from .app import Page

CONNECTIONS_MAX = 100
IMPATIENT_S = 10.0  # for the head of a request, and for a browser that does not read
BODY_S = 30.0  # for its body, 256 KiB at most
KEEP_S = 20
END_S = 1
HEAD_MAX = 16 * 1024
PATH_MAX = 107  # bytes of a socket's path that the kernel takes


class CannotListen(ArcError):
    """The page has no place to listen; nothing was started."""

    code = "ARC-WEB-LISTEN"


class AlreadyUp(CannotListen):
    """A page of this fleet listens there already, so nothing was started."""

    def __init__(self, address: str) -> None:
        super().__init__(f"this fleet's page is up already: {address}")
        self.address = address


class Patient(H11Protocol):
    """One connection, which is dropped when its other end neither asks nor reads for too long.

    However slowly a request drips in, it has to be here in time: its head, and then its body.
    """

    _limit: asyncio.TimerHandle | None = None  # for a browser that does not read
    _due: asyncio.TimerHandle | None = None  # for what of a request is still to come
    _awaited: object = None  # in which state of HTTP the other end is

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It has so long to ask for something."""
        super().connection_made(transport)
        uid = uid_at(transport.get_extra_info("socket"))
        if uid is not None:
            self.app_state = {**self.app_state, PEER: uid}
        self._expect()

    def handle_events(self) -> None:
        """What has come by now; a request that goes on in pieces gets no more time for that."""
        super().handle_events()
        self._expect()

    def _expect(self) -> None:
        """What comes next has its own time, counted from when it was first waited for."""
        awaited = self.conn.their_state
        if awaited is self._awaited:
            return
        self._awaited = awaited
        self._due = _stopped(self._due)
        within = {h11.IDLE: IMPATIENT_S, h11.SEND_BODY: BODY_S}.get(awaited)
        if within is not None:
            self._due = self.loop.call_later(within, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so, unless it comes amidst an answer; then it is dropped."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """It does not read: what waits for it stays bounded, and after a while it is dropped."""
        super().pause_writing()
        _stopped(self._limit)
        self._limit = self.loop.call_later(IMPATIENT_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._limit = _stopped(self._limit)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, and with it what was waiting."""
        self._limit, self._due = _stopped(self._limit), _stopped(self._due)
        super().connection_lost(exc)


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """None: there is none any more."""
    if timer is not None:
        timer.cancel()
    return None


def bound(settings: WebSettings) -> socket.socket:
    """A socket that listens where the settings say; `CannotListen` in one clear line, `AlreadyUp`
    where a page of this fleet does.
    """
    return _unix(settings, settings.unix) if settings.unix else _tcp(settings)


def inherited(descriptor: int) -> socket.socket:
    """The socket that whoever started us listens with already; `CannotListen` where it is none."""
    try:
        door = socket.socket(fileno=descriptor)
        listens = door.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except (OSError, OverflowError, ValueError) as error:  # the numbers that no descriptor has
        raise CannotListen(f"descriptor {descriptor} is no socket: {error}") from error
    if not listens:
        door.close()
        raise CannotListen(f"descriptor {descriptor} is no socket that listens")
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - its only argument
    return door


def check_free(settings: WebSettings) -> None:
    """Return where `bound` would listen; else raise what it does. Nobody is kept from listening
    there meanwhile, and nothing is left there.
    """
    if settings.unix:
        _check_unix(settings, settings.unix)
    else:
        _tcp(settings, listens=False).close()


def _tcp(settings: WebSettings, *, listens: bool = True) -> socket.socket:
    host, port, family = settings.host, settings.port, _family(settings.host)
    door = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        if listens:
            door.listen(CONNECTIONS_MAX)
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            raise _taken(settings) from error
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return door


def _unix(settings: WebSettings, path: Path) -> socket.socket:
    _check_unanswered(settings, path)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        with reached(fresh) as place:
            door.bind(place)
        os.chmod(fresh, 0o600)
        door.listen(CONNECTIONS_MAX)
        os.rename(fresh, path)
    except OSError as error:
        door.close()
        with suppress(OSError):
            fresh.unlink()
        raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error
    return door


def _check_unix(settings: WebSettings, path: Path) -> None:
    _check_unanswered(settings, path)
    fresh = path.with_name(f"{path.name}.new")
    try:
        with reached(fresh) as place:
            wrong = {
                "AF_UNIX path too long": len(os.fsencode(place)) > PATH_MAX,
                os.strerror(errno.EACCES): not os.access(path.parent, os.W_OK | os.X_OK),
                os.strerror(errno.EISDIR): path.is_dir() or fresh.is_dir(),
            }
    except OSError as error:
        raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error
    for why, is_so in wrong.items():
        if is_so:
            raise CannotListen(f"cannot listen on {path}: {why}")


def _check_unanswered(settings: WebSettings, path: Path) -> None:
    if _answers(path):
        raise _taken(settings)


def _taken(settings: WebSettings) -> CannotListen:
    """Who listens there: a page of this fleet, or another program."""
    where = str(settings.unix or f"{settings.host}:{settings.port}")
    host, port = _place(settings)
    pages = [page for page in pages_of(settings.state) if page.is_in_the_way(host, port)]
    for page in pages:
        if page.serves(host, port):
            return AlreadyUp(page.address)
    if settings.unix:
        return CannotListen(f"{where} is taken by another program that answers there")
    who = (f"this fleet's own page, which is up at {pages[0].address} alone" if pages else
           "another program")  # fmt: skip
    first = "end that one first, or " if pages else ""
    return CannotListen(f"{where} is taken by {who}", hint=f"{first}another port: arc web --port N")


def presence_of(settings: WebSettings, door: socket.socket) -> Presence:
    """The page that listens there, as whoever would listen there too is told of it."""
    host, port = _place(settings) if settings.unix else door.getsockname()[:2]
    return Presence(host, port, address_of(settings, door))


def _place(settings: WebSettings) -> tuple[str, int]:
    """Where it would listen, in the kernel's own words."""
    if settings.unix:
        return os.path.realpath(settings.unix), 0
    host, port = settings.host, settings.port
    with suppress(OSError):
        found = socket.getaddrinfo(host, port, _family(host), socket.SOCK_STREAM)
        host = str(found[0][4][0])
    return host, port


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _answers(path: Path) -> bool:
    """Whether somebody listens there; what a dead process left behind does not."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller, reached(path) as place:
            caller.settimeout(1.0)
            caller.connect(place)
    except OSError:
        return False
    return True


def address_of(settings: WebSettings, door: socket.socket) -> str:
    """What a person types into a browser, or what `ssh -L` leads to."""
    if settings.unix is not None:
        return f"unix:{settings.unix}"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{door.getsockname()[1]}/"


class Listening(uvicorn.Server):
    """The server, which hears no signals itself and lets go of whoever looks on before it ends."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Whoever started it hears them."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams end first; what is being answered is finished if that takes a moment only."""
        self._ending()
        await super().shutdown(sockets)


async def serve(page: Page, door: socket.socket, stop: asyncio.Event) -> None:
    """Until `stop` is set; then it is over within a second, however many look on."""
    settings = page.web.settings
    config = uvicorn.Config(
        page.app, http=Patient, ws="none", lifespan="on", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, timeout_keep_alive=KEEP_S,
        limit_concurrency=CONNECTIONS_MAX, timeout_graceful_shutdown=END_S,
        h11_max_incomplete_event_size=HEAD_MAX,
    )  # fmt: skip
    server = Listening(config, page.web.close)
    running = asyncio.create_task(server.serve(sockets=[door]), name="page")
    waiting = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await running
    finally:
        waiting.cancel()
        door.close()
        if settings.unix is not None:
            with suppress(OSError):
                settings.unix.unlink()
