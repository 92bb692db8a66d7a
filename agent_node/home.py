"""Finds the node's home, refuses one where a queue is not safe, and guards it with one lock."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .binding import connect_at, listen_at
from .errors import HomeRefused
from .job import TASKS_SOCKET
from .mounts import file_system_of, is_network, read_mountinfo
from .plain_files import NotPlainFile, open_plain, read_plain

OTHERS = 0o077  # every permission of anybody who is not the owner


class HomeRefusal(HomeRefused):
    """A refused home that also knows what would make it right."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class HomeMissing(HomeRefusal):
    """There is no home, or none any more; nothing was created."""

    code = "home_missing"


class HomeOnNetwork(HomeRefusal):
    """The home lies on a file system that cannot keep a queue safe; nothing was opened."""

    code = "home_on_network"


class HomeNotYours(HomeRefusal):
    """The home belongs to somebody else; nothing was opened."""

    code = "home_not_yours"


class HomeOpenToOthers(HomeRefusal):
    """Other people on this machine could read or change the home; nothing was opened."""

    code = "home_open_to_others"


@dataclass(frozen=True, slots=True)
class Home:
    """The one folder of a node, and what each file in it is called."""

    root: Path

    @property
    def config(self) -> Path:
        """The settings; written once by `init`, then by people."""
        return self.root / "node.toml"

    @property
    def database(self) -> Path:
        """The queue; only the lock's holder writes it."""
        return self.root / "queue.db"

    @property
    def generation(self) -> Path:
        """How far the database had come, kept apart so that a restored one is noticed."""
        return self.root / "generation"

    @property
    def status(self) -> Path:
        """The report for the hub; replaced in one step."""
        return self.root / "fleet-status.json"

    @property
    def socket(self) -> Path:
        """Where the daemon listens."""
        return self.root / "node.sock"

    @property
    def lock(self) -> Path:
        """Who holds this file's flock is the one writer."""
        return self.root / "lock"

    @property
    def tasks(self) -> Path:
        """One folder a task, one below it for each attempt."""
        return self.root / "tasks"

    @property
    def door(self) -> Path:
        """Where tasks of another user are heard; nobody finds it who was not handed it."""
        return self.root / "door"

    @property
    def backups(self) -> Path:
        """Copies of the database from before each migration."""
        return self.root / "backups"


def private_umask() -> None:
    """Let whatever this process creates from now on be for its owner alone."""
    os.umask(OTHERS)


def find_home(environ: Mapping[str, str]) -> Home:
    """The home these surroundings name: `$AGENT_NODE_HOME`, else `~/.agent-node`; not yet checked.

    An empty variable counts as none: it is far more often a script's slip than the root folder.
    """
    told = environ.get("AGENT_NODE_HOME", "")
    if told:
        return Home(Path(os.path.abspath(told)))
    return Home(Path(_user_home(environ)) / ".agent-node")


def _user_home(environ: Mapping[str, str]) -> str:
    if environ.get("HOME"):
        return os.path.abspath(environ["HOME"])
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError as error:
        raise HomeMissing(
            f"user {os.getuid()} has no home folder and neither HOME nor AGENT_NODE_HOME is set",
            hint="set AGENT_NODE_HOME to the node's folder",
        ) from error


def check_home(home: Home, *, mountinfo: str | None = None, uid: int | None = None) -> None:
    """Return only when the queue is safe in this folder; else say what to do about it.

    `mountinfo` and `uid` stand in for this machine's mounts and this process's user.
    """
    try:
        found = os.stat(home.root)
    except OSError as error:
        raise HomeMissing(
            f"{home.root}: cannot be looked at: {error.strerror}",
            hint="create it with: agent-node init --name NAME",
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise HomeMissing(
            f"{home.root}: is not a folder", hint="name another one in AGENT_NODE_HOME"
        )
    _check_owner(home, found, os.geteuid() if uid is None else uid)
    check_mount(home, _mounts() if mountinfo is None else mountinfo)


def _mounts() -> str:
    try:
        return read_mountinfo()
    except OSError as error:
        raise HomeOnNetwork(
            f"the mounts of this machine cannot be read, so no disk is proven local: {error}",
            hint="mount /proc and try again",
        ) from error


def _check_owner(home: Home, found: os.stat_result, uid: int) -> None:
    if found.st_uid != uid:
        raise HomeNotYours(
            f"{home.root}: belongs to user {found.st_uid}, and this process is user {uid}",
            hint=f"run as its owner, or: chown -R {uid} {home.root}",
        )
    if found.st_mode & OTHERS:
        raise HomeOpenToOthers(
            f"{home.root}: others can reach it (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"chmod 700 {home.root}",
        )


def check_mount(home: Home, mountinfo: str) -> None:
    """Return only when the home's file system keeps locks and fsync honest."""
    kind = file_system_of(os.path.realpath(home.root), mountinfo)
    if not is_network(kind):
        return
    raise HomeOnNetwork(
        f"{home.root}: lies on {kind}, where locks and fsync cannot be relied upon",
        hint="put the home on a local disk: AGENT_NODE_HOME=/var/lib/agent-node agent-node init …",
    )


class HomeLock:
    """The right to write this home; it ends with `release`, with `with`, or with the process.

    A forked child shares the lock in spite of O_CLOEXEC: fork before taking it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def try_take(cls, home: Home) -> HomeLock | None:
        """The lock, or None when another process holds it; never waits."""
        while True:
            try:
                descriptor = open_plain(home.lock, os.O_RDWR | os.O_CREAT)
            except NotPlainFile as error:
                raise _in_the_way(home.lock, error) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            if _is_still(home.lock, descriptor):
                return cls(_signed(descriptor))
            os.close(descriptor)  # removed between open and flock: it guards nothing any more

    def release(self) -> None:
        """Let the next one have it; doing so twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):  # as it was signed: for messages alone
                os.ftruncate(descriptor, 0)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a close alone would not, if a child shares it
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def identity_of(path: Path) -> tuple[int, int] | None:
    """Which file stands here; None when there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _in_the_way(path: Path, error: OSError) -> HomeRefusal:
    text = f"{path}: {error.strerror}; somebody put it there, and it was left alone"
    return HomeRefusal(text, hint=f"look at it, then take it away: ls -ld {path}")


def files_of(home: Home) -> tuple[tuple[int, int] | None, ...]:
    """Which files a daemon opened here: others in their place are another home."""
    return tuple(identity_of(path) for path in (home.lock, home.socket, home.database))


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _signed(descriptor: int) -> int:
    with suppress(OSError):  # it is for messages alone; a full disk can be locked, not signed
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
    return descriptor


def holder_of(home: Home) -> int | None:
    """The pid that signed the lock last, for messages only; None when nobody did."""
    try:
        text = read_plain(home.lock, 64).decode("ascii", "replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def listen(home: Home, _lock: HomeLock) -> socket.socket:
    """A socket that answers at the home; only the lock's holder may replace it, hence the lock."""
    try:
        return listen_at(home.socket, 0o600)
    except IsADirectoryError as error:
        raise _in_the_way(home.socket, error) from error


def listen_for_tasks(home: Home, _lock: HomeLock) -> socket.socket:
    """The same, for who was handed a descriptor of its folder: a shim of another user."""
    return listen_at(home.door / TASKS_SOCKET, 0o666)


def connect(home: Home, *, timeout_s: float = 30) -> socket.socket:
    """A connection to the daemon; FileNotFoundError or ConnectionRefusedError: none listens."""
    return connect_at(home.socket, timeout_s=timeout_s)
