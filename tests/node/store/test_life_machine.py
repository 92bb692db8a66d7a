"""Plays graphs, automatic retries, budgets and moves together, in any order, on two real stores."""

from __future__ import annotations

import random
import tempfile
from decimal import Decimal
from functools import reduce
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from agent_node import commands as c
from agent_node import graph_words as g
from agent_node import moves as m
from agent_node.budget import NOTHING, Money, plus
from agent_node.budget_words import SetBudget
from agent_node.graph_document import read_graph
from agent_node.graphs import Derived, Graph
from agent_node.readiness import Came, edges_of
from agent_node.strict import JsonValue
from agent_node.task import ENDED
from tests.builders import DAY, NodeAtHand, rule_of, xfer
from tests.node.store.test_budgets import Rich
from tests.node.store.test_graph_machine import AT, DAG, WORDS, Graphs

LIMITS = {"node": Decimal("1.5"), f"dag:{DAG}": Decimal(4)}
MOST, KINDS = ("0.4", "0.8", "1.2"), ("crash", "timeout", "invalid_output")
NOWHERE = ("MOVED", "HELD", None)


def costly(seed: int, size: int) -> Graph:
    """As the graphs without money, and each task says what it may cost."""
    chance = random.Random(seed)
    tasks: dict[str, JsonValue] = {}
    for place in range(size):
        after: list[JsonValue] = [
            {"task": f"t{earlier}", "on_failure": chance.choice(WORDS)}
            for earlier in range(place) if chance.random() < 0.15
        ]  # fmt: skip
        most = chance.choice(MOST)
        tasks[f"t{place}"] = {"subject": f"t{place}", "after": after, "max_cost_usd": most}
    document: JsonValue = {"title": "costly", "id": DAG, "tasks": tasks, "budget_usd": "4"}
    return read_graph(document, mint=Derived(DAG, "tasks"))


