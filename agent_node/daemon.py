"""Runs a node: wires its parts together, then waits for what happens and lets them act."""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Callable
from datetime import timedelta

from . import program
from .adoption import adopt_all
from .apart import REPLACE, start_upgrader
from .arrivals import Arrivals
from .beating import Beating
from .capabilities import powers_of
from .clock import Clock, WallWatch, iso, parse_iso
from .commands import AgentRow, Command, SetAgents, Wake
from .config import NodeSettings
from .desk import FOR_TASKS, Outcome, Session, free_bytes
from .dispatch import Dispatcher
from .drains import Drains
from .errors import DiskTrouble
from .home import Home, files_of
from .leaving import Leaving
from .listener import Doorway
from .log import log
from .news import news_between
from .processes import become_subreaper, reap_children
from .queries import Due, Facts, NextDue
from .replies import Answers
from .report import Reporter, withdraw
from .signals import Signals
from .starters import Starters
from .store import Store
from .store.sqlite import SqliteStore
from .strict import JsonObject
from .timers import Timers
from .upkeep import Upkeep
from .zygote_link import Zygote

REST_S = 30.0  # the longest the loop waits: the report is due by then


class Daemon:
    """The one loop of a node. It is also the `Host` that answers turn to."""

    def __init__(
        self,
        home: Home,
        settings: NodeSettings,
        store: SqliteStore,
        clock: Clock,
        zygotes: dict[tuple[str, ...], Zygote],
        *,
        until_idle: bool,
    ) -> None:
        self._home, self._settings, self.store, self._clock = home, settings, store, clock
        self._until_idle = until_idle
        self._selector = selectors.DefaultSelector()
        self._timers = Timers(clock)
        self._starters = Starters(zygotes, self._selector, self._timers.later)
        self._dirty = True
        self._due, self._wall = Due(None, None), WallWatch(clock)
        self._disk_timer = False
        self.leaving = Leaving(settings.stop_grace_s)
        self._mine: tuple[object, ...] = ()
        self.dispatcher = Dispatcher(
            store, home=home, settings=settings, clock=clock, selector=self._selector,
            starters=self._starters, later=self._timers.later,
        )  # fmt: skip
        self._beating = Beating(
            store, self.dispatcher.runs, settings, clock, self.dispatcher.stop
        )
        self._arrivals = Arrivals(self.dispatcher)
        self._drains = Drains(self.dispatcher, self._arrivals, self._timers)
        self._upkeep = Upkeep(store, self.dispatcher, self._timers, home, lambda: self._dirty)
        self._answers = Answers(store, home=home, settings=settings, clock=clock, host=self)
        self._reporter = Reporter(home, clock, self._report)
        self.dispatcher.before_start = self._reporter.deny_idle
        self._was: tuple[object, ...] = ()
        self.makes_room = False  # whether the home's current program takes over this process

    @property
    def dispatching(self) -> bool:
        """Whether work that becomes READY here is also started here."""
        return self.dispatcher.claiming

    def stop_attempt(self, uid: str, n: int, why: str) -> None:
        """End the program of this attempt; its result is recorded when it has ended."""
        self._arrivals.begin()
        run = self.dispatcher.runs.find(uid, n)
        if run is not None:
            self.dispatcher.stop(run, why)

    def changed(self, *, work: bool = True) -> None:
        """Something was written: look at all once before waiting, or soon; idle ends at once."""
        if work or self._reporter.says_idle:
            self._dirty = True
        else:
            self._upkeep.look_soon(self.changed)

    def drain(self, deadline_s: float | None, then: str, agent: str | None) -> None:
        """See to it that what runs has ended or been stopped by the deadline."""
        self._drains.begin(deadline_s, then, agent)

    def subscribe(self, session: Session, events: frozenset[str]) -> None:
        """The session keeps what it wants; everybody is told where things stand at once."""
        self._was = ()
        self._dirty = True

    def disk_free(self) -> int:
        """Bytes that are free where the home lies."""
        return free_bytes(self._home)

    def take_in(self, store: Store, command: Command[Outcome], tasks: int) -> Outcome:
        """Free slots get the first of these tasks in the same transaction."""
        return self._arrivals.take_in(command, tasks)

    def carry_out_upgrade(self) -> None:
        """Whoever carries it out is none of our children, which we would end."""
        start_upgrader(self._home)

    def serve(self, door: socket.socket, tasks_door: socket.socket | None) -> int:
        """Until told to go or nothing is left; another user's tasks have a door of their own."""
        doors = [Doorway(door, self._answers, self._selector)]
        self._doorway = doors[0]
        if tasks_door is not None:
            doors.append(Doorway(tasks_door, self._answers, self._selector, kinds=FOR_TASKS))
        self._mine = files_of(self._home)
        self._set_up()
        try:
            while (code := self._turn()) is None:
                for key, mask in self._selector.select(self._wait_s()):
                    self._let_act(key.data, mask)
        finally:
            for one in doors:
                one.close()
        self._leave()
        return code

    def _let_act(self, act: Callable[[int], None], mask: int) -> None:
        try:
            act(mask)
        except DiskTrouble as error:  # what it was about is tried again; the others have their turn
            self._disk_trouble(error)

    def _set_up(self) -> None:
        become_subreaper()
        stop = self._asked_to_stop
        heard = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGCHLD: self._child_ended}
        heard[REPLACE] = self._asked_to_make_room
        Signals(self._selector, heard)
        common = powers_of(self._settings)
        agents = self._settings.agents
        rows = [AgentRow(one.name, one.slots, (*one.skills, *common)) for one in agents]
        self.store.apply(SetAgents(tuple(rows)))
        self.store.live.dispatching = True
        if self.store.live.idle_since is not None:  # a node was not idle before this moment
            self.store.live.idle_since = iso(self._clock.now())
        self._starters.watch()
        self.dispatcher.programs.look()
        self.store.apply(Wake())  # leases of an earlier boot end here, whatever the clocks say
        adopted = adopt_all(self.dispatcher, home=self._home, agents=agents, clock=self._clock)
        facts = self.store.read(Facts())
        if facts.drain_until and facts.drain_then == "requeue" and facts.state == "draining":
            left = (parse_iso(facts.drain_until) - self._clock.now()).total_seconds()
            self.drain(max(left, 0.0), "requeue", None)
        self._upkeep.begin()
        self._reporter.write_now()
        log("node_started", node=facts.name, adopted=adopted, because=f"it is {facts.state}")

    def _turn(self) -> int | None:
        """Everything that is due now; the exit code when the loop has to end."""
        try:
            self._timers.run_due()
            self._doorway.end_old()
            self._wake_due()
            if self._dirty or self.dispatcher.news:
                self._look_around()
            if self._reporter.wait_s() <= 0:
                self._check_home()
                self._dirty |= self._beating.turn() | self.dispatcher.programs.look()
                self._reporter.turn()
        except DiskTrouble as error:
            self._disk_trouble(error)
        if self.store.broken:
            log("disk_broken", because="the next daemon reads what is really on the disk")
            withdraw(self._home)  # no report is not an idle node
            os._exit(1)  # closing would sync once more, and a second fsync may lie
        return self._end()

    def _check_home(self) -> None:
        """Whoever takes our files away has to see us go, not work on beside a second daemon."""
        if self._mine != files_of(self._home):
            log("home_changed", because="lock, socket or database are no longer the ones opened")
            os._exit(1)  # shims and their verdicts are for whoever works on this home now

    def _look_around(self) -> None:
        """Start what can start, then tell whoever wants to know. In this order: the report that
        clears `idle` is written when a task has been claimed and before its program starts.
        """
        self._dirty = False
        self.dispatcher.work_may_have_come()
        self._arrivals.begin()
        self.dispatcher.fill()
        if self.store.node_state() == "quarantined":
            for run in self.dispatcher.runs:
                self.dispatcher.stop(run, "quarantined")
        self._due = self.store.read(NextDue())
        self._upkeep.after_changes()
        self._reporter.changed()
        self._publish()

    def _wake_due(self) -> None:
        if self._until_due_s() > 0 and not self._wall.went_back():
            return
        self._due = Due(iso(self._clock.now() + timedelta(seconds=1)), None)  # if the disk says no
        woken = self.store.apply(Wake())
        self._due = Due(woken.next_at, woken.next_lease)
        self._dirty = True

    def _until_due_s(self) -> float:
        """Seconds until the queue itself has something to do; never more than a rest."""
        wait = REST_S
        if self._due.at is not None:
            wait = min(wait, (parse_iso(self._due.at) - self._clock.now()).total_seconds())
        if self._due.lease is not None:
            wait = min(wait, self._due.lease - self._clock.boottime())
        return wait

    def _wait_s(self) -> float:
        wait = self._timers.wait_s(min(self._until_due_s(), self._reporter.wait_s()))
        return max(wait, 0.0) if not self._dirty else 0.0

    def _end(self) -> int | None:
        if self.leaving.asked:
            busy = len(self.dispatcher.runs)
            return 0 if not busy or self.leaving.is_over(self._clock.boottime()) else None
        ready = not self.dispatcher.runs and not self._dirty and self._starters.are_up
        if self._until_idle and ready:
            return self.leaving.when_idle(self.store)
        return None

    def _leave(self) -> None:
        """What runs goes on under its shims; the last report says that nothing dispatches."""
        self.dispatcher.claiming = self.store.live.dispatching = False
        self.dispatcher.shims.hear_starts()
        self.dispatcher.flush_started()
        self._reporter.write_now()
        log("node_stopped", left_running=len(self.dispatcher.runs))
        self._selector.close()
        if self.makes_room:
            become_subreaper(on=False)  # shims go to whom they would go if this process ended

    def _asked_to_stop(self, name: str) -> None:
        self.dispatcher.claiming = self.store.live.dispatching = False
        if self.leaving.ask(self._clock.boottime()):
            log("stop_asked", because=name, running=len(self.dispatcher.runs),
                grace_s=self.leaving.grace_s)  # fmt: skip
            self._timers.later(self.leaving.grace_s, self.changed)

    def _asked_to_make_room(self, name: str) -> None:
        """For the home's current program, in this very process: at once, as work goes on."""
        self.makes_room = program.running_in(self._home) is not None
        self._asked_to_stop(name)
        self.leaving.ask(self._clock.boottime())  # once more: nothing is waited for

    def _child_ended(self, name: str) -> None:
        """An orphan of a dead shim; a zygote is buried by its own link."""
        reap_children(keep=self._starters.pids)  # wardens are buried here, too

    def _disk_trouble(self, error: DiskTrouble) -> None:
        """A full disk passes; a disk that fails to sync does not, and nothing may build upon it."""
        log("disk_trouble", because=str(error))
        if not self._disk_timer:
            self._disk_timer = True
            self._timers.later(1.0, self._disk_again)

    def _disk_again(self) -> None:
        self._disk_timer = False
        self._dirty = True

    def _report(self) -> JsonObject:
        return self._answers.desk.report()

    def _publish(self) -> None:
        news, self.dispatcher.news = self.dispatcher.news, []
        if not self._doorway.listening:
            self._was = ()
            return
        look = self._answers.desk.looks.now()
        at = iso(self._clock.now())
        said, self._was = news_between(self._was, look.report)
        if events := (*news, *said):
            self._doorway.publish(events, look.facts.event_seq, at)
