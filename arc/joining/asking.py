"""Speaks with the program on a joining machine: one request, one answer, each bounded in time."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Protocol

from agent_node.errors import BadInput
from agent_node.lines import Lines
from agent_node.requests import Fields
from agent_node.strict import JsonObject, decode_object
from agent_node.text import safe_text
from arc.errors import AnswerUnreadable, NodeSilent, NodeUnreachable

from .errors import JoinRefused, NoPython
from .sending import NO_PYTHON, program
from .there.talking import MARK

READY_S = 30.0  # a login shell may take its time, a dozen Pythons may be tried
CHUNK = 64 * 1024
ANSWER_MAX = 2 * 1024 * 1024
NOISE_MAX = 256 * 1024  # bytes that a login shell may print before the program speaks
SHOWN_MAX = 200
GREETING = '{"agent-node"'
LEAVE_S = 2.0
EXITS = {"other_node": 2, "bad_settings": 2}
HINTS = {"no_space": "free some space there, then run the same command again"}


class Inward(Protocol):
    """What the machine writes."""

    async def read(self, n: int = -1, /) -> bytes:
        """Up to so many bytes; none: it has ended."""


class Outward(Protocol):
    """What is written to the machine."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None: ...


class There:
    """The other end of a login. Who talks to it gets answers, or an error that names the node."""

    def __init__(self, node: str, inward: Inward, outward: Outward, last_words: Inward) -> None:
        self._node, self._in, self._out, self._err = node, inward, outward, last_words
        self._lines = Lines(ANSWER_MAX)
        self._heard_bytes = 0
        self.noise = ""
        """What a login shell printed before our program spoke; safe to print, cut."""

    async def begin(self) -> None:
        """Send the program and wait until it speaks."""
        await self._write(program(), READY_S)
        said = await self._said("to start", READY_S)
        if said.startswith(NO_PYTHON.encode()):
            found = safe_text(said.decode("utf-8", "replace").removeprefix(NO_PYTHON).strip(), 80)
            text = f"has no Python from 3.11 on ({found or 'none at all'})"
            raise NoPython(f"{self._node}: {text}", where=self._node)

    async def ask(self, do: str, fields: JsonObject, timeout_s: float) -> Fields:
        """What came of one request; `JoinRefused` with the machine's own reason."""
        asked = {**fields, "do": do, "deadline_s": int(timeout_s) + 1}
        await self._write(json.dumps(asked).encode() + b"\n", timeout_s)
        try:
            said = Fields(decode_object(await self._said(do, timeout_s)))
            if said.flag("ok"):
                return said.inside("result")
            code, text = said.text("code", 100), said.text("message", 10_000)
            hint = said.text_or("hint", "", 10_000)
        except BadInput as error:
            raise AnswerUnreadable(self._node, f"its answer to {do} is none: {error}") from error
        raise self._refusal(code, text, hint)

    def _refusal(self, code: str, text: str, hint: str) -> JoinRefused:
        full = "No space left" in text or "Disk quota" in text
        refused = JoinRefused(f"{self._node}: {text}", where=self._node,
                              hint=hint or (HINTS["no_space"] if full else ""))  # fmt: skip
        refused.exit_code = EXITS.get(code, refused.exit_code)
        return refused

    async def _write(self, data: bytes, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                self._out.write(data)
                await self._out.drain()
        except TimeoutError as error:
            text = f"does not read what it is sent within {timeout_s:g}s"
            raise NodeSilent(self._node, f"{text}; it may have begun") from error
        except (OSError, BrokenPipeError) as error:
            raise NodeUnreachable(self._node, await self._ended()) from error

    async def _said(self, doing: str, timeout_s: float) -> bytes:
        """The next line that is ours, without its mark; what a shell prints is kept as noise."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    while self._lines.waiting:
                        line = self._lines.take()
                        before, mark, said = line.partition(MARK)
                        self._heard(before if mark else line)
                        if mark:
                            return said
                    data = await self._in.read(CHUNK)
                    if not data:
                        raise NodeUnreachable(self._node, await self._ended())
                    self._lines.add(data)
                    if self._lines.too_long or self._heard_bytes > NOISE_MAX:
                        raise AnswerUnreadable(self._node, "its login shell prints without end")
        except TimeoutError as error:
            text = f"{doing} was not answered within {timeout_s:g}s; it may have happened"
            raise NodeSilent(self._node, f"{text}{self._after_noise()}") from error
        except OSError as error:
            text = f"{doing}: your login was lost ({error}); it may have happened"
            raise NodeUnreachable(self._node, text) from error

    def _heard(self, noise: bytes) -> None:
        self._heard_bytes += len(noise) + 1
        text = noise.decode("utf-8", "replace").strip()
        if text:
            self.noise = f"{self.noise} {safe_text(text, SHOWN_MAX)}".strip()[:SHOWN_MAX]

    def _after_noise(self) -> str:
        return f"; its login shell printed: {self.noise}" if self.noise else ""

    async def _ended(self) -> str:
        """Why the other end left, by its own last words."""
        words = b""
        try:
            async with asyncio.timeout(LEAVE_S):
                words = await self._err.read(CHUNK)
        except (TimeoutError, OSError):
            words = b""
        if self.noise.startswith(GREETING):
            return ("gives your login agent-node and no shell: ForceCommand in its sshd_config, or "
                    "command= in the line of your key; take that away for a moment")  # fmt: skip
        lines = words.decode("utf-8", "replace").strip().splitlines()
        last = f": {safe_text(lines[-1], SHOWN_MAX)}" if lines else ""
        return f"its login shell ended before it answered{last}{self._after_noise()}"


def packed(data: bytes) -> str:
    """Bytes as they travel inside JSON."""
    return base64.b64encode(data).decode("ascii")
