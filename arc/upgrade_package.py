"""Makes what an upgrade sends: a program, a statement about it, and the operator's signature."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_node import __version__, signing
from agent_node.errors import BadInput
from agent_node.packing import build_zipapp
from agent_node.statement import (
    STATEMENT_MAX,
    Statement,
    parse_statement,
    render_statement,
    version_of,
)
from agent_node.upgrading import PROGRAM_MAX
from arc.errors import ArcError

SIGN_S = 300.0  # a person may have to find the passphrase, or to touch a key
USUAL_KEYS = ("id_ed25519", "id_ed25519_sk", "id_ecdsa", "id_ecdsa_sk", "id_rsa")
_SOURCE_MAX = 64 * 1024
_version = re.compile(r'^__version__ = "([^"]{1,32})"$', re.MULTILINE)


class BadProgram(ArcError):
    """The file is no program of a node, or not the one that was signed; nothing was sent."""

    code = "ARC-UPGRADE-FILE"
    exit_code = 2


class CannotSign(ArcError):
    """There is no signature of an operator, so nothing was sent: the hub's key signs no code."""

    code = "ARC-UPGRADE-SIGN"
    exit_code = 4


@dataclass(frozen=True)
class Program:
    """A node's program: its bytes and what it says it is."""

    content: bytes
    sha256: str
    version: str


@dataclass(frozen=True)
class Signed:
    """An operator's word on a program; exactly these bytes travel."""

    statement: bytes
    signature: bytes


def own_program() -> Program:
    """The program that belongs to this installation; the same bytes every time."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "agent-node.pyz")
        sha256 = build_zipapp(path)
        return Program(path.read_bytes(), sha256, __version__)


def program_in(path: Path) -> Program:
    """The program in this file, or `BadProgram`."""
    content = read_small(path, PROGRAM_MAX)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            about = archive.getinfo("agent_node/__init__.py")
            if about.file_size > _SOURCE_MAX:
                raise BadProgram(f"{path}: its agent_node/__init__.py is too long to be ours")
            source = archive.read(about).decode("utf-8")
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, NotImplementedError) as error:
        raise BadProgram(f"{path}: is no agent-node.pyz: {error}") from error
    found = _version.search(source)
    if found is None:
        raise BadProgram(f"{path}: does not say its version")
    return Program(content, hashlib.sha256(content).hexdigest(), _checked(path, found.group(1)))


def _checked(path: Path, version: str) -> str:
    try:
        version_of(version)
    except BadInput as error:
        raise BadProgram(f"{path}: {error}") from error
    return version


def statement_for(
    program: Program, made_at: str, *, allow_older: bool, one_way: bool
) -> bytes:  # fmt: skip
    """What the operator signs about this program."""
    return render_statement(
        Statement(program.sha256, program.version, made_at, allow_older, one_way)
    )


def signed_elsewhere(program: Program, statement: Path, signature: Path) -> Signed:
    """A statement and its signature from files; `BadProgram` when it is about another program."""
    raw = read_small(statement, STATEMENT_MAX)
    try:
        said = parse_statement(raw)
        sig = read_small(signature, signing.SIGNATURE_MAX)
        signing.read_signature(sig)
    except (BadInput, signing.UnsignedCode) as error:
        raise BadProgram(f"{statement}, {signature}: {error}") from error
    if (said.program_sha256, said.version) != (program.sha256, program.version):
        raise BadProgram(
            f"{statement}: is about {said.version} {said.program_sha256[:12]}, not about"
            f" {program.version} {program.sha256[:12]}",
            hint="sign a new statement, or name the program it is about with --file",
        )
    return Signed(raw, sig)


def sign(statement: bytes, key: Path) -> Signed:
    """Let ssh-keygen sign it with the operator's key; it asks for what it needs on the terminal.

    `key` may be a public key whose private half an agent holds. The key is never read here.
    """
    argv = ["ssh-keygen", "-q", "-Y", "sign", "-n", signing.NAMESPACE, "-f", str(key)]
    try:
        done = subprocess.run(
            argv, input=statement, capture_output=True, check=False, timeout=SIGN_S
        )
    except subprocess.TimeoutExpired as error:
        raise CannotSign(f"ssh-keygen did not sign within {SIGN_S:.0f} s") from error
    except OSError as error:
        raise CannotSign(f"ssh-keygen cannot be started: {error}") from error
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise CannotSign(f"{key}: ssh-keygen did not sign: {why}")
    return Signed(statement, done.stdout)


def operator_key(named: Path | None, environ: Mapping[str, str]) -> Path:
    """The key to sign with: the one named, else the operator's usual one."""
    if named is not None:
        if not named.is_file():
            raise CannotSign(f"{named}: there is no such key")
        return named
    folder = Path(environ.get("HOME", "/"), ".ssh")
    for name in USUAL_KEYS:
        for path in (folder / name, folder / f"{name}.pub"):
            if path.is_file():
                return path
    raise CannotSign(f"{folder}: has no key to sign with", hint="name one with --key FILE")


def read_small(path: Path, limit: int) -> bytes:
    """A file of bounded length."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise BadProgram(f"{path}: {error.strerror}") from error
    if len(content) > limit:
        raise BadProgram(f"{path}: is longer than {limit} bytes")
    return content
