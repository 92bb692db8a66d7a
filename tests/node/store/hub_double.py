"""A hub that forgets, repeats, reorders and replays whatever it ever said to three real nodes."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import Refused
from agent_node.task import Task
from tests.builders import FakeClock, NodeAtHand, xfer
from tests.node.store.test_sqlite import Sqlite, read_only

NAMES = ("iris", "forge", "loom")
NOT_AN_ANSWER = {"other_incarnation", "old_term", "other_transfer"}
GIVERS_OWN = (m.Escrow, m.Commit, m.Abort, m.Settled)


@dataclass
class Journey:
    """What the hub knows of one transfer: only what nodes have answered."""

    xfer: str
    uid: str
    epoch: int
    giver: str
    taker: str
    giver_life: str
    taker_life: str
    task: Task | None = None
    sha256: str = ""
    heard: set[tuple[str, str]] = field(default_factory=set)  # (giver or taker, outcome)


@dataclass(frozen=True)
class Sent:
    """One command that was sent once, and may arrive again at any time."""

    node: str
    command: c.Command[Any]
    journey: Journey | None


class Hub:
    """The nodes, the bag of past commands, and what was heard: nothing that safety needs."""

    def __init__(self, place: Path) -> None:
        self.nodes = {
            name: NodeAtHand(Sqlite(), place / name, name, clock=FakeClock()) for name in NAMES
        }
        self.bag: list[Sent] = []
        self.journeys: list[Journey] = []
        self.off: set[str] = set()
        self.fenced: set[m.Fenced] = set()
        for name in NAMES:
            self.hello(name)

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    def hello(self, name: str) -> None:
        """The hub greets a node, and says so where that incarnation was declared dead."""
        if name not in self.off:
            life, boot = self.nodes[name].facts().incarnation, self.nodes[name].clock.boot_id()
            dead = m.Fenced(name, life) in self.fenced
            said = m.Hello("arc0", "arc", 1, boot, fenced=dead, incarnation=life if dead else None)
            self.send(Sent(name, said, None))

    def send(self, sent: Sent, *, how: str = "heard", again: bool = False) -> Any:
        """Say it to the node. `unheard`: its answer is lost; `late`: it is only on its way."""
        if not again:
            self.bag.append(sent)
        if sent.node in self.off or how == "late" or self._has_lost_its_connection(sent):
            return None
        try:
            outcome = self.nodes[sent.node].say(sent.command)
        except Refused:
            return None
        self.note(sent, outcome)
        if sent.journey is not None and how == "heard":
            self._learn(sent, outcome[0])
        return outcome

    def _has_lost_its_connection(self, sent: Sent) -> bool:
        """A hello is heard by the boot that it was said to: no connection outlives a reboot."""
        if not isinstance(sent.command, m.Hello):
            return False
        return sent.command.boot_id != self.nodes[sent.node].clock.boot_id()

    def note(self, sent: Sent, outcome: Any) -> None:
        """What an answer means for whoever watches; the hub itself does not need it."""

    @staticmethod
    def _learn(sent: Sent, answer: m.Transferred) -> None:
        journey = sent.journey
        assert journey is not None
        if answer.because is not None and answer.because.rule in NOT_AN_ANSWER:
            return
        side = "giver" if isinstance(sent.command, GIVERS_OWN) else "taker"
        journey.heard.add((side, answer.outcome))
        if answer.outcome == "escrowed":
            assert answer.task is not None
            journey.task, journey.sha256 = answer.task, str(answer.sha256)

    def begin_move(self, task: Task, giver: str, taker: str) -> Journey:
        """A new transfer of this task, as the hub last saw it."""
        number = len(self.journeys) + 1
        lives = (self.nodes[giver].facts().incarnation, self.nodes[taker].facts().incarnation)
        journey = Journey(xfer(number), task.uid, task.epoch, giver, taker, *lives)
        self.journeys.append(journey)
        return journey

    def next_steps(self, journey: Journey) -> list[Sent]:
        """Every command that the protocol lets the hub send, by the answers it has heard."""
        heard, steps = journey.heard, [self._escrow(journey), self._settle(journey, m.Abort)]
        if journey.task is not None:
            steps.append(self._hold(journey))
        if ("taker", "held") in heard:
            steps.append(self._settle(journey, m.Commit))
        if ("giver", "committed") in heard:
            steps.append(self._settle(journey, m.Activate))
        if ("giver", "aborted") in heard:
            steps.append(self._settle(journey, m.Drop))
        over = {("taker", end) for end in ("activated", "dropped", "refused", "too_old")}
        if heard & over and heard & {("giver", "committed"), ("giver", "aborted")}:
            steps.append(self._settle(journey, m.Settled))
        return steps

    def follow(self, journey: Journey, *kinds: type) -> None:
        """Take these steps one after the other, each where the protocol lets the hub take it."""
        for kind in kinds:
            for step in self.next_steps(journey):
                if type(step.command) is kind:
                    self.send(step)

    def move(self, uid: str, giver: str, taker: str) -> Journey:
        """One whole move without any trouble."""
        journey = self.begin_move(self.nodes[giver].task(uid), giver, taker)
        self.follow(journey, m.Escrow, m.Hold, m.Commit, m.Activate, m.Settled)
        assert ("taker", "activated") in journey.heard, journey
        return journey

    def _escrow(self, j: Journey) -> Sent:
        move = m.Move(j.xfer, j.uid, j.epoch, j.taker_life)
        command = m.Escrow(j.taker, "moved", 60, (move,), c.Sender("hub", 1, j.giver_life), True)
        return Sent(j.giver, command, j)

    def _hold(self, j: Journey) -> Sent:
        assert j.task is not None
        offer = m.Offer(j.xfer, j.task, j.sha256, j.giver_life)
        sender = c.Sender("hub", 1, j.taker_life)
        return Sent(j.taker, m.Hold(j.giver, "moved", (offer,), sender), j)

    def _settle(self, j: Journey, kind: type) -> Sent:
        at_giver = kind in GIVERS_OWN
        node, peer = (j.giver, j.taker) if at_giver else (j.taker, j.giver)
        own, other = (j.giver_life, j.taker_life) if at_giver else (j.taker_life, j.giver_life)
        ended = self.end_of(j.uid) if kind is m.Settled else None
        move = m.Settle(j.xfer, j.uid, peer, other, ended)
        return Sent(node, kind((move,), c.Sender("hub", 1, own)), j)

    def alive_at(self, name: str) -> frozenset[str]:
        """The tasks whose programs a node finds alive on its machine."""
        return frozenset()

    def end_of(self, uid: str) -> str | None:
        """How the task ended, where that is known."""
        return None

    def settle_all(self) -> None:
        """What every cycle of a hub begins with; on a healthy fleet it leaves nothing undone."""
        for journey in self.journeys:
            self.follow(journey, m.Escrow, m.Hold, m.Commit, m.Abort, m.Activate, m.Drop, m.Settled)
        if self.fenced or self.off:
            return
        for name, node in self.nodes.items():
            counts = node.facts().counts
            left = {state: counts.get(state, 0) for state in ("ESCROW", "HELD")}
            assert left == {"ESCROW": 0, "HELD": 0}, f"{name}: settled, yet {left}"

    def reown(self, uid: str, winner: str) -> str | None:
        """Bar everybody else, then make one node the owner; None where somebody said no."""
        word = self.barred_for(uid, winner)
        said = None if word is None else self.send(word)
        return winner if said is not None and said[0].outcome == "reowned" else None

    def barred_for(self, uid: str, winner: str) -> Sent | None:
        """Everybody else is barred: the word that makes this node the owner, which nobody has
        sent yet; None where somebody said no.
        """
        if winner in self.off or not self.has_copy(winner, uid):
            return None
        target = m.Target(uid, self.above_all(uid))
        lives, fenced = self.lives(), self.fences()
        for name in NAMES:
            if name != winner and name not in self.off and not self._barred(name, target):
                return None
        evidence = self.evidence(winner, uid)
        command = m.Reown(
            (target,), fenced=fenced, nodes=lives, evidence=evidence, living=self.alive_at(winner)
        )
        return Sent(winner, command, None)

    def fences(self) -> tuple[m.Fenced, ...]:
        """What persons declared dead and what has not come back as something later: of a node that
        was declared dead more than once, the last life. To name an earlier one is refused.
        """
        lives, last = self.lives(), dict[str, m.Fenced]()
        for fenced in sorted(self.fenced, key=repr):
            if fenced.node in self.off or fenced in lives:
                last[fenced.node] = fenced
        return tuple(last.values())

    def lives(self) -> tuple[m.Fenced, ...]:
        """Every node that answers, under the incarnation in which it does."""
        return tuple(
            m.Fenced(name, node.facts().incarnation)
            for name, node in self.nodes.items()
            if name not in self.off
        )

    def _barred(self, name: str, target: m.Target) -> bool:
        evidence = self.evidence(name, target.uid)
        lives, fenced = self.lives(), self.fences()
        command = m.Bar((target,), fenced=fenced, nodes=lives, evidence=evidence)
        said = self.send(Sent(name, command, None))
        return said is not None and said[0].outcome == "barred"

    def bar_at(self, name: str, uid: str) -> bool:
        """One node alone is told that this task lives elsewhere."""
        return self._barred(name, m.Target(uid, self.above_all(uid)))

    def release(self, name: str) -> None:
        """A person decides upon every task of a quarantined node, then ends the quarantine."""
        node = self.nodes[name]
        if name in self.off or node.facts().state != "quarantined":
            return
        for task in node.ask(q.ListTasks()).tasks:
            if any(task.uid in self.rows(other) for other in NAMES if other != name):
                self.bar_at(name, task.uid)
            else:
                self.reown(task.uid, name)
        with suppress(Refused):
            node.say(m.Release("every task was decided upon"))
        if node.facts().state == "active":
            node.say(c.SetAgents(node.agents))

    def above_all(self, uid: str) -> int:
        """An epoch higher than any that a node can name, which is what S has to be."""
        asked = [self.highest_epoch(name, uid) for name in NAMES if name not in self.off]
        return max(asked, default=0) + 2**20

    # What the nodes' files say.

    def ready(self) -> list[tuple[str, str]]:
        """Where a task is READY, as (node, uid)."""
        return [
            (name, uid)
            for name in NAMES
            if name not in self.off
            for uid, state in sorted(self.rows(name).items())
            if state == "READY"
        ]

    def rows(self, name: str) -> dict[str, str]:
        """What a node's file says of the tasks that it has, by uid."""
        with closing(read_only(self.nodes[name].place)) as db:
            return dict(db.execute("SELECT uid, state FROM task").fetchall())

    def has_copy(self, name: str, uid: str) -> bool:
        """Whether this node has anything that it could make READY."""
        with closing(read_only(self.nodes[name].place)) as db:
            query = (
                "SELECT 1 FROM task WHERE uid = :uid UNION"
                " SELECT 1 FROM tombstone WHERE uid = :uid AND spec IS NOT NULL"
            )
            return db.execute(query, {"uid": uid}).fetchone() is not None

    def highest_epoch(self, name: str, uid: str) -> int:
        with closing(read_only(self.nodes[name].place)) as db:
            query = (
                "SELECT epoch FROM task WHERE uid = :uid UNION"
                " SELECT epoch FROM tombstone WHERE uid = :uid"
            )
            return max((epoch for (epoch,) in db.execute(query, {"uid": uid})), default=0)

    def evidence(self, name: str, uid: str) -> dict[str, tuple[int, ...]]:
        folder = self.nodes[name].place / "tasks" / uid
        found = sorted(int(one.name) for one in folder.iterdir()) if folder.is_dir() else []
        return {uid: tuple(found)} if found else {}
