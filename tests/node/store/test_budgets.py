"""Money on a real store: never promised twice, and every cent accounted for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node import commands as c
from agent_node.budget import Money
from agent_node.budget_words import Budgets, ScopeFacts, SetBudget
from agent_node.clock import iso
from agent_node.graph_words import Awaits, EndTold, NoteEnds, Parent, Spawn, TakeBack
from agent_node.standing import _no_money
from agent_node.status import _needs_you
from agent_node.store.past_attempts import ATTEMPTS_MAX
from agent_node.store.sqlite import SqliteStore
from agent_node.strict import JsonObject
from arc.custody import left_by
from tests.builders import Ending, NodeAtHand, a_task, rule_of, uid, xfer
from tests.node.store.test_sqlite import Sqlite


class Rich(Sqlite):
    """A store whose node.toml says something of money."""

    def __init__(self, money: Money) -> None:
        self.money = money

    def open(self, place: Path, **settings: Any) -> SqliteStore:
        store = super().open(place, **settings)
        store.spend_within(self.money)
        return store


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    """It may spend 10 a day, and takes a task that names no limit to cost 1."""
    node = NodeAtHand(Rich(Money("10", assume_usd="1")), tmp_path / "iris")
    yield node
    node.close()


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[NodeAtHand]:
    """A store that gives work away, with 3 a day for the whole fleet."""
    node = NodeAtHand(Rich(Money(assume_usd="1")), tmp_path / "inbox", "inbox")
    node.say(SetBudget("fleet", "3"))
    yield node
    node.close()


def scope(node: NodeAtHand, name: str = "node") -> ScopeFacts:
    return next(facts for facts in node.ask(Budgets()) if facts.scope == name)


def amounts(node: NodeAtHand, name: str = "node") -> tuple[str, str, str | None, int]:
    facts = scope(node, name)
    return facts.spent_usd, facts.reserved_usd, facts.remaining_usd, facts.waiting


def test_two_claims_never_both_pass(node: NodeAtHand) -> None:
    """Fails when a claim looks at what was spent and not at what is reserved."""
    node.has(a_task(1, max_cost_usd="6"), a_task(2, max_cost_usd="6"))
    first = node.claimed()
    assert isinstance(node.claim(), c.NothingToClaim)
    (waits,) = node.task(uid(2)).blocked_by
    assert isinstance(waits, dict)
    assert waits["rule"] == "over_budget"
    assert amounts(node) == ("0", "6", "4", 1)
    node.finish(first, cost_usd="3.5")
    assert amounts(node) == ("3.5", "0", "6.5", 0)
    assert node.claimed().task.uid == uid(2)


def test_what_waits_for_money_needs_a_person(node: NodeAtHand) -> None:
    """Fails where it only stands at each task: a node that starts nothing looks well."""
    node.has(a_task(1, max_cost_usd="11"), a_task(2, max_cost_usd="10"), a_task(3))
    first = node.claimed()
    facts = node.facts()
    assert facts.unaffordable == 1
    said = " ".join(map(str, _needs_you(facts, (), facts.agents)))
    assert facts.never_affordable == 1
    assert "1 wait for money (over_budget) and never start before their limit" in said
    assert "1 READY wait for money (over_budget): nothing of today's is left" in said
    node.finish(first, cost_usd="1")
    facts = node.facts()
    assert "nothing of today's" not in str(_needs_you(facts, (), facts.agents))


def test_a_node_that_spent_more_than_its_day_says_so(node: NodeAtHand) -> None:
    """Seen to fail: an amount below zero was none, so the daemon ended with a fault at the first
    task that waited, began no more, and no command of the node could look.
    """
    node.has(a_task(1), a_task(2))
    node.finish(node.claimed(), cost_usd="12.5")
    facts = node.facts()
    assert facts.budget_remaining_usd == "-2.5"
    said = " ".join(map(str, _needs_you(facts, (), facts.agents)))
    assert "1 READY wait for money (over_budget): nothing of today's is left" in said
    report: JsonObject = {"budget_remaining_usd": facts.budget_remaining_usd}
    no_money = _no_money(report)
    assert no_money is not None
    assert no_money.rule == "over_budget"
    assert _no_money({"budget_remaining_usd": "0.01"}) is None


def test_what_node_toml_says_now_frees_what_waited_for_it(node: NodeAtHand) -> None:
    """Seen to fail: a raised limit was read, and nobody looked who may go on by it."""
    node.has(a_task(1, max_cost_usd="11"), a_task(2, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    for limit, freed in (("12", 1), ("12", 0), (None, 1)):
        assert isinstance(node.store, SqliteStore)
        node.store.spend_within(Money(limit))
        assert node.wake().readied == freed
        assert node.wake().readied == 0
        if limit is not None and freed:
            (reason,) = node.task(uid(2)).blocked_by
            assert "the node has 12 USD" in str(reason)


def test_a_limit_that_frees_nobody_is_told_to_who_waits_for_it(node: NodeAtHand) -> None:
    """Seen to fail: the new reason was written, and rolled back with a wake that freed nothing."""
    node.has(a_task(1, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    assert isinstance(node.store, SqliteStore)
    node.store.spend_within(Money("20"))
    assert node.wake().readied == 0
    (reason,) = node.task(uid(1)).blocked_by
    assert "the node has 20 USD" in str(reason)


def test_a_node_toml_that_lets_urgent_work_overdraw_frees_what_is_urgent(node: NodeAtHand) -> None:
    """Seen to fail: urgent work that new work may go on as waited for midnight all the same."""
    node.has(a_task(1, priority=4, max_cost_usd="30"), a_task(2, priority=5, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    assert isinstance(node.store, SqliteStore)
    node.store.spend_within(Money("10", urgent_overdraft=True))
    assert node.wake().readied == 1
    assert (node.state(uid(1)), node.state(uid(2))) == ("READY", "PENDING")


def test_what_is_made_urgent_goes_on_over_budget(tmp_path: Path) -> None:
    """Seen to fail: nobody looked again, and new urgent work went by it until midnight."""
    node = NodeAtHand(Rich(Money("10", urgent_overdraft=True)), tmp_path / "iris")
    node.has(a_task(1, max_cost_usd="30"), a_task(2, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    for priority, state in ((6, "PENDING"), (5, "PENDING"), (4, "READY")):
        assert node.say(c.SetFields(uid(1), {"priority": priority})).outcome == "changed"
        assert node.state(uid(1)) == state
    assert node.state(uid(2)) == "PENDING"
    assert node.task(uid(1)).blocked_by == []
    assert node.claimed().task.uid == uid(1)
    node.close()


def test_what_is_made_urgent_waits_on_where_nothing_may_be_overdrawn(node: NodeAtHand) -> None:
    node.has(a_task(1, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    node.clock.advance(60)
    node.say(c.SetFields(uid(1), {"priority": 1}))
    (reason,) = node.task(uid(1)).blocked_by
    assert node.state(uid(1)) == "PENDING"
    assert f"reserved at {iso(node.clock.now())}" in str(reason)


def test_what_is_made_urgent_goes_on_over_its_fleets_budget(inbox: NodeAtHand) -> None:
    """The hub's own queue sets aside what it cannot give away."""
    inbox.say(SetBudget("fleet", "3", urgent_overdraft=True))
    inbox.has(a_task(1, max_cost_usd="5"))
    assert rule_of(inbox.escrow(xfer(1), inbox.task(uid(1)))) == "over_budget"
    assert inbox.state(uid(1)) == "PENDING"
    inbox.say(c.SetFields(uid(1), {"priority_100": 5}))
    assert inbox.escrow(xfer(2), inbox.task(uid(1))).outcome == "escrowed"


