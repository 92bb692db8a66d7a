"""Lists what may be asked under `/api/v1`: each question with its operation and its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State
from arc.errors import WrongUse

TEXT_MAX = 64
STATES = tuple(str(state) for state in State)
SENSORS = ("fleet-rebalance", "fleet-router")
NODE = "^[a-z][a-z0-9-]{0,31}$"
TASK = "^[0-9A-Za-z]{1,26}$"
PLACE = "^[a-z][a-z0-9-]{0,31}(:[0-9]{1,18}){1,2}$"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: of what kind it is, and what it means."""

    name: str
    says: str
    kind: str = "text"  # text | whole | flag | moment | words
    low: int = 1
    high: int = TEXT_MAX  # of a number, or characters of a text
    pattern: str = ""
    words: tuple[str, ...] = ()  # the only ones there are
    becomes: str = ""  # what the operation calls it; "": the same
    needed: bool = False  # those of the path are

    def read(self, said: str) -> JsonValue:
        """The value for the operation; `WrongUse` names the parameter."""
        if self.kind == "whole":
            return self._whole(said)
        if self.kind == "flag":
            return self._one_of(said, ("true", "false")) == "true"
        if self.kind == "words":
            return [self._one_of(word.upper(), self.words) for word in said.split(",")]
        if self.kind == "moment":
            return iso(self._moment(said))
        if self.words:
            return self._one_of(said, self.words)
        if not 1 <= len(said) <= self.high or not said.isprintable():
            raise WrongUse(f"{self.name}: 1 to {self.high} characters on one line")
        if self.pattern and not re.fullmatch(self.pattern.strip("^$"), said):
            raise WrongUse(f"{self.name}: should look like {self.pattern}")
        return said

    def _whole(self, said: str) -> int:
        if re.fullmatch("[0-9]{1,18}", said) and self.low <= int(said) <= self.high:
            return int(said)
        raise WrongUse(f"{self.name}: a whole number from {self.low} to {self.high}")

    def _one_of(self, said: str, words: tuple[str, ...]) -> str:
        if said not in words:
            raise WrongUse(f"{self.name}: one of {', '.join(words)}")
        return said

    def _moment(self, said: str) -> datetime:
        try:
            return parse_iso(said)
        except (ValueError, OverflowError) as error:
            raise WrongUse(f"{self.name}: a moment such as 2026-03-10T03:45:02Z") from error


@dataclass(frozen=True, slots=True)
class Question:
    """One path of the API, and the operation of the hub that answers it."""

    path: str  # below /api/v1, as `tasks/{task}`
    op: str
    says: str
    takes: tuple[Param, ...] = ()
    asks_nodes: bool = True  # it may take as long as the slowest node does

    @property
    def within(self) -> tuple[Param, ...]:
        """The parameters that stand in the path."""
        return tuple(one for one in self.takes if one.needed)

    @property
    def asked(self) -> tuple[Param, ...]:
        """Those of the query."""
        return tuple(one for one in self.takes if not one.needed)

    def args(self, path: Mapping[str, object], query: list[tuple[str, str]]) -> JsonObject:
        """What the operation is asked for; `WrongUse` for what it does not know, and for twice."""
        known = {one.name: one for one in self.asked}
        args: JsonObject = {one.becomes or one.name: one.read(str(path[one.name]))
                            for one in self.within}  # fmt: skip
        for name, said in query:
            one = known.pop(name, None)
            if one is None:
                there = ", ".join(param.name for param in self.asked) or "none"
                raise WrongUse(f"{name[:TEXT_MAX]!r} is no parameter here, or stands twice",
                               hint=f"there are: {there}")  # fmt: skip
            args[one.becomes or name] = one.read(said)
        return args


LIMIT = Param("limit", "How many at most.", "whole", 1, 1000)
_TASK = Param("task", "The task: its uid, or a part of it that no other one has.",
              pattern=TASK, high=26, needed=True)  # fmt: skip
