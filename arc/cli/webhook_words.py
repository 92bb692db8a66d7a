"""The commands `arc webhooks …`: work that signed messages from elsewhere ask for."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import json
import socket
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_node.clock import iso
from agent_node.errors import BadInput
from agent_node.strict import JsonObject, decode_object
from arc.errors import ArcError, NotFound, WaitedTooLong, WrongUse
from arc.operations import Told
from arc.socket_paths import reached

from .answering import ANSWER_S, say, tell
from .around import Around, here
from .options import DryRun

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from arc.settings import FleetSettings, HookEntry, WebEntry

webhooks = typer.Typer(help="Work that signed messages ask for.", invoke_without_command=True)
Name = Annotated[str, typer.Argument(help="Its name in fleet.yaml.", metavar="NAME")]
STEP_S = 10.0
PAYLOAD_MAX = 256 * 1024
ANSWER_MAX = 1024 * 1024


class NotSent(ArcError):
    """A test message was not taken; nothing was added by it."""

    code = "ARC-WEBHOOK"
    hint = "the page takes messages: arc web, or arc up --web"


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(webhooks, name="webhooks")


@webhooks.callback()
def webhooks_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_webhooks() if context.invoked_subcommand is None else None


@webhooks.command("list")
def list_webhooks() -> int:
    """Every webhook: where its messages go, and what it took last."""
    from arc.text.webhooks import render_webhooks

    return tell("webhooks.list", "webhooks.list", {}, render_webhooks)


@webhooks.command("show")
def show_webhook(name: Name) -> int:
    """One whole: the task that it makes, and a signed request to copy."""
    from arc.text.webhooks import render_webhook

    return tell("webhooks.show", "webhooks.show", {"name": name}, render_webhook)


@webhooks.command("test")
def try_webhook(
    name: Name,
    payload: Annotated[
        str, typer.Option("--payload", help="A file with the message; else one that fits.")
    ] = "",
    dry_run: DryRun = False,
) -> int:
    """Sign a message and post it to the page that runs, as its sender would.

    `--dry-run` posts nothing: it shows the task that the message would make.
    """
    from arc.config import read_fleet
    from arc.door import fleet_of
    from arc.operations.webhooks import example_of
    from arc.secret_files import read_secret
    from arc.text.webhooks import render_taken

    around = here()
    fleet = read_fleet(fleet_of(around.fleet, around.environ))
    entry = next((one for one in fleet.webhooks if one.name == name), None)
    if entry is None:
        known = ", ".join(sorted(one.name for one in fleet.webhooks)) or "none"
        raise NotFound(f"no webhook is called {name!r}", hint=f"fleet.yaml has: {known}")
    message = _message(payload) if payload else example_of(entry)
    secret = read_secret(entry.secret_file)  # a dry run, too, says that it cannot be had
    told = _tried(around, entry, message) if dry_run else _posted(
        around, fleet, entry, message, secret)
    return say("webhooks.test", told, render_taken, around)


def _message(path: str) -> JsonObject:
    try:
        with Path(path).open("rb") as file:
            return decode_object(file.read(PAYLOAD_MAX + 1), PAYLOAD_MAX)
    except OSError as error:
        raise WrongUse(f"--payload: {path}: {error.strerror}") from error
    except BadInput as error:
        raise WrongUse(f"--payload: {path}: {error}") from error


def _tried(around: Around, entry: HookEntry, message: JsonObject) -> Told:
    seal = sha256(json.dumps(message).encode()).hexdigest()
    args: JsonObject = {"name": entry.name, "payload": message, "seal": seal, "dry_run": True,
                        "at": iso(around.clock.now())}  # fmt: skip
    return around.ask(around, "webhooks.take", args, timeout_s=ANSWER_S)


def _posted(
    around: Around, fleet: FleetSettings, entry: HookEntry, message: JsonObject, secret: bytes
) -> Told:
    from arc.decisions.webhooks import SIGNED, proof_of

    body, stamp = json.dumps(message).encode(), str(int(around.clock.now().timestamp()))
    proof = SIGNED + proof_of(secret, stamp, body)
    headers = {"Content-Type": "application/json", "X-Arc-Timestamp": stamp,
               "X-Arc-Signature": proof}  # fmt: skip
    status, raw = _answer_to(fleet.web, f"/webhooks/{entry.name}", body, headers)
    try:
        said = decode_object(raw)
    except BadInput as error:
        raise NotSent(f"{entry.name}: answered {status} with no JSON: is that the page?") from error
    data = said.get("data")
    if said.get("ok") is not True or not isinstance(data, dict):
        found = said.get("error")
        error_said: JsonObject = found if isinstance(found, dict) else {}
        code = error_said.get("code") or NotSent.code
        raise NotSent(f"{entry.name}: answered {status}: {error_said.get('message')}",
                      hint=str(error_said.get("hint") or f"arc explain {code}"))  # fmt: skip
    return Told(data)


def _answer_to(
    web: WebEntry, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes]:
    link = _link(web)
    try:
        link.request("POST", path, body, headers)
        answer = link.getresponse()
        return answer.status, answer.read(ANSWER_MAX)
    except TimeoutError as error:
        raise WaitedTooLong(f"the page said nothing for {STEP_S:.0f} s; it may have taken it",
                            hint="arc webhooks list") from error  # fmt: skip
    except OSError as error:
        where = web.socket or f"{web.host}:{web.port}"
        raise NotSent(f"no page answers at {where}: {error.strerror or error}") from error
    finally:
        link.close()


def _link(web: WebEntry) -> HTTPConnection:
    import http.client

    if web.socket is None:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(web.host, web.host)  # noqa: S104
        return http.client.HTTPConnection(host, web.port, timeout=STEP_S)
    link = http.client.HTTPConnection("localhost", timeout=STEP_S)
    link.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.sock.settimeout(STEP_S)
    try:
        with reached(web.socket) as place:
            link.sock.connect(place)
    except OSError as error:
        link.close()
        raise NotSent(f"no page answers at {web.socket}: {error.strerror}") from error
    return link
