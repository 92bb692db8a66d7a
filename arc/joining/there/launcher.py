"""Puts a small `agent-node` where this account finds its commands, so that hints can be typed."""

from __future__ import annotations

import os
import pwd
import re
import subprocess

from .files import kind_of, read_own, write_own
from .looking import LINK, PROGRAM
from .words import Fact, Refused, checked_path

FOLDER, NAME = ".local/bin", "agent-node"
SHELL_S = 5.0
_is_ours = re.compile(
    r"#!/bin/sh\nexec (?:/usr/bin/env AGENT_NODE_HOME=\S+ )?\S+ -I -S "
    r"\S+/program/agent-node\.pyz \"\$@\"\n"
).fullmatch


def launch(request: Fact) -> Fact:
    """The launcher, and whether its folder is on PATH. What is none of ours is never replaced.

    `state` is `written`, `replaced`, `there` or `left`; of the last `because` says why. Without a
    launcher a node works as well, so that no trouble with it is an error.
    """
    account = pwd.getpwuid(os.geteuid())
    home = checked_path(request.get("home"), "the node's home")
    python = checked_path(request.get("python"), "this Python")
    folder = os.path.join(account.pw_dir, FOLDER)
    try:
        said = _put(folder, launcher(home, python, account.pw_dir))
    except (OSError, Refused) as error:
        said = {"state": "left", "because": str(error)}
    return said | {"file": os.path.join(folder, NAME),
                   "on_path": folder in path_of(account.pw_shell).split(":")}  # fmt: skip


def launcher(home: str, python: str, account_home: str) -> str:
    """Two lines that start the program of this home, whatever it is upgraded to."""
    usual = home == os.path.join(account_home, ".agent-node")
    named = "" if usual else f"/usr/bin/env AGENT_NODE_HOME={home} "
    return f'#!/bin/sh\nexec {named}{python} -I -S {home}/{PROGRAM}/{LINK} "$@"\n'


def _put(folder: str, text: str) -> Fact:
    path = os.path.join(folder, NAME)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    if os.stat(folder).st_uid != os.geteuid():
        return {"state": "left", "because": f"{folder} belongs to somebody else"}
    there = read_own(path) if kind_of(path) != "link" else "a link"
    if there is not None and _is_ours(there) is None:
        return {"state": "left", "because": f"{path} is none of ours"}
    if there == text and os.access(path, os.X_OK):
        return {"state": "there", "because": ""}
    write_own(path, text.encode(), 0o755)
    return {"state": "written" if there is None else "replaced", "because": ""}


def path_of(shell: str) -> str:
    """PATH as a login shell of this account has it; else that of this login."""
    argv = [shell or "/bin/sh", "-lc", 'printf "\\n%s\\n" "$PATH"']
    here = os.environ.get("PATH", os.defpath)
    try:
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=SHELL_S)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return here
    lines = ran.stdout.decode("utf-8", "replace").splitlines()
    return lines[-1] if ran.returncode == 0 and lines and "/" in lines[-1] else here
