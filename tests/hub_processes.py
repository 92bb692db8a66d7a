"""Starts real hubs and asks them, as a person does: each in a process of its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from agent_node.strict import JsonObject
from tests.sensors_stage import within

ROOT = Path(__file__).parents[1]
LIMIT_S = 30.0


@contextmanager
def a_hub(place: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A hub that has said its first line."""
    hub = subprocess.Popen(
        [sys.executable, "-m", "arc", "up", *words], cwd=place, env=around(),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert hub.stdout is not None
        ready, _, _ = select.select([hub.stdout], [], [], LIMIT_S)
        assert ready, "the hub said nothing"
        yield hub
    finally:
        if hub.poll() is None:
            hub.kill()
        hub.communicate(timeout=LIMIT_S)


def until_said(hub: subprocess.Popen[bytes], word: str) -> str:
    """What this hub says from now on, up to the line with this word."""
    assert hub.stdout is not None
    said, until = b"", time.monotonic() + LIMIT_S
    while word.encode() not in said.rpartition(b"\n")[0]:
        left_s = until - time.monotonic()
        ready, _, _ = select.select([hub.stdout], [], [], max(left_s, 0))
        fresh = os.read(hub.stdout.fileno(), 65536) if ready else b""
        assert fresh, f"the hub never said {word!r}, but: {said.decode()[-2000:]}"
        said += fresh
    return said.decode()


def run(place: Path, program: str, *words: str, node: str = "", ends: int = 0) -> str:
    """What a command says; one that ends with another code is a failing test."""
    env = around() | ({"AGENT_NODE_HOME": str(place / node)} if node else {})
    ran = subprocess.run([sys.executable, "-m", program, *words], cwd=place, env=env, text=True,
                         capture_output=True, timeout=LIMIT_S, check=False)  # fmt: skip
    assert ran.returncode == ends, (words, ran.returncode, ran.stdout[-2000:], ran.stderr[-2000:])
    return ran.stdout


def answer(place: Path, *words: str, ends: int = 0) -> JsonObject:
    said = run(place, "arc", *words, "--json", ends=ends)
    return cast("JsonObject", within(json.loads(said), "data"))


def around() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
