"""Is a hundred nodes at once behind one SSH server: fixed answers, or the node's real program."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from agent_node.strict import JsonObject, JsonValue

from .far_tasks import Shift, asked_after, at_work, begins

# What a login's name begins with says what its session does.
FIXED, STARTING, ONCE, WORKING = "fixed", "starting", "once", "working"
INCARNATION = "01NC0000000000000000000000"
STAMP = "2026-01-01T00:00:00.000Z"  # where the time of an answer stands
SINCE = "2025-12-31T00:00:00.000Z"  # and where that of the last task does
SKILLS = ("bash", "clarity", "deploy", "github-ci", "python", "writing")
REQUEST = b'{"id":1,"do":"status"}'
BYTES = 2048  # of one status, as in the field
FREE, DONE = 80 * 2**30, 12345  # bytes of its disk and tasks of its past, in its first answer
ANSWERS_A_TASK = 10  # of them one tells of another task that was done since


def status_of(name: str) -> JsonObject:
    """A node of four agents that has nothing to do, as its report says it; about 2 KB of JSON."""
    agents: list[JsonObject] = [
        {"name": f"agent-{number}", "state": "available", "slots": 1, "running": 0,
         "skills": [*SKILLS], "last_heartbeat": SINCE, "paused": False, "held": None,
         "reason": None}
        for number in range(4)
    ]  # fmt: skip
    status: JsonObject = {
        "schema": "fleet-status/1", "node": name, "incarnation": INCARNATION, "generation": 1,
        "version": "0.1.0", "written_at": STAMP, "dispatcher": "running", "idle": True,
        "idle_since": SINCE, "pending_count": 0, "running_count": 0, "slots": 4, "free_slots": 4,
        "state": "active", "reason": "", "counts": {"COMPLETED": DONE}, "movable_count": 0,
        "oldest_ready_s": None, "doubts": [], "agents": [*agents], "skills": [*SKILLS],
        "capabilities": ["sqlite-fts", "cgroups"], "last_task": None,
        "budget_remaining_usd": None, "disk_free_bytes": FREE,
        "disk_total_bytes": 256 * 2**30, "needs_you": [],
    }  # fmt: skip
    status["padding"] = "." * (BYTES - len(_bytes(status)) - len(',"padding":""'))
    return status


def hello_of(name: str) -> JsonObject:
    """What a node that obeys everybody answers."""
    return {"wire": 1, "node": name, "incarnation": INCARNATION, "generation": 1, "term": 1,
            "state": "active", "waits_for_hub": False, "version": "0.1.0", "at": STAMP}  # fmt: skip


def greeting_of(name: str) -> bytes:
    """The first line, unasked."""
    return _bytes({"agent-node": "0.1.0", "wire": 1, "node": name, "incarnation": INCARNATION,
                   "generation": 1}) + b"\n"  # fmt: skip


def _bytes(document: JsonObject) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class Answers:
    """One answer for each kind of request, and as a real node's they differ each time: by their
    id, the time, what is free of the disk; now and then another task was done, and moves the rest.
    """

    def __init__(self, name: str) -> None:
        nothing: dict[str, JsonObject] = {
            "subscribe": {}, "events": {"events": []}, "list": {"tasks": [], "next": None},
            "graphs": {"dags": [], "next": None},
            "candidates": {"tasks": [], "next": None, "kept": {}, "eligible": 0, "total": 0},
        }  # fmt: skip
        whole = {"status": status_of(name), "hello": hello_of(name), **nothing}
        self._said = {do.encode(): _bytes(result) for do, result in whole.items()}
        self._given = sum(name.encode())  # not all of them do their tasks in the same turn

    def to(self, line: bytes) -> bytes:
        """`{"id":7,"do":"status",...` is all that is read of a request: next to nothing."""
        comma = line.index(b",")
        start = comma + len(b',"do":"')
        said = self._said[line[start : line.index(b'"', start)]]
        answer = b'{"id":%b,"ok":true,"result":%b}\n' % (line[len(b'{"id":') : comma], said)
        return self._moved_on(answer.replace(STAMP.encode(), now()))

    def _moved_on(self, answer: bytes) -> bytes:
        self._given += 1
        free, done = FREE - 4096 * self._given, self._given // ANSWERS_A_TASK
        since = f"2025-12-31T{done // 60 % 24:02}:{done % 60:02}:00.000Z"
        for old, new in ((f'free_bytes":{FREE}', f'free_bytes":{free}'), (SINCE, since),
                         (f'"COMPLETED":{DONE}', f'"COMPLETED":{DONE + done}')):  # fmt: skip
            answer = answer.replace(old.encode(), new.encode())
        return answer


class WorkingAnswers(Answers):
    """The same of a node whose tasks start and end meanwhile."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._status, self._shift = status_of(name), _SHIFTS.setdefault(name, Shift(name, _BEGAN))

    def to(self, line: bytes) -> bytes:
        now_s, shift = time.time(), self._shift
        self._said[b"status"] = _bytes(at_work(self._status, shift, now_s))
        if b'"do":"events"' in line:
            told: list[JsonValue] = [*shift.events(asked_after(line), now_s)]
            self._said[b"events"] = _bytes({"events": told})
        if b'"do":"list"' in line:
            tasks: list[JsonValue] = [*map(shift.document, shift.running(now_s))]
            self._said[b"list"] = _bytes({"tasks": tasks, "next": None})
        return super().to(line)


