"""Starts the zygote for the daemon, hands attempts to its shims, and hears who took them."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from .attempts import AttemptFolder
from .becoming import start_as
from .errors import BadInput, NodeError
from .handing import hand_over, take_over
from .job import ASK_MAX, REPLY_MAX, RUN_ATTEMPT, Job, encode_job
from .log import log
from .open_files import as_given
from .other_user import OtherUser
from .processes import Identity, send_signal
from .strict import decode_object

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # a folder, or the zipapp
_START = "import sys; sys.path.insert(0, sys.argv[1]); from agent_node.zygote import main; {}"
_MAIN = "sys.exit(main(sys.argv[2]))"
_REPORTED = 2  # descriptors: the shim's pidfd and its line
_END_PATIENCE_S = 5.0


class ZygoteGone(NodeError):
    """The zygote died or never came up. Attempts under way go on; start it again to start more.

    An attempt that was handed over and not heard of may run: judge its folder, do not repeat it.
    """

    code = "zygote_gone"


class Spawned(NamedTuple):
    """Who runs an attempt. `pidfd` becomes readable when the shim ends; on `line` it says when it
    could go on to another. The caller closes both, or has `let_go` do it.

    `started_at` None: the program could not be started; the verdict on its way says why.
    """

    uid: str
    n: int
    shim: Identity
    pidfd: int
    started_at: datetime | None
    cgroup: str | None
    line: socket.socket

    def let_go(self) -> None:
        """The shim sees its attempt through, and ends."""
        os.close(self.pidfd)
        self.line.close()


class Zygote:
    """The daemon's end of a zygote. Start it before taking any lock: a fork copies them all."""

    def __init__(
        self,
        prefix: tuple[str, ...] = (),
        cgroup_base: str | None = None,
        *,
        user: OtherUser | None = None,
        door: str | None = None,
    ) -> None:
        """`user` runs the shims, if not our own; at a socket in the folder `door` it is heard."""
        self._prefix, self._cgroup_base = prefix, cgroup_base
        self._user, self._door = user, door
        self._socket: socket.socket | None = None
        self._pid = 0

    @property
    def door(self) -> str | None:
        """The folder of the socket at which its user's programs are heard, if they need one."""
        return self._door

    @property
    def pid(self) -> int:
        """The child that was started, be it the command of a prefix; 0 while there is none."""
        return self._pid

    def start(self) -> None:
        """Bring it up, in place of an earlier one. It returns before the zygote is ready."""
        self.close()
        if self._user is not None:
            self._start_as(self._user)
            return
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [*self._prefix, sys.executable, "-I", "-S", "-c", _START.format(_MAIN)]
        argv += [_ROOT, self._cgroup_base or ""]
        with far, as_given():
            try:
                self._pid = os.posix_spawnp(
                    argv[0],
                    argv,
                    os.environ,
                    file_actions=((os.POSIX_SPAWN_DUP2, far.fileno(), 0),),
                    setsid=True,  # a Ctrl-C meant for the daemon is not meant for the work
                    setsigmask=(),
                )
            except OSError as error:
                near.close()
                raise ZygoteGone(f"zygote: could not start {argv[0]!r}: {error}") from error
        self._socket = near

    def _start_as(self, user: OtherUser) -> None:
        try:
            self._pid, self._socket = start_as(user, "zygote")
        except OSError as error:
            raise ZygoteGone(f"zygote: could not start as {user.name}: {error}") from error

    def fileno(self) -> int:
        """For the daemon's selector: readable when a shim reports, and when the zygote is gone."""
        return self._living().fileno()

    def hand_over(self, job: Job, folder: AttemptFolder) -> None:
        """Give one attempt to a waiting shim, with the lock that is from now on its alone.

        Only a later `replies`, or the evidence in the folder, tells what became of it.
        """
        with parcel(job, folder, self._door) as (message, descriptors):
            self.send(message, descriptors)

    def send(self, message: bytes, descriptors: list[int]) -> None:
        """The same with what is packed already."""
        try:
            hand_over(self._living(), message, descriptors)
        except BlockingIOError as error:
            raise ZygoteGone("zygote: takes no more work; what was handed over may run") from error
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ZygoteGone("zygote: is gone; this attempt was not handed over") from error

    def replies(self) -> tuple[Spawned, ...]:
        """Whoever reported since the last call, without waiting; `ZygoteGone` when it is over."""
        living, heard = self._living(), list[Spawned]()
        while True:
            try:
                raw, descriptors = take_over(living, REPLY_MAX, _REPORTED, wait=False)
            except BlockingIOError:
                return tuple(heard)
            except ConnectionResetError:
                raw, descriptors = b"", []
            if raw:
                heard.extend(_spawned(raw, descriptors))
            elif heard:
                return tuple(heard)  # the end is still there to be met at the next call
            else:
                raise ZygoteGone("zygote: is gone; judge every attempt that was not heard of")

    def spawn(self, job: Job, folder: AttemptFolder, *, patience_s: float = 10.0) -> Spawned:
        """Hand over and wait for the answer; for a caller who has nothing else to do."""
        self.hand_over(job, folder)
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        give_up = time.monotonic() + patience_s
        while time.monotonic() < give_up:
            poll.poll(max(0.0, give_up - time.monotonic()) * 1000)
            for spawned in self.replies():
                if (spawned.uid, spawned.n) == (job.uid, job.n):
                    return spawned
                spawned.let_go()
        raise ZygoteGone(f"zygote: no answer within {patience_s:g} s; the attempt may run")

    def close(self) -> None:
        """Let the zygote end (running shims go on) and bury it; killed if it does not by itself."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        pid, self._pid = self._pid, 0
        pidfd = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            if poll.poll(_END_PATIENCE_S * 1000) or send_signal(pidfd, signal.SIGKILL):
                os.waitpid(pid, 0)  # sudo, which we may not kill, is buried when it has ended
        finally:
            os.close(pidfd)

    def _living(self) -> socket.socket:
        if self._socket is None:
            raise ZygoteGone("zygote: was not started")
        return self._socket


@contextmanager
def parcel(
    job: Job, folder: AttemptFolder, door: str | None = None
) -> Iterator[tuple[bytes, list[int]]]:
    """What a shim is sent to run this attempt: the message, and descriptors that go afterwards."""
    message, descriptors = RUN_ATTEMPT + encode_job(job), list[int]()
    try:
        if len(message) > ASK_MAX:
            descriptors.append(_sealed(message[len(RUN_ATTEMPT) :]))
            message = RUN_ATTEMPT
        descriptors.append(folder.open())
        descriptors.append(folder.take_shim_lock())
        if door is not None:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptors.append(os.open(door, flags))
        yield message, descriptors
    finally:
        for number in descriptors:
            os.close(number)


def _sealed(content: bytes) -> int:
    """A nameless file with this content: no size limit of a socket, no trace on the disk."""
    descriptor = os.memfd_create("job", os.MFD_CLOEXEC)
    written = 0
    while written < len(content):
        written += os.write(descriptor, memoryview(content)[written:])
    return descriptor


def _spawned(raw: bytes, descriptors: list[int]) -> Iterator[Spawned]:
    """What it says; nothing where its descriptors found no room here: it is known by its lock."""
    said = decode_object(raw, REPLY_MAX)
    started, cgroup = said["started"], said["cgroup"]
    pid, ticks, n = said["pid"], said["start_ticks"], said["n"]
    if not (isinstance(pid, int) and isinstance(ticks, int) and isinstance(n, int)):
        raise BadInput("a shim's report lacks its pid or its attempt")
    if len(descriptors) != _REPORTED:
        for number in descriptors:
            os.close(number)
        log("report_lost", task=str(said["uid"]), attempt=n, because="no file can be opened")
        return
    yield Spawned(
        uid=str(said["uid"]),
        n=n,
        shim=Identity(pid, ticks, str(said["boot_id"])),
        pidfd=descriptors[0],
        started_at=datetime.fromtimestamp(started, UTC) if isinstance(started, float) else None,
        cgroup=cgroup if isinstance(cgroup, str) else None,
        line=socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, descriptors[1]),
    )
