"""Looks at a node from outside for everything that could go wrong, and says what would mend it."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime

from . import __version__
from .agent_checks import RESTART, check_agent, check_agents
from .cgroups import find_base_of
from .checks import Check
from .clock import SystemClock
from .clock_checks import check_clock
from .config import NodeSettings, read_settings
from .door import ask_daemon
from .errors import NodeError
from .home import OTHERS, Home, check_home, connect, holder_of
from .mounts import file_system_of, read_mountinfo
from .spare_folder import SPARE, is_taken
from .text import counted, size
from .ulid import is_ulid

Version = tuple[int, int, int]

OLDEST_PYTHON = (3, 11)
CONNECT_S = 5.0
WAL_MARK = 2  # bytes 18 and 19 of a database file: 2 means WAL, 1 a rollback journal
HEADER_BYTES = 20
FOLDERS_SHOWN = 3


def examine(home: Home, environ: Mapping[str, str], now: datetime) -> list[Check]:
    """Every check that makes sense on this node, in an order to be read; changes nothing."""
    checks = [check_python(), check_sqlite(sqlite3.sqlite_version_info), *check_place(home)]
    if checks[-1].level == "finding":
        return checks  # what lies in a home that is refused is not looked at
    checks += [*check_modes(home), check_daemon(home), check_clock(home, now, SystemClock())]
    try:
        settings = read_settings(home.config)
    except NodeError as error:
        return [*checks, Check("settings", "finding", str(error), f"edit {home.config}")]
    checks.append(check_settings(home, settings))
    checks += [check_disk(home, settings), check_journal(home, settings), *check_folders(home)]
    checks += check_spare(home)
    checks += [check for agent in settings.agents for check in check_agent(agent, environ)]
    delegated = check_cgroups(find_base_of(holder_of(home)))
    return [*checks, *check_agents(home, settings), delegated, check_path(environ)]


def check_python() -> Check:
    """The interpreter that runs this, by its path: several may be installed."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    text = f"Python {version} at {sys.executable}"
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("python", "ok", text)
    return Check("python", "finding", text, "use Python 3.11 or later")


def has_wal_reset_fault(version: Version) -> bool:
    """3.7.0 to 3.51.2 can damage a WAL database that several connections write or checkpoint.

    Mended in 3.51.3 and, for their own lines, in 3.50.7 and 3.44.6.
    """
    if version[:2] in {(3, 44), (3, 50)}:
        return version < {(3, 44): (3, 44, 6), (3, 50): (3, 50, 7)}[version[:2]]
    return (3, 7, 0) <= version < (3, 51, 3)


def check_sqlite(version: tuple[int, ...]) -> Check:
    """Which SQLite this is, and why its known fault does not reach our queue."""
    found = (version[0], version[1], version[2])
    text = f"SQLite {'.'.join(map(str, found))}"
    if not has_wal_reset_fault(found):
        return Check("sqlite", "ok", f"{text}, without the WAL-reset fault")
    return Check(
        "sqlite",
        "note",
        f"{text} has the WAL-reset fault (3.7.0 to 3.51.2). The queue is safe from it: one "
        "connection alone, the lock holder's, ever writes or checkpoints. Other programs may "
        "read queue.db, and must not write it",
    )


def check_place(home: Home) -> list[Check]:
    """Where the home lies, and whether a queue is safe there."""
    try:
        check_home(home)
        kind = file_system_of(os.path.realpath(home.root), read_mountinfo())
    except NodeError as error:
        return [Check("home", "finding", str(error), error.hint)]
    except OSError as error:
        return [Check("home", "finding", f"mounts cannot be read: {error}", "mount /proc")]
    return [
        Check("home", "ok", f"{home.root}: yours alone"),
        Check("file system", "ok", f"{kind or 'unknown'}, a local one"),
    ]


def check_modes(home: Home) -> list[Check]:
    """Files that others could read if the folder were ever opened."""
    files = (home.config, home.database, home.status, home.lock, home.generation, home.socket)
    open_ones = [str(path) for path in files if _mode(str(path)) & OTHERS]
    if not open_ones:
        return [Check("files", "ok", "every file is for its owner alone")]
    return [Check("files", "finding", "others may read a file", f"chmod 600 {' '.join(open_ones)}")]


def _mode(path: str) -> int:
    """The permissions; 0 for what is not there."""
    try:
        return stat.S_IMODE(os.lstat(path).st_mode)
    except OSError:
        return 0


def check_daemon(home: Home) -> Check:
    """Whether the daemon answers; asking the socket disturbs neither it nor the lock."""
    try:
        connect(home, timeout_s=CONNECT_S).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return _no_daemon(home)
    except OSError as error:
        return Check("daemon", "finding", f"{home.socket}: {error}", "restart: agent-node run")
    return Check("daemon", "ok", f"runs, pid {holder_of(home) or 'unknown'}, and listens")


def _no_daemon(home: Home) -> Check:
    pid = holder_of(home)
    if pid is not None and os.path.exists(f"/proc/{pid}"):
        return Check("daemon", "note", f"pid {pid} holds the lock and does not listen (yet)")
    return Check("daemon", "note", "does not run: nothing is dispatched", "agent-node run")


def check_settings(home: Home, settings: NodeSettings) -> Check:
    """Whether what node.toml says is in force: a daemon reads it once, when it starts."""
    text, said = f"{home.config}: read, node {settings.name}", _of_the_daemon(home, "settings")
    # Of another version it says nothing: the same file reads differently there.
    if not said or said.get("version") != __version__ or said.get("sha256") == settings.digest():
        return Check("settings", "ok", text)
    text = f"{home.config}: was changed since the daemon read it, which runs on by what it said"
    return Check("settings", "note", text, RESTART)


