"""Answers the commands of this machine for a hub that runs: one JSON line each way, on a socket."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node.errors import BadInput, NodeError
from agent_node.lines import line_of
from agent_node.strict import LINE_MAX, JsonObject, JsonValue, decode_object

from .errors import (
    ArcError,
    OtherFleet,
    StateBroken,
    WaitedTooLong,
    WrongUse,
    fault_of,
    machine_failed,
)
from .operations import OPERATIONS, Told, operation

if TYPE_CHECKING:
    from .hub import Hub

SOCKET = "hub.sock"
CLIENTS_MAX = 64
AT_ONCE = 8  # operations of one client under way
OPERATION_S = 900.0
LEAVE_S = 5.0
BACKLOG = 64

log = logging.getLogger("arc.reception")


class Reception:
    """The hub's own door. What one client asks, or that it leaves, is no other's trouble."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """From now on commands are answered; only the lease's holder may call this."""
        door = listen(self._hub.settings.state)
        self._server = await asyncio.start_unix_server(self._greet, sock=door, limit=LINE_MAX)

    async def keep(self) -> None:
        """Open the door again where somebody took the socket away; who is inside stays."""
        if self._server is not None and not (self._hub.settings.state / SOCKET).exists():
            self._server.close()
            await self.open()

    async def close(self) -> None:
        """Answer nobody any more; what is under way is cut off, and the socket is gone."""
        if self._server is None:
            return
        self._server.close()
        (self._hub.settings.state / SOCKET).unlink(missing_ok=True)
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        self._server = None

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None, "a server calls this in a task of its own"
        self._talks.add(talk)
        try:
            if len(self._talks) > CLIENTS_MAX:
                writer.write(line_of(refusal(None, WrongUse("too many clients at once"))))
            else:
                await _Talk(self._hub, reader, writer).hold()
        except (ConnectionError, asyncio.CancelledError):
            pass  # whoever asked has left, or the hub ends
        finally:
            self._talks.discard(talk)
            await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """What is written goes out if the client reads it soon; else it is dropped."""
    try:
        writer.close()
        async with asyncio.timeout(LEAVE_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()


@dataclass
class _Talk:
    """One client: its lines in, its answers out, in whatever order they are ready."""

    hub: Hub
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def hold(self) -> None:
        """Answer until the client leaves; what it began is finished all the same."""
        turns = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as under_way:
            while True:
                await turns.acquire()
                line = await self._line()
                if not line.endswith(b"\n"):
                    return
                answer = under_way.create_task(self._answer(line))
                answer.add_done_callback(lambda _: turns.release())

    async def _line(self) -> bytes:
        try:
            return await self.reader.readline()
        except ValueError:  # longer than a line may be: nothing after it can be trusted
            self._write(refusal(None, WrongUse(f"a request takes {LINE_MAX} bytes at most")))
            return b""
        except ConnectionError:
            return b""

    async def _answer(self, line: bytes) -> None:
        self._write(await answered(self.hub, line))
        with suppress(ConnectionError):  # who does not read is answered no further
            await self.writer.drain()

    def _write(self, reply: JsonObject) -> None:
        """A client that has left is written to in vain, and nobody minds."""
        try:
            line = line_of(reply)
        except (TypeError, ValueError) as strange:
            line = line_of(fault(reply.get("id"), strange))
        if len(line) > LINE_MAX:
            error = WrongUse("the answer is longer than a line may be; ask for less")
            line = line_of(refusal(reply.get("id"), error))
        if not self.writer.is_closing():
            self.writer.write(line)


async def answered(hub: Hub, line: bytes) -> JsonObject:
    """The reply to one line, whatever comes in: a result or an error, under the line's id."""
    asked: JsonValue = None
    try:
        request = decode_object(line)
        asked = request.get("id")
        return {"id": asked, "ok": True, "told": told_json(await _carried_out(hub, request))}
    except TimeoutError:
        return refusal(asked, WaitedTooLong(f"it was not done after {OPERATION_S:.0f} s"))
    except (ArcError, NodeError) as error:
        return refusal(asked, error)
    except Exception as error:  # one operation ends; the hub and all others run on
        if (failed := machine_failed(error)) is not None:
            return refusal(asked, failed)
        log.exception("operation_failed", extra={"because": fault_of(error)})
        return fault(asked, error)


async def _carried_out(hub: Hub, request: JsonObject) -> Told:
    op, args = request.get("op"), request.get("args")
    if not isinstance(op, str) or op not in OPERATIONS:
        raise WrongUse(f"the hub knows no operation {op!r}"[:100],
                       hint="does it run another version? restart it: arc up")  # fmt: skip
    if not isinstance(args, dict):
        raise BadInput("should be an object", "args")
    _check_fleet(hub, request.get("fleet"))
    async with asyncio.timeout(OPERATION_S):
        return await operation(op)(hub, {**args, "by": str(request.get("by") or "human:unknown")})


def _check_fleet(hub: Hub, fleet: JsonValue) -> None:
    """Who asks by a guess where the hub lives says which fleet is meant."""
    if fleet is not None and fleet != str(hub.settings.file):
        raise OtherFleet(f"this hub runs {hub.settings.file}, not {fleet}")


def told_json(told: Told) -> JsonObject:
    """What was told, for the way through the socket."""
    return {"data": told.data, "exit": told.exit, "partial": list(told.partial),
            "warnings": list(told.warnings)}  # fmt: skip


def refusal(asked: JsonValue, error: ArcError | NodeError) -> JsonObject:
    """An error for the way through the socket; the other end raises it again."""
    said: JsonObject = {
        "code": error.code, "message": str(error), "hint": error.hint,
        "where": getattr(error, "where", ""), "exit": error.exit_code,
        "rule": getattr(error, "rule", "") or "",
        "problems": list(getattr(error, "problems", ())),
    }  # fmt: skip
    return {"id": asked, "ok": False, "error": said}


def fault(asked: JsonValue, error: BaseException) -> JsonObject:
    """A fault of ours for the way through the socket: where it lies, and no more."""
    where = fault_of(error)
    said: JsonObject = {
        "code": "ARC-FAULT", "message": f"a fault of ours: {type(error).__name__} in {where}",
        "hint": "the hub runs on; please report this line", "where": where, "exit": 1,
    }  # fmt: skip
    return {"id": asked, "ok": False, "error": said}


def listen(state: Path) -> socket.socket:
    """A socket that answers in the state folder, in the place of what a dead hub left there."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    fresh = state / f"{SOCKET}.new"
    try:
        folder = os.open(state, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        door.close()
        raise StateBroken(f"{state}: {error.strerror}", where=str(state)) from error
    try:
        fresh.unlink(missing_ok=True)
        # The kernel takes 107 bytes of path; through the folder's descriptor any folder fits.
        door.bind(f"/proc/self/fd/{folder}/{fresh.name}")
        os.chmod(fresh, 0o600)
        door.listen(BACKLOG)
        door.settimeout(0)
        os.rename(fresh, state / SOCKET)
    except BaseException:
        door.close()
        raise
    finally:
        os.close(folder)
    return door
