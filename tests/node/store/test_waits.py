"""Nobody waits for ever on a real store, however much is blocked and released at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_node.clock import iso
from tests.builders import NodeAtHand, a_task, an_agent, uid, xfer
from tests.node.store.contract_graphs import a_graph, meets_a_hub, submit, tell, told
from tests.node.store.test_sqlite import Sqlite

HOUR = 3600
OVERDUE_H = 49.2  # P10 at the usual boost: 95 points and 200 more, at 0.1 a minute
OLD = 1

how = st.fixed_dictionaries({}, optional={
    "priority": st.integers(1, 10), "boost_per_minute": st.sampled_from([0.01, 0.1, 1.0, 100.0]),
    "heat": st.sampled_from([-100.0, 0.0, 100.0]), "deadline_h": st.integers(-5, 60),
})  # fmt: skip


@dataclass(frozen=True)
class Comes:
    """A graph whose tasks all wait for one elsewhere, new tasks, or tasks that a node gives."""

    at_h: float
    by: str
    tasks: tuple[dict[str, Any], ...]
    released_h: float
    age_h: float = 0.0


comings = st.builds(
    Comes, at_h=st.integers(0, 80), by=st.sampled_from(["graph", "add", "move"]),
    tasks=st.lists(how, min_size=1, max_size=4).map(tuple), released_h=st.integers(0, 60),
    age_h=st.sampled_from([0.0, 30.0, 49.0, 800.0]),
)  # fmt: skip


@dataclass
class Crowd:
    """What comes to a queue beside one task of the least urgency, and when each of it came."""

    node: NodeAtHand
    came: dict[str, float] = field(default_factory=dict)
    number: int = 100
    now_h: float = 0.0

    def until(self, at_h: float) -> None:
        """Deadlines come nearer on the way, as a daemon wakes for them."""
        while self.now_h < at_h:
            step = min(2.0, at_h - self.now_h)
            self.node.clock.advance(step * HOUR)
            self.now_h += step
            self.node.wake()

    def takes_in(self, one: Comes) -> str | None:
        """The uid of the task that all of a graph wait for; it lives elsewhere."""
        fields = [self._said(said) for said in one.tasks]
        self.number += 10
        if one.by == "graph":
            tasks: dict[str, Any] = {f"m{n}": {**said, "after": [uid(self.number)]}
                                     for n, said in enumerate(fields)}  # fmt: skip
            graph = a_graph(self.number, **tasks)
            assert submit(self.node, graph).outcome == "added"
            self.came |= {member.task.uid: self.now_h for member in graph.members}
            return uid(self.number)
        for n, said in enumerate(fields):
            task = a_task(self.number + n, **said)
            if one.by == "move":
                born = self.node.clock.now() - timedelta(hours=one.age_h)
                self.node.takes(xfer(self.number + n), a_task(
                    self.number + n, **said, created_at=iso(born)))  # fmt: skip
            else:
                self.node.has(task)
            self.came[task.uid] = self.now_h
        return None

    def _said(self, said: dict[str, Any]) -> dict[str, Any]:
        given = dict(said)
        if "deadline_h" in given:
            due = self.node.clock.now() + timedelta(hours=given.pop("deadline_h"))
            given["deadline"] = iso(due)
        return given


@settings(max_examples=40, deadline=None)
@example([Comes(50, "move", ({"deadline_h": 25},), 0, age_h=800.0)], 30)
@example([Comes(40, "graph", ({"priority": 1}, {"heat": 100.0}), 60),
          Comes(52, "graph", ({"priority": 1, "heat": 100.0, "deadline_h": 3},), 0)],
         20)  # fmt: skip
@given(st.lists(comings, max_size=6), st.integers(0, 40))
def test_nobody_who_came_after_a_task_was_overdue_goes_before_it(
    crowd: list[Comes], served_h: int
) -> None:
    """Blocked tasks age, come with a great age, have deadlines, and are released at once: all that
    goes before the oldest was in the queue before that one was overdue. So its wait is bounded by
    what is there at a known moment. Fails where a deadline that comes near makes a task that
    brought its age overdue since before it came.
    """
    with TemporaryDirectory() as folder:
        node = NodeAtHand(Sqlite(), Path(folder) / "iris")
        node.set_agents(an_agent("iris", slots=1000))
        meets_a_hub(node)
        node.has(a_task(OLD, priority=10))
        here = Crowd(node)
        roots: list[tuple[float, str]] = []
        for one in sorted(crowd, key=lambda one: one.at_h):
            here.until(one.at_h)
            root = here.takes_in(one)
            roots += [(one.at_h + one.released_h, root)] if root else []
        here.until(max(here.now_h, OVERDUE_H + served_h))
        for at_h, root in roots:
            if at_h <= here.now_h:
                assert tell(node, told(root)) == ["noted"]
        before = list(iter(lambda: node.claimed().task.uid, uid(OLD)))
        assert [one for one in before if here.came[one] > OVERDUE_H] == []
        node.close()
