"""Machines of a fleet in memory: real stores behind real answers, and links that lose messages."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from agent_node import commands as c
from agent_node.budget import Money
from agent_node.clock import iso
from agent_node.config import AgentSettings, NodeSettings
from agent_node.desk import Outcome, Session
from agent_node.home import Home
from agent_node.queries import NextDue
from agent_node.replies import Answers
from agent_node.store import Store
from agent_node.store.sqlite import SqliteStore, open_store
from agent_node.strict import JsonObject
from arc.errors import NodeRefused, NodeSilent, NodeUnreachable, OutcomeUnknown
from arc.links import READS, EventHeard, HelloWords, Met, Told
from tests.builders import START, FakeClock

TRANSFER = frozenset("escrow hold commit abort activate drop settled bar reown add cancel".split())
TRANSFER |= {"submit", "ended", "alive", "joined", "graph_cancel", "artifact", "artifact_put"}
FATES = ("lost", "unheard", "late", "doubled", "slow")
SLOT = 256  # bytes of each mark in a generation file
SLOW_S = 75.0  # longer than any lease of these stories


class HubDied(BaseException):
    """The hub's process is gone: nothing of it runs any further."""


@dataclass(eq=False)
class Moment:
    """The one time of the whole fleet, in seconds since its story began."""

    seconds: float = 0.0


class MachineClock(FakeClock):
    """One machine's clock over the fleet's moment: its own boots, its own idea of the wall."""

    def __init__(self, moment: Moment, off_s: float = 0.0) -> None:
        super().__init__()
        self.moment, self.off_s, self.booted_at = moment, off_s, 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.moment.seconds + self.off_s)

    def boottime(self) -> float:
        return 5000.0 + self.moment.seconds - self.booted_at


class QuietHost:
    """A daemon that dispatches; the story itself starts and ends the programs."""

    def __init__(self) -> None:
        self.dispatching = True

    def stop_attempt(self, uid: str, n: int, why: str) -> None:
        """Nothing is stopped in these stories."""

    def changed(self, *, work: bool = True) -> None:
        """Nobody reads the report file."""

    def drain(self, deadline_s: float | None, then: str, agent: str | None) -> None:
        """Nothing is stopped in these stories."""

    def subscribe(self, session: Session, events: frozenset[str]) -> None:
        """Nobody listens."""

    def disk_free(self) -> int:
        return 5_000_000_000

    def carry_out_upgrade(self) -> None:
        """Nobody brings code in these stories."""

    def take_in(self, store: Store, command: c.Command[Outcome], tasks: int) -> Outcome:
        """The story claims by itself."""
        return store.apply(command)


@cache
def template(name: str) -> dict[str, bytes]:
    """The files of a home that was opened once; writing them is quicker than making new ones."""
    with tempfile.TemporaryDirectory(prefix="arc-template-", dir=memory()) as made:
        place = Path(made)
        store = open_store(place, name=name, clock=FakeClock(), rng=Random(name), machine="here")
        store.apply(c.SetAgents((c.AgentRow(name, 8, ()),)))
        store.close()
        files = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
        files["generation"] = files["generation"][:2 * SLOT]  # without where it lay: no copy
        return files


def memory() -> str | None:
    """Where a disk costs least; None: wherever temporary files lie."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class Machine:
    """One node: its home on disk, its process, and whoever is connected to that."""

    def __init__(self, place: Path, name: str, moment: Moment, **settings: Any) -> None:
        self.name, self.place = name, place / name
        (self.place / "tasks").mkdir(parents=True)
        for file, content in template(name).items():
            (self.place / file).write_bytes(content)
        self.clock = MachineClock(moment, settings.pop("off_s", 0.0))
        self.settings = NodeSettings(
            name=name, agents=(AgentSettings(name=name, run=("true",), slots=8),)
        )
        self.life = 0  # of the process: a connection ends with it
        self.off = False
        self.host = QuietHost()
        self.money = Money()
        self.open()

    def open(self) -> None:
        """A new process opens what is on the disk."""
        self.store: SqliteStore = open_store(
            self.place, name=self.name, clock=self.clock, rng=Random(self.life), machine="here"
        )
        self.store.live.dispatching = self.host.dispatching
        if self.money != Money():
            self.store.spend_within(self.money)
        self.answers = Answers(
            self.store, home=Home(self.place), settings=self.settings, clock=self.clock,
            host=self.host,
        )  # fmt: skip
        self.life += 1

    def dispatches(self, *, running: bool) -> None:
        """Whether work that becomes READY here is also started here."""
        self.host.dispatching = self.store.live.dispatching = running

    def spend_within(self, money: Money) -> None:
        """What node.toml says of money, from now on and after every restart."""
        self.money = money
        self.store.spend_within(money)

    def die(self) -> None:
        """kill -9: nothing is written any more, and every connection ends."""
        self.store._file.close()
        self.store._db.close()

    def restart(self) -> None:
        """The process dies and another one opens the home."""
        self.die()
        self.open()

    def wake(self) -> None:
        """What the daemon's own timers do."""
        due = self.store.read(NextDue())
        now, lease = iso(self.clock.now()), due.lease
        if (due.at is not None and due.at <= now) or (
            lease is not None and lease <= self.clock.boottime()
        ):
            self.store.apply(c.Wake())

    def close(self) -> None:
        self.store._file.close()
        self.store._db.close()

    def incarnation(self) -> str:
        return str(json.loads(self.answers.greeting())["incarnation"])


