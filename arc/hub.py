"""Puts the hub together: its links, its journal, its lease and its sensors."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from agent_node.clock import Clock, SystemClock
from agent_node.lines import encode
from agent_node.strict import JsonObject
from agent_node.ulid import new_ulid
from sensors import find_sensors

from .artifacts import FolderArtifacts
from .beside import Beside
from .decisions.circles import Circle
from .decisions.domains import Domain, Role
from .decisions.tallying import Waited, Words
from .decisions.view import FleetView
from .doubted import Doubted
from .errors import SensorBroken
from .fuse import Fuse
from .journal import Journal
from .lateness import Lateness
from .lease import Lease
from .links import HelloWords, Link, Met
from .links.inbox import InboxLink
from .links.opening import open_links
from .lost_files import LostFile
from .sensor import Sensor
from .settings import FleetSettings
from .settling import Settlement
from .unfound import Unfound

if TYPE_CHECKING:
    from .looking_up import Part
    from .schedule import Schedule

INBOX = "inbox"
OUTBID_MAX = 30


@dataclass(eq=False)
class Hub:
    """Everything a sensor or an operation may use. One event loop, one process, one lease."""

    settings: FleetSettings
    links: dict[str, Link]  # every node of fleet.yaml that is not suspended, and "inbox"
    inbox: Link
    journal: Journal
    lease: Lease
    clock: Clock
    rng: random.Random
    sensors: tuple[Sensor, ...]
    broken: tuple[SensorBroken, ...] = ()  # sensors that cannot be used, and why
    # Whoever moves tasks holds it, from looking to the last step: two at a time would take each
    # other's moves under way for doubts, and undo them.
    moving: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Whoever tells a node to pause or resume holds the node's: the later word is heard last.
    saying: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    # Whoever reads a node's events holds the node's.
    hearing: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    homes: dict[str, str] = field(default_factory=dict)  # graph: the store that keeps it
    awaiting: bool = False  # some store waits for a task that another one has, or soon will
    tied_at: float = float("-inf")  # when a task that waits was added, by seconds since boot
    # Since when each of these is awaited without an end, by the clock's seconds since boot.
    awaited: dict[str, float] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)  # of them being looked up, what was said
    doubted: dict[str, Doubted] = field(default_factory=dict)  # ends that nobody is told, by uid
    undecided: dict[str, Settlement] = field(default_factory=dict)  # for a person, by xfer
    circling: bool = False  # an awaited task was seen to wait for another one itself
    # Circles of tasks that wait for each other, with the queue of each task.
    circles: dict[Circle, tuple[str, ...]] = field(default_factory=dict)
    unfound: dict[str, Unfound] = field(default_factory=dict)  # awaited, and in no queue, by uid
    # Files that tasks wait for and that no queue has, by store and hash.
    lost_files: dict[tuple[str, str], LostFile] = field(default_factory=dict)
    last_view: FleetView | None = None  # everything seen last; None: nobody looked yet
    last_look_s: float = 0.0  # when that was, by the clock's seconds since boot
    # Nodes that said anything since they were last asked: what is known of them is not true now.
    stirred: set[str] = field(default_factory=set)
    stirring: list[set[str]] = field(default_factory=list)  # the same, of each look under way
    late: Lateness = field(default_factory=Lateness)  # whom a cycle does not wait for
    longest: dict[str, tuple[str, float]] = field(default_factory=dict)  # node: (uid, seconds)
    # By node and uid, since when a task that nobody has claimed is READY, by the node's clock.
    ready_since: defaultdict[str, dict[str, datetime]] = field(
        default_factory=lambda: defaultdict(dict))
    waited: dict[str, Waited] = field(default_factory=dict)  # by uid, before it was given away
    # By node, the types and models of its tasks that are counted one by one.
    words: defaultdict[str, Words] = field(default_factory=lambda: defaultdict(dict))
    beside: Beside = field(default_factory=Beside)  # what nodes told last beside their reports
    # What its own queue was told last of the fleet's money, a day and beyond it; None: not yet.
    allowance: tuple[str | None, bool] | None = None
    polling: set[str] = field(default_factory=set)  # watched files of which a look has not ended
    complaint: str = ""  # what is wrong with fleet.yaml since it was changed; "": it is obeyed
    read_at: datetime | None = None  # since when it lives by this fleet.yaml; None: its start
    takes_over: bool = False  # a person's word: speak above every other hub of this fleet
    fuse: Fuse = field(default_factory=Fuse)  # blown: this process may not go on
    schedule: Schedule | None = None  # None: nobody runs the sensors on time here

    @cached_property
    def artifacts(self) -> FolderArtifacts:
        """Files that are on their way from one node to another."""
        return FolderArtifacts(self.settings.state / "artifacts")

    def mint(self) -> str:
        """A fresh ULID by the hub's clock."""
        return new_ulid(int(self.clock.now().timestamp() * 1000), self.rng.randbytes(10))

    def roles(self) -> dict[str, Role]:
        """What each node of fleet.yaml is for, by name."""
        return {
            node.name: Role(node.owns, node.also, node.never, node.home or "")
            for node in self.settings.nodes
        }

    async def follow_words(self) -> bool:
        """Let go of nodes that are suspended now and reach for those no longer; whether any was."""
        suspended = self.journal.words.suspended()
        wanted = {node.name for node in self.settings.nodes if node.name not in suspended}
        if wanted | {INBOX} == self.links.keys():
            return False
        return await self._follow(self.settings)

    async def follow(self, settings: FleetSettings) -> bool:
        """Live by these settings from now on: nodes come and go, sensors keep other intervals.

        The state folder and the names of fleet and hub stay what they were when the hub started.
        """
        fixed = replace(settings, state=self.settings.state, fleet=self.settings.fleet,
                        hub=self.settings.hub)  # fmt: skip
        changed = await self._follow(fixed)
        found = find_sensors(self.settings)
        self.sensors, self.broken = found.sensors, found.broken
        if self.schedule is not None:
            self.schedule.follow()
        return changed

    async def _follow(self, settings: FleetSettings, *, reopen: bool = False) -> bool:
        async with self.moving:
            self.fuse.check()  # what a new link to the inbox would read may not be on the disk
            old, self.settings = self.settings, settings
            if settings is not old:
                self.read_at = self.clock.now()
            leaving = frozenset(self.links) if reopen else _leaving(self, old)
            stay = frozenset(self.links) - leaving
            gone = [self.links.pop(name) for name in sorted(self.links.keys() - stay)]
            await asyncio.gather(*(link.close() for link in gone))
            fresh = _open(settings, self.journal, self.lease, clock=self.clock, rng=self.rng,
                          fuse=self.fuse, skip=stay)  # fmt: skip
            self.links.update(fresh)  # among them the inbox, if it was let go too
            self.inbox = self.links[INBOX]
            if isinstance(self.inbox, InboxLink) and settings.assume_usd != old.assume_usd:
                self.inbox.assume(settings.assume_usd)
            return bool(gone or fresh)

    async def outbid(self) -> int:
        """After a take-over: speak above every hub that the nodes have heard; the term now.

        A node says that it heard a higher term, not which: so ours grows in doubling steps. One
        that cannot be reached now refuses us later, by name.
        """
        step = 1
        for _ in range(OUTBID_MAX):
            met = await asyncio.gather(*(link.meet() for link in self.links.values()),
                                       return_exceptions=True)  # fmt: skip
            if not any(isinstance(one, Met) and one.old_term for one in met):
                break
            self.lease.outbid(self.lease.term + step - 1)
            step *= 2
            await self._follow(self.settings, reopen=True)
        return self.lease.term

    async def close(self) -> None:
        """Let go of everything, the lease last; closing twice is fine."""
        await asyncio.gather(*(link.close() for link in self.links.values()))
        self.journal.close()
        self.lease.close()


