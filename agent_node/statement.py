"""Reads and writes what an operator signs: which program it is, and what it may do."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import cast

from . import fields
from .errors import BadInput
from .requests import Fields
from .strict import decode_object

SCHEMA = "agent-node-upgrade/1"
STATEMENT_MAX = 4096
_KNOWN = frozenset("schema program_sha256 version made_at allow_older one_way".split())
is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch
_is_version = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}").fullmatch


@dataclass(frozen=True)
class Statement:
    """The word of an operator on one program. It binds the bytes and the version together, so
    that neither an old program nor another one can be sent under it.
    """

    program_sha256: str
    version: str
    made_at: str
    allow_older: bool = False  # the version may be lower than the one that runs
    one_way: bool = False  # the database may be changed so that the old program cannot read it


def render_statement(statement: Statement) -> bytes:
    """The bytes to sign; exactly these travel to the nodes."""
    said = {"schema": SCHEMA, **statement.__dict__}
    return (json.dumps(said, sort_keys=True, separators=(",", ":")) + "\n").encode()


def parse_statement(raw: bytes) -> Statement:
    """The statement, or `BadInput`. A word that we do not know is refused: it might forbid us."""
    document = decode_object(raw, STATEMENT_MAX)
    said = Fields(document, "statement")
    unknown = sorted(document.keys() - _KNOWN)
    if document.get("schema") != SCHEMA:
        raise BadInput(f"should be {SCHEMA!r}", "statement.schema")
    if unknown:
        raise BadInput("is not known here, and might limit what is signed", unknown[0][:64])
    sha256, version = said.text("program_sha256", 64), said.text("version", 32)
    if not is_sha256(sha256):
        raise BadInput("should be a sha256 in hex", "statement.program_sha256")
    version_of(version)
    made_at = cast("str", said.take("made_at", fields.moment))
    return Statement(sha256, version, made_at, said.flag("allow_older"), said.flag("one_way"))


def version_of(text: str) -> tuple[int, ...]:
    """A version as numbers that compare."""
    if not _is_version(text):
        raise BadInput(f"{text!r} is no version like 1.2.3", "version")
    return tuple(map(int, text.split(".")))


def id_of(raw: bytes) -> str:
    """What a statement is known by: the sha256 of its bytes."""
    return hashlib.sha256(raw).hexdigest()