@dataclass(frozen=True)
class Letter:
    """A request on its way, with the session in which it was sent."""

    node: str
    session: Session
    line: bytes


@dataclass(eq=False)
class Weather:
    """Decides what becomes of every message, and counts what it did."""

    dice: Random
    machines: dict[str, Machine]
    planned: dict[int, str] = field(default_factory=dict)  # by the number of the message
    aimed: dict[str, str] = field(default_factory=dict)  # at the next message of this kind
    chance: float = 0.0
    hub_life: int = 1
    messages: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    bag: list[Letter] = field(default_factory=list)
    time_passes: Callable[[float], None] = lambda seconds: None  # the story sets it

    def fate(self, do: str) -> str:
        """What becomes of the next message; only words of a transfer meet with trouble."""
        if do not in TRANSFER:
            return ""
        self.may_deliver_late()
        self.messages += 1
        said = self.planned.pop(self.messages, "") or self.aimed.pop(do, "")
        if not said and self.dice.random() < self.chance:
            said = self.dice.choice(FATES)
        if said:
            self.happened[said] += 1
        return said

    def may_deliver_late(self) -> None:
        """Now and then something old arrives between two words of a transfer."""
        if self.bag and self.dice.random() < 0.3:
            self.deliver_late()

    def deliver_late(self) -> None:
        """Some of what is still under way arrives now, in any order; nobody hears the answers."""
        for letter in self.dice.sample(self.bag, self.dice.randint(0, len(self.bag))):
            self.bag.remove(letter)
            self.machines[letter.node].answers.answer(letter.session, letter.line)


class MemoryLink:
    """A `Link` to a machine in memory. Its answers are the node's own, byte for byte."""

    def __init__(self, machine: Machine, words: HelloWords, weather: Weather) -> None:
        self.machine, self.words, self.weather = machine, words, weather
        self.name = machine.name
        self.requests = 0
        self.met: Met | None = None
        self.is_fenced: Callable[[str, str], bool] = lambda node, incarnation: False
        self._session: Session | None = None
        self._life = 0
        self._hub_life = weather.hub_life

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        await self.meet()
        session = self._session
        assert session is not None
        self.requests += 1
        line = json.dumps({"id": self.requests, "do": do, **(fields or {})}).encode()
        fate = self.weather.fate(do)
        await asyncio.sleep(0)
        self._check_hub(die=fate == "hub_dies_before")
        if fate == "node_dies_before":
            self.machine.restart()
        if fate == "slow":
            self.weather.time_passes(SLOW_S)
        letter = Letter(self.name, session, line)
        if fate in ("late", "doubled"):
            self.weather.bag.append(letter)
        if fate in ("lost", "late", "node_dies_before"):
            raise self._silence(do)
        reply = json.loads(self.machine.answers.answer(letter.session, line))
        self._check_hub(die=fate == "hub_dies_after")
        if fate == "node_dies_after":
            self.machine.restart()
        await asyncio.sleep(0)
        self._check_hub(die=False)
        if fate in ("unheard", "node_dies_after"):
            raise self._silence(do)
        return self._result(reply)

    def _silence(self, do: str) -> NodeSilent | OutcomeUnknown:
        self._session = self.met = None
        if do in READS:
            return NodeSilent(self.name, "no answer; nothing changed there")
        return OutcomeUnknown(self.name, do, "no answer in time")

    def _result(self, reply: dict[str, Any]) -> JsonObject:
        if reply["ok"]:
            result: JsonObject = reply["result"]
            return result
        error = reply["error"]
        raise NodeRefused(self.name, error.get("rule") or error["code"], error["message"])

    def _check_hub(self, *, die: bool) -> None:
        """A hub that died does nothing more, wherever it stood."""
        if die and self._hub_life == self.weather.hub_life:
            self.weather.hub_life += 1
        if self._hub_life != self.weather.hub_life:
            raise HubDied

    async def meet(self, *, anew: bool = False) -> Met:
        self._check_hub(die=False)
        if self.machine.off:
            self._session = self.met = None
            raise NodeUnreachable(self.name, "no route to it; nothing changed there")
        strange = self._session is None or self._life != self.machine.life
        if self.met is None or strange or anew:
            self.met = self._hello()
        return self.met

    def _hello(self) -> Met:
        self._session, self._life = Session("hub"), self.machine.life
        life = self.machine.incarnation()
        said = self._say_hello(life, fenced=self.is_fenced(self.name, life))
        if said["incarnation"] != life:  # it was fenced, and came back as another one
            said = self._say_hello(str(said["incarnation"]), fenced=False)
        return Met(
            node=self.name, incarnation=str(said["incarnation"]),
            generation=int(said["generation"]), term=int(said["term"]), state=str(said["state"]),
            version=str(said["version"]), wire=1, waits_for_hub=bool(said["waits_for_hub"]),
            at=str(said["at"]), clock_off_s=0.0,
        )  # fmt: skip

    def _say_hello(self, life: str, *, fenced: bool) -> dict[str, Any]:
        assert self._session is not None
        words = self.words.to(life, fenced=fenced)
        line = json.dumps({"id": 0, "do": "hello", **words}).encode()
        return dict(self._result(json.loads(self.machine.answers.answer(self._session, line))))

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        return False

    async def listen(self, heard: EventHeard) -> None:
        """Nobody tells news in these stories."""

    async def close(self) -> None:
        self._session = self.met = None
