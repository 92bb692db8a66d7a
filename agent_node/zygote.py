"""Keeps a few shims forked and waiting, so that starting a task costs no Python start-up."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import NamedTuple, NoReturn

from .cgroups import enter_new, sweep
from .failpoints import failpoint
from .handing import hand_over, take_over
from .job import ASK_MAX, OVER, RUN_ATTEMPT, Job, decode_job
from .kit import Kit, make_kit, renew
from .log import log
from .processes import Identity, become_subreaper, die_with_parent, identify, read_boot_id
from .shim import attend, rehearse
from .watching import boot_seconds
from .workplace import provide_command

SPARES = 2
REST_MS = 20  # so long a spare waits for work before it rehearses
# A shim goes on to the next attempt while it is young: what is long over, and what little its
# programs may have done to it (another priority, another limit), never goes along for long.
STAY_S = 10.0
ATTEMPTS_MAX = 100
_FIRST_FREE = 4  # 0, 1, 2 and the program's tree.lock at 3 are never anything else here
_FORK_AGAIN_MS = 1000
_TAKEN = b"t"
_FAULT = 70  # what sysexits.h calls a fault of our own


class _Setting(NamedTuple):
    """What every spare has to know and the zygote found out once."""

    zygote: int
    boot_id: str
    cgroup_base: str


def main_as(code: int) -> int:
    """The same, started as another user whose modules lie behind this descriptor."""
    provide_command(code)
    return main(code=code)


def main(cgroup_base: str = "", code: int = -1) -> int:
    """Serve the daemon at descriptor 0 until it is gone; shims that run are left running."""
    daemon = _settle(code)
    setting = _Setting(os.getpid(), read_boot_id(), cgroup_base)
    _prepare_to_fork()
    try:
        return _keep_spares(daemon, setting)
    except OSError as error:  # what it holds is nothing: the daemon starts another one
        log("zygote_failed", because=str(error))
        return _FAULT


def _keep_spares(daemon: socket.socket, setting: _Setting) -> int:
    """Until the daemon has gone, or a spare died before its program."""
    poll = select.poll()
    poll.register(daemon, 0)  # work is for the shims; only the daemon's end concerns us
    spares: list[int] = []
    while True:
        _fill(spares, poll, daemon, setting)
        for number, _ in poll.poll(_FORK_AGAIN_MS if len(spares) < SPARES else None):
            if number == daemon.fileno():
                return 0
            if os.read(number, 1) != _TAKEN:
                return _FAULT  # it died before its program; the daemon may try with a fresh zygote
            poll.unregister(number)
            spares.remove(number)
            os.close(number)


def _settle(code: int) -> socket.socket:
    """Descriptors and signals as every shim and program of ours shall find them."""
    daemon = socket.socket(fileno=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 10))
    null = fcntl.fcntl(os.open(os.devnull, os.O_RDWR), fcntl.F_DUPFD_CLOEXEC, 10)
    for number in (0, 1, _FIRST_FREE - 1):
        os.dup2(null, number, inheritable=False)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number >= _FIRST_FREE and number not in (daemon.fileno(), code):
            _close_stray(number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries our shims
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")
    return daemon


def _close_stray(number: int) -> None:
    """What the daemon's starter left open would otherwise be open in every program, too."""
    try:
        os.close(number)
    except OSError as error:
        if error.errno != errno.EBADF:  # the listing's own descriptor is gone by now
            raise


def _prepare_to_fork() -> None:
    """Import what is imported late, then stop the collector from touching shared pages."""
    die_with_parent(on=False)
    gc.disable()
    gc.freeze()


def _fill(
    spares: list[int], poll: select.poll, daemon: socket.socket, setting: _Setting
) -> None:
    """Fork until enough shims wait; out of processes, leave it for the next second."""
    if setting.cgroup_base and len(spares) < SPARES:
        sweep(setting.cgroup_base)
    while len(spares) < SPARES:
        near, far = os.pipe()
        failpoint("zygote.before_fork")
        try:
            pid = os.fork()
        except BlockingIOError:
            os.close(near)
            os.close(far)
            return
        if pid == 0:
            for number in (near, *spares):
                os.close(number)
            _wait_as_spare(daemon, far, setting)
        failpoint("zygote.after_fork")
        os.close(far)
        spares.append(near)
        poll.register(near, select.POLLIN)


def _wait_as_spare(daemon: socket.socket, taken: int, setting: _Setting) -> NoReturn:
    """The forked child's whole life; nothing of it ever returns into the zygote's loop."""
    code = _FAULT
    try:
        kit = _get_ready(daemon, setting)
        code = _serve(daemon, taken, kit, setting)
    finally:
        error = sys.exception()
        if isinstance(error, OSError):  # the daemon judges by the locks, as if it had been killed
            log("shim_failed", because=str(error))
        elif error is not None and not isinstance(error, SystemExit):
            sys.excepthook(type(error), error, error.__traceback__)
        os._exit(code)


