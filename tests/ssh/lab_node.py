"""One container node as a test sees it: a machine with a real sshd, and homes of agent-node."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_node.strict import JsonObject
from tests.ssh import lab_disk
from tests.ssh.ground import CommandFailed
from tests.ssh.lab_disk import BY_NAME
from tests.ssh.lab_faults import Faults
from tests.ssh.lab_machine import ZIPAPP

SSHD_S, DAEMON_S, COMMAND_S = 10.0, 15.0, 15.0
SOON_S = 0.01
KILL_LISTENER = ["sh", "-c", "kill -9 $(cat /run/sshd.pid)"]
LISTENING = "0A"  # a state in /proc/net/tcp


class LabNode(Faults):
    """A node: `name`, `address`, `port`, `disk`, what it is asked to do, and what befalls it."""

    @property
    def host_key(self) -> str:
        """The public line of its host key, without a comment."""
        (path,) = self.path("/etc/ssh").glob("host_key*.pub")
        return " ".join(path.read_text().split()[:2])

    @property
    def python(self) -> str:
        """A Python inside, 3.11 or newer."""
        return lab_disk.python_inside()[0]

    # --- Power and sshd -------------------------------------------------------------------------

    def stop(self) -> None:
        """Power off: every process is killed, no byte leaves; the disk stays."""
        if self.runs:
            self.fast()
            self.thaw()
            self.cut_power()

    def start(self) -> None:
        """Power on: the same disk, another boot id, sshd listens; no daemon starts by itself."""
        self.boot()
        self.connect()
        self.came_up()
        self.wait_for_sshd()

    def kill_sshd(self, *, sessions: bool = True) -> None:
        """Kill the one that listens and, unless told otherwise, every session; its port is free.

        A signal is sent before a process has ended, and a session that was just begun has the
        port, too, and may be missed. sshd turns into a daemon before it listens: the next one
        would find the port taken and end without a word to whoever started it.
        """
        end = ["pkill", "-9", "-x", "sshd"] if sessions else KILL_LISTENER
        self.exec(end)
        deadline = time.monotonic() + SSHD_S
        while _taken(self.pid, self.port):
            assert time.monotonic() < deadline, f"{self.name}: its sshd still listens"
            time.sleep(SOON_S)
        if sessions:
            self.exec(end, check=False)

    def start_sshd(self, **options: object) -> None:
        """Start it, with these settings added to those of before; they stay."""
        self.options |= options
        self.write_config()
        self.exec(["/usr/sbin/sshd", "-E", "/var/log/sshd.log"])
        self.wait_for_sshd()

    def restart_sshd(self, **options: object) -> None:
        """End the one that listens and start another; sessions that are open stay."""
        with suppress(CommandFailed):
            self.kill_sshd(sessions=False)
        self.start_sshd(**options)

    def wait_for_sshd(self) -> None:
        """Wait until it takes connections."""
        deadline = time.monotonic() + SSHD_S
        with self.ground.inside():
            while not _listens(self.address, self.port):
                assert time.monotonic() < deadline, self.why_no_sshd()
                time.sleep(SOON_S)

    def why_no_sshd(self) -> str:
        """That none took a connection, and what the last one wrote."""
        log = self.path("/var/log/sshd.log")
        said = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join([f"{self.name}: no sshd in {SSHD_S:g}s; it wrote:", *said[-5:]])

    def new_host_key(self, kind: str = "ed25519") -> None:
        """Another host key; sshd has to be restarted to show it."""
        lab_disk.new_host_key(self.disk, kind)

    def skew(self, seconds: float) -> None:
        """Shift the wall clock of sessions, and of programs, that start from now on."""
        self.set_skew(seconds)
        self.restart_sshd()

    def authorize(self, user: str, line: str) -> None:
        """Let the owner of this key log in as that user."""
        who = BY_NAME[user]
        folder = self.path(f"{who.home}/.ssh")
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, who.uid, who.uid)
        keys = folder / "authorized_keys"
        before = keys.read_bytes() if keys.exists() else b""
        inside = f"{who.home}/.ssh/authorized_keys"
        self.write(inside, before + line.strip().encode() + b"\n", mode=0o600, user=user)

    # --- agent-node -----------------------------------------------------------------------------

    def install(
        self, *, name: str, hub_key: str = "", run: Sequence[str] | None = None,
        user: str = "agent", slots: int = 1, skills: Sequence[str] = (), extra_toml: str = "",
    ) -> Home:  # fmt: skip
        """A home of agent-node, and the line that lets the hub's key start its one command."""
        home = Home(self, name, user, f"{BY_NAME[user].home}/.agent-node")
        words = ["init", "--name", name, "--slots", str(slots)]
        words += [word for skill in skills for word in ("--skill", skill)]
        home.run(*words)
        toml = self.read(f"{home.path}/node.toml").decode()
        top = f"disk_floor = 0\n{extra_toml}"
        agent = _agent(name, run or ["/bin/true"], slots)
        text = f'name = "{name}"\n{top}\n{agent}' if run else f"{top}\n{toml}"
        self.write(f"{home.path}/node.toml", text.encode(), mode=0o600, user=user)
        if hub_key:
            command = f"{self.python} -I -S {ZIPAPP} serve --stdio"
            self.authorize(user, f'restrict,command="{command}" {hub_key}')
        return home


