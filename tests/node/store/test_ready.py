"""What waits is kept in memory, and is at every moment what a plain recount finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import Refused
from agent_node.guessing import ears_for, parse_domains
from agent_node.priority import Turn, base_of, key
from agent_node.store import ready
from agent_node.store.candidates import Shape, objection
from agent_node.store.ready import Ready
from agent_node.store.turns import milliseconds
from agent_node.strict import JsonObject
from agent_node.task import Task
from tests.builders import Ending, NodeAtHand, a_task, uid, xfer
from tests.node.store.test_sqlite import Sqlite

TABLES: tuple[JsonObject, ...] = (
    {"version": "1", "protocol": {"skills": ["clarity"], "prefix": ["Proto:"]},
     "research": {"skills": ["papers"], "prefix": ["Research:"], "words": ["paper"]}},
    {"version": "2", "research": {"skills": ["clarity"], "words": ["work", "paper"]}},
)  # fmt: skip
ENDINGS: tuple[Ending, ...] = ("completed", "failed", "interrupted", "requeued", "unproved")
SUBJECTS = ("work", "Proto: deploy", "read the paper", "Research: paper", "papers")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def kept_in_memory(node: NodeAtHand) -> Ready:
    found = node.store.live.ready  # type: ignore[union-attr]
    assert isinstance(found, Ready)
    return found


# --- A plain recount ------------------------------------------------------------------------------


def recount(node: NodeAtHand, query: q.Candidates, table: JsonObject) -> q.Chosen:
    """The same answer by looking at every task, one after the other."""
    waiting = node.ask(q.ListTasks(states=("READY",), limit=1000)).tasks
    domains = {name: entry for name, entry in table.items() if name != "version"}
    ears = ears_for(domains)
    kept: Counter[str] = Counter()
    free: list[tuple[tuple[int, ...], Task]] = []
    now = milliseconds(node.clock.now())
    for task in waiting:
        untagged = not task.skills and task.domain is None
        guess = ears.guess(task.subject) if untagged else None
        rule = objection(
            Shape(task.pinned, task.priority, task.domain, tuple(task.skills), tuple(task.needs),
                  task.hops, task.stolen_from is not None, guess), query, domains,
        )  # fmt: skip
        if rule is not None:
            kept[rule] += 1
            continue
        seq = task.seq or 0
        if query.order == "least_urgent":
            free.append(((-base_of(task.priority, task.priority_100), -seq), task))
        else:
            free.append((key(turn_of(node, task.uid), seq, now), task))
    free.sort(key=itemgetter(0))
    tasks = tuple(task for _, task in free)
    return q.Chosen(tasks[: query.limit], None, dict(kept), len(free), len(waiting))


def turn_of(node: NodeAtHand, name: str) -> Turn:
    """As it stands in the table, by which whoever claims goes."""
    db = node.store._db  # type: ignore[union-attr]
    return Turn(*db.execute("SELECT pace, turn FROM task WHERE uid = ?", (name,)).fetchone())


def compare(node: NodeAtHand, query: q.Candidates, table: JsonObject) -> None:
    answer, plain = node.ask(query), recount(node, query, table)
    assert (answer.kept, answer.eligible, answer.total) == (
        plain.kept, plain.eligible, plain.total,
    )  # fmt: skip
    assert [task.uid for task in answer.tasks] == [task.uid for task in plain.tasks]
    pages, after = [task.uid for task in answer.tasks], answer.next
    while after is not None:
        page = node.ask(q.Candidates(**{**query.__dict__, "after": after}))
        pages, after = pages + [task.uid for task in page.tasks], page.next
        assert len(pages) <= answer.eligible
    whole = recount(node, q.Candidates(**{**query.__dict__, "limit": 1000}), table)
    assert pages == [task.uid for task in whole.tasks]


class History:
    """One node on which anything happens that a node allows."""

    def __init__(self, node: NodeAtHand, seed: int) -> None:
        self.node, self.rng = node, random.Random(seed)
        self.count = 0
        self.moves = 0
        self.table: JsonObject = {}
        self.running: list[c.Claimed] = []

    def a_query(self) -> q.Candidates:
        rng = self.rng
        some = [None, ("protocol",), ("research",), ()]
        wanting = tuple(
            q.Wanting(name, domains=rng.choice(some), never=rng.choice([(), ("research",)]),
                      skills=rng.choice([None, ("gpu",)]), untagged_from=rng.choice([None, 8]),
                      hops_max=rng.choice([None, 0]))
            for name in ("loom", "forge")[: rng.randint(1, 2)]
        )  # fmt: skip
        return q.Candidates(
            rng.choice(["stolen", "drained", "moved"]), wanting, rng.choice([None, 5]),
            rng.choice(["least_urgent", "most_urgent"]), rng.randint(1, 7),
        )  # fmt: skip

    def a_task(self, **fields: Any) -> Task:
        self.count += 1
        rng = self.rng
        given = {
            "subject": rng.choice(SUBJECTS), "priority": rng.randint(1, 10),
            "skills": rng.choice([[], [], ["clarity"], ["papers", "clarity"]]),
            "domain": rng.choice([None, None, "research"]),
            "needs": rng.choice([[], [], ["gpu"]]), "pinned": rng.random() < 0.1,
        }  # fmt: skip
        if rng.random() < 0.2:
            given["priority_100"] = rng.randint(0, 100)
            del given["priority"]
        if rng.random() < 0.5:
            given["boost_per_minute"] = rng.choice([None, 0.01, 1.0, 100.0])
            given["heat"] = rng.choice([None, 12.5, -20.0])
            given["deadline"] = rng.choice([None, "2026-03-10T04:00:00Z", "2026-03-10T20:00:00Z"])
        return a_task(self.count, **given | fields)

    def xfer(self) -> str:
        self.moves += 1
        return xfer(self.moves)

    def some_uid(self) -> str:
        return uid(self.rng.randint(1, max(self.count, 1)))

    def step(self) -> None:
        act = self.rng.choice(
            [self.adds, self.adds, self.claims, self.ends, self.gives, self.takes, self.says,
             self.waits, self.only_tries, self.hears]
        )  # fmt: skip
        with suppress(Refused):
            act()

    def adds(self) -> None:
        self.node.add(*(self.a_task() for _ in range(self.rng.randint(1, 6))))

    def claims(self) -> None:
        got = self.node.claim()
        if isinstance(got, c.Claimed):
            self.node.start(got)
            self.running.append(got)

    def ends(self) -> None:
        if self.running:
            got = self.running.pop(self.rng.randrange(len(self.running)))
            self.node.finish(got, self.rng.choice(ENDINGS))

    def gives(self) -> None:
        task = self.node.shown(self.some_uid())
        if task is None:
            return
        x, name = self.xfer(), task.task.uid
        if self.node.escrow(x, task.task).outcome == "escrowed" and self.rng.random() < 0.8:
            settle = self.rng.choice([self.node.commit, self.node.abort])
            settle(x, name, peer="loom")

    def takes(self) -> None:
        x, task = self.xfer(), self.a_task(hops=self.rng.randint(0, 1))
        why = self.rng.choice(["stolen", "routed"])
        if self.node.hold(x, task, why=why).outcome == "held":
            self.rng.choice([self.node.activate, self.node.drop])(x, task.uid)

    def says(self) -> None:
        name = self.some_uid()
        word: c.Command[Any] = self.rng.choice([
            c.SetFields(name, {"priority": self.rng.randint(1, 10)}),
            c.SetFields(name, {"boost_per_minute": self.rng.choice([0.01, 10.0]), "heat": 3.5}),
            c.SetFields(name, {"pinned": self.rng.random() < 0.5}),
            c.SetFields(name, {"not_before": "2026-03-10T05:00:00Z"}),
            c.Cancel(name, "no longer wanted"), c.RetryNow(name, "again"),
        ])  # fmt: skip
        self.node.say(word)

    def waits(self) -> None:
        self.node.wake(after=self.rng.choice([1.0, 61.0, 3600.0]))

    def only_tries(self) -> None:
        """A dry run is rolled back: what it did must be in no count."""
        self.node.say(c.Add((self.a_task(),)), dry_run=True)
        self.count -= 1

    def hears(self) -> None:
        if self.rng.random() < 0.3:
            self.table = self.rng.choice(TABLES)
            boot = self.node.clock.boot_id()
            self.node.say(m.Hello("arc0", "arc", 1, boot, domains=self.table))


@pytest.mark.parametrize("seed", range(25))
def test_every_answer_is_that_of_a_plain_recount(node: NodeAtHand, seed: int) -> None:
    """Over random histories. Fails when an event of a changed task names no task (`uid` left out
    of `task_claimed`), with `_take_out` taken out, with the comparison of the tables taken out,
    and where a deadline that comes nearer leaves the order as it was.
    """
    history = History(node, seed)
    for _ in range(40):
        for _ in range(history.rng.randint(1, 4)):
            history.step()
        compare(node, history.a_query(), history.table)


def test_all_pages_of_a_question_are_of_one_moment(node: NodeAtHand) -> None:
    """Of different boosts the order changes with time. Seen to fail where each page is put in the
    order of its own moment: what had overtaken others meanwhile was on none.
    """
    boosts = (0.01, 100.0, 0.1, 5.0, 0.5, 1.0)
    node.has(*(a_task(n, boost_per_minute=boost, priority=n) for n, boost in enumerate(boosts, 1)))
    query = q.Candidates("routed", (q.Wanting("loom"),), order="most_urgent", limit=1)
    pages, after = list[str](), 0
    while True:
        page = node.ask(q.Candidates(**{**query.__dict__, "after": after}))
        pages += [task.uid for task in page.tasks]
        node.clock.advance(1800)
        if page.next is None:
            break
        after = page.next
    assert pages == [uid(n) for n in range(1, 7)]
    assert node.ask(query).tasks[0].uid == uid(2)
    unknown = node.ask(q.Candidates(**{**query.__dict__, "after": 7}))
    assert unknown.tasks[0].uid == uid(2), "who asks for a page of before a restart begins anew"


@pytest.mark.parametrize("seed", range(5))
def test_what_changed_is_all_that_is_read_again(node: NodeAtHand, seed: int) -> None:
    """Were one change not noticed, the counts would differ and all would be read anew."""
    history = History(node, seed + 100)
    history.hears = history.adds  # type: ignore[method-assign]
    node.ask(history.a_query())
    first = kept_in_memory(node)
    for _ in range(100):
        history.step()
        node.ask(history.a_query())
        assert kept_in_memory(node) is first


def test_so_many_changes_are_read_anew_instead(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "REREAD_FROM", 5)
    query = q.Candidates("stolen", (q.Wanting("loom"),))
    node.ask(query)
    first = kept_in_memory(node)
    node.has(*(a_task(n) for n in range(1, 6)))
    assert node.ask(query).eligible == 5
    assert kept_in_memory(node) is first
    node.has(*(a_task(n) for n in range(6, 12)))
    assert node.ask(query).eligible == 11
    assert kept_in_memory(node) is not first


def test_shapes_that_are_gone_are_let_go(node: NodeAtHand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks may all be different, for years: memory holds what waits, and not what ever waited."""
    monkeypatch.setattr(ready, "EMPTY_MAX", 10)
    query = q.Candidates("stolen", (q.Wanting("loom"),))
    for n in range(1, 41):
        node.has(a_task(n, skills=[f"s{n}"]))
        node.ask(query)
        node.finish(node.running())
    assert node.ask(query).total == 0
    assert len(kept_in_memory(node).buckets) <= 11


