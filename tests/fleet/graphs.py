"""A small graph for a story: what each member has to come to, and whether that is what happened."""

from __future__ import annotations

from random import Random
from typing import Any

from agent_node import commands as c
from agent_node.graph_document import read_graph
from agent_node.graph_words import ListGraphs, Parent, Spawn, Submit
from tests.builders import a_task, uid
from tests.fleet.machines import Machine
from tests.fleet.money import BORN, Costs

DAG = uid(900)
RUNS, LEFT_OUT, CANCELLED = "runs", "left out", "cancelled"
WELL, BADLY = "well", "badly"


class SmallGraph:
    """Some of a story's tasks with edges between them, some of which fail whenever they run.

    Its ends follow from its edges alone, whatever the weather: so they are reckoned beforehand, by
    a few lines that know nothing of the product's own.
    """

    def __init__(self, dice: Random, numbers: range, home: str, costs: Costs) -> None:
        self.dice, self.home, self.costs = dice, home, costs
        self.uids = [uid(number) for number in numbers]
        self.edges: dict[str, list[tuple[str, str]]] = {
            one: [(self.uids[before], dice.choice(("fail", "fail", "skip", "run")))
                  for before in dice.sample(range(place), min(place, dice.randint(0, 2)))]
            for place, one in enumerate(self.uids)
        }  # fmt: skip
        self.fails = {one for one in self.uids if dice.random() < 0.2}
        self.fate = dict.fromkeys(self.uids, "")
        for one in self.uids:
            self.fate[one] = self._fate(one)
        self.over: set[str] = set()  # members whose program has ended
        self.born: str | None = None  # a task that one of them made
        self.parent = next((one for one in self.uids if self.fate[one] == RUNS), None)

    def _fate(self, one: str) -> str:
        bad = [how for needs, how in self.edges[one] if self.came(needs) == BADLY]
        return CANCELLED if "fail" in bad else LEFT_OUT if "skip" in bad else RUNS

    def came(self, one: str) -> str:
        """How its end counts for those that wait for it."""
        badly = self.fate[one] == CANCELLED or (self.fate[one] == RUNS and one in self.fails)
        return BADLY if badly else WELL

    def submit(self, machines: dict[str, Machine]) -> None:
        """It is there from the beginning, at its home."""
        tasks = {
            f"t{place}": {
                "uid": one, "subject": "x", "max_attempts": 1 if one in self.fails else 3,
                "priority": self.dice.randint(1, 10), **self.costs.of(one),
                "after": [{"task": needs, "on_failure": how} for needs, how in self.edges[one]],
            }
            for place, one in enumerate(self.uids)
        }  # fmt: skip
        document: Any = {"id": DAG, "title": "small", "tasks": tasks,
                         **self.costs.for_graph([*self.uids, BORN])}  # fmt: skip
        said = machines[self.home].store.apply(Submit(read_graph(document, mint=lambda: DAG)))
        assert said.outcome == "added", said

    def result(self, number: str) -> c.Result:
        """How this task's program ends."""
        if number in self.fails:
            return c.Result("failed", error_kind="auth_failure")
        return self.costs.result(number)

    def starts(self, number: str, machine: Machine, n: int) -> list[str]:
        """What is wrong with starting this member now; it may make another one."""
        if number not in self.edges:
            return []
        if number == self.parent and self.born is None:
            self._make_another(number, machine, n)
        early = [needs for needs, _ in self.edges[number]
                 if self.fate[needs] == RUNS and needs not in self.over]  # fmt: skip
        wrong = [f"{number} ran before {needs} ended" for needs in early]
        return wrong + ([f"{number} ran"] if self.fate[number] != RUNS else [])

    def _make_another(self, number: str, machine: Machine, n: int) -> None:
        self.born = BORN
        child = a_task(950, parent=number, dag=DAG, **self.costs.of(self.born))
        if machine.name != self.home:
            self.costs.born_elsewhere(self.born)
        said = machine.store.apply(Spawn(child, Parent(number, n)))
        assert said.outcome == "added", said

    def ends(self, number: str) -> None:
        """This task's program has ended."""
        self.over.add(number)

    @property
    def members(self) -> list[str]:
        """All that belong to it, wherever they were born."""
        return [*self.uids, *([self.born] if self.born else [])]

    def is_over(self, machines: dict[str, Machine]) -> bool:
        """Whether its home says so."""
        return str(self._line(machines).state) != "running"

    def _line(self, machines: dict[str, Machine]) -> Any:
        (line,) = machines[self.home].store.read(ListGraphs()).graphs
        return line

    def faults(self, machines: dict[str, Machine]) -> list[str]:
        """What its home says that is not so; every other trouble is seen by who started what."""
        line = self._line(machines)
        expected = "failed" if BADLY in map(self.came, self.uids) else "completed"
        wrong = [] if line.state == expected else [f"the graph is {line.state}, not {expected}"]
        members = len(self.uids) + (self.born is not None)
        wrong += [] if line.total == members else [f"the graph has {line.total} of {members} tasks"]
        query = "SELECT count(*) FROM event WHERE event IN ('dag_completed', 'dag_failed')"
        (times,) = machines[self.home].store._db.execute(query).fetchone()
        return wrong + ([] if times == 1 else [f"the graph ended {times} times"])

    def runs(self, number: str) -> bool:
        """Whether this task has to run at all."""
        return self.fate.get(number, RUNS) == RUNS
