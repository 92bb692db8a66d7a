"""Reaches a node on this very machine: `agent-node serve --stdio` as a child, no SSH between."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import agent_node
from arc.errors import NodeUnreachable, NoNodeProgram

from .talk import Talk

ARGV = (sys.executable, "-m", "agent_node", "serve", "--stdio")
CODE = Path(agent_node.__file__).parent.parent  # a folder, or the one file of a zipapp
START_S = 10.0
LEAVE_S = 2.0  # for the child to end by itself once nobody talks to it
IGNORED_MAX = 1024 * 1024  # bytes; a child that prints on when nobody listens is killed
LINGER_S = 0.5  # between the end of its output and the news of its exit
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "AGENT_NODE_HOME")


class PipeWay:
    """The way to one home on this machine. The child lives as long as its talk."""

    def __init__(
        self, node: str, home: Path | None, *, argv: Sequence[str] = ARGV,
        environ: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._node, self._argv = node, tuple(argv)
        self._environ = environment(home, os.environ if environ is None else environ)
        self._children: set[_Child] = set()

    @property
    def stage(self) -> str:
        """What is being waited for."""
        return "starting agent-node on this machine"

    async def open(self, talk: Talk) -> None:
        """A child whose stdin and stdout are the talk."""
        loop = asyncio.get_running_loop()
        child = _Child(talk, self._children.discard)
        self._children.add(child)
        try:
            async with asyncio.timeout(START_S):
                await loop.subprocess_exec(lambda: child, *self._argv, env=self._environ)
        except TimeoutError as error:
            self._children.discard(child)
            text = f"{self._argv[0]} did not start within {START_S:g}s; nothing was asked"
            raise NodeUnreachable(self._node, text) from error
        except OSError as error:
            text = f"{self._argv[0]} cannot be started: {error.strerror}; nothing was asked"
            self._children.discard(child)
            raise NoNodeProgram(self._node, text) from error

    async def close(self) -> None:
        """Wait two seconds for the children to leave; then they are killed."""
        for child in list(self._children):
            await child.leave()


def environment(home: Path | None, given: Mapping[str, str]) -> dict[str, str]:
    """What a child of ours sees: where its home is, where our code is, and little else."""
    kept = {name: given[name] for name in KEPT if name in given}
    own = {"PYTHONPATH": str(CODE), "PYTHONSAFEPATH": "1"}
    return kept | own | ({} if home is None else {"AGENT_NODE_HOME": str(home)})


class _Child(asyncio.SubprocessProtocol):
    """One child, and the channel to it."""

    def __init__(self, talk: Talk, gone: Callable[[_Child], None]) -> None:
        self._talk, self._gone = talk, gone
        self._process: asyncio.SubprocessTransport | None = None
        self._left = asyncio.Event()
        self._ignored = 0  # bytes that came after the end of the talk

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._process = transport  # type: ignore[assignment]
        self._talk.connect(self)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._talk.over is not None:
            self._ignored += len(data)
            if self._ignored > IGNORED_MAX:
                self._kill()
        elif fd == 1:
            self._talk.received(data)
        else:
            self._talk.complained(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:  # its exit code comes a moment later, if it exits at all
            loop = asyncio.get_running_loop()
            loop.call_later(LINGER_S, self._talk.ended, "agent-node closed its output")

    def connection_lost(self, exc: Exception | None) -> None:
        status = self._process.get_returncode() if self._process else None
        self._talk.ended(f"agent-node left (exit {status})", exit_status=status)
        self._left.set()
        self._gone(self)
        if self._process is not None:
            self._process.close()

    def send(self, line: bytes) -> None:
        """Write to its stdin."""
        pipe = self._stdin()
        if pipe is None or pipe.is_closing():
            raise BrokenPipeError("the child reads no more")
        pipe.write(line)

    def unsent(self) -> int:
        """Bytes it has not read."""
        pipe = self._stdin()
        return pipe.get_write_buffer_size() if pipe else 0

    def close(self) -> None:
        """It ends by itself when its stdin does; one that does not is killed in time."""
        self._hang_up()
        asyncio.get_running_loop().call_later(LEAVE_S, self._kill)

    async def leave(self) -> None:
        """Return when it is gone, killed if need be."""
        self._hang_up()
        if not await self._has_left():
            self._kill()
            await self._has_left()

    def _hang_up(self) -> None:
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.abort()

    async def _has_left(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._left.wait()
        return self._left.is_set()

    def _stdin(self) -> asyncio.WriteTransport | None:
        pipe = self._process.get_pipe_transport(0) if self._process else None
        return pipe if isinstance(pipe, asyncio.WriteTransport) else None

    def _kill(self) -> None:
        if self._process is not None and not self._left.is_set():
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.close()
