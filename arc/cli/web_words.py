"""The command `arc web`: the page, as a process of its own beside the hub."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_node.clock import SystemClock
from agent_node.envelope import Answer, Exit, success
from agent_node.strict import JsonObject
from arc.errors import ArcError, NeedsWord, WrongUse
from arc.operations import Told

from .answering import say
from .around import Around, here
from .options import DryRun

if TYPE_CHECKING:
    from arc.settings import FleetSettings, WebEntry
    from arc.web.surroundings import WebSettings

NEEDS = ("starlette", "uvicorn", "sse_starlette", "jinja2", "prometheus_client")
TOKEN = "web-token"  # noqa: S105 - the name of its file
PORT_MAX = 65_535


class NotInstalled(ArcError):
    """The packages that the page needs are not here; nothing was started."""

    code = "ARC-WEB-MISSING"
    exit_code = 2
    hint = "pip install 'arc-fleet[web]'"


def register(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(web)


def web(
    host: Annotated[str, typer.Option("--host", help="Where to listen.", metavar="HOST")] = "",
    port: Annotated[
        int, typer.Option("--port", help="On which port; 0: any.", show_default=False)
    ] = -1,
    socket: Annotated[
        str, typer.Option("--socket", help="On a socket (0600) instead.", metavar="FILE")
    ] = "",
    make_token: Annotated[
        bool, typer.Option("--make-token", help="Write a new token (0600), and start nothing.")
    ] = False,
    beside_hub: Annotated[bool, typer.Option("--beside-hub", hidden=True)] = False,
    door: Annotated[int, typer.Option("--door", hidden=True)] = -1,
    dry_run: DryRun = False,
) -> int:
    """The page of this fleet, until Ctrl-C; it asks the hub that runs, and may outlive it.

    `--dry-run` starts and writes nothing: it says where the page would be.
    """
    from arc.config import read_fleet
    from arc.door import fleet_of

    around = here()
    fleet = read_fleet(fleet_of(around.fleet, around.environ))
    if make_token:
        return _make_token(around, fleet, dry_run=dry_run)
    check_installed()
    settings = _settings(fleet, _wanted(fleet.web, host, port, socket))
    from arc.web.serving import AlreadyUp

    try:
        if dry_run:
            return _dry_run(around, settings)
        return asyncio.run(_serve(around, settings, beside_hub=beside_hub, given=door))
    except AlreadyUp as page:
        data: JsonObject = {"address": page.address, "already": True}
        more: JsonObject = {"dry_run": True} if dry_run else {}
        text = str(page)
        return say("web", Told({**data, **more}), lambda *_: text, around)


def check_installed() -> None:
    """Return only where the packages of the page are here; else say how they are had."""
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise NotInstalled(f"the page needs packages that are not installed: {', '.join(missing)}")


def _wanted(said: WebEntry, host: str, port: int, socket: str) -> WebEntry:
    """What fleet.yaml says, with what was typed in its place."""
    if port > PORT_MAX or port < -1:
        raise WrongUse(f"--port: 0 to {PORT_MAX}")
    if socket and (host or port >= 0):
        raise WrongUse("--socket takes the place of --host and --port; name one of them")
    said = replace(said, host=host, socket=None) if host else said
    said = replace(said, port=port, socket=None) if port >= 0 else said
    return replace(said, socket=Path(socket).absolute()) if socket else said


def _settings(fleet: FleetSettings, said: WebEntry) -> WebSettings:
    from arc.secret_files import read_secret
    from arc.web.surroundings import WebSettings

    settings = WebSettings(fleet=fleet.file, state=fleet.state, host=said.host, port=said.port,
                           unix=said.socket, names=said.names, actions=said.actions)  # fmt: skip
    if settings.is_near and said.token_file is None:
        return settings
    path = said.token_file or fleet.state / TOKEN
    if not path.exists():
        why = "others can reach it there" if not settings.is_near else "fleet.yaml names one"
        raise NeedsWord(f"the page needs a token, for {why}: {path} is not there",
                        hint="make one: arc web --make-token")  # fmt: skip
    return replace(settings, token=read_secret(path))


def _make_token(around: Around, fleet: FleetSettings, *, dry_run: bool) -> int:
    path = fleet.web.token_file or fleet.state / TOKEN
    if not dry_run:
        fresh = path.with_name(f"{path.name}.new")
        try:
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            os.replace(fresh, path)
        except OSError as error:
            raise WrongUse(f"{path}: the token cannot be written: {error.strerror}") from error
    data: JsonObject = {"token_file": str(path), "made": not dry_run, "dry_run": dry_run}
    text = f"would write {path}" if dry_run else (
        f"{path}: a new token, for a page that is started from now on")
    return say("web", Told(data), lambda *_: text, around)


def _dry_run(around: Around, settings: WebSettings) -> int:
    from arc.web.serving import check_free

    check_free(settings)
    where = str(settings.unix or f"{settings.host}:{settings.port}")
    data: JsonObject = {"address": where, "token": settings.token is not None,
                        "actions": settings.actions, "dry_run": True}  # fmt: skip
    return say("web", Told(data), lambda data, _: f"would listen on {data['address']}", around)


async def _serve(
    around: Around, settings: WebSettings, *, beside_hub: bool, given: int
) -> int:
    from arc.history import History
    from arc.web.app import create_app
    from arc.web.hub_door import HubDoor
    from arc.web.past import Past
    from arc.web.presence import present
    from arc.web.serving import bound, inherited, presence_of, serve

    # A fault of ours is one line of ours; the server's own words, with traces, are for nobody.
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    door = bound(settings) if given < 0 else inherited(given)
    presence = presence_of(settings, door)
    with present(settings.state, presence):
        page = create_app(settings, HubDoor(settings.fleet), Past(History(settings.state)),
                          clock=SystemClock())  # fmt: skip
        stop, came = _told_to_end()  # from here on: who is told the address may end it at once
        _tell(around, presence.address)
        if beside_hub:
            await _end_with_hub(stop)
        await serve(page, door, stop)
    return Exit.INTERRUPTED if signal.SIGINT in came else Exit.DONE


def _told_to_end() -> tuple[asyncio.Event, list[int]]:
    """Set by a signal, and which signals came."""
    stop, came = asyncio.Event(), list[int]()
    loop = asyncio.get_running_loop()

    def hear(number: int) -> None:
        came.append(number)
        stop.set()

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, hear, one)
    return stop, came


def _tell(around: Around, address: str) -> None:
    if around.as_json:
        around.say(success("arc.web/1", around.stamp(), Answer({"address": address}, "")) + "\n")
    else:
        around.say(f"{address}\n")


async def _end_with_hub(stop: asyncio.Event) -> None:
    """A hub that dies, however it does, closes its end of our stdin."""

    class Watching(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            stop.set()

    await asyncio.get_running_loop().connect_read_pipe(Watching, sys.stdin.buffer)
