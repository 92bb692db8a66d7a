"""What goes wrong with a container node: its cable, its disk, its clock, and time itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest

from tests.ssh import cable
from tests.ssh.ground import BRIDGE, BRIDGE_MAC, HUB_ADDRESS, SBIN, CommandFailed
from tests.ssh.lab_machine import Machine
from tools.laboratory import faketime, missing_for_slow_cables

DROP = """table netdev cut{n} {{
  chain c {{ type filter hook ingress device {dev} priority 0; policy drop; }}
}}
"""
RESET = """table ip torn {{
  chain c {{ type filter hook input priority 0; tcp dport {port} reject with tcp reset; }}
}}
"""
FILL = "/.fill"
WAIT_S = 5.0
FILLS_MAX = 100

Way = Literal["both", "in", "out", "down"]


class Faults(Machine):
    """Each fault, and how it is taken back; all of them are taken back by a new node."""

    _relay: subprocess.Popen[str] | None = None

    def cut(self, way: Way = "both") -> None:
        """`both`, `in`, `out`: a silent hole, the carrier stays. `down`: the carrier is lost."""
        if way == "both":
            self.ground.network("ip", "link", "set", self.plug, "nomaster")
        elif way == "down":
            self.ground.network("ip", "link", "set", self.plug, "down")
        elif way == "in":  # always at the receiver's side: a sender would see an error
            self.exec(["nft", "-f", "-"], stdin=self._drop(self.device).encode())
        else:
            self.ground.network("nft", "-f", "-", stdin=self._drop(self.plug))

    def reset(self) -> None:
        """Whatever comes for its sshd is answered by a reset, also in the middle of a talk."""
        self.exec(["nft", "-f", "-"], stdin=RESET.format(port=self.port).encode())

    def heal(self) -> None:
        """Undo every cut."""
        self.ground.network("ip", "link", "set", self.plug, "master", BRIDGE, "up")
        table = ["nft", "delete", "table", "netdev", f"cut{self.number}"]
        self.ground.network(*table, check=False)
        self.exec(table, check=False)
        self.exec(["nft", "delete", "table", "ip", "torn"], check=False)

    def slow(self, latency_s: float, loss: float = 0.0, jitter_s: float = 0.0) -> None:
        """A cable with this delay, each way, that loses this part of the frames.

        Connections live on. Jitter beyond the gap between two frames puts them out of order.
        """
        if why := missing_for_slow_cables():
            pytest.skip(f"needs cable: {why}")
        self.fast()
        near = f"s{self.number}"
        here = ["setpriv", "--pdeathsig", "KILL", "--", "nsenter", "-t", str(self.ground.pid), "-n"]
        ends = [f"/proc/{self.pid}/ns/net", near, "slow0"]
        weather = map(str, (latency_s, jitter_s, loss))
        self._relay = subprocess.Popen(
            [*here, "--", sys.executable, "-S", cable.__file__, *ends, *weather],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=SBIN, cwd="/",
        )  # fmt: skip
        assert self._relay.stdout is not None
        if self._relay.stdout.readline() != "ready\n":
            assert self._relay.stderr is not None
            raise CommandFailed(f"no slow cable: {self._relay.stderr.read().strip()}")
        self.plug, self.device = near, "slow0"
        self.ground.network("ip", "link", "set", near, "master", BRIDGE, "up")
        self._use("slow0", "link set eth0 down\n"
                  f"link set slow0 address {self.mac} up\naddr add {self.address}/24 dev slow0\n")

    def fast(self) -> None:
        """The quick cable again; connections live on."""
        if self._relay is None:
            return
        _end(self._relay)
        self._relay, self.plug, self.device = None, self.veth, "eth0"
        self._use("eth0", "link set eth0 up\n")

    def freeze(self) -> None:
        """Every process stands still; its kernel still answers for it, as when a disk hangs."""
        if self.cgroup is not None:
            (self.cgroup / "cgroup.freeze").write_text("1")
        else:
            self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """They go on, as if no time had passed."""
        if self.cgroup is not None:
            (self.cgroup / "cgroup.freeze").write_text("0")
        else:
            self._signal_all(signal.SIGCONT)

    def fill_disk(self, leave: int = 0) -> None:
        """No more than `leave` bytes are free from now on."""
        with self.path(FILL).open("wb") as file:
            for _ in range(FILLS_MAX):  # others write meanwhile, so what was free may not be
                free = os.statvfs(self.disk)
                size = max(1, free.f_bavail * free.f_frsize - leave)
                with suppress(OSError):
                    return os.posix_fallocate(file.fileno(), 0, size)
        raise CommandFailed(f"{self.name}: its disk could not be filled")

    def free_disk(self) -> None:
        """There is room again."""
        self.path(FILL).unlink(missing_ok=True)

    def set_skew(self, seconds: float) -> None:
        """The wall clock that programs see which start from now on; other clocks stay right."""
        if not seconds:
            self.environment = {}
            return
        library = faketime()
        if library is None:
            pytest.skip("needs faketime: libfaketime (apt-get install libfaketime)")
        self.environment = {
            "LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+.0f}",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip

    def _drop(self, device: str) -> str:
        return DROP.format(n=self.number, dev=device)

    def _use(self, device: str, before: str) -> None:
        self.exec(["ip", "-batch", "-"], stdin=(
            f"{before}route replace default via {HUB_ADDRESS} dev {device}\n"
            f"neigh replace {HUB_ADDRESS} lladdr {BRIDGE_MAC} dev {device} nud permanent\n"
        ).encode())  # fmt: skip

    def _signal_all(self, number: signal.Signals) -> None:
        mine = os.stat(f"/proc/{self.pid}/ns/pid").st_ino
        for namespace in Path("/proc").glob("[0-9]*/ns/pid"):
            with suppress(OSError):
                if namespace.stat().st_ino == mine:
                    os.kill(int(namespace.parts[2]), number)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(WAIT_S)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
