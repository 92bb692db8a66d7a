"""Takes a new program over the wire: only with an operator's signature, and never an old one."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from . import __version__, fields, program, signing, statement, upgrade_record
from .clock import parse_iso
from .desk import Desk, Session, free_bytes
from .errors import BadInput, NodeError, Refused
from .failpoints import failpoint
from .queries import Facts
from .requests import Request
from .statement import Statement, id_of, parse_statement, version_of
from .strict import JsonObject
from .upgrade_record import Upgrade

PROGRAM_MAX = 5 * 1024 * 1024  # bytes; as base64 it fits a line of the wire
ROOM = 16 * 1024 * 1024  # that has to be left on the disk besides
AHEAD_MAX = timedelta(days=1)


class UpgradeRefused(NodeError):
    """This node takes no such program now; nothing was changed."""

    code = "upgrade_refused"


class NotReplaceable(UpgradeRefused):
    """What runs here is no program of this home, so none can take its place; nothing changed."""

    code = "upgrade_not_ours"
    hint = "install it as a program of the home: arc nodes add … again"


class OtherProgram(UpgradeRefused):
    """The bytes are not those that were signed; nothing was changed."""

    code = "upgrade_other_program"


class OlderProgram(UpgradeRefused):
    """It is older than the one that runs, or its signature is; nothing was changed."""

    code = "upgrade_older"
    hint = "sign it anew; to go back to an older version: --allow-older"


class UpgradeUnderWay(UpgradeRefused):
    """Another program is being put in place at this moment; nothing was changed."""

    code = "upgrade_under_way"
    hint = "ask again in a minute"


class NoRoom(UpgradeRefused):
    """The disk has no room for another program; nothing was changed."""

    code = "upgrade_no_room"
    hint = "free some space in the node's home"


@dataclass(frozen=True)
class Offer:
    """What one request brings. `content` None: it only asks what became of this statement."""

    raw: bytes
    statement: Statement
    signature: bytes
    content: bytes | None


def answer_upgrade(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Begin to replace the program, or tell what became of it; the same statement, the same
    outcome. The process that carries it out is none of the daemon's, which it replaces.
    """
    _check_meant(desk, session, request)
    offer = read_offer(request)
    running = program.running_in(desk.home)
    if running is None:
        raise NotReplaceable(f"this node runs {program.running() or 'an installed package'}")
    last = _last(desk)
    if last is not None and last.statement_id == id_of(offer.raw):
        return _again(desk, request, last)
    if program.hash_of_file(running) == offer.statement.program_sha256:
        return {"outcome": "already", "version": __version__, "program": _sha256(offer)}
    signer = signing.verify(offer.raw, offer.signature, desk.home.root / signing.OPERATORS_FILE)
    content = check_offer(desk, offer, last)
    upgrade = Upgrade(
        id_of(offer.raw), offer.statement.made_at, _sha256(offer), offer.statement.version,
        running.name, __version__, signer, one_way=offer.statement.one_way,
    )  # fmt: skip
    if request.dry_run:
        return {**upgrade.answer(), "outcome": "would"}
    _begin(desk, upgrade, content)
    return upgrade.answer()


def read_offer(request: Request) -> Offer:
    """The request's parts, each bounded and readable; nothing of them is believed yet."""
    asked = request.fields
    raw = _bytes_of(request, "statement", statement.STATEMENT_MAX)
    signature = _bytes_of(request, "signature", signing.SIGNATURE_MAX)
    said = parse_statement(raw)
    if asked.text("sha256", 64) != said.program_sha256:
        raise OtherProgram("the request names another sha256 than the statement")
    if not asked.has("file"):
        return Offer(raw, said, signature, None)
    encoded = _bytes_of(request, "file", PROGRAM_MAX * 4 // 3 + 4)
    try:
        content = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise BadInput(f"is no base64: {error}", "file") from error
    return Offer(raw, said, signature, content)


def _bytes_of(request: Request, name: str, longest: int) -> bytes:
    text = request.fields.take(name, fields.text(longest, one_line=False))
    return cast("str", text).encode()


def check_offer(desk: Desk, offer: Offer, last: Upgrade | None) -> bytes:
    """The new program's bytes, once nothing speaks against them; its signature is proven."""
    said = offer.statement
    if offer.content is None:
        raise BadInput("missing; this statement is new here", "file")
    if hashlib.sha256(offer.content).hexdigest() != said.program_sha256:
        raise OtherProgram("the file does not have the sha256 that was signed")
    _check_age(desk, said, last)
    _check_room(desk, said, len(offer.content))
    if upgrade_record.is_carried_out(desk.home):
        raise UpgradeUnderWay(f"{last.version if last else 'another program'} is being installed")
    return offer.content


def _check_room(desk: Desk, said: Statement, size: int) -> None:
    """Whoever may change the database copies it first, and writes as much again into its log."""
    tables = 2 * desk.home.database.stat().st_size if said.one_way else 0
    needed, free = 2 * size + tables + ROOM, free_bytes(desk.home)
    if free < needed:
        copied = f", with a copy of the database in {desk.home.backups}" if tables else ""
        raise NoRoom(f"a program of {size} bytes needs {needed} free{copied}, and {free} are")


def _check_age(desk: Desk, said: Statement, last: Upgrade | None) -> None:
    """A signed program that is old stays signed for ever: it must not come back unasked."""
    if version_of(said.version) < version_of(__version__) and not said.allow_older:
        raise OlderProgram(f"{said.version} is older than {__version__}, which runs here")
    if last is not None and said.made_at <= last.made_at:
        raise OlderProgram(
            f"it was signed at {said.made_at}, and one of {last.made_at} has been here already"
        )
    if parse_iso(said.made_at) > desk.clock.now() + AHEAD_MAX:
        raise OlderProgram(f"it was signed at {said.made_at}, which is yet to come by our clock")


def _begin(desk: Desk, upgrade: Upgrade, content: bytes) -> None:
    """First the program, then the record, then who carries it out: each may be the last."""
    try:
        failpoint("upgrade.before_program")
        program.write_program(desk.home, content)
        failpoint("upgrade.before_record")
        upgrade_record.write_record(desk.home, upgrade)
    except OSError as error:
        raise NoRoom(f"the new program could not be written: {error}") from error
    failpoint("upgrade.before_start")
    desk.host.carry_out_upgrade()


def _again(desk: Desk, request: Request, last: Upgrade) -> JsonObject:
    """The recorded outcome; where whoever carried it out has died, it is carried on."""
    dead = last.outcome == "under_way" and not upgrade_record.is_carried_out(desk.home)
    if dead and not request.dry_run:
        desk.host.carry_out_upgrade()
    return last.answer()


def _last(desk: Desk) -> Upgrade | None:
    try:
        return upgrade_record.read_record(desk.home)
    except BadInput as error:
        raise UpgradeRefused(upgrade_record.unreadable(desk.home, error)) from error


def _check_meant(desk: Desk, session: Session, request: Request) -> None:
    """The same two questions that every other word is asked."""
    facts, sender = desk.store.read(Facts()), session.sender(request)
    if sender.incarnation not in (None, facts.incarnation):
        text = f"{facts.name} is now {facts.incarnation}, not {sender.incarnation}; nothing changed"
        raise Refused("other_incarnation", text, "other_incarnation")
    if sender.term is not None and sender.term < facts.term:
        text = f"{facts.name} has seen term {facts.term}; this hub says {sender.term}"
        raise Refused("old_term", text, "old_term")


def _sha256(offer: Offer) -> str:
    return offer.statement.program_sha256
