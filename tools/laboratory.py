"""Looks for what container nodes need of this machine, and says how to get what is missing."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_node import cgroups

LOOK_S = 20.0
SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Each program, and the Debian package that brings it.
PROGRAMS = {
    "sshd": "openssh-server", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
    "ip": "iproute2", "nft": "nftables", "pkill": "procps", "unshare": "util-linux",
    "nsenter": "util-linux", "setpriv": "util-linux",
}  # fmt: skip
TRIAL = (
    "mount -t tmpfs none /mnt; ip link add br0 type bridge; ip link add v0 type veth peer name v1"
)
# A network of its own, too: from that of the nodes nobody could go back to one that is not ours.
APART = ("unshare", "--user", "--map-root-user", "--map-auto", "--net", "--")
TUN = Path("/dev/net/tun")


@functools.cache
def missing_for_nodes() -> tuple[str, ...]:
    """What container nodes need and this process lacks, each with how to get it; empty: nothing."""
    if sys.platform != "linux":
        return (f"Linux (this is {sys.platform}; make test-container runs them in one)",)
    packages = missing_packages()
    if packages:
        return (f"{', '.join(packages)} (apt-get install {' '.join(packages)})",)
    if os.geteuid() != 0:
        return (f"root ({_without_root()})",)
    refused = _refused(("unshare", "--net", "--mount", "--pid", "--fork", "sh", "-ec", TRIAL))
    if refused:
        return (f"namespaces, a bridge and veth: {refused} (make test-container)",)
    return ()


def missing_packages() -> tuple[str, ...]:
    """The Debian packages of the programs that cannot be found."""
    lacking = (package for name, package in PROGRAMS.items() if not shutil.which(name, path=SBIN))
    return tuple(dict.fromkeys(lacking))


def missing_for_slow_cables() -> str:
    """Why no cable can be slow; empty: one can."""
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{TUN}: {error.strerror} (modprobe tun; chmod 0666 {TUN} for who is not root)"
    return ""


@functools.cache
def cgroup_base() -> str | None:
    """Where a test may make cgroups: below our own, or else below the machine's; None: nowhere.

    It is tried: a tree may be mounted read-only, or be too old to be ended as a whole.
    """
    bases = (cgroups.find_base(), cgroups.mount_point())
    return next((base for base in bases if base is not None and _divides(Path(base))), None)


def _divides(base: Path) -> bool:
    trial = base / f"arc-look-{os.getpid()}"
    try:
        trial.mkdir()
        try:
            return (trial / "cgroup.kill").exists() and os.access(base / "cgroup.procs", os.W_OK)
        finally:
            trial.rmdir()
    except OSError:
        return False


def faketime() -> Path | None:
    """The library that shifts a program's wall clock; None: it is not installed."""
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
    return found[0] if found else None


def may_run_apart() -> bool:
    """Whether a user namespace with users of its own can be had without root."""
    return not missing_packages() and not _refused((*APART, "true"))


def _without_root() -> str:
    if may_run_apart():
        return "make test runs these in a user namespace of your own"
    return ("sudo make test; or a user namespace: apt-get install uidmap, a line for you in"
            " /etc/subuid and /etc/subgid; or make test-container")  # fmt: skip


def _refused(argv: Sequence[str]) -> str:
    """The last words of a command that fails; empty: it works."""
    env = {**os.environ, "PATH": SBIN}
    try:
        ran = subprocess.run(argv, capture_output=True, check=False, timeout=LOOK_S, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = ran.stderr.decode(errors="replace").strip().splitlines() or [f"exit {ran.returncode}"]
    return said[-1] if ran.returncode else ""
