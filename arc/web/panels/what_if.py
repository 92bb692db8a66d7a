"""Plays history again with other limits, in a process of its own that may take its time."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from agent_node.clock import iso
from agent_node.lines import encode
from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.decisions.limits import LIMITS
from arc.errors import ArcError, WaitedTooLong, WrongUse

from .asked import window_of

log = logging.getLogger("arc.web")

NAME = "what_if"
POLICY = "policy"
WORD_MAX = 20
SPAN_S = 86_400.0  # a day has what a busy hour has not: the queues of all others
WITHIN_S = 25.0
ANSWER_MAX = 8 * 1024 * 1024
NICE = 10
LAST_WORDS_MAX = 2048  # bytes of what the process said as it ended
HINT = "try once more; if it ends so again, the hub's log has its last words: a shorter span may do"


class ReplayFailed(ArcError):
    """History could not be played again; nothing was changed by trying."""

    def __init__(self, message: str, *, code: str = "ARC-FAILED", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class Replays:
    """Plays again for whoever asks, one after the other, each bounded in time."""

    def __init__(self, fleet: Path) -> None:
        self._fleet = fleet
        self._turn = asyncio.Lock()

    async def ask(self, now: datetime, query: Mapping[str, str]) -> JsonObject:
        """What `arc.simulate.what_if` says of the window and the limits in the query."""
        asked = asked_for(self._fleet, now, query)
        try:
            async with asyncio.timeout(WITHIN_S), self._turn:
                said = await _in_a_process(asked)
        except TimeoutError as error:
            raise WaitedTooLong(f"what if: took longer than {WITHIN_S:.0f} s",
                                hint="ask for a shorter time") from error  # fmt: skip
        trouble = said.get("error")
        if isinstance(trouble, dict):
            raise ReplayFailed(str(trouble.get("message")), code=str(trouble.get("code")),
                               hint=str(trouble.get("hint", "")))  # fmt: skip
        answer = said.get("data")
        return answer if isinstance(answer, dict) else {}


def asked_for(fleet: Path, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """What a query asks for; `WrongUse` names a parameter that is none."""
    window = window_of(query, now, span_s=SPAN_S)
    odd = next((key for key in query if key not in (*LIMITS, POLICY, "at", "span")), None)
    if odd is not None:
        raise WrongUse(f"what_if: {odd[:WORD_MAX]!r} is no limit; there are {', '.join(LIMITS)}")
    if any(not 0 < len(value) <= WORD_MAX for key, value in query.items() if key in LIMITS):
        raise WrongUse(f"what_if: a limit is a word of 1 to {WORD_MAX} characters")
    return {"fleet": str(fleet), "since": iso(window.since), "until": iso(window.until),
            "policy": query.get(POLICY, "")[:WORD_MAX],
            "limits": {key: query[key] for key in LIMITS if key in query}}  # fmt: skip


async def _in_a_process(asked: JsonObject) -> JsonObject:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "arc.web.panels.what_if", stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=ANSWER_MAX,
        start_new_session=True,
    )  # fmt: skip
    assert child.stderr is not None, "it was asked for"
    last = asyncio.create_task(_last_words(child.stderr))
    child.stderr = None  # it is read here: `communicate` would keep all of it
    try:
        out, _ = await child.communicate(encode(asked).encode())
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        words = await last
    with suppress(ValueError):
        said = json.loads(out)
        return said if isinstance(said, dict) else {}
    log.error("replay_failed: %s", words, extra={"exit": child.returncode})
    raise ReplayFailed(f"what if: its process {_how(child.returncode)}", hint=HINT)


def _how(code: int | None) -> str:
    """How a process ended, in words."""
    return f"was ended by signal {-code}" if code is not None and code < 0 else (
        f"ended with {code}")


async def _last_words(stderr: asyncio.StreamReader) -> str:
    """The end of what it said there, for the hub's log alone: a page shows no tracebacks."""
    kept = b""
    while piece := await stderr.read(LAST_WORDS_MAX):
        kept = (kept + piece)[-LAST_WORDS_MAX:]
    return safe_text(kept.decode("utf-8", "replace"), LAST_WORDS_MAX, keep="\n")


def main() -> int:
    """The process: one question on stdin, one answer on stdout."""
    from arc.simulate.what_if import what_if

    os.nice(NICE)
    try:
        answer: JsonObject = {"data": _drawn(what_if(json.loads(sys.stdin.buffer.read())))}
    except ArcError as error:
        answer = {"error": {"code": error.code, "message": str(error), "hint": error.hint}}
    sys.stdout.write(encode(answer))
    return 0


def _drawn(found: JsonObject) -> JsonObject:
    """What the picture needs; single moves and stretches would be a megabyte of a large fleet."""
    return {name: {key: value for key, value in one.items() if key not in ("moved", "stretches")}
            if isinstance(one, dict) else one for name, one in found.items()}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
