"""Checks that new code carries the signature of an operator whom this node was told of."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from .errors import BadInput, NodeError

NAMESPACE = "agent-node-upgrade"  # a signature made for mail or for git opens nothing here
OPERATORS_FILE = "operators"  # in the home: ssh's allowed_signers, written at joining
PRINCIPAL = "operator"
SIGNATURE_MAX = 16 * 1024
OPERATORS_MAX = 64 * 1024
VERIFY_S = 10.0
RSA_BITS_MIN = 2048
KEY_TYPES = frozenset(
    "ssh-ed25519 sk-ssh-ed25519@openssh.com ssh-rsa sk-ecdsa-sha2-nistp256@openssh.com"
    " ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 ecdsa-sha2-nistp521".split()
)
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG"
_PLACES = ("/usr/bin", "/bin", "/usr/local/bin")  # a search path that nobody else sets


class UnsignedCode(NodeError):
    """New code came without a signature that this node may take; nothing was changed."""

    code = "signature_refused"


class NoOperators(UnsignedCode):
    """Nobody may sign for this node, or the list of who may is not to be trusted."""

    code = "no_operators"
    hint = "write the operator's public key there: arc nodes add … again, with --operator-key"


class SignatureUnreadable(UnsignedCode):
    """What was sent in the place of a signature is none."""

    code = "signature_unreadable"
    hint = f"sign with: ssh-keygen -Y sign -n {NAMESPACE} -f KEY STATEMENT"


class WrongNamespace(UnsignedCode):
    """The signature was made for something else."""

    code = "signature_namespace"
    hint = f"sign with: ssh-keygen -Y sign -n {NAMESPACE} -f KEY STATEMENT"


class UnknownSigner(UnsignedCode):
    """It is signed, and not by an operator of this node: the hub's own key is none."""

    code = "signature_unknown_key"
    hint = "sign with the key that was named at joining, or join again with --operator-key"


class SignatureWrong(UnsignedCode):
    """The right key signed something else: what was sent is not what was signed."""

    code = "signature_wrong"


class CannotVerify(UnsignedCode):
    """This machine cannot check signatures, so it takes no new code."""

    code = "cannot_verify"
    hint = "install OpenSSH's ssh-keygen there (Debian: apt install openssh-client)"


class Signed(NamedTuple):
    """What a signature says of itself, before anybody has checked it."""

    key: bytes
    namespace: str


def operators_line(public_key: str) -> str:
    """The line of the operators file for this public key, its end included, or `BadInput`.

    The key is one line as in id_ed25519.pub, of a kind that signs safely; its comment is dropped.
    It may sign new code and nothing else, whatever else the same person signs with it.
    """
    words = public_key.strip().split()
    if "\n" in public_key.strip() or not public_key.isascii():
        raise BadInput("should be one line, as in id_ed25519.pub", "public key")
    if len(words) < 2 or words[0] not in KEY_TYPES:  # noqa: PLR2004 - type and key
        known = ", ".join(sorted(KEY_TYPES))
        raise BadInput(f"should begin with one of {known}, then the key", "public key")
    _check_blob(words[0], words[1])
    return f'{PRINCIPAL} namespaces="{NAMESPACE}" {words[0]} {words[1]}\n'


