"""A notice by mail: it arrives whole and once, and a mail server that misbehaves is one line."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from typing import Any

import pytest

from arc import delivering
from arc.delivering import NotDelivered, deliver
from arc.settings import NotifyEntry

PATIENCE_S = 10.0
NOTICE: Any = {"id": "n1", "text": "1 dead letter on iris\n  café: it failed for good\n.\nno end"}


class MailServer(socketserver.StreamRequestHandler):
    """Speaks just enough of SMTP; `says` has other answers to single commands."""

    timeout = PATIENCE_S
    mails: list[bytes]
    says: dict[str, str]

    def handle(self) -> None:
        try:
            self.say(self.says.get("CONNECT", "220 here"))
            while line := self.rfile.readline(4096):
                self.answer(line.split()[0].decode("ascii").upper())
        except OSError:
            return

    def answer(self, word: str) -> None:
        if word == "DATA" and word not in self.says:
            self.say("354 go on")
            self.mails.append(b"".join(iter(self.rfile.readline, b".\r\n")))
        self.say(self.says.get(word, "250 fine"))

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def a_mail_server(**says: str) -> Iterator[tuple[NotifyEntry, list[bytes]]]:
    mails: list[bytes] = []
    handler = type("Handler", (MailServer,), {"mails": mails, "says": says})
    with listening(handler) as port:
        yield addressed_to(port), mails


def addressed_to(port: int) -> NotifyEntry:
    return NotifyEntry("ada", (), mail_to="ada@example.org", mail_from="arc@example.org",
                       mail_host="127.0.0.1", mail_port=port)  # fmt: skip


@contextmanager
def listening(handler: Any) -> Iterator[int]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler, bind_and_activate=True)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(PATIENCE_S)
        server.server_close()


def sent(entry: NotifyEntry) -> None:
    asyncio.run(deliver(entry, NOTICE, at_s=0.0))


def test_a_mail_has_the_notice_whole_and_its_first_line_as_the_subject() -> None:
    with a_mail_server() as (entry, mails):
        sent(entry)
    (raw,) = mails
    mail = message_from_bytes(raw.replace(b"\r\n..", b"\r\n."), policy=policy.default)
    assert (mail["From"], mail["To"]) == ("arc@example.org", "ada@example.org")
    assert mail["Subject"] == "1 dead letter on iris"
    body = mail.get_content()
    assert body.rstrip("\n").splitlines() == NOTICE["text"].splitlines()


@pytest.mark.parametrize(("word", "answer"), [
    ("CONNECT", "554 not you"), ("MAIL", "550 no such sender"), ("RCPT", "550 no such mailbox"),
    ("DATA", "452 no room"),
])  # fmt: skip
def test_what_a_mail_server_refuses_has_not_been_delivered(word: str, answer: str) -> None:
    with (a_mail_server(**{word: answer}) as (entry, mails),
          pytest.raises(NotDelivered, match="ada: ") as left):  # fmt: skip
        sent(entry)
    assert mails == []
    assert "\n" not in str(left.value)


def test_a_server_that_leaves_without_goodbye_has_the_mail_all_the_same() -> None:
    """To send it again would be a second mail; seen to fail with the error of QUIT told."""
    with a_mail_server(QUIT="gibberish") as (entry, mails):
        sent(entry)
    assert len(mails) == 1


def test_a_server_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "STEP_S", 0.2)

    class Mute(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)

    with listening(Mute) as port, pytest.raises(NotDelivered, match="ada: "):
        sent(addressed_to(port))


def test_no_line_of_a_notice_becomes_a_header() -> None:
    """What we say is made visible before; should it ever not be, nobody gets a mail of it."""
    notice: Any = {"text": "dead: x\rBcc: eve@example.org\nthe rest"}
    with a_mail_server() as (entry, mails), pytest.raises(NotDelivered, match="ada: "):
        asyncio.run(deliver(entry, notice, at_s=0.0))
    assert mails == []
