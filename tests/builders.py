"""Builds tasks, clocks and stores for tests, so that a test shows only what matters to it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.clock import parse_iso
from agent_node.errors import Refused
from agent_node.spec import hash_of, spec_of
from agent_node.store import Store
from agent_node.task import Task, task_from

Outcome = TypeVar("Outcome")
Ending = Literal["completed", "failed", "interrupted", "requeued", "unproved", "cancelled"]
Settling = Callable[[tuple[m.Settle, ...], c.Sender], c.Command[tuple[m.Transferred, ...]]]

START = datetime(2026, 3, 10, 3, 45, tzinfo=UTC)
DAY = 86_400.0


class FakeClock:
    """Time that moves only by hand: the wall, the seconds since boot, and which boot it is."""

    def __init__(self, *, wall: datetime = START, boottime: float = 5_000.0) -> None:
        self.wall, self.since_boot, self.boots = wall, boottime, 1

    def now(self) -> datetime:
        return self.wall

    def boottime(self) -> float:
        return self.since_boot

    def boot_id(self) -> str:
        return f"00000000-0000-4000-8000-{self.boots:012d}"

    def advance(self, seconds: float) -> None:
        """Time passes on every clock of the machine."""
        self.wall += timedelta(seconds=seconds)
        self.since_boot += seconds

    def set_wall(self, text: str) -> None:
        """Somebody sets the wall clock; no time passes."""
        self.wall = parse_iso(text)

    def reboot(self, seconds: float = 20.0) -> None:
        """The machine starts again: another boot, counting from nearly nothing."""
        self.wall += timedelta(seconds=seconds)
        self.since_boot, self.boots = 1.0, self.boots + 1


def a_clock() -> FakeClock:
    """A clock at 2026-03-10T03:45Z that stands still."""
    return FakeClock()


def uid(number: int = 1) -> str:
    """The uid of the task with this number."""
    return f"01TASK{number:020d}"


def xfer(number: int = 1) -> str:
    """A transfer id; a higher number is a later transfer, as with real ones."""
    return f"00XFER{number:020d}"


def a_task(number: int = 1, **fields: Any) -> Task:
    """A task that says nothing but what the test gives it."""
    return task_from({"uid": uid(number), "subject": f"work {number}", **fields})


def an_agent(name: str = "iris", *powers: str, slots: int = 1) -> c.AgentRow:
    """An agent with these powers."""
    return c.AgentRow(name, slots, powers)


class Backend(Protocol):
    """What a kind of store lends to the contract: how it is opened, dumped and damaged."""

    def open(self, place: Path, **settings: Any) -> Store: ...

    def dump(self, place: Path) -> dict[str, list[tuple[object, ...]]]: ...

    def damage_spec(self, place: Path, uid: str) -> None: ...

    def force_state(self, place: Path, uid: str, state: str) -> None: ...


class NodeAtHand:
    """One node's store with a clock moved by hand, and short words for what is asked of it."""

    def __init__(self, backend: Backend, place: Path, name: str = "iris", **settings: Any) -> None:
        self.backend, self.place, self.name = backend, place, name
        self.clock: FakeClock = settings.pop("clock", None) or a_clock()
        self.settings = settings
        self.agents: tuple[c.AgentRow, ...] = (an_agent(name, slots=8),)
        self.store: Store | None = None
        self.open()

    def open(self) -> None:
        """Open the store as a daemon would: agents named, dispatcher running."""
        given = {"rng": random.Random(7), **self.settings}
        self.store = self.backend.open(self.place, name=self.name, clock=self.clock, **given)
        self.dispatches(running=True)
        if self.facts().state != "quarantined":
            self.say(c.SetAgents(self.agents))

    def dispatches(self, *, running: bool) -> None:
        """Whether the store's owner says that a dispatcher runs."""
        assert self.store is not None
        self.store.live.dispatching = running  # type: ignore[attr-defined]

    def close(self) -> None:
        """Let go of the database; closing twice is fine."""
        if self.store is not None:
            self.store.close()
        self.store = None

    def reopen(self) -> None:
        """What a restarted daemon sees: only what was on the disk."""
        self.close()
        self.open()

    def reboot(self) -> None:
        """The machine starts again, and the daemon with it."""
        self.close()
        self.clock.reboot()
        self.open()

    def say(self, command: c.Command[Outcome], **how: bool) -> Outcome:
        assert self.store is not None
        return self.store.apply(command, **how)

    def ask(self, query: q.Query[Outcome]) -> Outcome:
        assert self.store is not None
        return self.store.read(query)

    def dump(self) -> dict[str, list[tuple[object, ...]]]:
        """Every table as it stands on the disk, read by somebody else."""
        return self.backend.dump(self.place)

    def facts(self) -> q.NodeFacts:
        return self.ask(q.Facts())

    def shown(self, uid: str) -> q.Shown | None:
        return self.ask(q.ShowTask(uid))

    def task(self, uid: str) -> Task:
        """The task as this node has it; it has to be here."""
        shown = self.shown(uid)
        assert shown is not None, f"{self.name} never had {uid}"
        return shown.task

    def state(self, uid: str) -> str | None:
        """The task's state, or None where this node does not have it."""
        shown = self.shown(uid)
        return None if shown is None else str(shown.task.state)

    def events(self, uid: str) -> tuple[dict[str, Any], ...]:
        shown = self.shown(uid)
        return () if shown is None else shown.events

    # What comes in, and how it runs.

    def set_agents(self, *agents: c.AgentRow) -> None:
        self.agents = agents
        self.say(c.SetAgents(agents))

    def add(self, *tasks: Task) -> tuple[c.Added, ...]:
        return self.say(c.Add(tasks))

    def has(self, *tasks: Task) -> Task:
        """Add these, all of them accepted; answers with the first."""
        assert [added.outcome for added in self.add(*tasks)] == ["added"] * len(tasks)
        return tasks[0]

    def claim(self, agent: str | None = None) -> c.Claimed | c.NothingToClaim:
        return self.say(c.Claim(agent or self.name))

    def claimed(self, agent: str | None = None) -> c.Claimed:
        """Claim, where there has to be something."""
        got = self.claim(agent)
        assert isinstance(got, c.Claimed), got
        return got

    def start(self, got: c.Claimed, pid: int = 4242) -> bool:
        return self.say(c.Started(got.task.uid, got.n, pid, 99, self.clock.boot_id()))

    def running(self, *tasks: Task) -> c.Claimed:
        """Add these if given, claim one and start it."""
        if tasks:
            self.has(*tasks)
        got = self.claimed()
        assert self.start(got)
        return got

    def finish(self, got: c.Claimed, kind: Ending = "completed", **more: Any) -> c.Finished:
        then_claim = more.pop("then_claim", None)
        result = c.Result(kind=kind, **more)
        return self.say(c.Finish(got.task.uid, got.n, result, then_claim=then_claim))

    def wake(self, after: float = 0.0) -> c.Woken:
        self.clock.advance(after)
        return self.say(c.Wake())

    # Moving.

    def escrow(self, x: str, task: Task, *, to: str = "loom", **how: Any) -> m.Transferred:
        """Escrow one task and answer with its one outcome; the epoch is the row's unless given."""
        lease_s = how.pop("lease_s", 60.0)
        epoch = how.pop("epoch", None) or self.task(task.uid).epoch
        move = m.Move(x, task.uid, epoch, how.pop("peer_incarnation", None))
        why = how.pop("why", "stolen")
        return self.say(m.Escrow(to, why, lease_s, (move,), **how))[0]

    def hold(self, x: str, task: Task, *, giver: str = "forge", **how: Any) -> m.Transferred:
        """Offer one task and answer with its one outcome; the hash is right unless given."""
        sha256 = how.pop("sha256", None) or hash_of(spec_of(task))
        offer = m.Offer(x, task, sha256, how.pop("peer_incarnation", None))
        return self.say(m.Hold(giver, how.pop("why", "stolen"), (offer,), **how))[0]

    def settle(
        self, kind: Settling, x: str, uid: str, peer: str = "loom", **how: Any
    ) -> m.Transferred:
        """Commit, Abort, Activate, Drop or Settled, for one transfer."""
        sender = how.pop("sender", c.OWNER)
        return self.say(kind((m.Settle(x, uid, peer, **how),), sender))[0]

    def commit(self, x: str, uid: str, **how: Any) -> m.Transferred:
        return self.settle(m.Commit, x, uid, **how)

    def abort(self, x: str, uid: str, **how: Any) -> m.Transferred:
        return self.settle(m.Abort, x, uid, **how)

    def settled(self, x: str, uid: str, **how: Any) -> m.Transferred:
        return self.settle(m.Settled, x, uid, **how)

    def activate(self, x: str, uid: str, peer: str = "forge", **how: Any) -> m.Transferred:
        return self.settle(m.Activate, x, uid, peer, **how)

    def drop(self, x: str, uid: str, peer: str = "forge", **how: Any) -> m.Transferred:
        return self.settle(m.Drop, x, uid, peer, **how)

    def gives_away(self, x: str, task: Task, **to: Any) -> Task:
        """Escrow and commit: the task is somebody else's from here on."""
        taken = self.escrow(x, task, **to)
        assert taken.outcome == "escrowed", taken
        assert self.commit(x, task.uid, peer=to.get("to", "loom")).outcome == "committed"
        assert taken.task is not None
        return taken.task

    def takes(self, x: str, task: Task, **how: Any) -> None:
        """Hold and activate: the task is this node's from here on."""
        assert self.hold(x, task, **how).outcome == "held"
        assert self.activate(x, task.uid, how.get("giver", "forge")).outcome == "activated"


def rule_of(outcome: Any) -> str:
    """The rule that said no, always with a sentence beside it."""
    because: c.Because | None = outcome.because
    assert because is not None, outcome
    assert because.text.strip()
    return because.rule


def refusal(node: NodeAtHand, command: c.Command[Any]) -> str:
    """The rule by which the node refuses this, whether it answers so or raises."""
    try:
        outcome = node.say(command)
    except Refused as error:
        return error.rule or error.code
    return rule_of(outcome[0] if isinstance(outcome, tuple) else outcome)
