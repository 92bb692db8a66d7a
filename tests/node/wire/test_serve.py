"""A hub on stdin and stdout is answered with a daemon, without one, and while one comes or goes."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent_node.home import Home, HomeLock
from agent_node.strict import LINE_MAX
from tests.builders import uid
from tests.node.wire.processes import Program, a_daemon, a_serve
from tests.node.wire.talking import a_home, a_move, a_settle, offers_of

HELLO = {"fleet": "arc0", "hub": "arc", "term": 3, "wire": [1, 1]}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "iris")


@pytest.fixture(params=["alone", "handed over", "relayed"])
def serve(request: pytest.FixtureRequest, home: Home, monkeypatch: Any) -> Iterator[Program]:
    """A serve that answers by itself, one that gave its pipes away, and one that relays."""
    with ExitStack() as stack:
        if request.param != "alone":
            stack.enter_context(a_daemon(home.root))
        more = {}
        if request.param == "relayed":
            # Nothing but a pipe or a socket is handed over: stdin and stdout are a terminal here.
            more = stack.enter_context(Terminal()).as_streams()
        program = stack.enter_context(a_serve(home.root, **more))
        if request.param == "relayed":
            program = Through(program, more["stdin"])
        yield program


class Terminal:
    """A pseudo terminal that passes bytes as they are."""

    def __enter__(self) -> Terminal:
        import tty

        self.ours, self.theirs = os.openpty()
        tty.setraw(self.theirs)
        return self

    def as_streams(self) -> dict[str, Any]:
        return {"stdin": self.theirs, "stdout": self.theirs, "ours": self.ours}

    def __exit__(self, *_: object) -> None:
        os.close(self.ours)
        os.close(self.theirs)
