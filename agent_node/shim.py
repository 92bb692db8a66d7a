"""Stays beside one running attempt: starts it, times it, ends it, and says how it ended."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from .clock import iso
from .failpoints import failpoint
from .job import (
    HEARTBEAT,
    NEW_FILE,
    SHIM_JSON,
    STDERR_LOG,
    STDOUT_LOG,
    TREE_LOCK,
    VERDICT_JSON,
    VERDICT_SCHEMA,
    Job,
    decode_job,
    encode_job,
)
from .kit import Kit, listen_for_signals, listen_no_more, make_kit, was_asked_to_stop
from .output import Count, HeadAndTail
from .processes import Identity
from .speaking import Speaking
from .watching import Ending, Watch, boot_seconds
from .workplace import make_place, take_answer

_PROGRAM_TREE_LOCK = 3  # the only descriptor beyond 0, 1 and 2 that a program is born with
# Python ignores some signals and a daemon's parent may have ignored others; a program starts clean.
_BACK_TO_DEFAULT = [number for number in signal.valid_signals() if number not in (9, 19, 32, 33)]
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENFILE, errno.ENOMEM)
# Also what is empty or half written, is being written just now, or is a link that leads nowhere.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC, errno.ETXTBSY, errno.ELOOP)
_VERDICT_PATIENCE_S = 600.0
_VERDICT_PAUSE_S = (0.1, 30.0)  # first and longest pause between tries on a full disk

_SAMPLE = Job("0" * 26, 1, "0" * 32, ("/dev/null",), {"PATH": "/bin"}, "/")

_file_mode = 0o600


def rehearse(me: Identity) -> None:
    """Go once through what lies between a job and its program, and leave nothing behind.

    Who was just forked pays for each page that it is the first to write, some 150 of them: a spare
    has paid by the time that work comes. Nothing can be run at `/dev/null`, so nothing is.
    """
    job = decode_job(encode_job(_SAMPLE))
    kit = make_kit(me, None)
    listen_for_signals(kit)
    _entry(job, kit)
    scratch = os.memfd_create("rehearsal", os.MFD_CLOEXEC)
    fcntl.flock(scratch, fcntl.LOCK_EX)
    with suppress(OSError):
        _spawn(job, scratch, scratch, kit)
    listen_no_more()
    for number in (scratch, *kit.stdout, *kit.stderr, *kit.wake):
        os.close(number)


def attend(
    job: Job, folder: int, kit: Kit, tell: Callable[[float | None], None], door: int | None = None
) -> bool:
    """Run this attempt from its start to its verdict; `tell` hears when it started, or None.

    True: its program ended by itself and left nothing, so this process may be given another.
    `door` is the folder of the daemon's socket for tasks; None: they find the home's themselves.
    """
    listen_for_signals(kit)
    if job.shared:
        _share()
    logs: list[HeadAndTail] = []
    started, began = time.time(), boot_seconds()
    try:
        failpoint("shim.before_entry")
        _write_new(folder, SHIM_JSON, _entry(job, kit))
        logs += [_open_log(folder, name, job) for name in (STDOUT_LOG, STDERR_LOG)]
        if job.place:
            make_place(job.place)
        speaking = None if door is None or job.mute else Speaking(job, door)
        program = _start(job, folder, kit)
    except (OSError, ValueError) as error:
        tell(None)
        why = f"could not start {job.argv[0]!r} in {job.cwd!r}: {error}"
        ending = Ending.unstarted(why, missing=_is_absent(error, job.argv[0]),
                                  no_folder=_is_absent(error, job.cwd))  # fmt: skip
    else:
        failpoint("shim.after_start")
        tell(started)
        ending = _watch(job, folder, kit, program, logs, began, speaking)
        if job.place:
            take_answer(job.place, folder)
    counts = [log.finish() for log in logs] or [Count(0, 0)] * 2
    _deliver(folder, _verdict(job, ending, (started, time.time()), counts))
    failpoint("shim.after_verdict")
    for log in logs:
        log.close()
    return not job.shared and ending.by_itself and not was_asked_to_stop(kit)


def _is_absent(error: OSError | ValueError, name: str) -> bool:
    """Whether there is nothing to be run, or entered, of this name, or nothing that may be."""
    if not isinstance(error, OSError) or error.filename != name:
        return False
    return error.errno in _ABSENT


def _share() -> None:
    """Files that the node's own user can read, in a home that nobody else can enter."""
    global _file_mode  # noqa: PLW0603 - a shim serves one attempt and ends
    _file_mode = 0o644
    os.umask(0o022)


def _entry(job: Job, kit: Kit) -> bytes:
    return f"{kit.entry}{json.dumps(job.token)}}}".encode()


