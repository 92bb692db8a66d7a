"""What a store promises when asked what may move: filtered first, and every rest explained."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agent_node import moves as m
from agent_node import queries as q
from agent_node.strict import JsonObject
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.contract import Contract


def chosen(node: NodeAtHand, *wanting: q.Wanting, **how: Any) -> q.Chosen:
    """What may move to any of these; loom, without any word on it, unless given."""
    why = how.pop("why", "stolen")
    answer: q.Chosen = node.ask(q.Candidates(why, wanting or (q.Wanting("loom"),), **how))
    assert sum(answer.kept.values()) + answer.eligible == answer.total
    return answer


def numbers(answer: q.Chosen) -> list[int]:
    return [int(task.uid[6:]) for task in answer.tasks]


def knows(node: NodeAtHand, domains: JsonObject) -> None:
    """The hub says hello with this table."""
    node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id(), domains=domains))


class Chooses(Contract):
    def test_an_absent_word_forbids_nothing(self, node: NodeAtHand) -> None:
        node.has(a_task(1, domain="d"), a_task(2, skills=["s"]), a_task(3, needs=["gpu"]))
        answer = chosen(node)
        assert (sorted(numbers(answer)), answer.kept, answer.total) == ([1, 2, 3], {}, 3)

    def test_only_ready_tasks_are_counted(self, node: NodeAtHand) -> None:
        node.has(*(a_task(n) for n in range(1, 6)))
        node.running()
        node.escrow(xfer(), a_task(5))
        assert chosen(node).total == 3

    def test_least_urgent_first_and_the_last_to_come_first_among_equals(
        self, node: NodeAtHand
    ) -> None:
        node.has(*(a_task(n, priority=p) for n, p in ((1, 5), (2, 9), (3, 9), (4, 1))))
        assert numbers(chosen(node)) == [3, 2, 1, 4]
        assert numbers(chosen(node, order="most_urgent")) == [4, 1, 2, 3]

    @pytest.mark.parametrize(("steal_from", "left"), [(5, [3, 2]), (6, [3]), (1, [3, 2, 1])])
    def test_urgent_work_is_not_stolen(
        self, node: NodeAtHand, steal_from: int, left: list[int]
    ) -> None:
        node.has(a_task(1, priority=4), a_task(2, priority=5), a_task(3, priority=6))
        answer = chosen(node, steal_from=steal_from)
        assert numbers(answer) == left
        assert answer.kept.get("low_enough_priority", 0) == 3 - len(left)
        assert len(numbers(chosen(node, steal_from=steal_from, why="drained"))) == 3

    def test_a_pinned_task_is_offered_only_for_a_move_by_hand(self, node: NodeAtHand) -> None:
        node.has(a_task(1, pinned=True), a_task(2))
        assert chosen(node).kept == {"pinned": 1}
        assert chosen(node, why="drained").kept == {"pinned": 1}
        assert sorted(numbers(chosen(node, why="moved"))) == [1, 2]

    def test_a_task_goes_where_its_domain_is_done(self, node: NodeAtHand) -> None:
        node.has(a_task(1, domain="protocol"), a_task(2, domain="research"), a_task(3))
        loom = q.Wanting("loom", domains=("protocol",), untagged_from=8)
        answer = chosen(node, loom)
        assert numbers(answer) == [1]
        assert answer.kept == {"may_do_this_work": 2}

    def test_the_hubs_table_says_which_skill_belongs_to_which_domain(
        self, node: NodeAtHand
    ) -> None:
        boot = node.clock.boot_id()
        node.say(m.Hello("arc0", "arc", 1, boot, domains={"protocol": {"skills": ["clarity"]}}))
        node.has(a_task(1, skills=["clarity"]), a_task(2, skills=["prose"]))
        assert numbers(chosen(node, q.Wanting("loom", domains=("protocol",)))) == [1]

    def test_a_task_that_names_no_domain_is_guessed_at_by_its_subject(
        self, node: NodeAtHand
    ) -> None:
        node.has(a_task(1, subject="Research: bees"), a_task(2, subject="bees"))
        research = q.Wanting("loom", domains=("research",))
        assert chosen(node, research).eligible == 0
        knows(node, {"research": {"prefix": ["research:"]}})
        assert numbers(chosen(node, research)) == [1]
        knows(node, {"version": "2", "research": {"words": ["bees"]}})
        assert chosen(node, research).eligible == 2
        assert chosen(node, q.Wanting("loom", never=("research",))).eligible == 0

    def test_a_guess_makes_no_task_tagged(self, node: NodeAtHand) -> None:
        knows(node, {"research": {"words": ["bees"]}})
        node.has(a_task(1, priority=8, subject="bees"), a_task(2, priority=7, subject="bees"))
        answer = chosen(node, q.Wanting("loom", domains=("protocol",), untagged_from=8))
        assert (numbers(answer), answer.kept) == ([1], {"may_do_this_work": 1})

    def test_a_task_with_skills_or_a_domain_is_not_guessed_at(self, node: NodeAtHand) -> None:
        knows(node, {"research": {"words": ["bees"]}})
        node.has(a_task(1, subject="bees", skills=["x"]), a_task(2, subject="bees", domain="y"))
        assert chosen(node, q.Wanting("loom", domains=("research",))).eligible == 0

    def test_what_was_guessed_never_leaves_the_node(self, node: NodeAtHand) -> None:
        knows(node, {"research": {"words": ["bees"]}})
        node.has(a_task(1, subject="bees"))
        assert chosen(node).tasks[0].domain is None
        assert node.gives_away(xfer(), a_task(1)).domain is None

    def test_what_a_node_never_does_stays(self, node: NodeAtHand) -> None:
        node.has(a_task(1, domain="research"), a_task(2))
        answer = chosen(node, q.Wanting("loom", never=("research",)))
        assert (numbers(answer), answer.kept) == ([2], {"never_this_domain": 1})

    @pytest.mark.parametrize(("priority", "may"), [(7, False), (8, True), (10, True)])
    def test_unurgent_untagged_work_may_go_anywhere(
        self, node: NodeAtHand, priority: int, may: bool
    ) -> None:
        node.has(a_task(1, priority=priority))
        loom = q.Wanting("loom", domains=("protocol",), untagged_from=8)
        assert (chosen(node, loom).eligible == 1) is may

    def test_tags_make_no_domain(self, node: NodeAtHand) -> None:
        node.has(a_task(1, priority=9, tags=["protocol"]))
        assert chosen(node, q.Wanting("loom", domains=(), untagged_from=8)).eligible == 1

    def test_needs_are_met_by_the_node_that_wants(self, node: NodeAtHand) -> None:
        node.has(a_task(1, needs=["gpu"]), a_task(2, needs=["gpu", "disk"]))
        answer = chosen(node, q.Wanting("loom", skills=("gpu",)))
        assert (numbers(answer), answer.kept) == ([1], {"needs_are_met": 1})

    def test_a_task_hops_only_so_often(self, node: NodeAtHand) -> None:
        node.takes(xfer(), a_task(1, hops=2))
        assert chosen(node, q.Wanting("loom", hops_max=2)).kept == {"few_enough_hops": 1}
        assert chosen(node, q.Wanting("loom", hops_max=3)).eligible == 1

    def test_one_node_that_may_take_it_is_enough(self, node: NodeAtHand) -> None:
        node.has(a_task(1, domain="a"), a_task(2, domain="b"), a_task(3, domain="c"))
        answer = chosen(node, q.Wanting("loom", domains=("a",)), q.Wanting("forge", domains=("b",)))
        assert sorted(numbers(answer)) == [1, 2]

    def test_bodies_stay_at_home(self, node: NodeAtHand) -> None:
        node.has(a_task(1, body="long"))
        assert chosen(node).tasks[0].body == ""

    @pytest.mark.parametrize("order", ["least_urgent", "most_urgent"])
    def test_pages_give_every_task_once_and_in_order(self, node: NodeAtHand, order: str) -> None:
        rng = random.Random(5)
        node.has(*(a_task(n, priority=rng.randint(1, 10)) for n in range(1, 51)))
        whole = numbers(chosen(node, order=order, limit=100))
        paged, after = [], 0
        while True:
            page = chosen(node, order=order, limit=7, after=after)
            assert (page.eligible, page.total) == (50, 50)
            paged += numbers(page)
            if page.next is None:
                break
            after = page.next
        assert paged == whole
        assert sorted(paged) == list(range(1, 51))

    def test_filters_come_before_the_limit(self, node: NodeAtHand) -> None:
        """Twenty urgent tasks must not hide the one that may go."""
        node.has(*(a_task(n, priority=1) for n in range(1, 21)), a_task(21, priority=9))
        answer = chosen(node, steal_from=5, order="most_urgent", limit=1)
        assert (numbers(answer), answer.next) == ([21], None)

    def test_tasks_that_are_all_different_are_no_trouble(self, node: NodeAtHand) -> None:
        node.has(*(a_task(n, skills=[f"s{n}"], domain=f"d{n}") for n in range(1, 6001)))
        answer = chosen(node, limit=3)
        assert (answer.eligible, len(answer.tasks)) == (6000, 3)

    def test_an_empty_queue_has_nothing_to_give(self, node: NodeAtHand) -> None:
        assert chosen(node) == q.Chosen((), None, {}, 0, 0)

    def test_what_is_offered_can_be_escrowed(self, node: NodeAtHand) -> None:
        node.has(a_task(1))
        (task,) = chosen(node).tasks
        assert (task.uid, task.epoch) == (uid(1), 1)
        assert node.escrow(xfer(), task, epoch=task.epoch).outcome == "escrowed"
