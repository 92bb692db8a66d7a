"""Three real nodes on machines that fail, and what has to hold at every moment."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import Refused
from agent_node.store.generation import GenerationFile
from tests.builders import DAY, a_task
from tests.node.store.hub_double import NAMES, Hub, Sent
from tests.node.store.test_sqlite import read_only

_HOW_FAR = """SELECT incarnation, state,
       generation + (SELECT coalesce(max(seq), 0) FROM event) - counted_event FROM node"""
ENDED = {"COMPLETED", "CANCELLED", "FAILED", "DEAD_LETTERED"}


class Fleet(Hub):
    """What really happened on the machines, beside what nodes and hub believe."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.living: dict[str, tuple[str, c.Claimed]] = {}  # the program that runs, by uid
        self.numbers: set[tuple[str, int]] = set()
        self.accepted: set[tuple[str, int]] = set()
        self.completed: set[str] = set()
        self.added: dict[str, str] = {}
        self.meant_for: dict[str, str] = {}  # a task is sent to one node only, by uid
        self.long_ago: set[str] = set()  # it ended, and that is more than a month ago
        self.ended: set[str] = set()
        self.touched: set[str] = set()  # a restore may have lost what was known of these

    def note(self, sent: Sent, outcome: Any) -> None:
        command = sent.command
        if isinstance(command, c.Finish) and outcome.accepted:
            attempt = (command.uid, command.n)
            assert attempt not in self.accepted, f"{attempt} was accepted twice"
            self.accepted.add(attempt)
            if command.result.kind == "completed":
                self.completed.add(command.uid)
                self.ended.add(command.uid)
        if isinstance(command, m.Escrow):
            self._note_escrow(command, outcome)
        if isinstance(command, c.Add):
            for answer in outcome:
                if answer.outcome == "added":
                    assert answer.uid not in self.added, f"{answer.uid} was added twice"
                    self.added[answer.uid] = sent.node

    @staticmethod
    def _note_escrow(command: m.Escrow, outcome: Any) -> None:
        """A plan may be late; it may not take what it has not seen."""
        for move, answer in zip(command.moves, outcome, strict=True):
            if answer.outcome == "escrowed":
                seen, found = move.epoch, answer.task.epoch
                assert found == seen, f"{move.uid} was planned at epoch {seen}, taken at {found}"

    def alive_at(self, name: str) -> frozenset[str]:
        return frozenset(uid for uid, (where, _) in self.living.items() if where == name)

    def end_of(self, uid: str) -> str | None:
        return "COMPLETED" if uid in self.completed else None

    def add(self, name: str, number: int, key: str | None, *, how: str = "heard") -> None:
        """A new task for this node, in the life that it has now."""
        task = a_task(number, key=key)
        if name in self.off or task.uid in self.long_ago:
            return
        if self.meant_for.setdefault(task.uid, name) != name:
            return
        sender = c.Sender("hub", 1, self.nodes[name].facts().incarnation)
        self.send(Sent(name, c.Add((task,), sender), None), how=how)

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

    def forget(self, name: str) -> None:
        """A month passes; nobody puts back a backup from before what was forgotten in it.

        And nobody adds what ended so long ago again: a task has no number that tells its age.
        """
        for other in self.nodes.values():
            other.clock.advance(31 * DAY)
        node = self.nodes[name]
        if name not in self.off:
            node.wake()
            with suppress(Refused):
                node.say(c.Forget())
            (node.place / "backup.db").unlink(missing_ok=True)
        self.long_ago |= self.ended
        self.bag = [sent for sent in self.bag if not self._adds_what_ended(sent.command)]

    def _adds_what_ended(self, command: c.Command[Any]) -> bool:
        return isinstance(command, c.Add) and any(one.uid in self.ended for one in command.tasks)

    def set_right(self, name: str) -> None:
        """A person sees to it that this node is up, greeted, decided upon and active."""
        self.switch_on(name)
        self.hello(name)
        self.release(name)
        self.send(Sent(name, c.SetNode("active", "go on"), None))

    def known_at(self, name: str) -> dict[str, tuple[object, ...]]:
        """What a node's file says of each uid, row and tombstone."""
        with closing(read_only(self.nodes[name].place)) as db:
            rows = db.execute("SELECT uid, state, epoch, attempt FROM task").fetchall()
            stones = db.execute("SELECT uid, epoch, xfer FROM tombstone").fetchall()
        known: dict[str, tuple[object, ...]] = {}
        for uid, *rest in (*rows, *stones):
            known[uid] = (*known.get(uid, ()), *rest)
        return known

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
            life, state, generation = db.execute(_HOW_FAR).fetchone()
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

