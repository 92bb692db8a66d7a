"""What container nodes stand on: a network, mounts and processes of their own, gone with us.

Nothing of the host's network, mounts or process tree is touched, so two runs cannot collide. A
guard outside holds the way in; when its stdin closes, however this process ended, all is ended.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

NET = "10.213.77"
HUB_ADDRESS = f"{NET}.1"
BRIDGE, BRIDGE_MAC = "br0", "02:00:00:00:00:01"
CLONE_NEWNET = 0x40000000
SBIN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
COMMAND_S, END_S = 20.0, 20.0
LIBC = ctypes.CDLL(None, use_errno=True)

# The guard: starts the inside, waits for the end of its stdin, ends the inside, sweeps up.
GUARD = r"""
unshare --net --mount --pid --fork --kill-child sh -c "$1" &
inside=$!
while read -r _; do :; done
kill -9 "$inside" 2>/dev/null
wait "$inside" 2>/dev/null
for folder in "$2"/arc-lab-$$-*; do
  n=0
  while [ -d "$folder" ] && ! rmdir "$folder" 2>/dev/null && [ "$n" -lt 200 ]; do
    n=$((n + 1)); sleep 0.02
  done
done
"""
# The inside's first process: it says its number as the outside sees it, and reaps orphans.
INSIDE = rf"""set -e
read -r number _ </proc/self/stat
mount -t tmpfs -o size=64m,mode=755 ground /mnt
mkdir -m 1777 /mnt/shared
ip -batch - <<END
link set lo up
link add {BRIDGE} address {BRIDGE_MAC} type bridge
addr add {HUB_ADDRESS}/24 dev {BRIDGE}
link set {BRIDGE} up
END
echo "$number"
exec >/dev/null
while :; do sleep 1000 & wait; done
"""


class CommandFailed(AssertionError):
    """A command of the laboratory itself, not of what is tested, did not work."""


class Ground:
    """One such place. `pid` is its first process, as this process sees it."""

    def __init__(self) -> None:
        self.cgroups = writable_cgroup2()
        self._guard = subprocess.Popen(
            ["sh", "-c", GUARD, "guard", INSIDE, str(self.cgroups or "/nonexistent")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=SBIN, cwd="/", start_new_session=True,
        )  # fmt: skip
        assert self._guard.stdout is not None
        said = self._guard.stdout.readline().decode().strip()
        if not said.isdecimal():
            complaint = self._complaint()
            self.close()
            raise CommandFailed(f"the ground of the nodes could not be made: {complaint}")
        self.pid = int(said)
        self._network = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.disks = Path("/proc", str(self.pid), "root", "mnt")
        self.shared = self.disks / "shared"

    def cgroup(self, name: str) -> Path | None:
        """A fresh cgroup for one node, swept away at the end; None: none can be made here."""
        if self.cgroups is None:
            return None
        path = self.cgroups / f"arc-lab-{self._guard.pid}-{name}"
        path.mkdir(exist_ok=True)
        return path

    def network(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        """Run a program of the host in this network alone; what it printed."""
        return run(["nsenter", "-t", str(self.pid), "-n", "--", *argv], stdin=stdin, check=check)

    def mounts(self, script: str, *args: str) -> str:
        """Run a shell script among these mounts."""
        argv = ["nsenter", "-t", str(self.pid), "-m", "--", "sh", "-ec", script, "sh", *args]
        return run(argv)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and what it starts meanwhile, is in the network; afterwards back again."""
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        _enter(self._network)
        try:
            yield
        finally:
            _enter(back)
            os.close(back)

    def close(self) -> None:
        """End everything that stands here, and wait until it is gone."""
        assert self._guard.stdin is not None
        with suppress(OSError):
            self._guard.stdin.close()
        self._guard.wait(END_S)
        for pipe in (self._guard.stdout, self._guard.stderr):
            if pipe is not None:
                pipe.close()
        if hasattr(self, "_network"):
            os.close(self._network)

    def _complaint(self) -> str:
        assert self._guard.stdin is not None
        assert self._guard.stderr is not None
        self._guard.stdin.close()
        return self._guard.stderr.read().decode(errors="replace").strip()


def run(argv: Sequence[str], *, stdin: str = "", check: bool = True) -> str:
    """What a program of the laboratory printed; one that fails stops the test with its words."""
    ran = subprocess.run(
        argv, input=stdin, capture_output=True, text=True, check=False, timeout=COMMAND_S,
        env=SBIN, cwd="/",
    )  # fmt: skip
    if check and ran.returncode:
        raise CommandFailed(f"{argv}: exit {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout


def writable_cgroup2() -> Path | None:
    """Where cgroups of version 2 can be made, for freezing a node in one step; None: nowhere."""
    for path in map(Path, ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")):
        if (path / "cgroup.controllers").exists() and os.access(path / "cgroup.procs", os.W_OK):
            return path
    return None


def _enter(network: int) -> None:
    if LIBC.setns(network, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
