"""Asks this machine's own node: through the daemon or, without one, from the queue itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from .binding import connect_at
from .errors import BadInput, BadSettings, DoorTimeout, NodeError, NotRunning, Refused, Starting
from .home import Home, HomeLock
from .lines import Lines, line_of
from .opening import PATIENCE_S, daemon_of, daemon_or_lock, opened
from .strict import LINE_MAX, JsonObject, JsonValue, decode_object

CHUNK = 256 * 1024
TASK_PATIENCE_S = 30.0
_ASKED = 1
_ERRORS: dict[str, type[NodeError]] = {
    "starting": Starting,
    "not_running": NotRunning,
    "crowded": Starting,
    "bad_settings": BadSettings,
}


class StrangeReply(NodeError):
    """What came back is no reply of ours; what the request did is not known."""

    code = "strange_answer"
    hint = "does another version of agent-node run here? see: agent-node version, agent-node doctor"


def ask(home: Home, request: Mapping[str, object], *, timeout_s: float = 30) -> dict[str, object]:
    """The result of one request, or the refusal as an error; a repeat after a timeout is safe."""
    line = line_of({**cast("JsonObject", request), "id": _ASKED})
    if len(line) > LINE_MAX:
        raise BadInput(f"the request takes {len(line)} bytes, a line {LINE_MAX}: send it in parts")
    until = time.monotonic() + timeout_s
    patience_s = min(PATIENCE_S, timeout_s)
    found = daemon_or_lock(home, patience_s=patience_s, timeout_s=timeout_s, crowd_s=timeout_s)
    if isinstance(found, HomeLock):
        return _result(_answer_alone(home, found, line))
    with found:
        return _result(_ask_daemon(found, line, until, str(request.get("do"))))


def ask_daemon(
    home: Home, request: Mapping[str, object], *, timeout_s: float = 30
) -> dict[str, object] | None:
    """The same from the daemon alone; None when none listens. The queue is never opened for it."""
    found = daemon_of(home, timeout_s=timeout_s)
    if found is None:
        return None
    line = line_of({**cast("JsonObject", request), "id": _ASKED})
    with found:
        until = time.monotonic() + timeout_s
        return _result(_ask_daemon(found, line, until, str(request.get("do"))))


def _answer_alone(home: Home, lock: HomeLock, line: bytes) -> bytes:
    from .desk import Session  # a daemon knows all this already, and then it is not loaded here

    with opened(home, lock) as answers:
        return answers.answer(Session("owner"), line.rstrip(b"\n"))


def ask_at(place: str, request: Mapping[str, object]) -> dict[str, object]:
    """The same for a task of another user, at the socket of its attempt: nothing else is there."""
    line = line_of({**cast("JsonObject", request), "id": _ASKED})
    until = time.monotonic() + TASK_PATIENCE_S
    try:
        shim = connect_at(Path(place), timeout_s=TASK_PATIENCE_S)
    except OSError as error:
        raise NotRunning(f"{place}: nobody listens to this task: {error.strerror}") from error
    with shim:
        return _result(_ask_daemon(shim, line, until, str(request.get("do")), opening=b""))


OWNER = b'{"session":"owner"}\n'


def _ask_daemon(
    daemon: socket.socket, line: bytes, until: float, do: str, opening: bytes = OWNER
) -> bytes:
    lines = Lines()
    try:
        daemon.settimeout(_left(until))
        with suppress(BrokenPipeError):  # who leaves at once may have said why
            daemon.sendall(opening + line)
        while not lines.waiting:
            daemon.settimeout(_left(until))
            data = daemon.recv(CHUNK)
            if not data:
                raise DoorTimeout(f"{do}: the daemon ended before it answered; look, or ask again")
            lines.add(data)
            if lines.too_long:
                raise StrangeReply(f"{do}: the answer is longer than {LINE_MAX} bytes")
    except TimeoutError as error:
        raise DoorTimeout(f"{do}: no answer in time; it may have happened: ask again") from error
    except ConnectionError as error:
        raise DoorTimeout(f"{do}: the daemon left while it was asked: {error}") from error
    return lines.take()


def _left(until: float) -> float:
    """Seconds that are left, never so few that a socket takes them for "do not wait"."""
    return max(until - time.monotonic(), 0.001)


def _result(line: bytes) -> dict[str, object]:
    try:
        reply = decode_object(line)
    except BadInput as error:
        raise StrangeReply(f"the answer of this node cannot be read: {error}") from error
    result = reply.get("result")
    if reply.get("ok") is True and isinstance(result, dict):
        return dict(result)
    raise _error_of(reply.get("error"))


def _error_of(error: JsonValue) -> NodeError:
    """The refusal as the error that it was at the other end, where that makes a difference."""
    said = error if isinstance(error, dict) else {}
    code, message = str(said.get("code", "failed")), str(said.get("message", "no reason was given"))
    if code in _ERRORS:
        return _ERRORS[code](message)
    if code == BadInput.code:
        bad = BadInput(message)
        bad.field = str(said.get("field", ""))
        return bad
    rule = said.get("rule")
    return Refused(code, message, rule if isinstance(rule, str) else None)