def test_counts_that_disagree_are_a_mistake_and_never_an_answer(node: NodeAtHand) -> None:
    """Fails when the store's own count is not asked."""
    query = q.Candidates("stolen", (q.Wanting("loom"),))
    node.has(a_task(1), a_task(2))
    node.ask(query)
    known = kept_in_memory(node)
    del known.places[uid(1)], known.buckets[0].seqs[0]
    assert (node.ask(query).eligible, node.ask(query).total) == (2, 2)


# --- What it costs --------------------------------------------------------------------------------


def steps_of(node: NodeAtHand, query: q.Candidates) -> int:
    """How much SQLite works for an answer: in its own steps, which no other program slows down."""
    count = 0

    def one_more() -> int:
        nonlocal count
        count += 1
        return 0

    db = node.store._db  # type: ignore[union-attr]
    db.set_progress_handler(one_more, 10)
    try:
        node.ask(query)
    finally:
        db.set_progress_handler(None, 10)
    return count


@pytest.mark.parametrize("changed", [0, 1])
def test_a_question_costs_the_same_however_many_wait(tmp_path: Path, changed: int) -> None:
    """With thousands of foreign tasks before the few that may go, and a claim in between."""
    costs = []
    for waiting in (200, 4000):
        node = NodeAtHand(Sqlite(), tmp_path / str(waiting))
        foreign = [a_task(n, priority=9, domain="research") for n in range(1, waiting - 9)]
        own = [a_task(n, priority=5, domain="protocol") for n in range(waiting - 9, waiting + 1)]
        node.has(*foreign, *own)
        query = q.Candidates("stolen", (q.Wanting("loom", domains=("protocol",)),), limit=9)
        assert node.ask(query).eligible == 10
        for _ in range(changed):
            node.claimed()
        costs.append(steps_of(node, query))
        assert node.ask(query).eligible == 10 - changed
        node.close()
    assert costs[1] <= costs[0] * 1.2, costs


def test_a_table_of_another_version_is_no_domain() -> None:
    assert parse_domains('{"version": {"skills": ["x"]}, "a": {}}') == {"a": {}}
