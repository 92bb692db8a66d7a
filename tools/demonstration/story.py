"""Tells the demo from beginning to end: add, run, cancel, kill the daemon, go on, check."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from agent_node.text import counted

from .evidence import LedgerNote, left_behind, lost, processes_of, read_notes, run_twice
from .node import DemoFailed, DemoNode
from .picture import Picture
from .sight import Sight
from .tasks import planned_tasks

AT_MOST_S = 90.0  # it takes a sixth of this; on a slow machine too, an endless demo is a failure
LOOK_EVERY_S = 0.1
KILL_AFTER_COMPLETED = 9
KILL_WHILE_RUNNING = 4
END_WITHIN_S = 5.0
NOBODY_S = 0.6  # without a daemon, long enough for a person to see it
CALLED_OFF = "rebuild the search index"


class Story:
    """What the demo does to its node, step by step."""

    def __init__(self, node: DemoNode, picture: Picture) -> None:
        self.node = node
        self._picture, self._sight = picture, Sight()
        self._planned = planned_tasks()
        self._began = time.monotonic()
        self._adopted = self._existed = 0

    def run(self) -> list[str]:
        """All of it; what went wrong, a sentence each."""
        self.node.set_up()
        self._say("a new home for the node iris; agents ada (3 slots) and bob (2 slots)")
        self._say(f"{self._add('added')} tasks added, before any daemon runs")
        self._look_without_a_daemon()
        self.node.start()
        self._say("the daemon starts", daemon="daemon runs")
        self._follow(lambda: self._sight.runs_for(CALLED_OFF) >= 1)
        self._cancel(CALLED_OFF)
        self._follow(self._may_kill)
        self._kill_and_go_on()
        self._follow(self.node.has_ended)
        self._look_without_a_daemon()
        self._say("nothing is left to do, so the daemon ends", daemon="daemon ended")
        return self._judge()

    # --- the steps ------------------------------------------------------------------------------

    def _add(self, outcome: str) -> int:
        """Every planned task in one request; how many had this outcome."""
        lines = "".join(json.dumps(task.document) + "\n" for task in self._planned)
        results = self.node.command("add", "--file", "-", stdin=lines)["results"]
        assert isinstance(results, list)
        return sum(result["outcome"] == outcome for result in results)

    def _cancel(self, subject: str) -> None:
        uid = self._sight.uid_of(subject)
        self.node.command("cancel", uid, "--reason", "no longer wanted")
        self._say(f'you cancel "{subject}" while it runs')

    def _may_kill(self) -> bool:
        sight = self._sight
        enough = sight.count("COMPLETED") >= KILL_AFTER_COMPLETED
        return enough and sight.under_way >= KILL_WHILE_RUNNING

    def _kill_and_go_on(self) -> None:
        pid = self.node.kill_daemon()
        self._say(f"kill -9 {pid}: the daemon is gone", daemon="no daemon")
        began = {note.pid for note in read_notes(self.node.notes) if note.what == "began"}
        alive = len(began & processes_of(self.node.home))
        self._say(f"{counted(alive, 'program')} still at work, no daemon above them")
        time.sleep(NOBODY_S)
        self._adopted = self.node.start("--until-idle")
        took_over = f"the next daemon takes over {counted(self._adopted, 'attempt')}"
        self._say(took_over, daemon="second daemon runs")
        self._existed = self._add("exists")
        self._say(f"the same tasks added once more: {self._existed} exist, none is added")

    def _follow(self, enough: Callable[[], bool]) -> None:
        """Look and draw until there is enough."""
        while not enough():
            if self._seconds > AT_MOST_S:
                raise DemoFailed(f"not done after {AT_MOST_S:.0f} s: {dict(self._sight.counts)}")
            self._look()
            time.sleep(LOOK_EVERY_S)

    def _look(self) -> None:
        """Everything the node says now; a daemon that ends while it is asked is no trouble."""
        try:
            happened = self._sight.look(self.node)
        except DemoFailed:
            if not self.node.has_ended(END_WITHIN_S):
                raise
            return
        for text in happened:
            self._say(text)
        self._picture.draw(self._sight, self._seconds)

    def _look_without_a_daemon(self) -> None:
        self.node.hang_up()
        self._look()
        self.node.hang_up()

    def _say(self, text: str, *, daemon: str | None = None) -> None:
        self._sight.daemon = daemon or self._sight.daemon
        self._picture.happened(self._seconds, text)
        self._picture.draw(self._sight, self._seconds)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    # --- the end --------------------------------------------------------------------------------

    def _judge(self) -> list[str]:
        """Tell the sums, and name all that is not as it has to be."""
        notes = read_notes(self.node.notes)
        twice, gone = run_twice(notes), lost(self._sight.states, notes)
        behind = left_behind(self.node.home)
        self._tell_sums(notes, twice=len(twice), gone=len(gone), behind=len(behind))
        return [
            *(f"{uid} ran twice" for uid in sorted(twice)),
            *(f"{uid} is lost" for uid in sorted(gone)),
            *(f"process {pid} was left behind" for pid in sorted(behind)),
            *self._not_as_planned(),
        ]

    def _tell_sums(self, notes: list[LedgerNote], *, twice: int, gone: int, behind: int) -> None:
        sight, planned = self._sight, len(self._planned)
        failed = sum(note.what == "failed" for note in notes)
        self._picture.tell(
            f"demo: added {planned}, spawned {len(sight.states) - planned}, "
            f"completed {sight.count('COMPLETED')}, cancelled {sight.count('CANCELLED')}, "
            f"given up {sight.count('DEAD_LETTERED')}, twice {twice}, lost {gone}, "
            f"left behind {behind}\n"
            f"  {counted(failed, 'attempt')} failed and were tried again where a try was left\n"
            f"  {self._adopted} attempts outlived their daemon and ended under the next one\n"
            f"  {self._existed} tasks were added a second time, and exist once\n"
            f"  {self._seconds:.1f} s in all"
        )

    def _not_as_planned(self) -> list[str]:
        """Ends that differ from the plan, and a story that did not happen as it was told."""
        sight = self._sight
        wrong = [
            f'"{task.subject}" should be {task.ends}, and is {sight.state_of(task.subject)}'
            for task in self._planned if sight.state_of(task.subject) != task.ends
        ]
        spawned = sum(task.spawns for task in self._planned)
        if len(sight.states) != len(self._planned) + spawned:
            wrong.append(f"{len(sight.states)} tasks are there, and {spawned} were to be spawned")
        if self._existed != len(self._planned):
            wrong.append(f"the second time, {self._existed} of {len(self._planned)} were known")
        if not self._adopted:
            wrong.append("the next daemon took over nothing, though programs were at work")
        if code := self.node.exit_code:
            wrong.append(f"the daemon ended with exit {code}")
        return wrong
