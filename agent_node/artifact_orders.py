"""Gives artifacts out in pieces, takes them in, and says which ones tasks here wait for."""

from __future__ import annotations

import base64
import binascii

from .artifact_words import ArtifactCame, ArtifactsMissing, Missing
from .artifacts import PIECE, SIZE_MAX, Piece, is_sha256
from .desk import Desk, Session
from .errors import BadInput, DiskTrouble, Refused
from .looks import total_bytes
from .requests import Fields, Request
from .strict import JsonObject
from .uploads import Progress

PAGE_MAX = 1000
_DATA_MAX = 4 * (PIECE // 3 + 1)  # characters of a piece as base64


def answer_artifact(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A piece of an artifact that is here, and where the next one starts."""
    asked = request.fields
    sha256 = read_sha256(asked)
    offset = asked.after("offset")
    piece = desk.shelf.read(sha256, offset, asked.limit(PIECE, PIECE))
    if piece is None:
        raise Refused("not_found", f"{sha256}: {desk.settings.name} has no such artifact")
    return piece_out(piece, offset)


def piece_out(piece: Piece, offset: int) -> JsonObject:
    """As it goes on a line."""
    after = offset + len(piece.data)
    return {
        "data": base64.b64encode(piece.data).decode("ascii"),
        "size": piece.size,
        "next": after if piece.data and after < piece.size else None,
    }


def answer_artifact_put(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The next bytes of an artifact that somebody here waits for; with the last one it is here."""
    asked = request.fields
    sha256 = read_sha256(asked)
    size, offset = asked.whole("size", 0, SIZE_MAX), asked.after("offset")
    data = read_data(asked)
    if request.dry_run:
        return _told(desk.uploads.progress(sha256))
    progress = desk.uploads.progress(sha256)
    if not progress.done:
        _check_wanted(desk, sha256, size)
        try:
            progress = desk.uploads.put(sha256, size=size, offset=offset, data=data)
        except OSError as error:
            raise DiskTrouble(f"{sha256}: it could not be kept: {error.strerror}") from error
    if progress.done:
        desk.apply(request, ArtifactCame(sha256, session.sender(request)))
    return _told(progress)


def _check_wanted(desk: Desk, sha256: str, size: int) -> None:
    """Nobody fills the disk with what no task here wants."""
    if not desk.store.read(ArtifactsMissing(limit=1, sha256=sha256)):
        raise Refused("unawaited", f"{sha256}: no task here waits for this artifact")
    if desk.host.disk_free() - size < desk.settings.disk_needed(total_bytes(desk.home)):
        raise Refused("disk_floor", f"{desk.settings.name} has too little free disk for it")


def _told(progress: Progress) -> JsonObject:
    return {"have": progress.have, "done": progress.done}


def answer_artifacts_missing(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Files that tasks here are to be given and that are not here; each as often as it is asked."""
    asked = request.fields
    uid = asked.ulid("uid") if asked.has("uid") else None
    found = desk.store.read(ArtifactsMissing(asked.limit(100, PAGE_MAX), uid))
    return {"artifacts": [_missing_out(one) for one in found]}


def _missing_out(one: Missing) -> JsonObject:
    return {
        "sha256": one.sha256, "uid": one.uid, "ref": one.ref, "size": one.size,
        "source": one.source, "node": one.node,
    }  # fmt: skip


def read_sha256(asked: Fields) -> str:
    """The hash that names an artifact."""
    said = asked.text("sha256", 64)
    if not is_sha256(said):
        raise BadInput("should be a sha256 in 64 small hex digits", asked.name_of("sha256"))
    return said


def read_data(asked: Fields) -> bytes:
    """The bytes of a piece, as they come on a line."""
    said = asked.values.get("data")
    if not isinstance(said, str) or len(said) > _DATA_MAX:
        raise BadInput(f"should be base64 of at most {PIECE} bytes", asked.name_of("data"))
    try:
        data = base64.b64decode(said, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput("is no base64", asked.name_of("data")) from error
    if len(data) > PIECE:
        raise BadInput(f"{len(data)} bytes; at most {PIECE} are taken", asked.name_of("data"))
    return data