_NODE = Param("node", "The node.", pattern=NODE, high=32, needed=True)
_ON = Param("node", "Only on this node.", pattern=NODE, high=32)
_STATES = Param("state", "Only in these states, divided by commas.", "words", words=STATES,
                becomes="states")  # fmt: skip

QUESTIONS: tuple[Question, ...] = (
    Question("status", "status", "How the fleet is, every node asked now."),
    Question("now", "page.now", "What the hub knows, no node asked.",
             (Param("known", "The version of an earlier answer."),), asks_nodes=False),
    Question("nodes", "nodes.list", "Every node."),
    Question("nodes/{node}", "nodes.show", "One node, whole.", (_NODE,)),
    Question("tasks", "tasks.list", "Tasks that fit; those that are not over, unless asked.",
             (_STATES, _ON, Param("skill", "Only with this skill."),
              Param("subject", "Only with all of these words in the subject.", high=200),
              Param("domain", "Only of this domain."),
              Param("priority", "Only of this priority.", "whole", 1, 10),
              Param("parent", "Only made by this task.", high=26),
              Param("source", "Only from this source.", high=200),
              LIMIT, Param("after", "Where an earlier page said that the next begins.",
                           pattern=PLACE))),
    Question("tasks/{task}", "tasks.show", "One task, whole.", (_TASK,)),
    Question("why/{task}", "why.task", "Why a task is where it is, rule by rule.", (_TASK,)),
    Question("why-node/{node}", "why.node", "Why a node gets or gives nothing.", (_NODE,)),
    Question("plan", "plan", "What would move now, and every refusal with its rule.",
             (Param("sensor", "Only this one's.", words=SENSORS),)),
    Question("sensors", "sensors.list", "Every sensor, and how its last run went.",
             asks_nodes=False),
    Question("sensors/{run}", "sensors.show", "One run, whole.",
             (Param("run", "The run's number.", "whole", 1, 2**53, needed=True),),
             asks_nodes=False),
    Question("runs", "sensors.history", "The newest runs of one sensor, or of all.",
             (Param("sensor", "Only of this one."), LIMIT), asks_nodes=False),
    Question("doubts", "doubts.list", "Moves that are not over."),
    Question("dead", "dead.list", "Tasks that no further attempt is made of.", (_ON, LIMIT)),
    Question("dag", "dag.list", "Graphs that run or failed, or all of them.",
             (Param("all", "Those that are over, too.", "flag"), LIMIT)),
    Question("dag/{dag}", "dag.show", "One graph, whole.",
             (Param("dag", "The graph, or a task of it.", pattern=TASK, high=26, needed=True),)),
    Question("budget", "budget", "What may be spent and what was."),
    Question("log", "log", "The hub's log, newest lines of a day or since a moment.",
             (Param("since", "From this moment on.", "moment"),
              Param("sensor", "Only of this sensor."), Param("event", "Only this event."),
              Param("all", "Runs that were skipped, too.", "flag"), LIMIT), asks_nodes=False),
    Question("schedules", "schedules.list", "Where work comes from by itself.", asks_nodes=False),
)  # fmt: skip

# What a task's program wrote; of the node that has the task, where none is named.
LOG = Question("tasks/{task}/log", "nodes.logs", "A piece of what a task's program wrote.", (
    _TASK, Param("node", "Where it ran; without it: where the task is.", pattern=NODE, high=32),
    Param("attempt", "Which attempt; without it: the last.", "whole", 1, 10**6),
    Param("stream", "What it wrote.", words=("stdout", "stderr")),
    Param("offset", "From this byte on.", "whole", 0, 2**53),
))  # fmt: skip
PANEL = Question("panels/{name}", "", "What one panel of the page shows.", (
    Param("name", "The panel.", pattern="^[a-z][a-z_-]{0,31}$", high=32, needed=True),
))  # fmt: skip
