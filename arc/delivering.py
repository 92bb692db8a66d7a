"""Hands one notice to its receiver: a program, an address of HTTP, or a mail server; bounded."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import os
import signal
import smtplib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import urlsplit

from agent_node.lines import encode
from agent_node.strict import JsonObject

from .apart import apart
from .errors import ArcError
from .secret_files import BadSecret, read_secret
from .settings import NotifyEntry

STEP_S = 10.0  # for one step of a connection
WHOLE_S = 30.0  # for all of it
LONGEST_S = WHOLE_S + STEP_S  # what whoever waits for a delivery waits at most
PROBLEM_MAX = 300
OK = range(200, 300)
SMTP_READY = 220
_FAILURES = (OSError, ValueError, http.client.HTTPException, smtplib.SMTPException,
             subprocess.SubprocessError)  # fmt: skip
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")  # of the environment, for a program


class NotDelivered(ArcError):
    """A receiver of notices did not take one; nothing else is kept waiting by it."""

    code = "ARC-NOTICE"
    hint = "arc notify list says how each receiver fares; arc notify test NAME tries one now"


async def deliver(entry: NotifyEntry, notice: JsonObject, *, at_s: float) -> None:
    """Return once the receiver has it; `NotDelivered` says why it has not, within `LONGEST_S`.

    It may have arrived all the same where the answer was lost: its `id` is then the same again.
    `at_s` is when it is sent, in seconds since 1970.
    """
    work = apart(lambda: _deliver(entry, notice, at_s), name="notice",
                 may_raise=(NotDelivered, *_FAILURES))  # fmt: skip
    try:
        await asyncio.wait_for(work, LONGEST_S)
    except TimeoutError as error:
        raise NotDelivered(f"{entry.name}: no end after {LONGEST_S:.0f} s") from error
    except _FAILURES as error:
        raise NotDelivered(f"{entry.name}: {_in_a_line(error)}") from error


def _in_a_line(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {' '.join(str(said).split())}"[:PROBLEM_MAX]


def _deliver(entry: NotifyEntry, notice: JsonObject, at_s: float) -> None:
    body = encode(notice).encode()
    if entry.command:
        _run(entry, body)
    elif entry.url:
        _post(entry, body, at_s)
    else:
        _mail(entry, notice)


def _run(entry: NotifyEntry, body: bytes) -> None:
    """The program in a session of its own, so that all of it can be ended."""
    environ = {name: os.environ[name] for name in KEPT if name in os.environ}
    program = subprocess.Popen(
        entry.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=environ, start_new_session=True, close_fds=True, cwd="/",
    )  # fmt: skip
    try:
        program.communicate(body, timeout=WHOLE_S)
    except subprocess.TimeoutExpired as error:
        raise NotDelivered(f"{entry.name}: the program did not end in {WHOLE_S:.0f} s") from error
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait(STEP_S)
    if program.returncode:
        raise NotDelivered(f"{entry.name}: the program ended with {program.returncode}")


def _post(entry: NotifyEntry, body: bytes, at_s: float) -> None:
    parts = urlsplit(entry.url)
    headers = {"Content-Type": "application/json", "User-Agent": "arc",
               **signed(entry.secret_file, body, at_s)}  # fmt: skip
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = ssl.create_default_context()
        link: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=STEP_S, context=context)  # fmt: skip
    else:
        link = http.client.HTTPConnection(host, port, timeout=STEP_S)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with _no_longer_than(WHOLE_S, lambda: link.sock):
        try:
            link.request("POST", path, body, headers)
            status = link.getresponse().status
        finally:
            link.close()
    if status not in OK:
        raise NotDelivered(f"{entry.name}: the address answered {status}")


def signed(secret_file: Path | None, body: bytes, at_s: float) -> dict[str, str]:
    """The headers that prove who sent this body, and when; none without a secret.

    `X-Arc-Signature` is `sha256=` and the HMAC-SHA256 of `TIMESTAMP.BODY`, in hex.
    """
    if secret_file is None:
        return {}
    stamp = str(int(at_s))
    proof = hmac.new(_secret(secret_file), stamp.encode() + b"." + body, hashlib.sha256)
    return {"X-Arc-Timestamp": stamp, "X-Arc-Signature": f"sha256={proof.hexdigest()}"}


def _secret(path: Path) -> bytes:
    try:
        return read_secret(path)
    except BadSecret as error:
        raise NotDelivered(str(error), hint=error.hint) from error


def _mail(entry: NotifyEntry, notice: JsonObject) -> None:
    message = EmailMessage()
    message["From"], message["To"] = entry.mail_from, entry.mail_to
    text = str(notice.get("text"))
    message["Subject"] = text.partition("\n")[0][:200]
    message.set_content(text)
    server = smtplib.SMTP(timeout=STEP_S)
    with _no_longer_than(WHOLE_S, lambda: server.sock):
        try:
            code, said = server.connect(entry.mail_host, entry.mail_port)
            if code != SMTP_READY:
                raise smtplib.SMTPConnectError(code, said)
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            server.send_message(message)
            with suppress(smtplib.SMTPException, OSError):  # it has the message already
                server.quit()
        finally:
            server.close()


@contextmanager
def _no_longer_than(
    seconds: float, connection: Callable[[], socket.socket | None]
) -> Iterator[None]:
    """Cut the connection after so long, however busily the other end dribbles; what was read of an
    answer by then is none.
    """
    over, late = threading.Event(), threading.Event()

    def cut() -> None:
        again_s = seconds
        while not over.wait(again_s):  # it may not have been there the first time
            late.set()
            again_s = 1.0
            there = connection()
            if there is not None:
                with suppress(OSError):
                    there.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=cut, name="notice limit", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        if late.is_set():
            raise NotDelivered(f"the other end took longer than {seconds:g} s")