class Lives(Graphs):
    """The graph's home and another node may each spend a little a day, and the graph a little
    in all; an attempt costs a quarter of what its task may.
    """

    @initialize(seed=st.integers(0, 2**32), size=st.integers(2, 8))
    def begin(self, seed: int, size: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lives-"))
        self.home, self.other = (
            NodeAtHand(Rich(Money("1.5")), self.folder / name, name) for name in ("iris", "loom")
        )
        for node in (self.home, self.other):
            node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))
        self.graph = costly(seed, size)
        self.edges = {one.task.uid: edges_of(one.task.depends_on, of=one.task.uid)
                      for one in self.graph.members}  # fmt: skip
        self.was: dict[str, set[Came]] = {uid: set() for uid in self.edges}
        self.old_news: list[g.EndTold] = []
        self.persons: set[str] = set()
        self.moves = 0
        self.lenient = seed % 3 == 0  # whether a person tries anything again
        self.running: list[tuple[NodeAtHand, c.Claimed]] = []
        self.paid: dict[str, Decimal] = dict.fromkeys(self.edges, NOTHING)
        self.forgiven = False  # a person let a task cost more than was reserved for it
        assert self.home.say(g.Submit(self.graph)).outcome == "added"

    # --- What may happen besides ----------------------------------------------------------------

    @rule(far=st.booleans())
    def somebody_begins_a_task(self, far: bool) -> None:
        node = self.other if far else self.home
        got = node.claim()
        if isinstance(got, c.Claimed):
            self.note_ends()
            self.may_run(got.task.uid)
            self.running.append((node, got))

    @rule(which=st.integers(0, 99), kind=st.sampled_from((None, None, *KINDS)))
    def one_of_them_ends(self, which: int, kind: str | None) -> None:
        if self.running:
            node, got = self.running.pop(which % len(self.running))
            self.ends(node, got, kind)

    @rule(far=st.booleans(), kind=st.sampled_from(KINDS))
    def a_task_fails_and_is_due_again(self, far: bool, kind: str) -> None:
        node = self.other if far else self.home
        got = node.claim()
        if isinstance(got, c.Claimed):
            self.note_ends()
            self.may_run(got.task.uid)
            self.ends(node, got, kind)
            node.wake(after=700)

    @rule(hours=st.sampled_from((0.1, 1.0, 21.0)))
    def time_passes(self, hours: float) -> None:
        for node in (self.home, self.other):
            node.wake(after=hours * 3600)

    @rule(which=st.integers(0, 99))
    def a_person_tries_again(self, which: int) -> None:
        if not self.lenient:
            return
        bad = [uid for uid in self.edges if self.truth(uid)[0] in ("DEAD_LETTERED", "CANCELLED")]
        self.forgiven = self.forgiven or bool(bad)
        super().a_person_tries_again(which)

    # --- How it happens -------------------------------------------------------------------------

    def run_one(self, node: NodeAtHand, *, well: bool) -> bool:
        got = node.claim()
        if not isinstance(got, c.Claimed):
            return False
        self.note_ends()
        self.may_run(got.task.uid)
        self.ends(node, got, None if well else "auth_failure")
        return True

    def ends(self, node: NodeAtHand, got: c.Claimed, kind: str | None) -> None:
        cost = Decimal(got.task.max_cost_usd or 0) / 4
        said = node.finish(got, "failed" if kind else "completed", error_kind=kind,
                           cost_usd=str(cost))  # fmt: skip
        assert said.because is None, said
        self.paid[got.task.uid] = plus(self.paid[got.task.uid], cost)

    def move(self, giver: NodeAtHand, taker: NodeAtHand) -> None:
        ready = [uid for uid in sorted(self.edges) if self.state(giver, uid) == "READY"]
        if not ready:
            return
        self.moves += 1
        x = xfer(self.moves)
        said = giver.escrow(x, giver.task(ready[0]), to=taker.name)
        if said.outcome == "refused":
            assert rule_of(said) == "over_budget"
            return
        assert giver.commit(x, ready[0], peer=taker.name).outcome == "committed"
        assert said.task is not None
        taker.takes(x, said.task, giver=giver.name)

    def tell(self) -> int:
        told = [uid for uid in self.edges if self.state(self.other, uid) not in NOWHERE]
        alive = tuple(uid for uid in told if self.state(self.other, uid) not in ENDED)
        if alive:
            self.home.say(g.TakeBack(alive))
        news = tuple(
            g.EndTold(uid, str(state), "loom", AT, because=self.other.task(uid).failure_reason,
                      cost_usd=str(self.paid[uid]))
            for uid in self.home.ask(g.Awaits())
            if (state := self.state(self.other, uid)) in ENDED
        )  # fmt: skip
        self.old_news += news
        results = self.home.say(g.NoteEnds(news))
        assert all(one.outcome == "noted" for one in results), results
        return len(news)

    @precondition(lambda self: hasattr(self, "home"))
    @invariant()
    def nobody_is_over_budget(self) -> None:
        for node in (self.home, self.other):
            for name, day, spent, reserved in node.dump()["spending"]:
                sum_ = plus(Decimal(str(spent)), Decimal(str(reserved)))
                over = sum_ > LIMITS.get(str(name), sum_)
                assert not over or self.forgiven, (node.name, name, day, spent, reserved)

    def run_to_the_end(self) -> None:
        """Days pass until nobody waits; only the graph's own money may have run out for good."""
        while self.running:
            self.one_of_them_ends(0, None)
        self.home.say(SetBudget(f"dag:{DAG}", "1000"))
        for _ in range(20):
            while self.run_one(self.home, well=True) or self.run_one(self.other, well=True):
                pass
            self.tell()
            (facts,) = self.home.ask(g.ListGraphs()).graphs
            if facts.state != "running":
                break
            for node in (self.home, self.other):
                node.wake(after=DAY)
        super().run_to_the_end()
        for node in (self.home, self.other):
            tables = node.dump()
            assert tables["reservation"] == [], node.name
            assert {Decimal(str(row[3])) for row in tables["spending"]} <= {NOTHING}
        spent = [Decimal(str(row[2])) for row in self.home.dump()["spending"]
                 if row[0] == f"dag:{DAG}"]  # fmt: skip
        real = reduce(plus, self.paid.values(), NOTHING)
        assert self.forgiven or reduce(plus, spent, NOTHING) == real, (spent, real)


Lives.TestCase.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
TestLives = Lives.TestCase
