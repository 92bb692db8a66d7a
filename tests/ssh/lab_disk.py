"""Makes the disk of a container node: a small root of its own, the host's programs read-only."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests.ssh.ground import run

FOLDERS = (
    "proc sys dev run tmp root home data shared opt/arc var/log var/tmp etc/ssh etc/pam.d"
    " etc/sudoers.d"
)
LINKS = ("bin", "sbin", "lib", "lib64")  # into /usr, as every distribution has them by now
BORROWED = ("/usr", "/etc/alternatives", "/etc/ssl")
COPIED = ("ld.so.cache", "nsswitch.conf", "login.defs")  # read by libraries and sudo
SUDOERS = "root ALL=(ALL:ALL) NOPASSWD: ALL\n@includedir /etc/sudoers.d\n"
PAM = "".join(f"{kind} required pam_permit.so\n" for kind in ("auth", "account", "session"))


@dataclass(frozen=True)
class User:
    """An account of every node; nobody has a password."""

    name: str
    uid: int
    home: str
    shell: str = "/bin/sh"


USERS = (
    User("root", 0, "/root"),
    User("agent", 1000, "/home/agent"),
    User("arc-run", 1001, "/home/arc-run"),
    User("sshd", 105, "/run/sshd", "/bin/false"),
    User("nobody", 65534, "/", "/bin/false"),
)
BY_NAME = {user.name: user for user in USERS}


def python_inside() -> tuple[str, tuple[str, ...]]:
    """A Python that a node can start, and the folders it needs besides the borrowed ones."""
    own = sys.version_info
    for minor in (own.minor, *range(20, 10, -1)):
        path = Path(f"/usr/bin/python3.{minor}")
        if path.exists():
            return str(path), ()
    prefix = Path(sys.base_prefix)
    return str(prefix / "bin" / f"python{own.major}.{own.minor}"), (str(prefix),)


def make_disk(root: Path, name: str, address: str, borrowed: tuple[str, ...]) -> None:
    """Fill an empty disk: accounts, names, keys of its own. `borrowed` become empty folders."""
    for folder in FOLDERS.split():
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in borrowed:
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for link in LINKS:
        (root / link).symlink_to(f"usr/{link}")
    (root / "opt/arc/agent-node.pyz").touch()
    etc = root / "etc"
    for part in COPIED:
        if Path("/etc", part).exists():
            shutil.copy(Path("/etc", part), etc / part)
    for path, text in _accounts().items():
        (etc / path).write_text(text)
    (etc / "hostname").write_text(f"{name}\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n")
    (etc / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
    (etc / "shadow").chmod(0o600)
    (etc / "sudoers").chmod(0o440)
    for sticky in ("tmp", "var/tmp", "data"):
        (root / sticky).chmod(0o1777)
    for user in USERS:
        if user.home.startswith(("/home", "/root")):
            passable = any(Path(path).is_relative_to(user.home) for path in borrowed)
            _home(root, user, passable=passable)
    new_host_key(root, "ed25519")


def new_host_key(root: Path, kind: str) -> None:
    """Another host key, of this type; the old one is gone."""
    for old in (root / "etc/ssh").glob("host_key*"):
        old.unlink()
    run(["ssh-keygen", "-qt", kind, "-N", "", "-C", "", "-f", str(root / "etc/ssh/host_key")])


def _home(root: Path, user: User, *, passable: bool) -> None:
    path = root / user.home.lstrip("/")
    path.mkdir(exist_ok=True)
    path.chmod(0o711 if passable and user.name == "root" else 0o700)
    os.chown(path, user.uid, user.uid)


def _accounts() -> dict[str, str]:
    return {
        "sudoers": SUDOERS,
        "pam.d/other": PAM,
        "passwd": "".join(f"{u.name}:x:{u.uid}:{u.uid}::{u.home}:{u.shell}\n" for u in USERS),
        "group": "".join(f"{u.name}:x:{u.uid}:\n" for u in USERS) + "tty:x:5:\n",
        # With '!' sshd takes an account for locked.
        "shadow": "".join(f"{u.name}:*:19000:0:99999:7:::\n" for u in USERS),
    }
