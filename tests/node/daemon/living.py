"""Runs a real node in processes of its own, talks to it, and waits for what it says."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 20.0  # of every wait; a machine under load is slow, a broken node is for ever
LOOK_S = 0.05  # between two looks at something that tells nobody when it changes

Got = TypeVar("Got")


class Refusal(Exception):
    """The node answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.message, self.rule = error["code"], error["message"], error.get("rule")


class Talk:
    """One connection to the daemon's socket; news it subscribed to gathers in `news`."""

    def __init__(self, home: Path, opening: bytes = b'{"session":"owner"}\n') -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY)
        try:
            self._socket.connect(f"/proc/self/fd/{folder}/node.sock")
        finally:
            os.close(folder)
        self._left = b""
        self._id = 0
        self.news: list[str] = []
        self._socket.sendall(opening)

    def ask(self, do: str, **fields: object) -> dict[str, Any]:
        """The result; `Refusal` when the node says no."""
        self.say(do, **fields)
        return self.answer(do)

    def say(self, do: str, **fields: object) -> None:
        """Ask, and go on without the answer."""
        self._id += 1
        self._socket.sendall(json.dumps({"id": self._id, "do": do, **fields}).encode() + b"\n")

    def answer(self, do: str) -> dict[str, Any]:
        """What was answered to what was asked last."""
        until = time.monotonic() + PATIENCE_S
        while True:
            said = self._line(until)
            if said is None:
                raise AssertionError(f"no answer to {do} within {PATIENCE_S} s")
            if said.get("id") == self._id:
                if not said["ok"]:
                    raise Refusal(said["error"])
                result: dict[str, Any] = said["result"]
                return result
            self.news.append(said["event"])

    def say_at_once(self, *requests: dict[str, Any]) -> None:
        """All in one write, so that one turn of the daemon answers them; nothing is read back."""
        self._socket.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in requests))

    def listen(self, seconds: float) -> bool:
        """Wait for one more piece of news; False when none came in time."""
        said = self._line(time.monotonic() + seconds)
        if said is not None:
            self.news.append(said["event"])
        return said is not None

    def hear(self, event: str) -> None:
        """Return once this has been told."""
        until = time.monotonic() + PATIENCE_S
        while event not in self.news:
            assert self.listen(until - time.monotonic()), f"{event} was never told: {self.news}"

    def _line(self, until: float) -> dict[str, Any] | None:
        while b"\n" not in self._left:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                return None
            data = self._socket.recv(1 << 20)
            if not data:
                raise ConnectionResetError("the daemon has gone")
            self._left += data
        line, _, self._left = self._left.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def close(self) -> None:
        self._socket.close()