@dataclass(frozen=True)
class Home:
    """A home of agent-node in a container node; `path` is inside."""

    node: LabNode
    name: str
    user: str
    path: str

    def run(self, *words: str, timeout_s: float = COMMAND_S) -> JsonObject:
        """One local command of agent-node as its user; its `data`. A failure stops the test."""
        ran = self.node.exec(self.argv(*words, "--json"), user=self.user, timeout_s=timeout_s)
        said: JsonObject = json.loads(ran.stdout)
        data = said.get("data")
        return data if isinstance(data, dict) else said

    def start_daemon(self) -> None:
        """Start it as an init system would, and wait until it answers."""
        log = f"{self.path}/daemon.log"
        script = 'log=$1; shift; setsid "$@" </dev/null >>"$log" 2>&1 &'
        argv = ["sh", "-c", script, "sh", log, *self.argv("run")]
        self.node.exec(argv, user=self.user)
        deadline = time.monotonic() + DAEMON_S
        while not self.answers():
            if time.monotonic() > deadline:
                raise CommandFailed(f"{self.name}: no daemon: {self.node.read(log).decode()}")
            time.sleep(SOON_S)

    def answers(self) -> bool:
        """Whether a daemon listens at the socket of the home."""
        place = f"/proc/{self.node.pid}/root{self.path}/node.sock"
        with socket.socket(socket.AF_UNIX) as door, suppress(OSError):
            door.settimeout(1.0)
            door.connect(place)
            return True
        return False

    def daemon_pid(self) -> int:
        """The daemon's process, as this side numbers it; 0: there is none."""
        words = b"\0".join(word.encode() for word in self.argv("run"))
        mine = os.stat(f"/proc/{self.node.pid}/ns/pid").st_ino
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if line.read_bytes() == words + b"\0" and _namespace(line.parent) == mine:
                    return int(line.parent.name)
        return 0

    def kill_daemon(self) -> None:
        """Kill -9, and it is gone; its shims and what they run stay."""
        pid = self.daemon_pid()
        assert pid, f"{self.name}: no daemon runs"  # 0 would mean ourselves
        pidfd = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            assert select.select([pidfd], [], [], DAEMON_S)[0], f"{self.name}: it does not end"
        finally:
            os.close(pidfd)

    def argv(self, *words: str) -> list[str]:
        """A command of agent-node as it is typed in there."""
        return [self.node.python, "-I", "-S", ZIPAPP, *words]


def _namespace(process: Path) -> int:
    return (process / "ns/pid").stat().st_ino


def _agent(name: str, run: Sequence[str], slots: int) -> str:
    return f'[[agent]]\nname = "{name}"\nrun = {json.dumps(list(run))}\nslots = {slots}\n'


def _taken(pid: int, port: int) -> bool:
    """Whether any socket listens at this port in the network of that process."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return any(row[3] == LISTENING and row[1].endswith(f":{port:04X}") for row in rows)


def _listens(address: str, port: int, patience_s: float = 1.0) -> bool:
    with suppress(OSError), socket.create_connection((address, port), patience_s) as talk:
        talk.settimeout(patience_s)
        return talk.recv(4) == b"SSH-"
    return False


