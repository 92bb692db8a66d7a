"""Runs a hub: its door, its sensors on time, its ears, and fleet.yaml when it changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node.clock import WallWatch
from agent_node.strict import JsonObject

from .allowance import set_allowance
from .endings import Endings
from .errors import ArcError, LinkError, MachineFailed, OtherHub
from .exhausted import say_what_is_exhausted
from .forgetting import Forgetting
from .journal_work import CRON, FILES, WATCH
from .listening import Listening
from .looking import look
from .owing import tell_owed
from .quitting import signals
from .reception import Reception
from .schedule import RunTold, Schedule
from .settings import FleetSettings
from .steady import may_forget

if TYPE_CHECKING:
    from .hub import Hub

LOOK_S = 2.0  # how often fleet.yaml, people's words and the clock are looked at
PRUNE_S = 3600.0
PRUNE_HISTORY_S = 300.0  # a little of much, so that none of it takes long
ENDS_S = 6 * 3600.0  # how often givers are told how the tasks ended that had left them
WHY_MAX = 500  # characters of a complaint that the log keeps
ONCE = "arc up --once"
ENDED = ("hub_stopped", "inbox_disk_broken", "journal_disk_broken")  # a hub's last line
CRASHED = "the hub before it did not end by itself: it was killed, or its machine went down"

Said = Callable[[str], None]


@dataclass(eq=False)
class Upkeep:
    """What the hub looks at every two seconds beside its sensors."""

    hub: Hub
    schedule: Schedule
    listening: Listening
    say: Said
    reception: Reception | None = None  # None: nobody is answered
    stamp: tuple[int, int, int] = (0, 0, 0)
    pruned_at: float = field(default=float("-inf"))
    history_pruned_at: float = field(default=float("-inf"))
    kept_because: str = ""  # why nothing is forgotten for its age, as the log has it
    ends_at: float = 0.0
    endings: Endings = field(default_factory=Endings)
    complained: str = ""
    sources_of: FleetSettings | None = None  # whose sources of work are remembered; None: not yet
    wall: WallWatch = field(init=False)
    forgetting: Forgetting = field(init=False)

    def __post_init__(self) -> None:
        self.wall = WallWatch(self.hub.clock)
        self.forgetting = Forgetting(self.hub)

    async def keep(self) -> None:
        """Until it is cancelled."""
        self.stamp = stamp_of(self.hub.settings.file)
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Follow what changed; what cannot be followed is said once, and keeps no other step from
        being made: a fleet.yaml that is wrong, say, from a limit that has to hold.
        """
        await self._take(
            self._follow_file, self._allow, self.hub.follow_words, self.listening.follow,
            self._tell_owed, self._forget_sources, self._keep_door, self._keep_time,
            self._put_right, self._prune, self._tell_ends, self.forgetting.go_on,
        )  # fmt: skip

    async def before_all(self) -> None:
        """What has to hold before anything is given away; what fails is said, and tried again."""
        await self._take(self._allow)

    async def _take(self, *steps: Callable[[], Awaitable[object]]) -> None:
        troubles: dict[str, None] = {}
        for step in steps:
            try:
                await step()
            except (ArcError, OSError) as error:
                troubles[str(error)] = None
        if troubles:
            self._complain("\n".join(troubles))
        else:
            self.complained = ""

    async def _allow(self) -> None:
        await set_allowance(self.hub)

    async def _tell_owed(self) -> None:
        await tell_owed(self.hub)

    async def _keep_door(self) -> None:
        if self.reception is not None:
            await self.reception.keep()

    async def _keep_time(self) -> None:
        self.schedule.keep_time()

    async def _put_right(self) -> None:
        if self.wall.went_back():
            self.hub.journal.put_right()

    async def _follow_file(self) -> None:
        """A file that cannot be read leaves the last good settings in force."""
        stamp = stamp_of(self.hub.settings.file)
        if stamp == self.stamp:
            return
        from .config import read_fleet

        self.stamp = stamp
        try:
            settings = read_fleet(self.hub.settings.file)
        except ArcError as error:
            self.hub.complaint = in_a_line(error)
            self.hub.journal.runs.log("settings_refused", fields={"because": self.hub.complaint})
            raise
        self.hub.complaint = ""
        await self.hub.follow(settings)
        self.hub.journal.runs.log("settings_followed")
        self.say(f"{settings.file.name} changed: {len(settings.nodes)} nodes, {settings.policy}")

    async def _forget_sources(self) -> None:
        """What was taken out of fleet.yaml begins anew when it comes back, as if never seen."""
        settings = self.hub.settings
        if settings is self.sources_of:
            return
        self.hub.journal.work.forget_others([
            *((CRON, one.name) for one in settings.schedules),
            *((FILES, one.name) for one in settings.watch_files),
            *((WATCH, one.name) for one in settings.watch),
        ])  # fmt: skip
        self.sources_of = settings

    async def _prune(self) -> None:
        now = self.hub.clock.boottime()
        if now - self.history_pruned_at < PRUNE_HISTORY_S:
            return
        self.history_pruned_at = now
        by_age, self.kept_because = may_forget(self.hub, self.kept_because)
        self.hub.journal.history.prune(by_age=by_age)
        if now - self.pruned_at >= PRUNE_S:
            self.pruned_at = now
            self.hub.journal.prune(by_age=by_age)

    async def _tell_ends(self) -> None:
        """Copies that nodes keep of tasks they gave away may go once the end is known."""
        now = self.hub.clock.boottime()
        self.ends_at = self.ends_at or now
        if now - self.ends_at < ENDS_S:
            return
        self.ends_at = now
        async with self.hub.moving:
            seen = await look(self.hub)
            ends = await self.endings.tell(seen.links, seen.whole)
        for error in ends.failed:
            self.hub.journal.runs.log("ends_untold", fields={"because": str(error)[:WHY_MAX]})

    def _complain(self, text: str) -> None:
        if text != self.complained:
            self.complained = text
            self.say(f"{text}\nthe hub runs on with what it knew")