def build_hub(
    settings: FleetSettings, *, clock: Clock | None = None, rng: random.Random | None = None,
    take_over: bool = False,
) -> Hub:  # fmt: skip
    """A hub that holds the lease of this state folder; `OtherHub` when somebody else does.

    Nothing is asked of any node yet: a link opens when it is first used.
    """
    clock, rng = clock or SystemClock(), rng or random.Random()  # noqa: S311 - names, no secrets
    lease = Lease.take(settings.state, hub=settings.hub, clock=clock, take_over=take_over)
    fuse = Fuse()
    try:
        journal = Journal(settings.state / "journal.db", clock, broke=fuse.blow)
        links = _open(settings, journal, lease, clock=clock, rng=rng, fuse=fuse, skip=frozenset())
    except BaseException:
        lease.close()
        raise
    found = find_sensors(settings)
    return Hub(
        settings=settings, links=links, inbox=links[INBOX], journal=journal, lease=lease,
        clock=clock, rng=rng, sensors=found.sensors, broken=found.broken, takes_over=take_over,
        read_at=clock.now(), fuse=fuse,
    )  # fmt: skip


def _open(
    settings: FleetSettings, journal: Journal, lease: Lease, *, clock: Clock, rng: random.Random,
    fuse: Fuse, skip: frozenset[str],
) -> dict[str, Link]:  # fmt: skip
    """Links for every node but those in `skip` and those that are suspended; none is opened yet.

    `MachineFailed` once the fuse is blown, which may have been while the old ones were closed.
    """
    fuse.check()
    words = HelloWords(
        fleet=settings.fleet, hub=settings.hub, term=lease.term, instance=lease.instance,
        domains=domain_table(settings.domains),
    )  # fmt: skip
    absent = skip | frozenset(journal.words.suspended())
    links = open_links(settings, words, clock=clock, rng=rng, is_fenced=journal.words.is_fenced,
                       broke=fuse.blow_for_queue, skip=absent)  # fmt: skip
    return {name: link for name, link in links.items() if name not in skip}


def _leaving(hub: Hub, old: FleetSettings) -> frozenset[str]:
    """Links that have to be closed: of nodes that are gone, suspended, or reached another way."""
    new = hub.settings
    if old.domains != new.domains or old.ssh_config != new.ssh_config:
        return frozenset(hub.links)  # every node is told the new table in a new hello
    suspended = hub.journal.words.suspended()
    return frozenset(
        name for name in hub.links
        if name != INBOX and (name in suspended or not _reached_alike(name, old, new))
    )  # fmt: skip


def _reached_alike(name: str, old: FleetSettings, new: FleetSettings) -> bool:
    """Whether a node's entry still says the same, but for whose work it does."""
    before, now = old.node(name), new.node(name)
    if before is None or now is None:
        return False
    return replace(before, owns=(), also=(), never=()) == replace(now, owns=(), also=(), never=())


def domain_table(domains: tuple[Domain, ...]) -> JsonObject:
    """The domains as every node is told them, under a version that changes when they do."""
    table: JsonObject = {
        domain.name: {"skills": list(domain.skills), "prefix": list(domain.prefix),
                      "words": list(domain.words)}
        for domain in domains
    }  # fmt: skip
    return {"version": sha256(encode(table).encode()).hexdigest()[:16], **table}
