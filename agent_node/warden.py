"""Does one errand as the user that tasks run as: it looks at their processes, and ends them."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from .job import REPLY_MAX, TREE_LOCK
from .killing import Table, stop_and_kill
from .porter import PORTERS, carry
from .processes import (
    Identity,
    descendants,
    identify,
    open_pidfd,
    process_table,
    real_uid,
    send_signal,
)
from .removal import remove_folder
from .rousing import rouse
from .traces import Search, carrying_token, holding
from .ulid import is_ulid

Json: TypeAlias = "str | float | bool | Sequence[Json] | Mapping[str, Json] | None"
Errand = Mapping[str, Json]

ERRAND_MAX = 128 * 1024
_PATIENCE_S = 4.0  # of ending what does not end; the daemon waits somewhat longer
_TIDY_S = 60.0  # what is left then goes with the next day's
_PIDS_MAX = 200  # named in one reply


def main_as(code: int) -> int:
    """Hear one errand from the daemon at descriptor 0, do it, and say what came of it."""
    os.close(code)
    daemon = socket.socket(fileno=os.dup(0))
    errand: Errand = json.loads(daemon.recv(ERRAND_MAX))
    if errand["do"] in PORTERS:
        return carry(PORTERS[str(errand["do"])](errand), daemon)
    reply = _ERRANDS[str(errand["do"])](errand)
    daemon.send(json.dumps(reply).encode()[:REPLY_MAX])
    return 0


def signal_shim(errand: Errand) -> dict[str, Json]:
    """Send a signal to exactly this process; `sent` is false when it is somebody else's."""
    known = Identity(_number(errand, "pid"), _number(errand, "start_ticks"), str(errand["boot_id"]))
    pidfd = open_pidfd(known)
    if pidfd is None:
        return {"sent": True}
    try:
        return {"sent": all(send_signal(pidfd, number) for number in _numbers(errand, "signals"))}
    finally:
        os.close(pidfd)


def clear(errand: Errand) -> dict[str, Json]:
    """KILL what is left of one attempt until nobody is; who does not end, who cannot be seen.

    What is left: who holds its tree.lock or carries its token, what descends from those, and what
    was handed to the daemon when its shim died. Seen twice when empty, for a process may fork and
    end in the very moment in which we pass it by.
    """
    give_up = time.monotonic() + _PATIENCE_S
    killed: set[int] = set()
    empty = 0
    while empty < 2 and time.monotonic() < give_up:  # noqa: PLR2004 - seen twice
        found = stop_and_kill(lambda table: _left_of_it(errand, table))
        killed |= found
        empty = 0 if found else empty + 1
    table = process_table()
    left = [] if empty else [pid for pid in _left_of_it(errand, table) if identify(pid)]
    hidden = _hidden(errand, table)
    return {"killed": len(killed), "left": left[:_PIDS_MAX], "hidden": hidden[:_PIDS_MAX]}


def look(errand: Errand) -> dict[str, Json]:
    """The same, ending nobody: who is left, and who cannot be seen."""
    table = process_table()
    left = _left_of_it(errand, table) or _left_of_it(errand, table)  # one may fork as we pass by
    return {"left": left[:_PIDS_MAX], "hidden": _hidden(errand, table)[:_PIDS_MAX]}


def wake(errand: Errand) -> dict[str, Json]:
    """Zygotes and spare shims that a program of this user stopped go on; how many did."""
    return {"woken": rouse(_ours(errand, process_table()) - {os.getpid()})}


def hello(errand: Errand) -> dict[str, Json]:
    """Who this is, whether it has a place to work in, and whether it can enter the node's home."""
    return {
        "uid": os.getuid(),
        "works": _can(lambda: os.makedirs(str(errand["folder"]), 0o700, exist_ok=True)),
        "enters": _can(lambda: os.stat(f"{errand['node']}/.")),
    }


