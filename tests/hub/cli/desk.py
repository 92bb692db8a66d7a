"""A desk to type commands at: a hub over real node stores in memory, or a real fleet over pipes."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_node import commands as c
from agent_node.lines import line_of
from agent_node.strict import JsonObject
from arc import door
from arc.cli.around import Around
from arc.cli.asking import ask_the_hub
from arc.cli.running import WallClock, run_command
from arc.hub import Hub, domain_table
from arc.operations import Told
from arc.reception import answered
from arc.settings import NodeEntry
from tests.builders import uid
from tests.fleet.machines import MachineClock
from tests.fleet_builders import DOMAINS, ROLES
from tests.hub_builders import a_hub
from tests.hub_nodes import WORDS, SomeNodes
from tests.node.daemon.living import PATIENCE_S, ROOT, Node

ENVIRON = {"USER": "ada", "PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
NAMES = ("iris", "loom", "spark")


@dataclass
class Ran:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        assert self.out.count("\n") == 1, self.out
        said: dict[str, Any] = json.loads(self.out)
        return said

    @property
    def data(self) -> Any:
        return self.envelope["data"]

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Keyboard(io.BytesIO):
    """stdin on which somebody types."""

    def isatty(self) -> bool:
        return True


class Screen(io.StringIO):
    """stdout that somebody looks at."""

    def isatty(self) -> bool:
        return True


class Desk:
    """Commands against a hub of this process; the answers go the way of the socket's lines."""

    def __init__(self, place: Path, *, names: tuple[str, ...] = NAMES, **settings: Any) -> None:
        self.place = place
        self.nodes = SomeNodes(place / "nodes", *names)
        for name in names:  # what a hello tells every node
            self.nodes.link(name).words = replace(WORDS, domains=domain_table(DOMAINS))
        self.clock = MachineClock(self.nodes.moment)
        entries = tuple(
            NodeEntry(name, local=True, owns=role.owns, also=role.also, never=role.never)
            for name in names for role in [ROLES[name]]
        )  # fmt: skip
        self.hub: Hub = a_hub(place, self.clock, links=self.nodes.links, nodes=entries, **settings)
        self.environ = dict(ENVIRON)
        self.asked: list[tuple[str, JsonObject]] = []

    def ask(self, around: Around, op: str, args: JsonObject, *, timeout_s: float) -> Told:
        self.asked.append((op, args))
        line = line_of({"id": 1, "op": op, "args": args, "by": around.by})
        return door._told(line_of(asyncio.run(answered(self.hub, line))))

    def arc(self, *words: str, typed: bytes | None = None, stdin: bytes = b"",
            environ: Mapping[str, str] | None = None) -> Ran:  # fmt: skip
        """One command; with `typed` a person sits at a terminal and types this."""
        out, err = (io.StringIO() if typed is None else Screen()), io.StringIO()
        around = Around(
            environ={**self.environ, **(environ or {})},
            stdin=io.BytesIO(stdin) if typed is None else Keyboard(typed),
            stdout=out, stderr=err, ask=self.ask, clock=self.clock,
            fleet=self.place / "fleet.yaml",
        )  # fmt: skip
        code = run_command(list(words), around)
        return Ran(code, out.getvalue(), err.getvalue())

    def both(self, *words: str) -> tuple[Ran, Any]:
        """As text and as JSON, with one exit code; the data of the latter. For what only asks."""
        text, machine = self.arc(*words), self.arc(*words, "--json")
        assert text.code == machine.code, (text, machine)
        said = machine.envelope
        return text, said["data"] if "data" in said else said["error"]

    def minutes_pass(self, minutes: float) -> None:
        self.nodes.time_passes(60 * minutes)

    def waits(self, node: str, *numbers: int, **fields: Any) -> list[str]:
        """READY tasks on a node, or with the hub; their uids."""
        if node == "inbox":
            tasks = [{"uid": uid(n), "subject": f"work {n}", **fields} for n in numbers]
            asyncio.run(self.hub.inbox.ask("add", {"tasks": list(tasks)}))
        else:
            self.nodes.add(node, *numbers, **fields)
        return [uid(n) for n in numbers]

    def runs(self, node: str, number: int, **fields: Any) -> str:
        """A task that runs there."""
        self.waits(node, number, **fields)
        store = self.nodes.machines[node].store
        claimed = store.apply(c.Claim(node))
        assert isinstance(claimed, c.Claimed), claimed
        assert claimed.task.uid == uid(number)
        store.apply(c.Started(uid(number), claimed.n, 4242, 99, self.clock.boot_id()))
        return uid(number)

    def close(self) -> None:
        asyncio.run(self.hub.close())
        self.nodes.close()


class RealFleet:
    """Homes of their own over pipes: iris has a daemon, loom has none; `arc` in this process."""

    def __init__(self, place: Path) -> None:
        self.place, self.file = place, place / "fleet.yaml"
        self.iris, self.loom = Node(place / "iris"), Node(place / "loom", "loom")
        self.iris.start()
        self.file.write_text(
            "fleet: arc0\nrebalance: {enabled: false}\nrouter: {enabled: false}\nnodes:\n"
            f"  - {{name: iris, local: true, home: {self.iris.home}}}\n"
            f"  - {{name: loom, local: true, home: {self.loom.home}}}\n"
        )
        self.hubs: list[subprocess.Popen[str]] = []

    def arc(self, *words: str) -> Ran:
        """One command by the real way to a hub, running or not."""
        out, err = io.StringIO(), io.StringIO()
        around = Around(environ=ENVIRON, stdin=io.BytesIO(), stdout=out, stderr=err,
                        ask=ask_the_hub, clock=WallClock(), fleet=self.file)  # fmt: skip
        return Ran(run_command(list(words), around), out.getvalue(), err.getvalue())

    def start(self, *words: str, packages: Path | None = None) -> subprocess.Popen[str]:
        """`arc …` as a process of its own, which also finds what is installed in `packages`."""
        found = os.pathsep.join(str(one) for one in (ROOT, packages) if one is not None)
        process = subprocess.Popen(
            [sys.executable, "-m", "arc", "--fleet", str(self.file), *words], cwd=self.place,
            env={**os.environ, "PYTHONPATH": found}, text=True, bufsize=1,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.hubs.append(process)
        return process

    def up(self) -> subprocess.Popen[str]:
        """A hub that runs and answers."""
        process = self.start("up")
        until = time.monotonic() + PATIENCE_S
        while door.ask(self.file, "sensors.list", {}, by="human:ada") is None:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until, "the hub never answered"
            time.sleep(0.02)  # between two knocks at a door that tells nobody when it opens
        return process

    def close(self) -> None:
        for process in self.hubs:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=PATIENCE_S)
        self.iris.clean_up()
        self.loom.clean_up()
