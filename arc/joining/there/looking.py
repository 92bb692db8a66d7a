"""Looks at this machine and this account, and changes nothing."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import shutil
import sys
import time
import tomllib

from .files import kind_of, read_own
from .keyline import blob_of, keys_file, other_hubs
from .words import Fact, Refused, checked_path

PROGRAM, LINK = "program", "agent-node.pyz"
MOUNTS_MAX = 512 * 1024
ANCESTORS_MAX = 64
TOML_MAX = 64 * 1024
BIN = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin"


def look(request: Fact) -> Fact:
    """Every fact that decides whether, and how, a node can be set up here."""
    account = pwd.getpwuid(os.geteuid())
    home = home_of(request, account.pw_dir)
    blob = str(request.get("blob") or "")
    return {
        "at": time.time(),
        "python": os.path.realpath(sys.executable),
        "version": ".".join(map(str, sys.version_info[:3])),
        "user": account.pw_name, "uid": account.pw_uid, "account_home": account.pw_dir,
        "shell": account.pw_shell, "home": home, "system": os.uname().sysname,
        "ssh_keygen": shutil.which("ssh-keygen", path=BIN) or "",
        "systemd": os.path.isdir("/run/systemd/system"),
        **_space(nearest(home)), "mounts": _mounts(),
        "ways": [_way(path) for path in _above(home)],
        "strict": [_way(path) for path in _strict(account.pw_dir) if os.path.lexists(path)],
        **_node(home), **_keys(account.pw_dir, blob),
        **_run_as(str(request.get("run_as") or "")),
        "run_there": _command_there(str(request.get("run") or "")),
    }  # fmt: skip


def home_of(request: Fact, account_home: str) -> str:
    """The node's home as an absolute path of plain characters; `~` is this account's folder."""
    told = str(request.get("home") or "~/.agent-node")
    path = account_home + told[1:] if told.startswith("~/") else told
    return checked_path(os.path.normpath(path), "the node's home")


def nearest(path: str) -> str:
    """The path itself, or the folder above it that is there."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    return path


def _above(home: str) -> list[str]:
    """The folders on the way to the home, from the top, each as it really lies."""
    path = os.path.realpath(home)
    found = [path]
    while path != "/" and len(found) < ANCESTORS_MAX:
        path = os.path.dirname(path)
        found.append(path)
    return [one for one in reversed(found) if os.path.lexists(one)]


def _strict(account_home: str) -> list[str]:
    """What sshd looks at before it obeys authorized_keys."""
    folder = os.path.join(account_home, ".ssh")
    return [account_home, folder, os.path.join(folder, "authorized_keys")]


def _way(path: str) -> Fact:
    found = os.lstat(path)
    return {"path": path, "kind": kind_of(path), "mode": found.st_mode & 0o7777,
            "uid": found.st_uid, "group_alone": _is_alone(found.st_gid, found.st_uid)}  # fmt: skip


def _is_alone(gid: int, uid: int) -> bool:
    """Whether a group has no member but the owner, as far as this machine's own files tell."""
    try:
        group, owner = grp.getgrgid(gid), pwd.getpwuid(uid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}


def _space(folder: str) -> Fact:
    found = os.statvfs(folder)
    return {"disk_free": found.f_bavail * found.f_frsize,
            "files_free": found.f_favail if found.f_files else -1}  # fmt: skip


def _mounts() -> str:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return file.read(MOUNTS_MAX)
    except OSError:
        return ""


def _node(home: str) -> Fact:
    """What is set up in this home already; empty texts: nothing."""
    said: Fact = {"node": "", "stop_grace_s": 30, "node_error": "", "node_toml": "",
                  "program": program_there(home)}  # fmt: skip
    path = os.path.join(home, "node.toml")
    if kind_of(path) == "missing":
        return said
    try:
        text = as_utf8(read_own(os.path.realpath(path)) or "")  # a person may keep it elsewhere
        found = tomllib.loads(text)
    except (OSError, ValueError, Refused) as error:
        return said | {"node_error": f"{path}: {error}"}
    grace = found.get("stop_grace_s")
    return said | {"node": str(found.get("name") or ""), "node_toml": text[:TOML_MAX],
                   "stop_grace_s": grace if isinstance(grace, int) else 30}  # fmt: skip


def as_utf8(text: str) -> str:
    """The same text; what is no UTF-8 could not be told to the hub, and is refused by its place."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused("not_text", f"is not UTF-8 at character {error.start}") from error
    return text


def program_there(home: str) -> str:
    """The sha256 of the program that the link leads to; empty: there is none."""
    try:
        with open(os.path.join(home, PROGRAM, LINK), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _keys(account_home: str, blob: str) -> Fact:
    """What stands in authorized_keys about us, and which other hubs it lets in."""
    try:
        text = read_own(keys_file(account_home)) or ""
    except Refused as error:
        return {"line": "", "other_hubs": [], "keys_error": str(error), "keys_hint": error.hint}
    except OSError as error:
        return {"line": "", "other_hubs": [], "keys_error": str(error), "keys_hint": ""}
    lines = [one for one in text.splitlines() if blob and blob_of(one) == blob]
    return {"line": lines[0] if lines else "", "other_hubs": other_hubs(text, blob)[:16],
            "keys_error": "", "keys_hint": ""}  # fmt: skip


def _command_there(word: str) -> bool:
    """Whether this account finds such a program: by its path, or on the PATH of this login."""
    return not word or shutil.which(word, path=os.environ.get("PATH", os.defpath)) is not None


def _run_as(user: str) -> Fact:
    """Whether there is such an account, and what would start something as it."""
    if not user:
        return {"run_as": "", "run_as_error": ""}
    try:
        pwd.getpwnam(user)
    except KeyError:
        return {"run_as": "", "run_as_error": "missing"}
    starts = os.geteuid() == 0 or shutil.which("sudo", path=BIN) is not None
    return {"run_as": user, "run_as_error": "" if starts else "no_sudo"}