def fingerprint(key: bytes) -> str:
    """The key as people compare it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def verify(
    content: bytes, signature: bytes, operators: Path, *, timeout_s: float = VERIFY_S
) -> str:
    """Return who signed exactly these bytes, as a fingerprint; an `UnsignedCode` says why not.

    `ssh-keygen -Y verify` decides alone. What is looked at before only names the reason.
    """
    program = _ssh_keygen()
    allowed = _read_operators(operators)
    said = read_signature(signature)
    if said.namespace != NAMESPACE:
        raise WrongNamespace(
            f"the signature is for {said.namespace!r}, and only one for {NAMESPACE!r} counts"
        )
    who = fingerprint(said.key)
    if base64.b64encode(said.key).decode() not in allowed.decode("utf-8", "replace").split():
        raise UnknownSigner(f"signed by {who}, which is no operator of this node ({operators})")
    if not _ssh_agrees(program, content, signature, allowed, timeout_s):
        raise SignatureWrong(f"{who} did not sign these bytes for this node: they were altered")
    return who


def read_signature(signature: bytes) -> Signed:
    """Whose signature this claims to be and what for; nothing of it is proven yet."""
    if len(signature) > SIGNATURE_MAX:
        raise SignatureUnreadable(f"a signature of {len(signature)} bytes is none")
    text = signature.decode("ascii", "replace").strip()
    if not (text.startswith(_BEGIN) and text.endswith(_END)):
        raise SignatureUnreadable("there is no SSH signature; new code is taken only with one")
    try:
        blob = base64.b64decode("".join(text[len(_BEGIN) : -len(_END)].split()), validate=True)
        return _inside(blob)
    except (ValueError, binascii.Error) as error:
        raise SignatureUnreadable(f"the SSH signature cannot be read: {error}") from error


def _inside(blob: bytes) -> Signed:
    if not blob.startswith(_MAGIC):
        raise ValueError("it does not begin as one")
    key, rest = _string(blob[len(_MAGIC) + 4 :])  # after the version
    namespace, _ = _string(rest)
    return Signed(key, namespace.decode("utf-8"))


def _ssh_agrees(
    program: str, content: bytes, signature: bytes, allowed: bytes, timeout_s: float
) -> bool:
    """Both files are handed over as nameless copies: nobody changes them after our look."""
    with ExitStack() as stack:
        numbers = [_nameless(part, stack) for part in (allowed, signature)]
        signers, signed = (f"/proc/self/fd/{number}" for number in numbers)
        argv = [program, "-Y", "verify", "-f", signers, "-I", PRINCIPAL, "-n", NAMESPACE]
        try:
            done = subprocess.run(
                [*argv, "-s", signed], input=content, capture_output=True, check=False,
                pass_fds=numbers, timeout=timeout_s, env={"PATH": ":".join(_PLACES)}, cwd="/",
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CannotVerify(f"{program} gave no answer within {timeout_s:g} s") from error
        except OSError as error:
            raise CannotVerify(f"{program} cannot be started: {error}") from error
    return done.returncode == 0


def _nameless(content: bytes, stack: ExitStack) -> int:
    number = os.memfd_create("signed", os.MFD_CLOEXEC)
    stack.callback(os.close, number)
    os.write(number, content)  # far below what one write takes
    return number


def _ssh_keygen() -> str:
    for place in _PLACES:
        path = f"{place}/ssh-keygen"
        if os.access(path, os.X_OK):
            return path
    raise CannotVerify(f"no ssh-keygen in {', '.join(_PLACES)}: signatures cannot be checked here")


def _read_operators(path: Path) -> bytes:
    """The file's bytes, only when nobody but this node's owner can have written them."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(path, flags)
    except FileNotFoundError as error:
        raise NoOperators(f"{path}: is not there, so nobody may sign new code") from error
    except OSError as error:
        raise NoOperators(f"{path}: cannot be read: {error.strerror}") from error
    try:
        found = os.fstat(number)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid in (0, os.geteuid())
        if not ours or found.st_mode & 0o022 or found.st_nlink != 1:
            raise NoOperators(f"{path}: is no plain file that its owner alone can write")
        content = os.read(number, OPERATORS_MAX + 1)
    except OSError as error:
        raise NoOperators(f"{path}: cannot be read: {error.strerror}") from error
    finally:
        os.close(number)
    if not content.strip() or len(content) > OPERATORS_MAX:
        raise NoOperators(f"{path}: {'is too long' if content.strip() else 'names nobody'}")
    return content


def _check_blob(kind: str, encoded: str) -> None:
    """The inside of a key says its kind again; an RSA key has to be long enough."""
    try:
        problem = _fault_of(kind, base64.b64decode(encoded, validate=True))
    except (ValueError, binascii.Error) as error:
        raise BadInput(f"cannot be read: {error}", "public key") from error
    if problem:
        raise BadInput(problem, "public key")


def _fault_of(kind: str, blob: bytes) -> str:
    inner, rest = _string(blob)
    if inner != kind.encode():
        return f"says {kind} and holds another kind of key"
    if kind != "ssh-rsa":
        return ""
    modulus, _ = _string(_string(rest)[1])
    short = int.from_bytes(modulus).bit_length() < RSA_BITS_MIN
    return f"an RSA key of fewer than {RSA_BITS_MIN} bits" if short else ""


def _string(data: bytes) -> tuple[bytes, bytes]:
    """SSH's length and bytes, and what follows; `ValueError` where they do not fit."""
    if len(data) < 4:  # noqa: PLR2004 - the length itself
        raise ValueError("it ends too early")
    length = int.from_bytes(data[:4])
    if length > len(data) - 4:
        raise ValueError("it ends too early")
    return data[4 : 4 + length], data[4 + length :]
