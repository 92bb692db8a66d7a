"""One container node as a machine: it boots, runs programs, loses its power, and boots again.

It has network, mounts, processes, host name and shared memory of its own, and its own root.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.ssh.ground import BRIDGE, BRIDGE_MAC, HUB_ADDRESS, NET, SBIN, CommandFailed, Ground
from tests.ssh.lab_disk import BY_NAME, User

BOOT_S, GONE_S = 20.0, 10.0
ZIPAPP = "/opt/arc/agent-node.pyz"

# The first process of a node. It stays, reaps orphans, and when it is killed, all are.
INIT = f"""set -e
read -r number _ </proc/self/stat
cd "$1"; hostname "$2"; address=$3; mac=$4; zipapp=$5; shift 5
mkdir -p .old
for path in "$@"; do mount -o bind,ro "$path" ".$path"; done
mount -o bind,ro "$zipapp" .{ZIPAPP}
mount --bind /mnt/shared shared
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o size=4m,mode=755 run run
mount -t tmpfs -o size=4m,mode=755 dev dev
mkdir run/sshd dev/pts dev/shm
chmod 1777 dev/shm
for device in null zero full random urandom tty; do
  touch "dev/$device"; mount --bind "/dev/$device" "dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
cat /proc/sys/kernel/random/uuid >run/boot_id
mount --bind run/boot_id proc/sys/kernel/random/boot_id
pivot_root . .old
cd /
umount -l /.old
echo "$number"
read -r go
ip -batch - <<END
link set lo up
link set eth0 address $mac up
addr add $address/24 dev eth0
route add default via {HUB_ADDRESS} dev eth0
neigh replace {HUB_ADDRESS} lladdr {BRIDGE_MAC} dev eth0 nud permanent
END
/usr/sbin/sshd -E /var/log/sshd.log
echo up
exec </dev/null >/dev/null 2>&1
while :; do sleep 1000 & wait; done
"""
CONFIG: Mapping[str, object] = {
    "Port": 22, "HostKey": "/etc/ssh/host_key", "UsePAM": "no", "UseDNS": "no",
    "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
    "PermitRootLogin": "prohibit-password", "AuthorizedKeysFile": ".ssh/authorized_keys",
    "MaxStartups": 100, "LogLevel": "VERBOSE", "Subsystem": "sftp internal-sftp",
}  # fmt: skip


class Machine:
    """A machine of the laboratory; `number` gives its name and addresses."""

    def __init__(
        self, ground: Ground, number: int, *, zipapp: Path, borrowed: Sequence[str]
    ) -> None:
        self.ground, self.number = ground, number
        self.name, self.address, self.port = f"n{number}", f"{NET}.{10 + number}", 22
        self.mac, self.veth = f"02:00:00:00:01:{number:02x}", f"v{number}"
        self.disk = ground.disks / self.name
        self.pid = 0
        self.plug, self.device = self.veth, "eth0"  # the cable's end at the bridge, and in here
        self.cgroup = ground.cgroup(self.name)
        self.options: dict[str, object] = {}
        self.environment: dict[str, str] = {}  # of sessions and programs, beside the usual
        self._zipapp, self._borrowed = zipapp, tuple(borrowed)
        self._init: subprocess.Popen[str] | None = None

    # --- Power ----------------------------------------------------------------------------------

    @property
    def runs(self) -> bool:
        """Whether it is switched on."""
        return self._init is not None

    def boot(self) -> None:
        """Begin to boot; several may boot side by side."""
        self.write_config()
        place = ["nsenter", "-t", str(self.ground.pid), "-m", "-n", "-p", "--"]
        apart = "unshare --mount --net --pid --uts --ipc --fork --kill-child sh -c".split()
        names = [f"/mnt/{self.name}", self.name, self.address, self.mac, str(self._zipapp)]
        self._init = subprocess.Popen(
            [*place, *apart, INIT, "init", *names, *self._borrowed], cwd="/", env=SBIN, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def connect(self) -> None:
        """Put the cable in; then the network and sshd come up."""
        self.pid = int(self._hear(str.isdecimal))
        if self.cgroup is not None:
            self.cgroup.mkdir(exist_ok=True)
            (self.cgroup / "cgroup.procs").write_text(str(self.pid))
        # Without permanent neighbours a machine that is away would be "no route", not silent.
        self.ground.network("ip", "-batch", "-", stdin=(
            f"link add {self.veth} type veth peer name eth0 netns {self.pid}\n"
            f"link set {self.veth} master {BRIDGE} up\n"
            f"neigh replace {self.address} lladdr {self.mac} dev {BRIDGE} nud permanent\n"
        ))  # fmt: skip
        self.plug, self.device = self.veth, "eth0"
        assert self._init is not None
        assert self._init.stdin is not None
        self._init.stdin.write("go\n")
        self._init.stdin.flush()

    def came_up(self) -> None:
        """Wait until sshd listens."""
        self._hear("up".__eq__)
        if self._init is not None and self._init.stdin is not None:
            self._init.stdin.close()

    def cut_power(self) -> None:
        """Every process is gone, and nobody was told: no byte leaves the machine."""
        if self._init is None:
            return
        self.ground.network("ip", "link", "set", self.plug, "nomaster", check=False)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._init.wait(GONE_S)
        for pipe in (self._init.stdin, self._init.stdout, self._init.stderr):
            if pipe is not None:
                pipe.close()
        self._init, self.pid = None, 0
        self.ground.network("ip", "link", "del", self.veth, check=False)
        self._sweep()

    def _sweep(self) -> None:
        deadline = time.monotonic() + GONE_S
        while self.cgroup is not None and self.cgroup.exists():
            with suppress(OSError):
                self.cgroup.rmdir()
                return
            assert time.monotonic() < deadline, f"{self.name}: processes outlived their machine"
            time.sleep(0.005)

    def _hear(self, expected: Callable[[str], bool]) -> str:
        assert self._init is not None
        assert self._init.stdout is not None
        said = self._init.stdout.readline().strip()
        if not expected(said):
            self._init.kill()
            assert self._init.stderr is not None
            complaint = self._init.stderr.read().strip()
            raise CommandFailed(f"{self.name} did not boot: {said} {complaint}")
        return said

    # --- Programs and files ---------------------------------------------------------------------

    def exec(
        self, argv: Iterable[str], *, user: str = "root", stdin: bytes = b"",
        timeout_s: float = 10.0, env: Mapping[str, str] | None = None, check: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
        """Run a program in here, not by SSH: in the user's home, in a clean environment.

        With `check` a program that fails stops the test with its own words.
        """
        ran = subprocess.run(
            self.entering(argv, user=user, env=env), input=stdin, capture_output=True,
            check=False, timeout=timeout_s, cwd="/", env=SBIN,
        )  # fmt: skip
        if check and ran.returncode:
            said = (ran.stdout + ran.stderr).decode(errors="replace").strip()
            raise CommandFailed(f"{self.name}: {list(argv)}: exit {ran.returncode}: {said}")
        return ran

    def entering(
        self, argv: Iterable[str], *, user: str = "root", env: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command of the host that runs this one in here."""
        who = BY_NAME[user]
        given = {"HOME": who.home, "USER": who.name, "LOGNAME": who.name, "SHELL": who.shell,
                 "LANG": "C.UTF-8", **SBIN, **self.environment, **(env or {})}  # fmt: skip
        assert self.pid, f"{self.name} is switched off"
        return [
            *self._into_cgroup(), "nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p",
            "--", *self._as(who), "env", "-i", "-C", who.home,
            *(f"{key}={value}" for key, value in given.items()), *argv,
        ]  # fmt: skip

    def _as(self, who: User) -> list[str]:
        ids = [f"--reuid={who.uid}", f"--regid={who.uid}"]
        return ["setpriv", *ids, "--init-groups", "--"] if who.uid else []

    def _into_cgroup(self) -> list[str]:
        if self.cgroup is None:
            return []
        return ["sh", "-c", 'echo $$ >"$0"/cgroup.procs && exec "$@"', str(self.cgroup)]

    def path(self, inside: str) -> Path:
        """A path of the node as this process sees it, also while it is switched off.

        An absolute symbolic link on the way would lead to a file of the host: there is none.
        """
        return self.disk / inside.lstrip("/")

    def read(self, inside: str) -> bytes:
        """What stands in a file of the node."""
        return self.path(inside).read_bytes()

    def write(self, inside: str, data: bytes, *, mode: int = 0o644, user: str = "root") -> None:
        """Put a file there; its folder has to be there."""
        path = self.path(inside)
        path.write_bytes(data)
        os.chown(path, BY_NAME[user].uid, BY_NAME[user].uid)
        path.chmod(mode)

    def write_config(self) -> None:
        """The settings of sshd, from what they are now."""
        settings = {**CONFIG, **self.options}
        if self.environment:
            pairs = " ".join(f"{key}={value}" for key, value in self.environment.items())
            settings["SetEnv"] = pairs
        lines = "".join(f"{key} {value}\n" for key, value in settings.items())
        self.write("/etc/ssh/sshd_config", lines.encode())