def in_a_line(error: ArcError) -> str:
    """What is wrong with fleet.yaml and where, short enough for a list."""
    problems: tuple[JsonObject, ...] = getattr(error, "problems", ())
    said = "; ".join(f"line {one.get('line')}: {one.get('message')}" if one.get("line")
                     else str(one.get("message")) for one in problems)  # fmt: skip
    return (said or str(error).partition("\n")[0])[:WHY_MAX]


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Which file stands here, as far as it can be told without reading it; zeros: none."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


async def run_hub(
    hub: Hub, *, once: bool = False, stop: asyncio.Event | None = None,
    heard: Callable[[RunTold], None] = lambda told: None, say: Said = lambda text: None,
) -> tuple[RunTold, ...]:  # fmt: skip
    """Run the hub until `stop` is set or a signal comes; `once`: each sensor once. It closes it.

    `heard` is told of every run that ends, `say` what a person should read. The runs of `once`
    are given back; without it none are.
    """
    told: list[RunTold] = []

    def note(run: RunTold) -> None:
        heard(run)
        if once:
            told.append(run)

    schedule = hub.schedule = Schedule(hub, note)
    ended = stop or asyncio.Event()
    try:
        if hub.lease.copied:
            say("this state folder is a copy: this hub speaks as a new one, and what waits in its "
                "inbox needs a person's word")
        if hub.takes_over:
            say(f"taking over: this hub speaks with term {await hub.outbid()} now")
        hub.journal.runs.log("hub_started", fields={"term": hub.lease.term, "once": once,
                                                    **_after_a_crash(hub)})  # fmt: skip
        with signals(ended):
            await (_once(hub, schedule, ended) if once else _stay(hub, schedule, ended, say))
        hub.journal.runs.log("hub_stopped")
    except (ArcError, OSError) as error:
        with suppress(ArcError):  # which may lie on the same disk
            _note_end(hub, error)
        raise
    finally:
        await schedule.stop()
        hub.schedule = None
        await hub.close()
    return tuple(told)


def _note_end(hub: Hub, error: Exception) -> None:
    said: JsonObject = {"because": str(error)[:WHY_MAX]}
    if isinstance(error, MachineFailed):
        hub.journal.runs.log("inbox_disk_broken", fields=said)
    else:
        hub.journal.runs.log("hub_stopped", fields=said)


def _after_a_crash(hub: Hub) -> JsonObject:
    """Why it began, where the hub before it has no line of its end."""
    began = hub.journal.runs.said_since("", ("hub_started",), over=ENDED)
    return {} if began is None else {"because": CRASHED}


async def _once(hub: Hub, schedule: Schedule, ended: asyncio.Event) -> None:
    """Each enabled sensor, one after the other: what the first finds out helps the next. None that
    gives work away runs where the day's limit cannot be set.
    """
    schedule.none_gives = await _unset_limit(hub)
    for sensor in hub.sensors:
        if schedule.enabled(sensor.name) and not ended.is_set():
            await schedule.run_now(sensor.name, ONCE)
            hub.fuse.check()


async def _unset_limit(hub: Hub) -> ArcError | None:
    """Why the hub's own queue took no word of the day's limit; None: it holds."""
    try:
        await set_allowance(hub)
    except (LinkError, OtherHub) as error:
        hub.fuse.check()
        return error
    return None


async def _stay(hub: Hub, schedule: Schedule, ended: asyncio.Event, say: Said) -> None:
    reception, listening = Reception(hub), Listening(hub, schedule)
    upkeep = Upkeep(hub, schedule, listening, say, reception)
    await upkeep.before_all()
    say_what_is_exhausted(hub.clock, "the hub", say)
    await reception.open()
    listening.start()
    schedule.start()
    keeping = asyncio.create_task(upkeep.keep(), name="upkeep")
    try:
        await _first_of(keeping, asyncio.create_task(ended.wait(), name="stop"),
                        asyncio.create_task(hub.fuse.blown(), name="fuse"))  # fmt: skip
    finally:
        keeping.cancel()
        await listening.stop()
        await reception.close()


async def _first_of(*tasks: asyncio.Task[object]) -> None:
    """Until one of them is over; what it raised is raised, the others are cancelled."""
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in done:
        task.result()
