"""Has a warden carry files: one word, one answer, and at the end what came of all of it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from .artifacts import Shelf
from .errors import NodeError
from .gathering import Taking, check_size
from .named_files import PATH_MAX, NotTaken
from .porter import DONE, OPEN, READ, WORD_MAX

_WHY_MAX = 300  # characters of a reason that another user's process gave
_DIGITS_MAX = 18

T = TypeVar("T")


class NotCarried(NodeError):
    """A warden ended or said what makes no sense; what it was to carry may be there in part."""


class Carrying(Generic[T]):
    """What is said to one warden. `work` yields a word, gets the answer, and ends with a value."""

    def __init__(
        self,
        work: Generator[bytes, bytes, T],
        wanted: Callable[[], bool],
        then: Callable[[T], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._work, self._wanted = work, wanted
        self._then, self._fail = then, fail
        self._begun = False
        self._end = partial(fail, NotCarried("no warden of its user could hand its files over"))

    def hear(self, warden: socket.socket) -> bool:
        """Take in its answer and say the next word; False: nothing is left to say."""
        try:
            answer = warden.recv(WORD_MAX, socket.MSG_DONTWAIT)
            if not answer or not self._wanted():
                return False
            word = self._work.send(answer) if self._begun else next(self._work)
            self._begun = True
            warden.send(word, socket.MSG_DONTWAIT)  # it took our last word, so there is room
        except StopIteration as done:
            self._end = partial(self._then, done.value)
            return False
        except (OSError, NodeError) as error:
            self._end = partial(self._fail, error)
            return False
        return True

    def over(self, reply: object = None) -> None:
        """The warden is gone: whoever asked is told once, unless nobody asks any more."""
        self._work.close()
        if self._wanted():
            self._end()


def fetch(shelf: Shelf, path: str, room: int) -> Taking:
    """This file below the folder that the warden was sent to, on the shelf.

    Its size and its bytes are the word of a process of that user: both are bounded here.
    """
    if len(path) > PATH_MAX:
        raise NotTaken("its path is too long")
    size = _number(answered((yield OPEN + json.dumps(path).encode())))
    check_size(size, room)
    with shelf.write() as writing:
        while data := answered((yield READ)):
            if writing.size + len(data) > size:
                break
            writing.add(data)
        if data or writing.size != size:
            raise NotTaken("it changed while it was copied")
        return writing.keep()


def answered(word: bytes) -> bytes:
    """What stands behind a yes; a no is `NotTaken`, with its reason."""
    if word[:1] == DONE:
        return word[1:]
    raise NotTaken(word[1:].decode(errors="replace")[:_WHY_MAX])


def _number(said: bytes) -> int:
    if len(said) <= _DIGITS_MAX:
        with suppress(ValueError):
            return max(int(said), 0)
    raise NotCarried("a warden of its user said no size")