@pytest.mark.parametrize("together", [True, False])
def test_what_is_made_urgent_still_waits_for_its_hour(tmp_path: Path, *, together: bool) -> None:
    """Fails when money alone is looked at: it starts before the hour that a person set."""
    node = NodeAtHand(Rich(Money("10", urgent_overdraft=True)), tmp_path / "iris")
    node.has(a_task(1, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    hour = iso(node.clock.now() + timedelta(seconds=600))
    if not together:
        node.say(c.SetFields(uid(1), {"not_before": hour}))
    node.say(c.SetFields(uid(1), {"priority": 1, "not_before": hour} if together
                         else {"priority": 1}))  # fmt: skip
    assert node.state(uid(1)) == "PENDING"
    assert node.task(uid(1)).blocked_by == []
    assert node.wake().next_at == hour
    assert node.wake(after=601).readied == 1
    assert node.claimed().task.uid == uid(1)
    node.close()


@pytest.mark.parametrize("by", ["a new day", "an end", "a limit"])
def test_money_that_comes_again_is_no_word_on_the_hour(node: NodeAtHand, *, by: str) -> None:
    """Seen to fail: what its person had put off started with the first money there was.

    Nor does it keep that money from another task that may start now.
    """
    node.clock.set_wall("2026-03-10T23:59:00.000Z")
    node.has(*(a_task(one, priority=1, max_cost_usd="9") for one in (1, 2)))
    node.has(a_task(3, priority=9, max_cost_usd="9"))
    running = node.claimed()
    assert isinstance(node.claim(), c.NothingToClaim)
    hour = "2026-03-11T00:05:00.000Z"
    node.say(c.SetFields(uid(2), {"not_before": hour}))
    if by == "a new day":
        node.clock.set_wall("2026-03-11T00:00:00.000Z")
    elif by == "an end":
        node.finish(running, cost_usd="0.5")
    else:
        assert isinstance(node.store, SqliteStore)
        node.store.spend_within(Money("18"))
    node.wake()
    assert [node.state(uid(number)) for number in (2, 3)] == ["PENDING", "READY"]
    assert node.task(uid(2)).blocked_by == []
    assert node.claimed().task.uid == uid(3)
    node.clock.set_wall(hour)
    assert node.wake().readied == 1
    assert node.state(uid(2)) == "READY"


def test_who_only_looks_in_frees_nobody_and_rewrites_no_reason(node: NodeAtHand) -> None:
    """A `serve` beside no daemon reads another node.toml than the one that work waits under."""
    node.has(a_task(1, max_cost_usd="11"))
    assert isinstance(node.claim(), c.NothingToClaim)
    node.wake()
    (before,) = node.task(uid(1)).blocked_by
    for limit in ("40", "10.5"):
        assert isinstance(node.store, SqliteStore)
        node.store.spend_within(Money(limit), from_now_on=False)
        assert node.wake().readied == 0
        assert node.task(uid(1)).blocked_by == [before]


def test_why_a_task_waits_for_its_nodes_money_is_told_by_the_books_as_they_are(
    node: NodeAtHand,
) -> None:
    """Seen to fail: a sum of the moment when it was set aside, which was too much by now, or too
    little with what had come before it. Who only looks in may read another limit, and keeps to it.
    """
    node.has(a_task(1, priority=1, max_cost_usd="8"))
    first = node.running()
    node.has(a_task(2, max_cost_usd="5"), a_task(3, priority=4, max_cost_usd="6"))
    assert isinstance(node.claim(), c.NothingToClaim)
    assert [node.state(uid(number)) for number in (2, 3)] == ["PENDING", "PENDING"]
    node.finish(first, cost_usd="7")

    def enough() -> list[object]:
        return [one["enough_usd"] for number in (2, 3) for one in node.task(uid(number)).blocked_by
                if isinstance(one, dict)]  # fmt: skip

    assert enough() == ["18", "13"]
    assert isinstance(node.store, SqliteStore)
    node.store.spend_within(Money("40", assume_usd="1"), from_now_on=False)
    assert enough() == ["13", "14"]


def test_a_limit_is_looked_at_again_where_a_wake_was_rolled_back(node: NodeAtHand) -> None:
    """Seen to fail: a wake that changed nothing was taken for the one that looked."""
    node.has(a_task(1, max_cost_usd="30"))
    assert isinstance(node.claim(), c.NothingToClaim)
    assert isinstance(node.store, SqliteStore)
    node.store.spend_within(Money("40"))
    assert node.store.apply(c.Wake(), dry_run=True).readied == 1
    assert node.wake().readied == 1


def test_a_smaller_task_goes_by_one_that_cannot_be_afforded(node: NodeAtHand) -> None:
    node.has(a_task(1, priority=1, max_cost_usd="11"), a_task(2, priority=9, max_cost_usd="2"))
    assert node.claimed().task.uid == uid(2)
    assert node.state(uid(1)) == "PENDING"


def test_when_nothing_is_left_nothing_is_set_aside_and_the_claim_says_why(
    node: NodeAtHand,
) -> None:
    """READY tasks may still move to a node that has money."""
    node.has(a_task(1, max_cost_usd="10"))
    node.finish(node.claimed(), cost_usd="10")
    node.has(a_task(2))
    said = node.claim()
    assert isinstance(said, c.NothingToClaim)
    assert rule_of(said) == "over_budget"
    assert "10 USD until midnight UTC: 10 spent" in said.because.text
    assert node.state(uid(2)) == "READY"
    assert node.facts().budget_remaining_usd == "0"


def test_the_day_turns_and_work_goes_on(node: NodeAtHand) -> None:
    """Fails when `next_at` does not name midnight, and when Wake does not bring back."""
    node.has(a_task(1, max_cost_usd="9"), a_task(2, max_cost_usd="9"))
    running = node.claimed()
    node.claim()
    woken = node.wake()
    assert woken.next_at == "2026-03-11T00:00:00.000Z"
    node.clock.set_wall("2026-03-11T00:00:00.000Z")
    assert node.wake().readied == 1
    assert node.claimed().task.uid == uid(2)
    node.finish(running, cost_usd="9")  # of the day on which it was claimed
    assert amounts(node) == ("0", "9", "1", 0)


def test_urgent_work_goes_on_over_budget_and_other_work_stays_ready(tmp_path: Path) -> None:
    node = NodeAtHand(Rich(Money("1", urgent_overdraft=True)), tmp_path / "iris")
    node.has(a_task(1, max_cost_usd="1"))
    node.finish(node.claimed(), cost_usd="1")
    node.has(a_task(2, priority=5), a_task(3, priority=4, max_cost_usd="2"))
    node.clock.advance(3 * 86_400)
    node.clock.set_wall("2026-03-10T23:00:00.000Z")
    assert node.claimed().task.uid == uid(3)
    assert amounts(node)[1] == "2", "what it may cost is set aside all the same"
    assert isinstance(node.claim(), c.NothingToClaim)
    assert node.state(uid(2)) == "READY"
    node.close()


def test_a_raised_limit_brings_back_what_fits(inbox: NodeAtHand) -> None:
    inbox.has(a_task(1, max_cost_usd="5"), a_task(2, max_cost_usd="4"))
    for number in (1, 2):
        assert rule_of(inbox.escrow(xfer(number), inbox.task(uid(number)))) == "over_budget"
    inbox.say(SetBudget("fleet", "4.5"))
    assert [inbox.state(uid(number)) for number in (1, 2)] == ["PENDING", "READY"]
    inbox.say(SetBudget("fleet", None))
    assert inbox.state(uid(1)) == "READY"


def test_what_a_raised_limit_is_not_enough_for_names_the_new_one(inbox: NodeAtHand) -> None:
    """Seen to fail: it told of the limit, and of the sum that is enough, as they had been."""
    inbox.has(a_task(1, max_cost_usd="5"), a_task(2, max_cost_usd="1"))
    assert rule_of(inbox.escrow(xfer(1), inbox.task(uid(1)))) == "over_budget"
    inbox.escrow(xfer(2), inbox.task(uid(2)))
    inbox.say(SetBudget("fleet", "4.5"))
    assert inbox.state(uid(1)) == "PENDING"
    (reason,) = inbox.task(uid(1)).blocked_by
    assert isinstance(reason, dict)
    assert (reason["scope"], reason["enough_usd"], reason["comes_back"]) == ("fleet", "6", False)
    assert "4.5 USD" in str(reason["text"])
    inbox.say(SetBudget("fleet", str(reason["enough_usd"])))
    assert inbox.state(uid(1)) == "READY"


def test_money_is_reserved_with_the_escrow_and_comes_back_with_an_abort(inbox: NodeAtHand) -> None:
    """Fails when `abort` keeps the reservation, and when a repeat of the escrow makes a second."""
    task = inbox.has(a_task(1, max_cost_usd="2"), a_task(2, max_cost_usd="2"))
    for _ in range(2):
        assert inbox.escrow(xfer(1), task, epoch=1).outcome == "escrowed"
    assert amounts(inbox, "fleet") == ("0", "2", "1", 0)
    assert rule_of(inbox.escrow(xfer(2), inbox.task(uid(2)))) == "over_budget"
    inbox.abort(xfer(1), uid(1))
    assert amounts(inbox, "fleet") == ("0", "0", "3", 0)
    assert inbox.state(uid(2)) == "READY"


def test_a_lease_that_ends_gives_the_money_back(inbox: NodeAtHand) -> None:
    inbox.escrow(xfer(1), inbox.has(a_task(1, max_cost_usd="2")), lease_s=10.0)
    inbox.wake(after=11)
    assert amounts(inbox, "fleet")[:2] == ("0", "0")


def test_what_was_given_away_is_awaited_and_settled_once(inbox: NodeAtHand) -> None:
    """Fails when nobody asks for the end of what money is reserved for, or counts it twice."""
    inbox.gives_away(xfer(1), inbox.has(a_task(1, max_cost_usd="2")))
    inbox.reopen()
    assert inbox.ask(Awaits()) == (uid(1),)
    for _ in range(2):
        inbox.say(NoteEnds((EndTold(uid(1), "COMPLETED", "loom", iso(inbox.clock.now()),
                                    cost_usd="0.75"),)))  # fmt: skip
    assert amounts(inbox, "fleet") == ("0.75", "0", "2.25", 0)
    assert inbox.ask(Awaits()) == ()


def test_the_same_cost_is_counted_once_however_often_it_is_told(inbox: NodeAtHand) -> None:
    """A bad end may be taken back and told anew, with all that the task has cost by then."""
    inbox.gives_away(xfer(1), inbox.has(a_task(1, max_cost_usd="2")))
    now = iso(inbox.clock.now())
    for state, cost in (("FAILED", "0.5"), ("COMPLETED", "0.75")):
        inbox.say(NoteEnds((EndTold(uid(1), state, "loom", now, cost_usd=cost),)))
        inbox.say(TakeBack((uid(1),)))
    assert amounts(inbox, "fleet")[:2] == ("0.75", "0")


def test_a_task_that_comes_home_brings_what_it_cost(inbox: NodeAtHand) -> None:
    given = inbox.gives_away(xfer(1), inbox.has(a_task(1, max_cost_usd="2")))
    attempt = {"n": 1, "node": "loom", "agent": "loom", "cost_usd": "0.5", "outcome": "failed"}
    back = a_task(1, max_cost_usd="2", epoch=given.epoch + 1, attempts=[attempt],
                  created_at=given.created_at, origin=given.origin)  # fmt: skip
    inbox.takes(xfer(2), back, giver="loom")
    assert amounts(inbox, "fleet") == ("0.5", "0", "2.5", 0)


def test_what_an_attempt_here_cost_is_not_counted_again_when_its_end_is_told(
    inbox: NodeAtHand,
) -> None:
    """What is told is the cost of all attempts; fails when the ones before it left count twice."""
    inbox.say(SetBudget("fleet", "9"))
    task = a_task(1, max_cost_usd="2")
    inbox.finish(inbox.running(task), "failed", error_kind="crash", cost_usd="0.5")
    inbox.wake(after=700)
    inbox.gives_away(xfer(1), inbox.task(uid(1)))
    now = iso(inbox.clock.now())
    inbox.say(NoteEnds((EndTold(uid(1), "COMPLETED", "loom", now, cost_usd="0.75"),)))
    assert amounts(inbox, "fleet")[:2] == ("0.25", "0")


def test_a_task_that_cost_what_it_may_is_not_tried_again(node: NodeAtHand) -> None:
    """Fails when each attempt may cost the whole `max_cost_usd`."""
    node.has(a_task(1, max_cost_usd="2"))
    for cost, state in (("1.5", "RETRYING"), ("0.5", "DEAD_LETTERED")):
        assert node.finish(node.claimed(), "failed", cost_usd=cost).state == state
        assert node.task(uid(1)).state == state
        node.wake(after=600)


@pytest.mark.parametrize("kind", ["failed", "interrupted", "requeued", "cancelled", "completed"])
def test_every_end_gives_back_what_was_reserved(node: NodeAtHand, kind: Ending) -> None:
    node.finish(node.running(a_task(1, max_cost_usd="2")), kind, cost_usd="0.25")
    assert amounts(node)[:2] == ("0.25", "0")


def test_what_is_not_proven_dead_may_still_spend(node: NodeAtHand) -> None:
    """Fails when an unproved end is settled: its program may be running."""
    got = node.running(a_task(1, max_cost_usd="2"))
    node.finish(got, "unproved")
    assert amounts(node)[:2] == ("0", "2")
    node.say(c.Resolve(uid(1), "failed"))
    assert amounts(node)[:2] == ("0", "0")


@pytest.mark.parametrize(("cost", "left"), [("0.5", "1.5"), ("2", "0"), ("3", "0")])
def test_what_is_not_proven_dead_is_charged_what_it_had_said_by_then(
    node: NodeAtHand, cost: str, left: str
) -> None:
    """Seen to fail: it was charged nothing, then or when a person had decided, and no event told
    its cost to the hub that counts money.
    """
    node.finish(node.running(a_task(1, max_cost_usd="2")), "unproved", cost_usd=cost)
    assert amounts(node)[:2] == (cost, left)
    (data,) = [one["data"] for one in node.events(uid(1)) if one["event"] == "task_parked"]
    assert isinstance(data, dict)
    assert data["cost_usd"] == cost
    node.say(c.Resolve(uid(1), "failed"))
    assert amounts(node)[:2] == (cost, "0")


def test_what_is_not_proven_dead_is_charged_without_a_limit_too(tmp_path: Path) -> None:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    node.finish(node.running(a_task(1)), "unproved", cost_usd="0.3")
    assert amounts(node)[:2] == ("0.3", "0")
    node.close()


def test_costs_are_counted_without_a_limit_too(tmp_path: Path) -> None:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    node.finish(node.running(a_task(1)), cost_usd="0.3")
    assert amounts(node) == ("0.3", "0", None, 0)
    assert node.facts().budget_remaining_usd is None
    node.close()


def test_a_dry_run_sets_no_limit(inbox: NodeAtHand) -> None:
    inbox.say(SetBudget("fleet", "1"), dry_run=True)
    assert scope(inbox, "fleet").limit_usd == "3"


def test_a_graph_that_is_not_at_home_here_has_no_budget_here(inbox: NodeAtHand) -> None:
    assert rule_of(inbox.say(SetBudget("dag:nowhere", "1"))) == "unknown_graph"


class History:
    """Whatever happens to money on one store that runs work and gives it away."""

    def __init__(self, node: NodeAtHand, seed: int) -> None:
        self.node, self.rng = node, random.Random(seed)
        self.count = self.moves = 0
        self.running: list[c.Claimed] = []
        self.away: list[str] = []
        self.limits: dict[str, Decimal] = {}
        self.max: dict[str, str] = {}  # what may be spent elsewhere

    def add(self) -> None:
        self.count += 1
        cost = self.rng.choice(["0", "0.5", "1.1", "4", "30"])
        self.node.has(a_task(self.count, max_cost_usd=cost, priority=self.rng.randint(1, 10)))

    def claim(self) -> None:
        got = self.node.claim()
        if isinstance(got, c.Claimed):
            self.running.append(got)

    def finish(self) -> None:
        if self.running:
            got = self.running.pop(self.rng.randrange(len(self.running)))
            kinds: tuple[Ending, ...] = ("completed", "failed", "interrupted", "requeued")
            ask = Decimal(got.task.max_cost_usd or 0)
            part = self.rng.choice([None, Decimal(0), ask / 4])
            self.node.finish(got, self.rng.choice(kinds),
                             cost_usd=None if part is None else format(part, "f"))  # fmt: skip

    def give(self) -> None:
        ready = [number for number in range(1, self.count + 1)
                 if self.node.state(uid(number)) == "READY"]  # fmt: skip
        if not ready:
            return
        number, self.moves = self.rng.choice(ready), self.moves + 1
        x = xfer(self.moves)
        if self.node.escrow(x, self.node.task(uid(number))).outcome == "escrowed":
            if self.rng.random() < 0.5:
                self.node.abort(x, uid(number))
            else:
                self.node.commit(x, uid(number))
                held = [row for row in self.node.dump()["reservation"] if row[0] == uid(number)]
                self.max[uid(number)] = str(held[0][3])
                self.away.append(uid(number))

    def hear(self) -> None:
        if self.away:
            task = self.away.pop(self.rng.randrange(len(self.away)))
            told = EndTold(task, "COMPLETED", "loom", iso(self.node.clock.now()),
                           cost_usd=self.max[task])  # fmt: skip
            for _ in range(self.rng.randint(1, 2)):
                self.node.say(NoteEnds((told,)))

    def pass_time(self) -> None:
        self.node.clock.advance(self.rng.choice([60, 3600, 40_000]))
        self.node.wake()

    def restart(self) -> None:
        self.node.reopen()

    def check(self) -> None:
        """Reserved is what the reservations say, and more than the limit is never promised."""
        tables = self.node.dump()
        held: dict[tuple[object, object], Decimal] = {}
        for _uid, name, day, amount, *_ in tables["reservation"]:
            held[name, day] = held.get((name, day), Decimal(0)) + Decimal(str(amount))
        for name, day, spent, reserved in tables["spending"]:
            assert Decimal(str(reserved)) == held.get((name, day), Decimal(0)), (name, day)
            if name in self.limits:
                assert Decimal(str(spent)) + Decimal(str(reserved)) <= self.limits[str(name)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_over_budget_never_and_every_cent_is_accounted_for(seed: int) -> None:
    """Claims, ends, moves, aborts, repeats, days and restarts, in any order.

    Fails when a claim or an escrow does not reserve, or when one of the ends does not settle.
    """
    with TemporaryDirectory() as folder:
        node = NodeAtHand(Rich(Money("5")), Path(folder) / "iris")
        node.say(SetBudget("fleet", "4"))
        history = History(node, seed)
        history.limits = {"node": Decimal(5), "fleet": Decimal(4)}
        steps = [history.add, history.add, history.claim, history.claim, history.finish,
                 history.give, history.hear, history.pass_time, history.restart]  # fmt: skip
        for _ in range(50):
            history.rng.choice(steps)()
            history.check()
        while history.running:
            history.finish()
        while history.away:
            history.hear()
        history.check()
        assert node.dump()["reservation"] == []
        assert all(Decimal(str(reserved)) == 0 for *_, reserved in node.dump()["spending"])
        node.close()


def test_days_are_counted_apart(node: NodeAtHand) -> None:
    node.finish(node.running(a_task(1, max_cost_usd="8")), cost_usd="8")
    node.clock.wall += timedelta(days=1)
    assert amounts(node)[:3] == ("0", "0", "10")


def test_a_task_that_has_cost_all_that_it_may_waits_for_nothing_it_made(
    node: NodeAtHand,
) -> None:
    """Fails where only failures are counted: it would go on from child to child for ever."""
    node.has(a_task(1, max_cost_usd="2"))
    for child in (2, 3):
        got = node.claimed()
        node.start(got)
        node.say(Spawn(a_task(child), Parent(uid(1), got.n, waits=True), c.Sender("agent:iris")))
        ended = node.finish(got, cost_usd="1")
        if child == 2:
            assert ended.state == "READY", "half of it is left"
            other = node.claimed()
            assert other.task.uid == uid(2)
            node.finish(other, cost_usd="0")
    assert ended.state == "DEAD_LETTERED"
    (last,) = [one for one in node.task(uid(1)).attempts[-1:] if isinstance(one, dict)]
    assert (last["error_kind"], last["cost_usd"]) == ("budget_exceeded", "1")
    assert amounts(node)[:2] == ("2", "0")
    assert node.state(uid(3)) == "READY", "what it made is work like any other"


def test_what_is_set_aside_before_a_claim_takes_no_event_of_it(node: NodeAtHand) -> None:
    """Seen to fail where the claim's event was numbered first: nobody was told of the claim."""
    node.has(a_task(1, max_cost_usd="50", priority=1), a_task(2, max_cost_usd="0.5"))
    got = node.claimed()
    assert got.task.uid == uid(2)
    node.start(got)
    told = [event["event"] for event in node.events(uid(2))]
    assert told == ["task_added", "task_claimed", "task_started"]


def test_what_was_put_back_at_no_cost_makes_no_cost_and_no_try_forgotten(
    node: NodeAtHand, tmp_path: Path
) -> None:
    """Seen to fail: a hundred attempts that could not start for want of their program were all
    that its next node heard of a task, which could cost there once more what it may cost.
    """
    loom = NodeAtHand(Rich(Money("10", assume_usd="1")), tmp_path / "loom", "loom")
    node.has(a_task(1, max_cost_usd="2"))
    node.finish(node.claimed(), "failed", cost_usd="1.5", error_kind="crash")
    node.wake(after=600)
    for _ in range(ATTEMPTS_MAX + 20):
        node.finish(node.claimed(), "requeued", message="could not start")
    given = node.gives_away(xfer(1), node.task(uid(1)))
    told = [one for one in given.attempts if isinstance(one, dict)]
    assert [one["n"] for one in told] == [1, *range(23, ATTEMPTS_MAX + 22)]
    assert left_by(given)["cost_usd"] == "1.5"
    loom.takes(xfer(1), given, giver="iris")
    loom.claimed()
    assert amounts(loom)[1] == "0.5"
    loom.close()


@pytest.mark.parametrize(("kind", "event"), [
    ("interrupted", "task_interrupted"), ("requeued", "task_interrupted"),
    ("cancelled", "task_cancelled")])  # fmt: skip
def test_what_an_attempt_cost_that_was_cut_short_is_spent_and_told(
    node: NodeAtHand, kind: Ending, event: str
) -> None:
    """Seen to fail: its event told no cost, so the hub that counts money never heard of it."""
    node.finish(node.running(a_task(1, max_cost_usd="3")), kind, cost_usd="0.5")
    assert amounts(node)[:2] == ("0.5", "0")
    (data,) = [one["data"] for one in node.events(uid(1)) if one["event"] == event]
    assert isinstance(data, dict)
    assert data["cost_usd"] == "0.5"


@pytest.mark.parametrize("kind", ["interrupted", "requeued"])
def test_a_task_that_was_cut_short_and_has_cost_all_that_it_may_is_not_tried_again(
    node: NodeAtHand, kind: Ending
) -> None:
    """Seen to fail: it began again and again on no money, as often as it was cut short."""
    node.finish(node.running(a_task(1, max_cost_usd="1")), kind, cost_usd="1")
    assert node.state(uid(1)) == "DEAD_LETTERED"
    last = node.task(uid(1)).attempts[-1]
    assert isinstance(last, dict)
    assert (last["error_kind"], last["cost_usd"]) == ("budget_exceeded", "1")


def test_what_is_parked_when_it_is_cut_short_is_parked_whatever_it_cost(node: NodeAtHand) -> None:
    """Seen to fail: it had failed for good, and ended what waits for it, where a person decides."""
    node.has(a_task(1, max_cost_usd="1", on_interrupt="park"))
    node.finish(node.running(), "interrupted", cost_usd="1")
    assert node.state(uid(1)) == "PARKED"
    assert amounts(node)[:2] == ("1", "0")
