"""Runs `arc demo --web` for a test, as a newcomer starts it, and ends all that it started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_node.strict import JsonObject

ROOT = Path(__file__).parents[2]
STARTS_S, ENDS_S, SOON_S = 60.0, 60.0, 60.0


@dataclass(frozen=True)
class Demo:
    """A demo that runs: where its page is, and how its fleet is asked."""

    url: str
    environ: dict[str, str]

    async def arc(self, *words: str, stdin: bytes = b"") -> Any:
        """What the command answers, as `--json` has it."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "arc", *words, "--json", cwd=ROOT, env=self.environ,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate(stdin)
        return json.loads(out)["data"]


@asynccontextmanager
async def started(place: Path, *, tasks: int) -> AsyncIterator[Demo]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "arc", "demo", "--web", "--tasks", str(tasks), cwd=ROOT, env=environ,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(STARTS_S):
            url, fleet = await _told(process.stdout)
        yield Demo(url, {**environ, "ARC_FLEET": fleet})
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        async with asyncio.timeout(ENDS_S):
            await process.communicate()
    assert process.returncode == 130


async def _told(stdout: asyncio.StreamReader) -> tuple[str, str]:
    """Its page and its fleet.yaml, once it is up; by then the first tasks have been moved."""
    found, fleet, is_up, moved = "", "", False, False
    async for line in stdout:
        said = line.decode()
        if "the page, as soon as" in said:
            found = said.split()[-1]
        if "export ARC_FLEET=" in said:
            fleet = said.strip().partition("=")[2]
        is_up = is_up or "the page: http" in said
        moved = moved or "stolen" in said.split()
        if found and fleet and is_up and moved:
            return found, fleet
    raise AssertionError("the demo ended before its page was there")


async def parked(demo: Demo, subject: str, *, on: str) -> str:
    """A task that must not be repeated, and whose attempt was cut off: a person has to decide."""
    task: JsonObject = {"subject": subject, "priority": 1, "body": '{"seconds": 60}',
                        "on_interrupt": "park", "pinned": True}  # fmt: skip
    await demo.arc("tasks", "import", "-", "--to", on, stdin=json.dumps(task).encode())
    uid = await _in_state(demo, subject, "RUNNING")
    os.kill(_shim_of(uid), signal.SIGKILL)  # what waits for its program, and would tell its end
    return await _in_state(demo, subject, "PARKED")


async def _in_state(demo: Demo, subject: str, state: str) -> str:
    async with asyncio.timeout(SOON_S):
        while True:
            listed = await demo.arc("tasks", "list", "--subject", subject)
            for one in listed["tasks"]:
                if one["state"] == state:
                    return str(one["uid"])


def _shim_of(uid: str) -> int:
    """The parent of the program that was given this task."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"AGENT_TASK_UID={uid}".encode() in (process / "environ").read_bytes().split(b"\0"):
                return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    raise AssertionError(f"nothing runs {uid}")
