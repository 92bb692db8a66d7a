"""Starts the daemon: by a systemd user unit where systemd runs, else as a process of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess

from .files import read_own, write_own
from .looking import BIN
from .placing import run_program, surroundings
from .words import Fact, checked_path

START_S = 30.0
SYSTEMD_S = 15.0
UNIT = ".config/systemd/user/agent-node.service"
BOOTED = "/run/systemd/system"
ERROR_MAX = 300


def start(request: Fact) -> Fact:
    """A daemon that answers, and what keeps it alive: `systemd` or `nothing`, with what failed."""
    home = checked_path(request.get("home"), "the node's home")
    kept: Fact = {"kept_by": "nothing", "unit": "", "said": []}
    if os.path.isdir(BOOTED) and shutil.which("systemctl", path=BIN):
        kept = install_unit(pwd.getpwuid(os.geteuid()), str(request.get("unit")))
    return kept | run_program(home, ["start"], START_S)


def install_unit(account: pwd.struct_passwd, text: str) -> Fact:
    """The unit, enabled, and the account lingering, so that it outlives this login.

    Where the account may not linger none is enabled: systemd would end the daemon and every task
    ten seconds after the last login ends, and a process of its own outlives it. What systemd
    refuses is told, and no error: the daemon is started all the same.
    """
    path = os.path.join(account.pw_dir, UNIT)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    there = read_own(path) == text
    if not there:
        write_own(path, text.encode(), 0o644)
    refused = _linger(account)
    verb = "disable" if refused else "enable"
    said = [refused, _told(["systemctl", "--user", "daemon-reload"], account),
            _told(["systemctl", "--user", verb, "agent-node.service"], account)]  # fmt: skip
    troubles = [one for one in said if one]
    return {"kept_by": "nothing" if refused or said[2] else "systemd", "unit": path,
            "said": troubles, "unit_there": there}  # fmt: skip


def _linger(account: pwd.struct_passwd) -> str:
    """Let the account linger; why it does not, and what mends that; empty: it does.

    Without polkit an account may not even ask for what root has granted already.
    """
    name = account.pw_name
    refused = _told(["loginctl", "enable-linger", name], account)
    shown = ["loginctl", "show-user", name, "--property=Linger", "--value"]
    if not refused or _ran(shown, account).stdout.strip() == b"yes":
        return ""
    return (f"{refused}; systemd would end the daemon and its tasks with the last login, so its "
            f"unit is not enabled; as root there: loginctl enable-linger {name}; then the same "
            "command again")  # fmt: skip


def _told(argv: list[str], account: pwd.struct_passwd) -> str:
    """Why this command failed; empty: it did not."""
    ran = _ran(argv, account)
    if ran.returncode == 0:
        return ""
    last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
    return f"{' '.join(argv)}: {last[0]}"[:ERROR_MAX]


def _ran(argv: list[str], account: pwd.struct_passwd) -> subprocess.CompletedProcess[bytes]:
    """What came of it; where it could not be run, why, as if it had said so itself."""
    runtime = f"/run/user/{account.pw_uid}"
    env = surroundings("") | {"PATH": os.environ.get("PATH", BIN), "XDG_RUNTIME_DIR": runtime,
                              "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus"}  # fmt: skip
    del env["AGENT_NODE_HOME"]
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=SYSTEMD_S, env=env)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(argv, 1, b"", str(error).encode())
