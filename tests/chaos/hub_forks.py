"""Runs commands of the hub as real processes that start fast: forks of one that has it all loaded.

`python -m tests.chaos.hub_forks` reads a JSON object a line (words, cwd, failpoint, seen, out) and
answers each with its exit code and whether it stood still; who stands still is woken again. Words
that begin with `@` name one of the small jobs below, which no single command does alone.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import arc.cli.app
import arc.door
import arc.hub
import arc.links.ssh
import arc.running
from agent_node import failpoints
from agent_node.clock import SystemClock
from arc.cli.running import run_here
from arc.editing import add_node
from arc.errors import ArcError
from arc.journal import Journal
from arc.links.hostkeys import HostKeys, parse_host_key

STANDS_S, LIMIT_S = 0.05, 60.0
LOADED = (arc.cli.app, arc.door, arc.hub, arc.links.ssh, arc.running)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


def fence(state: str, node: str, life: str) -> None:
    """As a person's word is written down when everybody has let go."""
    journal = Journal(Path(state) / "journal.db", SystemClock())
    try:
        journal.words.fence(node, life, by="human:test", reason="a test")
    finally:
        journal.close()


def edit(file: str, name: str) -> None:
    """As `nodes add` writes its line."""
    add_node(Path(file), {"name": name, "local": True, "home": f"./{name}"})


def pin(file: str, name: str) -> None:
    """As `nodes trust` writes a key."""
    key = parse_host_key(KEY)
    HostKeys(Path(file)).pin(name, key, fingerprint=key.fingerprint)


JOBS: dict[str, Callable[..., None]] = {"@fence": fence, "@edit": edit, "@pin": pin}


def job(words: list[str]) -> int:
    """One of the jobs, with errors as the commands tell them."""
    try:
        JOBS[words[0]](*words[1:])
    except ArcError as error:
        sys.stderr.write(f"error[{error.code}]: {error}\n")
        return error.exit_code
    return 0


def become(said: dict[str, str], words: list[str]) -> int:
    """In the child: these surroundings, these words."""
    out = os.open(said["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(out, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(said["cwd"])
    os.environ["ARC_FAILPOINT"] = said.get("failpoint", "")
    os.environ["ARC_FAILPOINT_SEEN"] = said["seen"]
    importlib.reload(failpoints)  # the same names in the same module, read anew
    for name in ("ARC_FAILPOINT", "ARC_FAILPOINT_SEEN"):
        del os.environ[name]  # ours alone: not that of the nodes that we start
    return job(words) if words[0] in JOBS else run_here(words)


def run(said: dict[str, str], words: list[str]) -> dict[str, object]:
    """The child's end: its exit code, below zero for a signal; and whether it stood still."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = become(said, words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until, stood = time.monotonic() + LIMIT_S, False
    pidfd = os.pidfd_open(pid)
    try:
        while True:
            over, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if over and os.WIFSTOPPED(status):
                stood = True
                select.select([], [], [], STANDS_S)
                os.kill(pid, signal.SIGCONT)
            elif over:
                return {"code": os.waitstatus_to_exitcode(status), "stood": stood}
            elif time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                until += LIMIT_S
            else:
                select.select([pidfd], [], [], 0.02)
    finally:
        os.close(pidfd)


def main() -> None:
    for line in sys.stdin.buffer:
        said = json.loads(line)
        sys.stdout.write(json.dumps(run(said, said.pop("words"))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
