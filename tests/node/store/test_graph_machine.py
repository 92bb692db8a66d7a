"""Plays any order of runs, moves, deaths, words and late or doubled news over random graphs."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_node import commands as c
from agent_node import graph_words as g
from agent_node import moves as m
from agent_node.graph_document import read_graph
from agent_node.graphs import Derived, Graph
from agent_node.readiness import Came, Edge, came_of, edges_of, judge
from agent_node.strict import JsonValue
from agent_node.task import ENDED
from tests.builders import NodeAtHand, xfer
from tests.node.store.test_sqlite import Sqlite

DAG = "01DAG000000000000000000001"
WORDS = ("fail", "fail", "skip", "run")
AT = "2026-03-10T03:45:00.000Z"


def woven(seed: int, size: int) -> Graph:
    """A graph in which each task waits for some of those before it, under any word."""
    chance = random.Random(seed)
    tasks: dict[str, JsonValue] = {}
    for place in range(size):
        after: list[JsonValue] = [
            {"task": f"t{earlier}", "on_failure": chance.choice(WORDS)}
            for earlier in range(place) if chance.random() < 0.4
        ]  # fmt: skip
        tasks[f"t{place}"] = {"subject": f"t{place}", "after": after}
    document: JsonValue = {"title": "woven", "id": DAG, "tasks": tasks}
    return read_graph(document, mint=Derived(DAG, "tasks"))


class Graphs(RuleBasedStateMachine):
    """A graph at home, a second node, and a hub that is slow, forgetful and says things twice."""

    @initialize(seed=st.integers(0, 2**32), size=st.integers(1, 8))
    def begin(self, seed: int, size: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="graphs-"))
        self.home, self.other = (
            NodeAtHand(Sqlite(), self.folder / name, name) for name in ("iris", "loom")
        )
        for node in (self.home, self.other):
            node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))
        self.graph = woven(seed, size)
        self.edges = {one.task.uid: edges_of(one.task.depends_on, of=one.task.uid)
                      for one in self.graph.members}  # fmt: skip
        self.was: dict[str, set[Came]] = {uid: set() for uid in self.edges}
        self.old_news: list[g.EndTold] = []
        self.persons: set[str] = set()  # what a person cancelled
        self.moves = 0
        assert self.home.say(g.Submit(self.graph)).outcome == "added"

    def teardown(self) -> None:
        """Whatever happened, it comes to its end, and to the one that the edges define."""
        if not hasattr(self, "home"):
            return
        try:
            self.run_to_the_end()
        finally:
            for node in (self.home, self.other):
                node.close()
            shutil.rmtree(self.folder)

    # --- What may happen ------------------------------------------------------------------------

    @rule(far=st.booleans(), well=st.booleans())
    def somebody_ends_a_task(self, far: bool, well: bool) -> None:
        self.run_one(self.other if far else self.home, well=well)

    @rule()
    def a_ready_task_moves_away(self) -> None:
        self.move(self.home, self.other)

    @rule()
    def a_ready_task_comes_back(self) -> None:
        self.move(self.other, self.home)

    @rule()
    def the_hub_tells(self) -> None:
        self.tell()

    @rule(which=st.integers(0, 99))
    def the_hub_says_it_again(self, which: int) -> None:
        if self.old_news:
            news = self.old_news[which % len(self.old_news)]
            if self.is_true(news):
                self.home.say(g.NoteEnds((news, news)))

    @rule(which=st.integers(0, 99))
    def a_person_tries_again(self, which: int) -> None:
        bad = [(node, uid) for uid in sorted(self.edges) for node in (self.home, self.other)
               if self.state(node, uid) in ("DEAD_LETTERED", "CANCELLED")]  # fmt: skip
        if bad:
            node, uid = bad[which % len(bad)]
            if node.say(c.RetryNow(uid)).outcome == "changed":
                self.persons.discard(uid)
                self.insisted(uid)

    @rule(which=st.integers(0, 99))
    def a_person_cancels(self, which: int) -> None:
        waiting = [(node, uid) for uid in sorted(self.edges) for node in (self.home, self.other)
                   if self.state(node, uid) in ("PENDING", "READY")]  # fmt: skip
        if waiting:
            node, uid = waiting[which % len(waiting)]
            assert node.say(c.Cancel(uid, "no")).outcome == "changed"
            self.persons.add(uid)

    @rule()
    def home_starts_again(self) -> None:
        self.home.reopen()

    # --- How it happens -------------------------------------------------------------------------

    def run_one(self, node: NodeAtHand, *, well: bool) -> bool:
        got = node.claim()
        if not isinstance(got, c.Claimed):
            return False
        self.note_ends()
        self.may_run(got.task.uid)
        more: dict[str, Any] = {} if well else {"error_kind": "auth_failure"}
        node.finish(got, "completed" if well else "failed", **more)
        return True

    def may_run(self, uid: str) -> None:
        """Nothing runs before every one of its edges came in a way that lets it."""
        for edge in self.edges[uid]:
            came = self.was[edge.needs]
            assert came & {"well", "skipped"} or (edge.on_failure == "run" and came), (uid, edge)

    def insisted(self, uid: str) -> None:
        """From now on the bad ends before it are none to it."""
        self.note_ends()
        self.edges[uid] = [
            Edge(edge.needs, "run" if "badly" in self.was[edge.needs] else edge.on_failure)
            for edge in self.edges[uid]
        ]

    def move(self, giver: NodeAtHand, taker: NodeAtHand) -> None:
        ready = [uid for uid in sorted(self.edges) if self.state(giver, uid) == "READY"]
        if not ready:
            return
        self.moves += 1
        task = giver.gives_away(xfer(self.moves), giver.task(ready[0]), to=taker.name)
        taker.takes(xfer(self.moves), task, giver=giver.name)

    def tell(self) -> int:
        """What an honest hub passes on: what lives again, then what ended, of what is awaited."""
        told = [uid for uid in self.edges if self.state(self.other, uid) not in (None, "MOVED")]
        alive = tuple(uid for uid in told if self.state(self.other, uid) not in ENDED)
        if alive:
            self.home.say(g.TakeBack(alive))
        news = []
        for uid in self.home.ask(g.Awaits()):
            state = self.state(self.other, uid)
            if state in ENDED:
                because = self.other.task(uid).failure_reason
                news.append(g.EndTold(uid, str(state), "loom", AT, because=because))
        self.old_news += news
        results = self.home.say(g.NoteEnds(tuple(news)))
        assert all(one.outcome == "noted" for one in results), results
        return len(news)

    def is_true(self, news: g.EndTold) -> bool:
        return self.state(self.other, news.uid) == news.state

    def state(self, node: NodeAtHand, uid: str) -> str | None:
        return node.state(uid)

    def truth(self, uid: str) -> tuple[str, str | None]:
        """The state of a task where it lives, and why."""
        for node in (self.home, self.other):
            if self.state(node, uid) not in (None, "MOVED"):
                return str(self.state(node, uid)), node.task(uid).failure_reason
        raise AssertionError(f"{uid} is lost")

    @precondition(lambda self: hasattr(self, "home"))
    @invariant()
    def note_ends(self) -> None:
        for uid in self.edges:
            came = came_of(*self.truth(uid))
            if came is not None:
                self.was[uid].add(came)

    def run_to_the_end(self) -> None:
        for _ in range(200):
            going = [self.run_one(node, well=True) for node in (self.home, self.other)]
            if not any(going) and not self.tell():
                break
        (facts,) = self.home.ask(g.ListGraphs()).graphs
        assert (facts.state in ("completed", "failed"), facts.open) == (True, 0), facts
        assert self.home.ask(g.Awaits()) == ()
        finals = {uid: came_of(*self.truth(uid)) for uid in self.edges}
        assert (facts.state == "failed") == ("badly" in finals.values())
        assert facts.bad == sum(came == "badly" for came in finals.values())
        for uid, edges in self.edges.items():
            seen = [Edge(edge.needs, edge.on_failure, finals[edge.needs]) for edge in edges]
            verdict = judge(seen).kind
            state, why = self.truth(uid)
            if verdict in ("fails", "skips") and uid not in self.persons:
                assert state == "CANCELLED" or self.ran(uid), (uid, state, why, seen)
            elif verdict == "ready" and uid not in self.persons:
                assert state in ("COMPLETED", "DEAD_LETTERED"), (uid, state, why, seen)

    def ran(self, uid: str) -> bool:
        """It had gone on before what it waited for was tried again, and came to another end."""
        shown = [node.shown(uid) for node in (self.home, self.other)]
        return any(one is not None and one.attempts for one in shown)


Graphs.TestCase.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
TestGraphs = Graphs.TestCase
