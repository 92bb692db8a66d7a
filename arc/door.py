"""Asks the hub of a fleet: the one that runs or, where none does, one built for the moment."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_node.errors import BadInput
from agent_node.lines import Lines, line_of
from agent_node.plain_files import read_plain
from agent_node.strict import LINE_MAX, JsonObject, JsonValue, decode_object

from .errors import ArcError, OtherFleet, OtherHub, WaitedTooLong, WrongUse
from .operations import Told

if TYPE_CHECKING:
    from .hub import Hub

CHUNK = 256 * 1024
STARTING_S = 5.0  # a hub that holds the lease opens its socket within this
AGAIN_S = 0.05
CONNECT_S = 5.0
SOCKET = "hub.sock"
USUAL_STATE = ".arc"
FLEET_MAX = 1024 * 1024


class Answered(ArcError):
    """An error as the hub at the other end of the socket raised it."""

    def __init__(self, said: Mapping[str, JsonValue]) -> None:
        text = {name: str(said.get(name) or "")
                for name in ("message", "hint", "where", "code", "rule")}  # fmt: skip
        super().__init__(text["message"], hint=text["hint"], where=text["where"])
        self.code, self.rule = text["code"] or ArcError.code, text["rule"]
        found, problems = said.get("exit"), said.get("problems")
        self.exit_code = found if isinstance(found, int) else 1
        self.problems = tuple(problems) if isinstance(problems, list) else ()


def fleet_of(named: Path | None, environ: Mapping[str, str]) -> Path:
    """The fleet.yaml that is meant: the one named, else the one these surroundings lead to."""
    from .config import find_fleet

    return find_fleet(Path.cwd(), environ, named)


def ask(
    fleet: Path, op: str, args: JsonObject, *, by: str, timeout_s: float = 60.0
) -> Told | None:
    """What came of one operation of the hub that runs; None: none runs here.

    `WaitedTooLong`: the hub has the request, and may still carry it out.
    """
    usual = fleet.parent / USUAL_STATE
    asked: JsonObject = {"id": 1, "op": op, "args": args, "by": by, "fleet": str(fleet)}
    try:
        told = _ask_at(usual, asked, timeout_s)
    except Answered as error:
        if error.code != OtherFleet.code:
            raise
        told = None
    if told is not None or not _names_a_state(fleet):
        return told
    from .config import state_of

    state = state_of(fleet)
    return None if state == usual else _ask_at(state, asked, timeout_s)


def ask_alone(fleet: Path, op: str, args: JsonObject, *, by: str) -> Told:
    """What came of one operation of a hub that lives for it alone, under the lease.

    Where another process has the lease, it is asked if it opens its socket within five seconds;
    else `OtherHub`, and nothing was done.
    """
    until = time.monotonic() + STARTING_S
    while True:
        try:
            return _alone(fleet, op, args, by)
        except OtherHub:
            told = ask(fleet, op, args, by=by)
            if told is not None:
                return told
            if time.monotonic() > until:
                raise
            time.sleep(AGAIN_S)


def _alone(fleet: Path, op: str, args: JsonObject, by: str) -> Told:
    import asyncio

    from .config import read_fleet
    from .hub import build_hub
    from .operations import OPERATIONS, only_looks, operation

    if op not in OPERATIONS:
        raise WrongUse(f"there is no operation {op!r}")
    settings = read_fleet(fleet)

    async def carried_out() -> Told:
        hub = build_hub(settings)
        try:
            unset = _untold_limit(hub) if only_looks(op, args) else await _unset_limit(hub)
            told = await operation(op)(hub, {**args, "by": by})
            return replace(told, warnings=(*unset, *told.warnings))
        finally:
            await hub.close()

    return asyncio.run(carried_out())


async def _unset_limit(hub: Hub) -> tuple[str, ...]:
    """Why the day's limit of fleet.yaml does not hold; nothing where it does. A queue that takes no
    word of it gives nothing away either, and whoever asks has to be told how it is.
    """
    from .allowance import set_allowance

    try:
        await set_allowance(hub)
    except ArcError as error:
        return (f"the limit in {hub.settings.file.name} (budget) was not set: {error}",)
    return ()


def _untold_limit(hub: Hub) -> tuple[str, ...]:
    """The same for who only looks: nothing is set, and the queue is not so much as opened."""
    from .allowance import is_unset

    text = (f"the limit in {hub.settings.file.name} (budget) is not set yet: the next command that "
            "changes something sets it, or arc up")  # fmt: skip
    return (text,) if is_unset(hub) else ()


def _names_a_state(fleet: Path) -> bool:
    """Whether fleet.yaml may put the state elsewhere: to read it properly costs a tenth second."""
    try:
        return b"state" in read_plain(fleet, FLEET_MAX, linked=True)
    except OSError:
        return False


def _ask_at(state: Path, asked: JsonObject, timeout_s: float) -> Told | None:
    line = line_of(asked)
    if len(line) > LINE_MAX:
        raise WrongUse(f"the request takes {len(line)} bytes, a line {LINE_MAX}: send it in parts")
    hub = _connected(state)
    if hub is None:
        return None
    with hub:
        return _told(_reply(hub, line, str(asked["op"]), timeout_s))


def _connected(state: Path) -> socket.socket | None:
    """A connection to the hub; None: nobody listens in this state folder."""
    try:
        folder = os.open(state, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    hub = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    hub.settimeout(CONNECT_S)
    try:
        # The kernel takes 107 bytes of path; through the folder's descriptor any folder fits.
        hub.connect(f"/proc/self/fd/{folder}/{SOCKET}")
    except (FileNotFoundError, ConnectionRefusedError):
        hub.close()
        return None
    except BaseException:
        hub.close()
        raise
    finally:
        os.close(folder)
    return hub


def listens(state: Path) -> bool:
    """Whether a hub has its socket open in this state folder; nothing is asked of it."""
    hub = _connected(state)
    if hub is not None:
        hub.close()
    return hub is not None


def _reply(hub: socket.socket, line: bytes, op: str, timeout_s: float) -> bytes:
    until = time.monotonic() + timeout_s
    lines = Lines()
    try:
        with suppress(BrokenPipeError):  # a hub that turned us away may have said why
            hub.sendall(line)
        while not lines.waiting:
            hub.settimeout(max(until - time.monotonic(), 0.001))
            data = hub.recv(CHUNK)
            if not data:
                raise WaitedTooLong(f"{op}: the hub ended before it answered; look, or ask again")
            lines.add(data)
            if lines.too_long:
                raise ArcError(f"{op}: the answer is longer than {LINE_MAX} bytes")
    except TimeoutError as error:
        raise WaitedTooLong(f"{op}: no answer after {timeout_s:g} s; the hub may still do it",
                            hint="see: arc log, arc sensors") from error  # fmt: skip
    except ConnectionError as error:
        raise WaitedTooLong(f"{op}: the hub left while it was asked; look, or ask again") from error
    return lines.take()


def _told(line: bytes) -> Told:
    try:
        reply = decode_object(line)
    except BadInput as error:
        text = f"the hub's answer cannot be read: {error}"
        raise ArcError(text, hint="does it run another version? restart it: arc up") from error
    if reply.get("ok") is not True:
        said = reply.get("error")
        raise Answered(said if isinstance(said, dict) else {"message": "no reason was given"})
    told = cast("JsonObject", reply["told"])
    return Told(
        data=cast("JsonObject", told["data"]), exit=cast("int", told["exit"]),
        partial=tuple(cast("list[JsonObject]", told["partial"])),
        warnings=tuple(cast("list[str]", told["warnings"])),
    )  # fmt: skip
