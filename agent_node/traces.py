"""Finds the processes of one attempt by what they carry: an open lock, a token."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from .processes import all_pids, is_ending, look_at

TOKEN_NAME = "AGENT_ATTEMPT_TOKEN"  # noqa: S105 - the name of a variable, not a secret


class Search(NamedTuple):
    """Who was found, and whose papers could not be read, be they anybody's.

    Of the latter those apart whom the kernel is taking down: they run no more and may hold a lock.
    """

    found: frozenset[int]
    unreadable: frozenset[int]
    ending: frozenset[int] = frozenset()


def holders_of(path: str) -> Search:
    """Processes that have this very file open, whatever name it now has."""
    try:
        wanted = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return Search(frozenset(), frozenset())
    return holding(os.path.basename(path), wanted.st_dev, wanted.st_ino)


def holding(name: str, device: int, inode: int) -> Search:
    """The same for a file that this process cannot look up itself."""
    return _search(lambda thread: _has_open(thread, name, (device, inode)))


def carrying_token(token: str) -> Search:
    """Processes that were started with this attempt's token in their environment."""
    needle = f"{TOKEN_NAME}={token}".encode()

    def carries(thread: str) -> bool | None:
        with open(f"{thread}/environ", "rb", buffering=0) as file:
            environment = file.readall()
        return needle in environment.split(b"\0") if environment else None

    return _search(carries)


def _has_open(thread: str, name: str, wanted: tuple[int, int]) -> bool | None:
    folder = f"{thread}/fd"
    numbers = os.listdir(folder)
    for number in numbers:
        try:
            # The link is read first: a stat of somebody's dead network file would hang us.
            if name not in os.readlink(f"{folder}/{number}"):
                continue
            found = os.stat(f"{folder}/{number}")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if (found.st_dev, found.st_ino) == wanted:
            return True
    return False if numbers else None


def _search(question: Callable[[str], bool | None]) -> Search:
    """Of each process; `question` hears where a thread shows itself, None: it shows nothing."""
    found: set[int] = set()
    unreadable: set[int] = set()
    ending: set[int] = set()
    for pid in all_pids():
        try:
            if _is_so(pid, question):
                found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            (ending if is_ending(pid) else unreadable).add(pid)
    return Search(frozenset(found), frozenset(unreadable), frozenset(ending))


def _is_so(pid: int, question: Callable[[str], bool | None]) -> bool:
    """What its first thread says. One that has ended shows nothing, and then the others do.

    They are asked for nothing else: most processes have many threads and one answer.
    """
    try:
        answer = question(f"/proc/{pid}")
    except ProcessLookupError:  # so newer kernels say that there is nothing to see there
        answer = None
    except PermissionError:
        seen = look_at(pid)
        if seen is None or seen.zombie:  # of a zombie nobody but root may see that it has nothing
            return False
        if not seen.headless:
            raise
        answer = None
    return _others_say(pid, question) if answer is None else answer


def _others_say(pid: int, question: Callable[[str], bool | None]) -> bool:
    """Descriptors may differ from thread to thread; what closes one of them to us closes all."""
    answers: list[bool] = []
    refused: PermissionError | None = None
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            answer = question(f"/proc/{pid}/task/{tid}") if int(tid) != pid else None
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError as error:
            refused = error
        else:
            answers += [] if answer is None else [answer]
    if refused is not None and not answers:
        raise refused
    return any(answers)
