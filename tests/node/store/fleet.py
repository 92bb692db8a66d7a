"""Three real nodes and a hub that forgets, repeats, reorders and replays whatever it ever said."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import Refused
from agent_node.store.generation import GenerationFile
from agent_node.task import Task
from tests.builders import DAY, FakeClock, NodeAtHand, a_task, xfer
from tests.node.store.test_sqlite import Sqlite, read_only

NAMES = ("iris", "forge", "loom")
ENDED = {"COMPLETED", "CANCELLED", "FAILED", "DEAD_LETTERED"}
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


class Fleet:
    """The nodes, the hub's bag of past commands, and what really happened on the machines."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.nodes = {
            name: NodeAtHand(Sqlite(), place / name, name, clock=FakeClock()) for name in NAMES
        }
        self.bag: list[Sent] = []
        self.journeys: list[Journey] = []
        self.off: set[str] = set()
        self.fenced: set[m.Fenced] = set()
        self.living: dict[str, tuple[str, c.Claimed]] = {}  # the program that runs, by uid
        self.numbers: set[tuple[str, int]] = set()
        self.accepted: set[tuple[str, int]] = set()
        self.completed: set[str] = set()
        self.added: dict[str, str] = {}
        self.ended: set[str] = set()
        self.touched: set[str] = set()  # a restore may have lost what was known of these
        for name in NAMES:
            self.hello(name)

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    # What the hub says.

    def hello(self, name: str) -> None:
        """The hub greets a node, and says so where that incarnation was declared dead."""
        node = self.nodes[name]
        if name not in self.off:
            life = m.Fenced(name, node.facts().incarnation)
            boot = node.clock.boot_id()
            node.say(m.Hello("arc0", "arc", 1, boot, fenced=life in self.fenced))

    def send(self, sent: Sent, *, how: str = "heard", again: bool = False) -> Any:
        """Say it to the node. `unheard`: its answer is lost; `late`: it is only on its way."""
        if not again:
            self.bag.append(sent)
        if sent.node in self.off or how == "late":
            return None
        try:
            outcome = self.nodes[sent.node].say(sent.command)
        except Refused:
            return None
        self._note(sent, outcome)
        if sent.journey is not None and how == "heard":
            self._learn(sent, outcome[0])
        return outcome

    def _note(self, sent: Sent, outcome: Any) -> None:
        command = sent.command
        if isinstance(command, c.Finish) and outcome.accepted:
            attempt = (command.uid, command.n)
            assert attempt not in self.accepted, f"{attempt} was accepted twice"
            self.accepted.add(attempt)
            if command.result.kind == "completed":
                self.completed.add(command.uid)
                self.ended.add(command.uid)

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
        lives = [self.nodes[name].facts().incarnation for name in (giver, taker)]
        number = len(self.journeys) + 1
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
        return Sent(j.taker, m.Hold(j.giver, "moved", (offer,), c.Sender("hub", 1, j.taker_life)), j)

    def _settle(self, j: Journey, kind: type) -> Sent:
        at_giver = kind in GIVERS_OWN
        node, peer = (j.giver, j.taker) if at_giver else (j.taker, j.giver)
        own, other = (j.giver_life, j.taker_life) if at_giver else (j.taker_life, j.giver_life)
        ended = "COMPLETED" if kind is m.Settled and j.uid in self.completed else None
        move = m.Settle(j.xfer, j.uid, peer, other, ended)
        return Sent(node, kind((move,), c.Sender("hub", 1, own)), j)

    # What happens on a machine.

    def add(self, name: str, number: int, key: str | None) -> None:
        task = a_task(number, key=key)
        if name in self.off or task.uid in self.added:
            return
        with suppress(Refused):
            (answer,) = self.nodes[name].add(task)
            if answer.outcome == "added":
                self.added[task.uid] = name

    def claim(self, name: str) -> None:
        """An agent takes a task; whatever that is, its program may not run anywhere yet."""
        if name in self.off:
            return
        node = self.nodes[name]
        got = node.claim()
        if isinstance(got, c.NothingToClaim):
            return
        uid = got.task.uid
        assert uid not in self.living, f"{uid} starts on {name}, it runs on {self.living[uid][0]}"
        assert uid not in self.completed, f"{uid} starts on {name} after it was completed"
        assert (uid, got.n) not in self.numbers, f"attempt {got.n} of {uid} is numbered twice"
        self.numbers.add((uid, got.n))
        (node.place / "tasks" / uid / str(got.n)).mkdir(parents=True)
        self.living[uid] = (name, got)
        node.start(got)

    def end(self, uid: str, kind: str) -> None:
        """The program of this task ends, and its node is told, if that is running."""
        name, got = self.living[uid]
        if name in self.off:
            return
        del self.living[uid]
        result = c.Result(kind, error_kind="crash")  # type: ignore[arg-type]
        self.send(Sent(name, c.Finish(uid, got.n, result), None))

    def _everything_dies(self, name: str) -> None:
        self.living = {uid: run for uid, run in self.living.items() if run[0] != name}

    def reboot(self, name: str) -> None:
        """The machine starts again; what ran is proven dead by the name of the boot."""
        if name in self.off:
            return
        self._everything_dies(name)
        self.nodes[name].reboot()
        self._interrupt(name)

    def _interrupt(self, name: str) -> None:
        node = self.nodes[name]
        for attempt in node.ask(q.OpenAttempts()):
            if attempt.boot_id != node.clock.boot_id():
                result = c.Result("interrupted", message="the machine rebooted")
                self.send(Sent(name, c.Finish(attempt.uid, attempt.n, result), None))

    def fence(self, name: str) -> None:
        """A person switches the machine off and says so."""
        if name in self.off:
            return
        self.fenced.add(m.Fenced(name, self.nodes[name].facts().incarnation))
        self._everything_dies(name)
        self.nodes[name].close()
        self.off.add(name)

    def switch_on(self, name: str) -> None:
        """The machine comes back; nobody has told it yet what was said of it."""
        if name in self.off:
            self.off.remove(name)
            node = self.nodes[name]
            node.clock.reboot()
            node.open()
            self._interrupt(name)

    def back_up(self, name: str) -> None:
        node = self.nodes[name]
        if name not in self.off:
            node.close()
            shutil.copy(node.place / "queue.db", node.place / "backup.db")
            node.open()

    def restore(self, name: str) -> None:
        """The backup is put back on a machine where nothing runs any more."""
        node = self.nodes[name]
        if name in self.off or not (node.place / "backup.db").exists():
            return
        self._everything_dies(name)
        life = node.facts().incarnation
        node.close()
        before = self.known_at(name)
        shutil.copy(node.place / "backup.db", node.place / "queue.db")
        after = self.known_at(name)
        self.touched |= {uid for uid in before | after if before.get(uid) != after.get(uid)}
        node.clock.reboot()
        node.open()
        self._interrupt(name)
        if node.facts().incarnation != life:
            self.fenced.add(m.Fenced(name, life))

    def kill(self, name: str) -> None:
        """The daemon dies at once and the next one opens what was on the disk."""
        if name not in self.off:
            self.nodes[name].reopen()

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

    def forget(self, name: str) -> None:
        """A month passes; nobody puts back a backup from before what was forgotten in it."""
        for other in self.nodes.values():
            other.clock.advance(31 * DAY)
        node = self.nodes[name]
        if name not in self.off:
            node.wake()
            with suppress(Refused):
                node.say(c.Forget())
            (node.place / "backup.db").unlink(missing_ok=True)

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

    def known_at(self, name: str) -> dict[str, tuple[object, ...]]:
        """What a node's file says of each uid, row and tombstone."""
        with closing(read_only(self.nodes[name].place)) as db:
            rows = db.execute("SELECT uid, state, epoch, attempt FROM task").fetchall()
            stones = db.execute("SELECT uid, epoch, xfer FROM tombstone").fetchall()
        known: dict[str, tuple[object, ...]] = {}
        for uid, *rest in (*rows, *stones):
            known[uid] = (*known.get(uid, ()), *rest)
        return known

    # Taking ownership back.

    def evidence(self, name: str, uid: str) -> dict[str, tuple[int, ...]]:
        folder = self.nodes[name].place / "tasks" / uid
        found = sorted(int(one.name) for one in folder.iterdir()) if folder.is_dir() else []
        return {uid: tuple(found)} if found else {}

    def reown(self, uid: str, winner: str) -> str | None:
        """Bar everybody else, then make one node the owner; None where somebody said no."""
        if winner in self.off or not self.has_copy(winner, uid):
            return None
        target = m.Target(uid, self.above_all(uid))
        lives, fenced = self.lives(), self.fences()
        for name in NAMES:
            if name != winner and name not in self.off and not self._barred(name, target):
                return None
        evidence = self.evidence(winner, uid)
        command = m.Reown((target,), fenced=fenced, nodes=lives, evidence=evidence)
        said = self.send(Sent(winner, command, None))
        return winner if said is not None and said[0].outcome == "reowned" else None

    def fences(self) -> tuple[m.Fenced, ...]:
        """What persons declared dead and what has not come back as something later."""
        lives = self.lives()
        return tuple(
            fenced
            for fenced in sorted(self.fenced, key=repr)
            if fenced.node in self.off or fenced in lives
        )

    def lives(self) -> tuple[m.Fenced, ...]:
        """Every node that answers, under the incarnation in which it does."""
        return tuple(
            m.Fenced(name, node.facts().incarnation)
            for name, node in self.nodes.items()
            if name not in self.off
        )

    def has_copy(self, name: str, uid: str) -> bool:
        """Whether this node has anything that it could make READY."""
        with closing(read_only(self.nodes[name].place)) as db:
            query = (
                "SELECT 1 FROM task WHERE uid = :uid UNION"
                " SELECT 1 FROM tombstone WHERE uid = :uid AND spec IS NOT NULL"
            )
            return db.execute(query, {"uid": uid}).fetchone() is not None

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

    def highest_epoch(self, name: str, uid: str) -> int:
        with closing(read_only(self.nodes[name].place)) as db:
            query = "SELECT epoch FROM task WHERE uid = ? UNION SELECT epoch FROM tombstone WHERE uid = ?"
            return max((epoch for (epoch,) in db.execute(query, (uid, uid))), default=0)

    # What has to hold at every moment.

    def check(self) -> None:
        rows = {name: self._check_node(name) for name in NAMES}
        owners: dict[str, list[str]] = {}
        present: set[str] = set()
        for name, (life, state, tasks) in rows.items():
            set_apart = state == "quarantined" or m.Fenced(name, life) in self.fenced
            for uid, task_state, old_copy in tasks:
                present.add(uid)
                if task_state != "HELD" and not set_apart and not old_copy:
                    owners.setdefault(uid, []).append(f"{name} {task_state}")
                if task_state in ENDED:
                    self.ended.add(uid)
        doubled = {uid: places for uid, places in owners.items() if len(places) > 1}
        assert not doubled, f"in two places: {doubled}"
        if self.fenced:  # a person may have barred the row; the copy that was kept is not lost
            present |= {uid for uid in self.added for name in NAMES if self.has_copy(name, uid)}
        lost = set(self.added) - present - self.ended - self.touched
        assert not lost, f"lost: {lost}"

    def _check_node(self, name: str) -> tuple[str, str, list[tuple[str, str, int]]]:
        node = self.nodes[name]
        with closing(read_only(node.place)) as db:
            life, state, generation = _node_row(db)
            # What had ended before a restore is an old copy (2): nobody may take it for the task.
            tasks = db.execute("SELECT uid, state, quarantined = 2 FROM task").fetchall()
        mark = GenerationFile(node.place / "generation").read()
        assert mark is not None
        assert mark.generation <= generation, f"{name}: the file is ahead of the database"
        if name not in self.off:
            counted = {k: v for k, v in node.facts().counts.items() if v}
            listed = [task_state for _, task_state, _ in tasks]
            assert counted == {k: listed.count(k) for k in set(listed)}, f"{name}: counts drifted"
        return life, state, tasks


def _node_row(db: sqlite3.Connection) -> tuple[str, str, int]:
    return db.execute("SELECT incarnation, state, generation FROM node").fetchone()
