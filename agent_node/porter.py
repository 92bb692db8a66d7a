"""Carries files as the user that tasks run as: out of where one worked, or into where one will."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from .job import NEW_FILE
from .named_files import NamedFile, NotTaken, why_not

CHUNK = 64 * 1024  # bytes of a file in one word
WORD_MAX = CHUNK + 1
OPEN, READ = b"o", b"r"  # of a program's file: its size, then its bytes until there are none
NEW, WRITE = b"n", b"w"  # of a file for a program: its name, then its bytes
DONE, REFUSED = b"+", b"-"  # our answers, with what was asked for or with the reason behind them
READER = "the user that its task ran as"
_PATIENCE_S = 60.0  # with a daemon that says nothing; one that ends is heard at once
_MODE = 0o444
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Porter(Protocol):
    """Has at most one file open, and does with it what one word says."""

    def answer(self, word: bytes) -> bytes:
        """What was asked for; `NotTaken` or `OSError` where it cannot be had."""

    def let_go(self) -> None:
        """Close what is open."""


def carry(porter: Porter, daemon: socket.socket) -> int:
    """Answer each word of the daemon with one of our own, until it has heard enough."""
    daemon.settimeout(_PATIENCE_S)
    said = DONE  # the first says that we are there
    try:
        while True:
            daemon.send(said)
            word = daemon.recv(WORD_MAX)
            if not word:
                return 0
            said = _answer(porter, word)
    except (BrokenPipeError, ConnectionResetError, TimeoutError):
        return 0  # the daemon went, or had heard enough
    finally:
        porter.let_go()


def _answer(porter: Porter, word: bytes) -> bytes:
    try:
        return DONE + porter.answer(word)
    except (NotTaken, OSError) as error:
        return REFUSED + why_not(error, READER).encode(errors="replace")


class Fetching:
    """Reads what a program named, below the folder in which it worked."""

    def __init__(self, errand: Mapping[str, object]) -> None:
        self._place = str(errand["place"])
        self._file: NamedFile | None = None

    def answer(self, word: bytes) -> bytes:
        """The size of a file that is opened, or the next bytes of the one that is open."""
        if word[:1] == OPEN:
            self.let_go()
            self._file = NamedFile(self._place, json.loads(word[1:]))
            return str(self._file.size).encode()
        return self._file.read(CHUNK) if self._file is not None else b""

    def let_go(self) -> None:
        """Close what is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Laying:
    """Writes what a task is given into a new folder, for its program to read."""

    def __init__(self, errand: Mapping[str, object]) -> None:
        self._path = str(errand["folder"])
        self._folder = self._file = -1

    def answer(self, word: bytes) -> bytes:
        """Nothing to tell: a new file is there, or has some more bytes."""
        if word[:1] == NEW:
            self._begin(word[1:].decode())
            return b""
        left = memoryview(word)[1:]
        while left:
            left = left[os.write(self._file, left) :]
        return b""

    def _begin(self, name: str) -> None:
        if self._folder < 0:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            os.mkdir(self._path, 0o700)  # of nobody before us
            self._folder = os.open(self._path, _FOLDER)
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(name, NEW_FILE, _MODE, dir_fd=self._folder)

    def let_go(self) -> None:
        """Close what is open."""
        for descriptor in (self._folder, self._file):
            if descriptor >= 0:
                os.close(descriptor)
        self._folder = self._file = -1


PORTERS: dict[str, Callable[[Mapping[str, object]], Porter]] = {"fetch": Fetching, "lay": Laying}