def _can(do: Callable[[], object]) -> bool:
    try:
        do()
    except OSError:
        return False
    return True


def _left_of_it(errand: Errand, table: Table) -> tuple[int, ...]:
    roots = {pid for search in _searches(errand) for pid in search.found}
    daemon, ours = _number(errand, "daemon"), _ours(errand, table)
    roots |= {pid for pid, seen in table.items() if seen.ppid == daemon and _is_mine(pid)}
    roots -= ours | {os.getpid()}
    found = (*roots, *descendants(roots, table))
    return tuple(pid for pid in found if pid in table and not table[pid].zombie)


def _hidden(errand: Errand, table: Table) -> list[Json]:
    """Of my own user, young enough, no process of the node's and of no living attempt's tree."""
    ours = _ours(errand, table)
    known = ours | set(descendants(ours, table))
    unreadable = {pid for search in _searches(errand) for pid in search.unreadable} - known
    born = _number(errand, "born")
    return [pid for pid in sorted(unreadable)
            if pid in table and table[pid].start_ticks >= born and _is_mine(pid)]  # fmt: skip


def _searches(errand: Errand) -> tuple[Search, ...]:
    lock = errand["lock"]
    carriers = carrying_token(str(errand["token"]))
    if not isinstance(lock, list):
        return (carriers,)
    device, inode = (int(str(number)) for number in lock)
    return carriers, holding(TREE_LOCK, device, inode)


def _ours(errand: Errand, table: Table) -> set[int]:
    """The node's own processes of this user: living shims, zygotes, what these wait with, and us.

    What the daemon started may be sudo, which is not of this user; the first below it that is
    counts. A program cannot become a zygote's child: orphans go to the daemon.
    """
    ours = {os.getpid(), *_numbers(errand, "shims")}
    for starter in _numbers(errand, "starters"):
        zygotes = _first_of_mine(starter, table)
        children = [pid for pid, seen in table.items() if seen.ppid in zygotes]
        ours |= {*zygotes, *children}
    return ours


def _first_of_mine(starter: int, table: Table) -> set[int]:
    if _is_mine(starter):
        return {starter}
    below = [pid for pid, seen in table.items() if seen.ppid == starter]
    return {one for pid in below for one in _first_of_mine(pid, table)}


def _is_mine(pid: int) -> bool:
    return real_uid(pid) == os.getuid()


def tidy(errand: Errand) -> dict[str, Json]:
    """Remove the folders of attempts that ended long ago; those that run now are named."""
    folder, running = str(errand["folder"]), {*_texts(errand, "running")}
    before = time.time() - _number(errand, "older_than_s")
    with os.scandir(folder) as entries:
        old = [entry.name for entry in entries
               if is_ulid(entry.name.partition("-")[0]) and entry.name not in running
               and entry.stat(follow_symlinks=False).st_mtime < before]  # fmt: skip
    over = _after(_TIDY_S)
    return {"removed": sum(remove_folder(folder, name, over) is None for name in old)}


def remove(errand: Errand) -> dict[str, Json]:
    """Remove what was laid out for one attempt, whether it came to use it or not."""
    for path in _texts(errand, "folders"):
        remove_folder(*os.path.split(path), _after(_TIDY_S))  # a link in its place is left alone
    return {}


def _after(seconds: float) -> Callable[[], bool]:
    """Whether so much time is over: a program that still runs may nest folders without an end."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _number(errand: Errand, name: str) -> int:
    return int(str(errand[name]))


def _numbers(errand: Errand, name: str) -> list[int]:
    return [int(text) for text in _texts(errand, name)]


def _texts(errand: Errand, name: str) -> list[str]:
    listed = errand[name]
    return [str(one) for one in listed] if isinstance(listed, list) else []


_ERRANDS = {"signal": signal_shim, "clear": clear, "look": look, "wake": wake, "hello": hello,
            "tidy": tidy, "remove": remove}  # fmt: skip