_BEGAN = begins()
_SHIFTS: dict[str, Shift] = {}


def now() -> bytes:
    """The time, in the fixed width that the wire has."""
    seconds = time.time()
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{int(seconds * 1000) % 1000:03d}Z".encode()


@dataclass(frozen=True)
class Told:
    """What the far side says once it listens: a port for each name, and the key they all have."""

    ports: dict[str, int]
    host_key: str


class _Session(asyncssh.SSHServerSession[bytes]):
    """Greets and answers; a `starting` one first runs a program to its end, as the floor does;
    a `once` one is a command that prints one status and is over.
    """

    def __init__(self, login: str, program: Sequence[str]) -> None:
        kind, _, name = login.partition("-")
        self._program = program if kind == STARTING else ()
        self._once = kind == ONCE
        self._name = name
        self._answers = WorkingAnswers(name) if kind == WORKING else Answers(name)
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._rest = b""
        self._greeting: asyncio.Task[None] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        return True

    def session_started(self) -> None:
        self._greeting = asyncio.create_task(self._greet())

    async def _greet(self) -> None:
        if self._program:
            await run_to_its_end(self._program)
        if self._channel is None or self._channel.is_closing():
            return
        if self._once:
            self._channel.write(self._answers.to(REQUEST))
            self._channel.exit(0)
        else:
            self._channel.write(greeting_of(self._name))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        assert self._channel is not None, "data comes on a channel"
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._channel.write(self._answers.to(line))


class _RealSession(asyncssh.SSHServerSession[bytes]):
    """The node's real program on a socket, as sshd gives it one; bytes are carried and that is all.

    No more than that, for the floor's sessions carry none: what is measured is the program.
    """

    def __init__(self, home: Path, program: Sequence[str]) -> None:
        self._home, self._program = home, program
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._ours, self._theirs = socket.socketpair()
        self._ours.settimeout(0)
        self._run: asyncio.Task[None] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        return True

    def session_started(self) -> None:
        asyncio.get_running_loop().add_reader(self._ours, self._heard)
        self._run = asyncio.create_task(self._to_its_end())

    async def _to_its_end(self) -> None:
        environ = {**os.environ, "AGENT_NODE_HOME": str(self._home)}
        fd = self._theirs.fileno()
        both = [(os.POSIX_SPAWN_DUP2, fd, 0), (os.POSIX_SPAWN_DUP2, fd, 1)]
        await run_to_its_end(self._program, environ, both, self._theirs.close)

    def _heard(self) -> None:
        data = self._ours.recv(64 * 1024)
        if not data:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._ours.close()
        elif self._channel is not None and not self._channel.is_closing():
            self._channel.write(data)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._ours.send(data) != len(data):
            raise RuntimeError("a hub's first words fit into a socket")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ours.fileno() >= 0:
            self._ours.shutdown(socket.SHUT_WR)


async def run_to_its_end(
    argv: Sequence[str],
    environ: Mapping[str, str] = os.environ,
    opens: Sequence[tuple[int, int, int]] = (),
    started: Callable[[], object] = bool,
) -> None:
    """As cheap as a program can be started and waited for: this is the floor's too."""
    loop = asyncio.get_running_loop()
    pid = os.posix_spawn(  # noqa: ASYNC221 - it returns at once
        argv[0], [*argv], environ, file_actions=opens
    )
    started()
    watched, over = os.pidfd_open(pid), asyncio.Event()
    loop.add_reader(watched, over.set)
    await over.wait()
    loop.remove_reader(watched)
    os.close(watched)
    os.waitpid(pid, 0)  # noqa: ASYNC222 - it is over, and only collected


class _Server(asyncssh.SSHServer):
    def __init__(self, program: Sequence[str], homes: Mapping[str, Path]) -> None:
        self._program, self._homes, self._login = program, homes, ""

    def begin_auth(self, username: str) -> bool:
        self._login = username
        return True

    def session_requested(self) -> _Session | _RealSession:
        home = self._homes.get(self._login.partition("-")[2])
        if home is not None:
            return _RealSession(home, self._program)
        return _Session(self._login, self._program)


async def serve(
    names: Sequence[str], *, authorized: str, program: Sequence[str], homes: Mapping[str, Path]
) -> Told:
    """One server for all names; behind those that have a home runs the real program."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    acceptor = await asyncssh.listen(
        "127.0.0.1", 0, config=None, server_host_keys=[key],
        server_factory=lambda: _Server(program, homes),
        authorized_client_keys=asyncssh.import_authorized_keys(f"{authorized}\n"),
        public_key_auth=True, password_auth=False, kbdint_auth=False, host_based_auth=False,
        gss_host=None, encoding=None, keepalive_interval=0, compression_algs=["none"],
        backlog=len(names) + 10,
    )  # fmt: skip
    public = key.export_public_key().decode().strip()
    return Told(dict.fromkeys(names, acceptor.get_port()), public)


async def main(words: Sequence[str]) -> None:
    """Serve until stdin ends; the first line of stdin says what, the first of stdout where."""
    loop = asyncio.get_running_loop()
    asked = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    homes = {Path(home).name: Path(home) for home in asked["homes"]}
    told = await serve(
        asked["names"] or [*homes], authorized=asked["authorized"], program=asked["program"],
        homes=homes,
    )  # fmt: skip
    print(json.dumps({"ports": told.ports, "host_key": told.host_key}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