def _open_log(folder: int, name: str, job: Job) -> HeadAndTail:
    return HeadAndTail(os.open(name, NEW_FILE, _file_mode, dir_fd=folder), job.output_cap)


def _start(job: Job, folder: int, kit: Kit) -> int:
    """The program's pid. From here on `tree.lock` is free only when none of its tree holds it."""
    failpoint("shim.before_start")
    tree_lock = _open_tree_lock(job, folder)
    stdin = -1
    try:
        fcntl.flock(tree_lock, fcntl.LOCK_EX)
        stdin = os.open(job.stdin, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        os.chdir(job.cwd or folder)
        if "/" not in job.argv[0]:
            os.environ["PATH"] = job.env.get("PATH", os.defpath)  # posix_spawnp looks by ours
        return _spawn(job, stdin, tree_lock, kit)
    finally:
        for number in (tree_lock, stdin, kit.stdout[1], kit.stderr[1]):
            if number >= 0:
                os.close(number)
        os.chdir("/")  # a shim must not keep a disk from being unmounted


def _open_tree_lock(job: Job, folder: int) -> int:
    """The node's own file for another user, who could otherwise close it to the node."""
    if job.place:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(TREE_LOCK, flags, dir_fd=folder)
    return os.open(TREE_LOCK, NEW_FILE, _file_mode, dir_fd=folder)


def _spawn(job: Job, stdin: int, tree_lock: int, kit: Kit) -> int:
    return os.posix_spawnp(
        job.argv[0],
        job.argv,
        job.env,
        file_actions=(
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, kit.stdout[1], 1),
            (os.POSIX_SPAWN_DUP2, kit.stderr[1], 2),
            (os.POSIX_SPAWN_DUP2, tree_lock, _PROGRAM_TREE_LOCK),
        ),
        setsid=True,
        setsigmask=(),
        setsigdef=_BACK_TO_DEFAULT,
    )


def _watch(
    job: Job,
    folder: int,
    kit: Kit,
    program: int,
    logs: list[HeadAndTail],
    began: float,
    speaking: Speaking | None,
) -> Ending:
    watch = Watch(program, kit.wake[0], lambda: _beat(folder))
    if speaking is not None:
        speaking.begin(watch)
    watch.listen(kit.stdout[0], logs[0])
    watch.listen(kit.stderr[0], logs[1])
    ending = watch.until_over(began, max_s=job.max_s, grace_s=job.grace_s, beat_s=job.beat_s)
    watch.let_go()
    return ending


def _beat(folder: int) -> None:
    """A missing beat alarms nobody at once, so a full disk must not end the attempt here."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        beat = os.open(HEARTBEAT, flags, _file_mode, dir_fd=folder)
        os.utime(beat)
        os.close(beat)
    except OSError as error:
        with suppress(OSError):
            os.write(2, f"agent-node shim {os.getpid()}: no heartbeat: {error}\n".encode())


def _verdict(
    job: Job, ending: Ending, times: tuple[float, float], counts: list[Count]
) -> bytes:
    started, ended = (iso(datetime.fromtimestamp(moment, UTC)) for moment in times)
    verdict = {
        "schema": VERDICT_SCHEMA,
        "uid": job.uid,
        "n": job.n,
        "kind": ending.kind,
        "exit_code": ending.exit_code,
        "signal": ending.signal,
        "started_at": None if ending.kind == "could_not_start" else started,
        "ended_at": ended,
        "duration_s": round(ending.took_s, 4),
        "stdout": counts[0]._asdict(),
        "stderr": counts[1]._asdict(),
        "leftovers_killed": ending.leftovers_killed,
        "survivors": ending.survivors,
        "because": ending.because,
        **({"missing": True} if ending.missing else {}),
        **({"no_folder": True} if ending.no_folder else {}),
    }
    return json.dumps(verdict).encode()


def _deliver(folder: int, verdict: bytes) -> None:
    """Put the verdict in place whole. On a full disk it waits for room: a result is not lost so."""
    pause, longest = _VERDICT_PAUSE_S
    give_up = time.monotonic() + _VERDICT_PATIENCE_S
    while True:
        try:
            failpoint("shim.before_verdict")
            _replace(folder, VERDICT_JSON, verdict)
        except OSError as error:
            if error.errno not in _PASSING or time.monotonic() >= give_up:
                raise
            _beat(folder)
            select.poll().poll(pause * 1000)
            pause = min(pause * 2, longest)
        else:
            return


def _replace(folder: int, name: str, content: bytes) -> None:
    aside = f".{name}.{os.urandom(6).hex()}"
    try:
        _write_new(folder, aside, content)
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        _forget(folder, aside)
        raise


def _forget(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _write_new(folder: int, name: str, content: bytes) -> None:
    descriptor = os.open(name, NEW_FILE, _file_mode, dir_fd=folder)
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
    finally:
        os.close(descriptor)
