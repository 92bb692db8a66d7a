"""Runs the page beside a hub: a process of its own, started again when it ends, within bounds."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.envelope import Exit
from agent_node.text import safe_text

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.settings import WebEntry

LOOK_S = 1.0  # how often it is looked whether fleet.yaml says something else of the page
AGAIN_S = (1.0, 2.0, 5.0, 15.0, 60.0)  # how long until it is started again, the longest at last
STARTS_MAX = 20  # of a page that ends each time within a minute
WELL_S = 60.0
LEAVE_S = 3.0
LINE_MAX = 64 * 1024
BECAUSE_MAX = 300  # characters


@dataclass(eq=False)
class PageBeside:
    """The page of a running hub. Whatever becomes of it, the hub runs on."""

    hub: Hub
    say: Callable[[str], None]
    command: tuple[str, ...] = (sys.executable, "-m", "arc", "web", "--json", "--beside-hub")
    door: socket.socket | None = None  # where it is to listen; None: it opens one itself
    other: str = ""  # where a page of this fleet is up that is not this hub's; "": none is known

    async def keep(self) -> None:
        """Until it is cancelled, or the page cannot be had; then it is over, with its process."""
        tries, loop = 0, asyncio.get_running_loop()
        while tries < STARTS_MAX:
            said, began = self.hub.settings.web, loop.time()
            try:
                code, because = await self._run(said)
            except OSError as error:  # no memory or no descriptors for another process
                self.say(f"the page cannot be started: {error.strerror}")
                code, because = int(Exit.FAILED), ""
            if code == Exit.USAGE:
                return self.say(f"the page cannot be had so; the hub runs on without it{because}")
            if self.hub.settings.web != said:
                tries = 0
                continue
            if code == Exit.DONE and self.other:
                tries = 0  # nothing is wrong: the fleet has its page
                await asyncio.sleep(AGAIN_S[-1])
                continue
            tries = 1 if loop.time() - began > WELL_S else tries + 1
            pause_s = AGAIN_S[min(tries, len(AGAIN_S)) - 1]
            self.say(f"the page ended (exit {code}); it is started again in {pause_s:.0f} s"
                     f"{because}")  # fmt: skip
            await asyncio.sleep(pause_s)
        return self.say(f"the page ended {tries} times; it is not started again: arc web")

    async def _run(self, said: WebEntry) -> tuple[int, str]:
        """One process of it, from its start to its end; its exit code, and what it said of that."""
        given = self._given(said)
        words = [word for one in given for word in ("--door", str(one))]
        page = await asyncio.create_subprocess_exec(
            *self.command, *words, "--fleet", str(self.hub.settings.file), pass_fds=given,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_MAX,
            start_new_session=True,
        )  # fmt: skip
        telling = asyncio.create_task(self._tell_address(page))
        following = asyncio.create_task(self._until_other(page, said))
        try:
            code = await page.wait()
            heard, _ = await asyncio.wait({telling}, timeout=LEAVE_S)
            return code, telling.result() if heard else ""
        finally:
            telling.cancel()
            following.cancel()
            await _ended(page)

    def _given(self, said: WebEntry) -> tuple[int, ...]:
        """The door, as long as fleet.yaml says that very place."""
        if self.door is None or said.socket is not None:
            return ()
        is_there = self.door.getsockname()[:2] == (said.host, said.port)
        return (self.door.fileno(),) if is_there else ()

    async def _tell_address(self, page: asyncio.subprocess.Process) -> str:
        """Its one line says where it is; else why it is nowhere, which is given back."""
        assert page.stdout is not None, "it is a pipe"
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(await page.stdout.readline())
            if not said["ok"]:
                return f": {safe_text(str(said['error']['message']), BECAUSE_MAX)}"
            self._heard(safe_text(str(said["data"]["address"])), already="already" in said["data"])
        return ""

    def _heard(self, address: str, *, already: bool) -> None:
        """Where the page is or, told once, where another one of this fleet is."""
        before, self.other = self.other, address if already else ""
        if not already:
            self.say(f"the page: {address}")
        elif before != address:
            self.say(f"this fleet's page is up already: {address}; the hub starts one of its own "
                     "once that has ended")  # fmt: skip

    async def _until_other(self, page: asyncio.subprocess.Process, said: WebEntry) -> None:
        """What fleet.yaml says of the page holds from its start on."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self.hub.settings.web != said:
                with suppress(ProcessLookupError):
                    page.terminate()
                return


async def _ended(page: asyncio.subprocess.Process) -> None:
    """The process is gone, in good order or not."""
    if page.returncode is not None:
        return
    with suppress(ProcessLookupError):
        page.terminate()
    try:
        async with asyncio.timeout(LEAVE_S):
            await page.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.kill(page.pid, 9)
        await page.wait()
