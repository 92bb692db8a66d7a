"""Runs a command of ours in a fork of this process, which has already imported what it needs.

A start of Python and its imports are most of what a short command costs. The child has a memory,
a session and an environment of its own; only its modules are those that were read before.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

OURS = ("arc", "agent_node", "sensors")
_warm: set[tuple[str, ...]] = set()


def run_warm(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], limit_s: float
) -> tuple[int, str]:
    """The exit code of `python -m WORDS` and all that it said; 124 when it was not over in time."""
    kind = tuple(words[:2])
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as known:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _be(words, cwd, env, said.fileno(), known.fileno())
        code = _end_of(pid, limit_s)
        if kind not in _warm:
            _import_what_it_did(known.fileno())
            _warm.add(kind)
        said.seek(0)
        return code, said.read().decode(errors="replace")


def _be(words: Sequence[str], cwd: Path, env: Mapping[str, str], said: int, known: int) -> None:
    """The child: it never returns."""
    code: object = 1
    try:
        os.setsid()
        os.chdir(cwd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = list(words)
        sys.path.insert(0, env["PYTHONPATH"])
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    finally:
        if sys.exc_info()[0] is not None:  # as the interpreter itself would
            traceback.print_exc()
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            os.pwrite(known, json.dumps(sorted(sys.modules)).encode(), 0)
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _end_of(pid: int, limit_s: float) -> int:
    pidfd = os.pidfd_open(pid)
    try:
        in_time = bool(select.select([pidfd], [], [], limit_s)[0])
        if not in_time:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(pidfd)
    return os.waitstatus_to_exitcode(status) if in_time else 124


def _import_what_it_did(known: int) -> None:
    names = json.loads(os.pread(known, 2**20, 0) or b"[]")
    for name in names:
        if name.partition(".")[0] in OURS and not name.endswith("__main__"):
            importlib.import_module(name)