class Daemon:
    """One `agent-node run`, ours to signal and to wait for."""

    def __init__(
        self, home: Path, words: Iterable[str], env: dict[str, str],
        command: Iterable[str] = (sys.executable, "-m", "agent_node"),
    ) -> None:  # fmt: skip
        self.process = subprocess.Popen(
            [*command, "run", *words],
            cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.home = home
        self.pid = self.process.pid
        self._pidfd = os.pidfd_open(self.pid)
        self.said = ""

    def hear(self, word: str) -> str:
        """Everything it has said on stderr, once this is part of it."""
        assert self._listen(lambda: word in self.said), f"never said {word!r}: {self.said}"
        return self.said

    def ended(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code, once it has ended; stderr is read meanwhile."""
        assert self._listen(lambda: is_ready(self._pidfd, 0), seconds), f"it runs on: {self.said}"
        code = self.process.wait()
        self._listen(lambda: False, 0)
        return code

    def drain(self) -> None:
        """Take in what it has said so far, so that its pipe never fills."""
        self._listen(lambda: False, 0)

    def signal(self, number: int) -> None:
        signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """-9, and wait."""
        self.signal(signal.SIGKILL)
        self.ended()

    def stop(self) -> int:
        """TERM, and wait."""
        self.signal(signal.SIGTERM)
        return self.ended()

    @property
    def zygote(self) -> int:
        """Its zygote's pid."""
        return until(lambda: next(iter(children_of(self.pid)), None), "a zygote")

    def _listen(self, done: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
        assert self.process.stderr is not None
        ear, until_ = self.process.stderr.fileno(), time.monotonic() + seconds
        ears = [ear, self._pidfd]
        while not done():
            left = max(until_ - time.monotonic(), 0.0)
            ready = select.select(ears, [], [], left)[0]
            if ear in ready:
                data = os.read(ear, 65536)
                self.said += data.decode(errors="replace")
                ears = ears if data else [self._pidfd]
            elif not ready or self._pidfd in ready:
                return done()
        return True

    def forget(self) -> None:
        """Let go of what this test holds of it; it has ended."""
        assert self.process.stderr is not None
        self.process.stderr.close()
        os.close(self._pidfd)


class Node:
    """A home on disk and whatever runs for it. A task's body is a script for `sh -s`."""

    def __init__(self, home: Path, name: str = "iris", *, agents: str = "", **settings: object):
        self.home, self.name = home, name
        self.env = {word: os.environ[word] for word in ("PATH", "HOME") if word in os.environ}
        self.env |= {"AGENT_NODE_HOME": str(home), "PYTHONPATH": str(ROOT)}
        self.command = [sys.executable, "-m", "agent_node"]
        self.daemons: list[Daemon] = []
        self._talks: list[Talk] = []
        self._script = 0
        home.mkdir(mode=0o700)
        self.configure(agents=agents, **settings)

    def configure(self, *, agents: str = "", **settings: object) -> None:
        """Write node.toml; without agents, one named like the node with two slots."""
        said = {"disk_floor": 0, "grace_s": 2, **settings}
        text = f'name = "{self.name}"\n'
        text += "".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items())
        (self.home / "node.toml").write_text(text + (agents or an_agent(self.name, slots=2)))

    def start(self, *words: str, failpoint: str = "", ready: bool = True) -> Daemon:
        """A daemon; `ready` waits until it answers."""
        env = self.env | ({"ARC_FAILPOINT": failpoint} if failpoint else {})
        daemon = Daemon(self.home, words, env, self.command)
        self.daemons.append(daemon)
        if ready:
            daemon.hear("node_started")
        return daemon

    def cli(self, *words: str, code: int | None = 0, stdin: str = "") -> dict[str, Any]:
        """One command with --json: its envelope."""
        ran = subprocess.run(
            [*self.command, *words, "--json"], cwd=ROOT, env=self.env,
            input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert code is None or ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
        said: dict[str, Any] = json.loads(ran.stdout)
        return said

    def talk(self) -> Talk:
        """A connection to the running daemon."""
        talk = Talk(self.home)
        self._talks.append(talk)
        return talk

    def add(self, script: str = "true", **fields: object) -> str:
        """A task that runs this script; its uid."""
        task = {"subject": "work", "body": script, **fields}
        with self.one_talk() as talk:
            (result,) = talk.ask("add", tasks=[task])["results"]
        assert result["outcome"] == "added", result
        return str(result["uid"])

    @contextmanager
    def one_talk(self) -> Iterator[Talk]:
        talk = Talk(self.home)
        try:
            yield talk
        finally:
            talk.close()

    def show(self, uid: str) -> dict[str, Any]:
        """All that the node tells about a task."""
        with self.one_talk() as talk:
            return talk.ask("show", uid=uid)

    def until(self, uid: str, *states: str, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """The task, once it is in one of these states; woken by news, with a bounded wait."""
        with self.one_talk() as talk:
            talk.ask("subscribe", events=[])
            end = time.monotonic() + seconds
            while (task := talk.ask("show", uid=uid)["task"])["state"] not in states:
                assert time.monotonic() < end, f"{uid} is {task['state']}, not {states}: {task}"
                talk.listen(LOOK_S)
        found: dict[str, Any] = task
        return found

    def attempts(self, uid: str) -> list[dict[str, Any]]:
        """The attempts of a task as the database has them."""
        found: list[dict[str, Any]] = self.show(uid)["attempts"]
        return found

    def status_file(self) -> dict[str, Any]:
        """fleet-status.json."""
        said: dict[str, Any] = json.loads((self.home / "fleet-status.json").read_text())
        return said

    def folder(self, uid: str, n: int = 1) -> Path:
        return self.home / "tasks" / uid / str(n)

    def shim(self, uid: str, n: int = 1) -> int:
        """The pid of the shim beside an attempt."""
        path = self.folder(uid, n) / "shim.json"
        until(lambda: path.exists() and path.stat().st_size > 0, "a shim")
        return int(json.loads(path.read_text())["pid"])

    def rows(self, table: str) -> list[dict[str, Any]]:
        """A table, as an outsider reads it."""
        return rows_of(self.home / "queue.db", table)

    def processes(self) -> list[int]:
        """Every process that carries this home in its environment."""
        return carriers(f"AGENT_NODE_HOME={self.home}".encode())

    def clean_up(self) -> None:
        """End everything of ours, by pid, and prove that nothing is left."""
        for talk in self._talks:
            talk.close()
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.kill()
            daemon.forget()
        end_all(self.processes)


def rows_of(database: Path, table: str) -> list[dict[str, Any]]:
    """What `sqlite-utils rows` prints: our checkers look at a queue only so."""
    ran = subprocess.run(
        [sys.executable, "-m", "sqlite_utils", "rows", str(database), table],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows: list[dict[str, Any]] = json.loads(ran.stdout)
    return rows


def an_agent(name: str, *, slots: int = 1, skills: Iterable[str] = (), more: str = "") -> str:
    """An `[[agent]]` table whose tasks are shell scripts."""
    return (
        f'[[agent]]\nname = "{name}"\nrun = ["sh", "-s"]\nstdin = "body"\nslots = {slots}\n'
        f"skills = {json.dumps([*skills])}\n{more}\n"
    )


class Bell:
    """A FIFO that programs write lines to, and that a test waits at."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._left = b""

    def hear(self, seconds: float = PATIENCE_S) -> str:
        """The next line."""
        line = self.next(seconds)
        assert line is not None, f"nobody rang within {seconds} s"
        return line

    def next(self, seconds: float) -> str | None:
        """The next line; None when none comes in time."""
        until_ = time.monotonic() + seconds
        while b"\n" not in self._left:
            if not is_ready(self._descriptor, max(until_ - time.monotonic(), 0)):
                return None
            self._left += os.read(self._descriptor, 65536)
        line, _, self._left = self._left.partition(b"\n")
        return line.decode()

    def ring(self, times: int = 1) -> None:
        """Let as many readers go on: scripts wait at a gate with `read x < gate`."""
        os.write(self._descriptor, b"\n" * times)

    def close(self) -> None:
        os.close(self._descriptor)


def until(look: Callable[[], Got | None], what: str, seconds: float = PATIENCE_S) -> Got:
    """What `look` finds once it finds something; for what sends no event when it changes."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"{what} did not come within {seconds} s"
        select.select([], [], [], LOOK_S)
    return found


def is_ready(descriptor: int, seconds: float) -> bool:
    """Whether it becomes readable in time; a pidfd does when its process has ended."""
    return bool(select.select([descriptor], [], [], seconds)[0])


def is_gone(pid: int, seconds: float = PATIENCE_S) -> bool:
    """Whether this process ends in time (or has already)."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return is_ready(pidfd, seconds)
    finally:
        os.close(pidfd)


def is_stopped(pid: int) -> bool:
    """Whether this process stands still, as after SIGSTOP."""
    return _condition(pid) == "T"


def is_zombie(pid: int) -> bool:
    """Whether it has ended, and nobody has asked how yet."""
    return _condition(pid) == "Z"


def _condition(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def children_of(pid: int) -> list[int]:
    """The living children of a process."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def carriers(mark: bytes) -> list[int]:
    """The processes in whose environment this stands; a zombie has none any more."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            with suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found


def end_all(find: Callable[[], list[int]]) -> None:
    """KILL what is found, again and again until nothing is: more may be born meanwhile."""
    end = time.monotonic() + PATIENCE_S
    while pids := find():
        assert time.monotonic() < end, f"{pids} cannot be ended"
        for pid in pids:
            with suppress(ProcessLookupError):
                pidfd = os.pidfd_open(pid)
                try:
                    if pid in find():
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                        is_ready(pidfd, 1.0)
                finally:
                    os.close(pidfd)
