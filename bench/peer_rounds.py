"""Asks another program for one round after the other: a peer, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
READY, NOT_INSTALLED, WITHIN_S = "ready", "not installed", 60.0


class PeerRounds:
    """One peer that is warm; each round is a line to it, and a figure back."""

    def __init__(self, module: str, told: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"bench.{module}", json.dumps(told)], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with ExitStack() as if_it_fails:
            if_it_fails.callback(self.close)
            if (said := self._hear()) != READY:
                raise RuntimeError(f"{module} said: {said[:200]}")
            if_it_fails.pop_all()

    def round(self) -> float:
        """What the peer says that it took."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(json.loads(self._hear()))

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"a peer ended: {self._process.wait(WITHIN_S)}")
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def close(self) -> None:
        """It may end by itself, and soon."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(WITHIN_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


def is_there(package: str) -> bool:
    """Whether this Python could import it."""
    return find_spec(package) is not None


def answer_rounds(take: Callable[[], float]) -> None:
    """The peer's side: ready, then a round a line until there are no more."""
    print(READY, flush=True)
    for _ in sys.stdin:
        print(json.dumps(take()), flush=True)