def check_disk(home: Home, settings: NodeSettings) -> Check:
    """Whether claiming would stop for want of space."""
    found = os.statvfs(home.root)
    free = found.f_bavail * found.f_frsize
    floor = settings.disk_needed(found.f_blocks * found.f_frsize)
    text = f"{size(free)} free, the floor is {size(floor)}"
    if free < floor:
        lower = ", or lower disk_floor in node.toml" if floor == settings.disk_floor else ""
        return Check("disk", "finding", text, f"free some space{lower}")
    return Check("disk", "ok", text)


def check_journal(home: Home, settings: NodeSettings) -> Check:
    """Which journal is in force, and why: as the daemon reads it back, or by the file's header,
    which tells a log from a rollback journal and no more; no connection is opened here.
    """
    wanted, why = settings.journal, _JOURNAL_REASONS[settings.journal]
    if not home.database.exists():
        return Check("journal", "ok", f"{wanted}, once there is a database: {why}")
    said = _of_the_daemon(home, "store")
    if said is not None:
        return _as_read_back(said, wanted)
    try:
        with home.database.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except OSError as error:
        return Check("journal", "finding", f"{home.database}: {error}", "see its owner and mode")
    if len(header) < HEADER_BYTES:
        return Check("journal", "note", f"{home.database}: holds nothing yet")
    log = header[18] == WAL_MARK
    text = f"{'wal' if log else 'truncate, or another rollback journal,'} by the file's own header"
    if log == (wanted == "wal"):
        text += f"; {wanted} with synchronous=FULL is set and read back when it is opened: {why}"
        return Check("journal", "ok", text)
    later = "whoever opens it next sets it: agent-node run"
    return Check("journal", "note", f"{text}; node.toml says {wanted}: {why}", later)


def _of_the_daemon(home: Home, name: str) -> Mapping[str, object] | None:
    """What the daemon alone can say under this name; None: none says so."""
    try:
        said = (ask_daemon(home, {"do": "status"}, timeout_s=CONNECT_S) or {}).get(name)
    except (NodeError, OSError):  # how the daemon is has a check of its own
        return None
    return said if isinstance(said, dict) else None


def _as_read_back(said: Mapping[str, object], wanted: str) -> Check:
    journal, level = str(said.get("journal_mode")), str(said.get("synchronous"))
    text = f"{journal} with synchronous={SYNCHRONOUS.get(level, level)}, read back by the daemon"
    if level not in ENOUGH:
        lost = "the next power cut may take the last commits"
        return Check("journal", "finding", f"{text}: {lost}", "restart the daemon: agent-node run")
    text = f"{text}: {_JOURNAL_REASONS.get(journal, 'nobody of ours asks for that')}"
    if journal == wanted:
        return Check("journal", "ok", text)
    text = f"{text}; node.toml says {wanted} by now"
    return Check("journal", "note", text, "restart the daemon: agent-node run")


SYNCHRONOUS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}
ENOUGH = ("2", "3")
_JOURNAL_REASONS = {
    "wal": "readers and the one writer do not wait for each other, and a commit is one fsync",
    "truncate": "node.toml asked for it; readers wait while the one writer commits",
}


def check_folders(home: Home) -> Iterator[Check]:
    """Whether the folders of old tasks could be removed; nothing, where no daemon has tried yet."""
    said = _of_the_daemon(home, "folders_kept")
    if said is None:
        return
    folders, count = said.get("folders"), said.get("count")
    told = [one for one in folders if isinstance(one, dict)] if isinstance(folders, list) else []
    named = [(str(one.get("uid")), one.get("because")) for one in told]
    left = [(home.tasks / uid, because) for uid, because in named
            if is_ulid(uid) and os.path.lexists(home.tasks / uid)]  # fmt: skip
    unnamed = count - len(told) if isinstance(count, int) else 0
    if not left and unnamed > 0:
        text = f"{counted(unnamed, 'more folder')} of tasks that ended long ago cannot be removed"
        yield Check("old tasks", "finding", text, "ask again in an hour, when they are named")
        return
    if not left:
        yield Check("old tasks", "ok", "what they left in tasks/ went with them")
        return
    number = len(left) + unnamed
    text = (f"{counted(number, 'folder')} of tasks that ended long ago cannot be removed "
            f"({left[0][1]}), so these tasks stay listed. It costs the disk that they take; "
            "nothing else is affected")  # fmt: skip
    some = " ".join(shlex.quote(str(path)) for path, _ in left[:FOLDERS_SHOWN])
    then = "; then ask again for the others" if number > FOLDERS_SHOWN else ""
    fix = f"sudo rm -r --one-file-system {some}; within an hour those tasks are let go of{then}"
    yield Check("old tasks", "finding", text, fix)


def check_spare(home: Home) -> Iterator[Check]:
    """Whether somebody put something where a folder lies ready for the next task."""
    if is_taken(str(home.tasks)):
        text = (f"{home.tasks / SPARE} holds what no daemon put there, so no folder lies ready for"
                " the next task; it starts all the same")  # fmt: skip
        yield Check("spare folder", "note", text, "look at it, and move it away")


def check_cgroups(base: str | None) -> Check:
    """With a cgroup for each attempt, whatever it started can be found and ended at once."""
    if base is not None:
        return Check("cgroup", "ok", f"{base}: ours to divide")
    text = "none is delegated: attempts are followed by locks, tokens and parents alone"
    return Check("cgroup", "note", text, "agent-node unit prints a unit with Delegate=yes")


def check_path(environ: Mapping[str, str]) -> Check:
    """Tasks call `agent-node heartbeat` by name."""
    found = shutil.which("agent-node", path=environ.get("PATH", os.defpath))
    if found:
        return Check("command", "ok", f"agent-node is {found}")
    return Check("command", "note", "tasks would not find agent-node on PATH")