def _get_ready(daemon: socket.socket, setting: _Setting) -> Kit:
    die_with_parent(on=True)  # until there is work: a spare must not outlive its zygote unseen
    if os.getppid() != setting.zygote:
        raise SystemExit(_FAULT)  # it died before the kernel was asked to tell us
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    become_subreaper()
    me = identify(os.getpid(), setting.boot_id)
    if me is None:
        raise SystemExit(_FAULT)
    if not work_waits(daemon):
        rehearse(me)
    return make_kit(me, _cgroup(setting, me))


def work_waits(daemon: socket.socket) -> bool:
    """Whether work comes, or the daemon goes, before a spare has come to rest. Where one task
    follows the other, a rehearsal costs what it saves, and a second start of a process besides.
    """
    poll = select.poll()
    poll.register(daemon, select.POLLIN)
    return bool(poll.poll(REST_MS))


def _serve(daemon: socket.socket, taken: int, kit: Kit, setting: _Setting) -> int:
    """Wait for one attempt and see it through. The lock came to this process and to no other."""
    asked, descriptors = take_over(daemon, ASK_MAX, 4, wait=True)
    if not asked.startswith(RUN_ATTEMPT):
        return 0 if not asked else _FAULT
    die_with_parent(on=False)
    until = boot_seconds() + STAY_S
    job = _job_of(asked, descriptors)
    folder, shim_lock, *door = descriptors
    line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def tell(started: float | None) -> None:
        with suppress(BrokenPipeError):  # it has ended with its daemon, and the program goes on
            os.write(taken, _TAKEN)  # not before: the fork of our successor would delay the program
        os.close(taken)
        _report(daemon, kit.me, kit.cgroup, (job.uid, job.n), started, far)

    if attend(job, folder, kit, tell, door[0] if door else None):
        _stay(line, (folder, shim_lock), kit, setting, until)
    return 0


def _stay(
    line: socket.socket, held: tuple[int, int], kit: Kit, setting: _Setting, until: float
) -> None:
    """Go on to what comes next for this slot, if it comes at once: that saves a fork, the pages
    that a fresh process writes first, and an end. The daemon hangs up when there is nothing.
    """
    for served in range(1, ATTEMPTS_MAX):
        folder, shim_lock = held
        os.close(folder)
        os.close(shim_lock)  # from here on the attempt is over for whoever looks at it
        failpoint("shim.before_over")
        if boot_seconds() >= until:
            return
        die_with_parent(on=True)  # as a spare: nobody is to find it with work that it never took
        cgroup = _cgroup(setting, kit.me, served)
        if not _said(line, OVER):
            return
        failpoint("shim.before_next")
        kit = renew(kit, cgroup)
        asked, descriptors = _next_ask(line)
        if not asked.startswith(RUN_ATTEMPT):
            return
        die_with_parent(on=False)
        job = _job_of(asked, descriptors)
        held = (descriptors[0], descriptors[1])
        if not attend(job, held[0], kit, partial(_report_next, line, job)):
            return


def _cgroup(setting: _Setting, me: Identity, served: int = 0) -> str | None:
    """One for each attempt: what is in that of an attempt is of that attempt."""
    if not setting.cgroup_base:
        return None
    name = f"{me.pid}-{me.start_ticks}"
    return enter_new(setting.cgroup_base, f"{name}-{served}" if served else name)


def _next_ask(line: socket.socket) -> tuple[bytes, list[int]]:
    try:
        return take_over(line, ASK_MAX, 3, wait=True)
    except ConnectionResetError:  # it hung up on a word of ours
        return b"", []


def _said(line: socket.socket, message: bytes) -> bool:
    """False: the daemon has gone, or wants no more of us."""
    try:
        line.send(message, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        return False
    return True


def _job_of(asked: bytes, descriptors: list[int]) -> Job:
    """It stands in the message, or behind the first descriptor, which then goes."""
    if len(asked) > len(RUN_ATTEMPT):
        return decode_job(asked[len(RUN_ATTEMPT) :])
    job_file = descriptors.pop(0)
    job = decode_job(os.pread(job_file, os.fstat(job_file).st_size, 0))
    os.close(job_file)
    return job


def _report(
    daemon: socket.socket,
    me: Identity,
    cgroup: str | None,
    attempt: tuple[str, int],
    started: float | None,
    line: socket.socket,
) -> None:
    """Say who runs this attempt, and let go of the daemon; a later one finds us by the lock. The
    line that goes along is for this daemon alone.
    """
    uid, n = attempt
    about = {**me._asdict(), "cgroup": cgroup, "uid": uid, "n": n, "started": started}
    pidfd = os.pidfd_open(me.pid)
    try:
        hand_over(daemon, json.dumps(about).encode(), [pidfd, line.fileno()])
    except OSError:
        return  # the next daemon adopts us; this one, if only slow, judges by the locks
    finally:
        os.close(pidfd)
        daemon.close()
        line.close()


def _report_next(line: socket.socket, job: Job, started: float | None) -> None:
    """Say that this one runs, too, or could not; who we are is known there."""
    _said(line, json.dumps({"uid": job.uid, "n": job.n, "started": started}).encode())
