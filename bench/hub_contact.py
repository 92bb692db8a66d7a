"""Measures first contact: from nothing to the status of a hundred nodes, by what is behind them."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import asyncssh

from agent_node.home import Home
from arc.keys import private_key_path
from arc.links import HelloWords, Link
from arc.links.opening import open_links
from arc.settings import FleetSettings
from arc.survey import survey

from .floor_hub import Sessions, connect_all
from .hub_far import STARTING
from .hub_fleet import Far, far_side, names
from .hub_reaching import CLOCK, LIMIT_S, Story, took_ms, whole
from .machine import load
from .measuring import Place, Row, Side, in_turns, ratio
from .nodes import ANSWER_WITHIN_S

WORDS = HelloWords("bench", "arc", 1, "01J0000000000000000000000A", {"version": "1"})
CONNECTS = "bare asyncssh connects to the same server, each starting python3 -I -S -c pass"


class Contact:
    """Links that nobody has opened yet, each time anew."""

    def __init__(
        self, runner: asyncio.Runner, far: Far, kind: str, settings: FleetSettings
    ) -> None:
        self.runner, self.far, self.kind, self.settings = runner, far, kind, settings
        self.key = asyncssh.read_private_key(private_key_path(far.state))
        self._open: list[Sessions | Mapping[str, Link]] = []

    async def ours(self) -> None:
        """From nothing to a status of each."""
        links = dict(open_links(
            self.settings, WORDS, clock=CLOCK, rng=random.Random(1),
            is_fenced=lambda node, life: False,
        ))  # fmt: skip
        del links["inbox"]  # our own queue is no node to be reached
        self._open.append(links)
        whole(await survey(links, roles={}, clock=CLOCK, deadline_s=LIMIT_S), len(links))

    async def bare(self) -> None:
        """Connected, logged in, a program started and over, on each."""
        logins = [(f"{self.kind}-{name}", port) for name, port in self.far.ports.items()]
        self._open.append(await connect_all(logins, self.key))

    def side(self, story: Story) -> Callable[[], float]:
        """Milliseconds of the story alone; what it opened is over before the next one begins."""

        def take() -> float:
            took = self.runner.run(took_ms(story))
            self.runner.run(self._close())
            self.far.wait_for_programs()
            return took

        return take

    async def _close(self) -> None:
        for one in self._open:
            if isinstance(one, Sessions):
                await one.close()
            else:
                await asyncio.gather(*(link.close() for link in one.values()))
        self._open.clear()


def contact_rows(place: Place) -> Iterator[Row]:
    """The links alone, both sides starting the same program; then the node's real program."""
    count = place.size(100, 3)
    what = f"first contact with {count} nodes to the status of each"
    bare = [place.python, "-I", "-S", "-c", "pass"]
    homes = [place.folder / "homes" / name for name in names(count)]
    file = place.folder / "fleet.yaml"
    with (
        far_side(place.folder / ".arc", bare, named=names(count)) as same,
        far_side(place.folder / ".arc-real", _serving(place), homes=homes) as live,
        asyncio.Runner() as runner,
    ):
        ours = Contact(runner, same, STARTING, same.settings(STARTING, file))
        nodes = Contact(runner, live, STARTING, live.settings(STARTING, file))
        links, floor, real = (ours.side(ours.ours), ours.side(ours.bare), nodes.side(nodes.ours))
        for home in homes:
            _make_home(place, home)
        yield _row("contact-100", f"{what}; behind each the program of the floor, then fixed"
                   " answers", place, links, floor)  # fmt: skip
        with _daemons(place, homes):
            yield _row("contact-100-daemon", f"{what}; behind each the real agent-node and its"
                       " daemon, which runs", place, real, floor)  # fmt: skip
    yield _cold(place, homes[: place.size(20, 3)])


def _cold(place: Place, homes: Sequence[Path]) -> Row:
    """Nodes whose daemon is down, which is a fault: each loads the whole program and opens its
    queue. As many as two cores can start before the hub gives a greeting up; no goal is set for it.
    """
    named = [home.name for home in homes]
    bare = [place.python, "-I", "-S", "-c", "pass"]
    real = [place.python, "-I", "-S", str(place.zipapp), "serve", "--stdio"]
    file = place.folder / "cold.yaml"
    with (
        far_side(place.folder / ".arc-cold", bare, named=named) as same,
        far_side(place.folder / ".arc-down", real, homes=homes) as live,
        asyncio.Runner() as runner,
    ):
        floor = Contact(runner, same, STARTING, same.settings(STARTING, file))
        nodes = Contact(runner, live, STARTING, live.settings(STARTING, file))
        what = f"first contact with {len(homes)} nodes whose daemon is down"
        return _row("contact-20-cold", what, place, nodes.side(nodes.ours),
                    floor.side(floor.bare), goal=None)  # fmt: skip


def _row(
    name: str, what: str, place: Place, ours: Side, floor: Side, *, goal: float | None = 1.5
) -> Row:
    for side in (ours, floor):
        side()
    mine, bare = in_turns(place.rounds(11), ours, floor)
    middle, spread = ratio(mine, bare)
    return Row(name, what, median(mine), median(bare), "ms", middle, goal, against=CONNECTS,
               spread=spread, load=load())  # fmt: skip


def _serving(place: Place) -> list[str]:
    """What a forced command says: the program by a link, which upgrades turn to another file."""
    link = place.folder / "program.pyz"
    link.symlink_to(place.zipapp)
    return [place.python, "-I", "-S", str(link), "serve", "--stdio"]


def _environ(home: Path) -> Mapping[str, str]:
    return {"AGENT_NODE_HOME": str(home), "PATH": "/usr/bin:/bin"}


def _make_home(place: Place, home: Path) -> None:
    home.parent.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(
        [place.python, "-I", "-S", str(place.zipapp), "init", "--name", home.name,
         "--run", "/bin/true"],
        env=_environ(home), check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def _daemons(place: Place, homes: Sequence[Path]) -> Iterator[None]:
    """A daemon in each home, from when the last of them listens until all have been told to go."""
    running: list[subprocess.Popen[bytes]] = []
    argv = [place.python, "-I", "-S", str(place.zipapp), "run"]
    try:
        for home in homes:
            with (home / "bench.log").open("ab") as log:
                running.append(subprocess.Popen(
                    argv, env=_environ(home), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                ))  # fmt: skip
            _wait_for_door(Home(home), running[-1])
        yield
    finally:
        for daemon in running:
            daemon.send_signal(signal.SIGTERM)
        for daemon in running:
            daemon.wait(ANSWER_WITHIN_S)


def _wait_for_door(home: Home, daemon: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + ANSWER_WITHIN_S
    while not home.socket.exists():
        if daemon.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError(f"no daemon: {(home.root / 'bench.log').read_text()}")
        time.sleep(0.01)
