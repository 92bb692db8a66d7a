"""Sees the node as a hub does: asks over the wire, and keeps what it was told last."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Protocol

UNDERWAY = ("CLAIMED", "RUNNING", "VALIDATING")
SAID = {
    "task_completed": "completed",
    "task_retrying": "waits for another try",
    "task_dead_lettered": "is given up",
    "task_interrupted": "interrupted",
    "task_cancelled": "cancelled, its program stopped",
    "task_parked": "parked: a person has to decide",
}
Object = dict[str, object]


class Asked(Protocol):
    """Whatever answers requests of the wire."""

    def ask(self, do: str, **fields: object) -> Object: ...


class Sight:
    """What was seen last: tasks, states, agents, and who runs what."""

    def __init__(self) -> None:
        self.daemon = ""
        self.tasks: dict[str, Object] = {}
        self.agents: list[tuple[str, int, int]] = []
        self._written_at = ""
        self._event = 0

    def look(self, node: Asked) -> list[str]:
        """Ask for everything; what has happened since the last look, a line each."""
        report = node.ask("status")
        self._written_at = str(report["written_at"])
        self.agents = [(str(agent["name"]), whole(agent["running"]), whole(agent["slots"]))
                       for agent in objects(report, "agents")]
        listed = objects(node.ask("list", limit=1000), "tasks")
        self.tasks = {str(task["uid"]): task for task in listed}
        happened = []
        for event in objects(node.ask("events", after_seq=self._event, limit=1000), "events"):
            self._event = whole(event["seq"])
            happened += self._told(event)
        return happened

    def _told(self, event: Object) -> list[str]:
        said, task = SAID.get(str(event["event"])), self.tasks.get(str(event.get("uid")))
        if said is None or task is None:
            return []
        because = f": {event['because']}" if event.get("because") else ""
        return [f'{short(task)} "{task["subject"]}" {said}{because}']

    @property
    def states(self) -> dict[str, str]:
        """The state of every task, by uid."""
        return {uid: str(task["state"]) for uid, task in self.tasks.items()}

    @property
    def counts(self) -> Counter[str]:
        """How many tasks are in each state."""
        return Counter(self.states.values())

    def count(self, state: str) -> int:
        """How many tasks are in this state."""
        return self.counts[state]

    @property
    def under_way(self) -> int:
        """How many tasks some agent works on."""
        return sum(self.count(state) for state in UNDERWAY)

    def uid_of(self, subject: str) -> str:
        """The task of this subject, of which the demo has one."""
        return next(uid for uid, task in self.tasks.items() if task["subject"] == subject)

    def state_of(self, subject: str) -> str:
        """The state of the task of this subject; "gone" when the node does not list it."""
        found = [str(task["state"]) for task in self.tasks.values() if task["subject"] == subject]
        return found[0] if found else "gone"

    def runs_for(self, subject: str) -> float:
        """For how many seconds its program runs, by the node's clock; 0: it does not."""
        return max((self._age(task) for _, task in self.running if task["subject"] == subject),
                   default=0.0)

    @property
    def running(self) -> list[tuple[str, Object]]:
        """Who works on what, the most urgent first."""
        found = [(str(claim["agent"]), task) for task in self.tasks.values()
                 if task["state"] in UNDERWAY and isinstance(claim := task["claim"], dict)]
        return sorted(found, key=lambda pair: str(pair[1]["started_at"] or "~"))

    def running_lines(self, agent: str) -> list[str]:
        """What this agent works on, a line each."""
        return [self._line(task) for name, task in self.running if name == agent]

    def _line(self, task: Object) -> str:
        said = f'{short(task)} P{task["priority"]:<2} {self._age(task):4.1f} s  {task["subject"]}'
        return f'{said}  ({task["progress"]})' if task["progress"] else said

    def _age(self, task: Object) -> float:
        if not task["started_at"]:
            return 0.0
        since = moment(self._written_at) - moment(str(task["started_at"]))
        return max(since.total_seconds(), 0.0)


def moment(text: str) -> datetime:
    """A time as the node writes it."""
    return datetime.fromisoformat(text)


def short(task: Object) -> str:
    """The end of the uid, as people type it."""
    return str(task["uid"])[-4:].lower()


def objects(document: Object, name: str) -> list[Object]:
    """A list of objects in an answer."""
    value = document[name]
    assert isinstance(value, list)
    return value


def whole(value: object) -> int:
    """A whole number in an answer."""
    assert isinstance(value, int)
    return value
