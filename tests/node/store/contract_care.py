"""What a store promises about who tries a failed task again, and about dead letters."""

from __future__ import annotations

from typing import Any

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.task import Task
from tests.builders import NodeAtHand, a_task, an_agent, refusal, rule_of, uid, xfer
from tests.node.store.contract import Contract, MakeNode

ADA = c.Sender(by="human:ada")
GRACE_S = 30.0


def fails(node: NodeAtHand, agent: str, kind: str = "crash", **more: Any) -> c.Finished:
    """This agent takes the task, starts it, and it fails."""
    got = node.claimed(agent)
    assert node.start(got)
    return node.finish(got, "failed", error_kind=kind, message="exit 1", **more)


def two_agents(node: NodeAtHand, *powers: str) -> None:
    node.set_agents(an_agent("ada", *powers, slots=8), an_agent("eve", *powers, slots=8))


def ready_again(node: NodeAtHand) -> None:
    """The task's wait is over, and no more than that."""
    node.clock.set_wall(str(node.task(uid()).retry_at))
    assert node.wake().readied == 1


def takes(node: NodeAtHand, agent: str) -> bool:
    return isinstance(node.claim(agent), c.Claimed)


def dies(node: NodeAtHand, task: Task | None = None) -> None:
    """One attempt, and that was it."""
    node.has(task or a_task(max_attempts=1))
    assert fails(node, node.agents[0].name, cost_usd="0.25").state == "DEAD_LETTERED"


def letters(node: NodeAtHand, **asked: Any) -> list[str]:
    return [letter.task.uid for letter in node.ask(q.DeadLetters(**asked)).letters]


def elsewhere(node: NodeAtHand, other: str = "loom") -> tuple[list[str], dict[str, int]]:
    """What the other node may be asked to try, and why all else stays."""
    chosen = node.ask(q.Candidates("retried", (q.Wanting(other),)))
    assert chosen.eligible + sum(chosen.kept.values()) == chosen.total
    assert node.facts().retried == len(chosen.tasks), "the hub asks only who says it has some"
    return [task.uid for task in chosen.tasks], chosen.kept


def care(node: NodeAtHand, number: int = 1) -> dict[str, Any]:
    shown = node.shown(uid(number))
    assert shown is not None
    return shown.care


class Cares(Contract):
    def test_a_retry_is_for_an_agent_that_has_not_failed_the_task(self, node: NodeAtHand) -> None:
        """Fails when the retry is READY for everybody at once."""
        two_agents(node)
        node.has(a_task())
        fails(node, "ada")
        ready_again(node)
        assert not takes(node, "ada")
        assert takes(node, "eve")

    def test_after_half_a_minute_whoever_has_room_may_try_again(self, node: NodeAtHand) -> None:
        two_agents(node)
        node.has(a_task())
        fails(node, "ada")
        ready_again(node)
        node.wake(after=GRACE_S - 0.001)
        assert not takes(node, "ada")
        assert node.facts().next_at is not None
        node.wake(after=0.001)
        assert node.facts().next_at is None
        assert takes(node, "ada")

    def test_the_preference_outlives_a_restart_and_ends_when_agents_change(
        self, node: NodeAtHand
    ) -> None:
        two_agents(node)
        node.has(a_task())
        fails(node, "ada")
        ready_again(node)
        node.set_agents(an_agent("ada", slots=8))  # whom it was kept for is gone
        assert takes(node, "ada")

    def test_other_tasks_are_not_kept_from_the_agent_that_failed_one(
        self, node: NodeAtHand
    ) -> None:
        two_agents(node)
        node.has(a_task())
        fails(node, "ada")
        ready_again(node)
        node.has(a_task(2))
        assert node.claimed("ada").task.uid == uid(2)

    @pytest.mark.parametrize("state", ["paused", "draining"])
    def test_nobody_waits_for_an_agent_that_is_held(
        self, node: NodeAtHand, state: Any
    ) -> None:
        two_agents(node)
        node.say(c.SetNode(state, "broken", agent="eve"))
        node.has(a_task())
        fails(node, "ada")
        ready_again(node)
        assert takes(node, "ada")

    def test_nobody_waits_for_an_agent_that_cannot_run_it(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("ada", "gpu"), an_agent("eve"))
        node.has(a_task(needs=["gpu"]))
        fails(node, "ada")
        ready_again(node)
        assert takes(node, "ada")

    def test_a_person_who_tries_again_asks_everybody(self, node: NodeAtHand) -> None:
        two_agents(node)
        node.has(a_task())
        fails(node, "ada")
        node.say(c.RetryNow(uid(), "now"))
        assert takes(node, "ada")

    def test_a_rate_limit_is_nobodys_fault(self, node: NodeAtHand) -> None:
        two_agents(node)
        node.has(a_task())
        fails(node, "ada", "rate_limit", retry_at="2026-03-10T04:00:00.000Z")
        ready_again(node)
        assert takes(node, "ada")

    def test_a_task_that_fails_under_two_agents_is_poison(self, node: NodeAtHand) -> None:
        """Fails without the rule: it is tried ten times, and takes ten slots."""
        two_agents(node)
        node.has(a_task(max_attempts=10))
        fails(node, "ada")
        ready_again(node)
        fails(node, "eve")
        ready_again(node)
        node.wake(after=GRACE_S)
        assert fails(node, "ada").state == "DEAD_LETTERED"
        assert care(node)["poison"] is True
        dead = [event for event in node.events(uid()) if event["event"] == "task_dead_lettered"]
        assert dead[0]["data"] == {"error_kind": "crash", "poison": True}
        assert "poison" in dead[0]["because"]

    def test_one_agent_alone_poisons_nothing(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=4))
        for _ in range(3):
            assert fails(node, "iris").state == "RETRYING"
            ready_again(node)
        assert fails(node, "iris").state == "DEAD_LETTERED"
        assert care(node)["poison"] is False

    def test_a_node_that_fails_every_task_poisons_none(self, node: NodeAtHand) -> None:
        """Fails when agents speak against a task while they fail other tasks as well."""
        two_agents(node)
        for number in range(1, 7):
            node.has(a_task(number, max_attempts=10, retry={"strategy": "immediate"}))
        for _ in range(4):
            for agent in ("ada", "eve") * 3:
                assert fails(node, agent).state == "RETRYING"
            node.wake(after=GRACE_S)
        assert letters(node) == []
        assert {agent.state for agent in node.facts().agents} == {"failing"}

    def test_failures_on_two_nodes_are_poison(self, make_node: MakeNode) -> None:
        """The history travels: two agents, each of its own node, and three failures."""
        iris, loom = make_node("iris"), make_node("loom")
        iris.has(a_task(max_attempts=10))
        for _ in range(2):
            fails(iris, "iris")
            ready_again(iris)
        loom.takes(xfer(1), iris.gives_away(xfer(1), iris.task(uid())), giver="iris")
        assert fails(loom, "loom").state == "DEAD_LETTERED"
        (letter,) = loom.ask(q.DeadLetters()).letters
        assert letter.care["poison"] is True
        assert [(one["node"], one["error_kind"]) for one in letter.attempts] == [
            ("iris", "crash"), ("iris", "crash"), ("loom", "crash"),
        ]  # fmt: skip

    def test_what_a_failing_node_did_to_a_task_poisons_it_nowhere(
        self, make_node: MakeNode
    ) -> None:
        """Fails when the other node cannot know how its agents fared: then the one that failed
        everything is held against the task after all, and the task as well as the node is judged.
        """
        iris, loom = make_node("iris"), make_node("loom")
        iris.has(a_task(max_attempts=10))
        fails(iris, "iris")  # the first of all: nobody can tell yet whose fault it is
        for number in range(2, 8):
            iris.has(a_task(number, max_attempts=1))
            fails(iris, "iris")
        ready_again(iris)
        fails(iris, "iris")
        ready_again(iris)
        given = iris.gives_away(xfer(1), iris.task(uid()))
        said = [one.get("blamed") for one in given.attempts if isinstance(one, dict)]
        assert said == [False, False]
        loom.takes(xfer(1), given, giver="iris")
        for _ in range(3):
            assert fails(loom, "loom").state == "RETRYING"
            ready_again(loom)
        shown = loom.shown(uid())
        assert shown is not None
        assert [one.get("blamed") for one in shown.attempts] == [False, False, None, None, None]

    def test_what_failed_nothing_but_this_task_is_blamed_for_it_after_a_retry_too(
        self, make_node: MakeNode
    ) -> None:
        """Seen to fail: the agent's whole row of failures was held against what the retry left of
        the task's, so that all four were excused, and two more elsewhere were no poison.
        """
        iris, loom = make_node("iris"), make_node("loom")
        iris.has(a_task(max_attempts=3))
        for _ in range(3):
            fails(iris, "iris")
            if iris.task(uid()).retry_at:
                ready_again(iris)
        iris.say(c.RetryNow(uid(), "fixed it", ADA))
        assert fails(iris, "iris").state == "RETRYING"
        ready_again(iris)
        given = iris.gives_away(xfer(1), iris.task(uid()))
        assert [one.get("blamed") for one in given.attempts if isinstance(one, dict)] == [None] * 4
        loom.takes(xfer(1), given, giver="iris")
        assert fails(loom, "loom").state == "RETRYING"
        ready_again(loom)
        assert fails(loom, "loom").state == "DEAD_LETTERED"
        assert care(loom)["poison"] is True

    def test_failures_that_a_person_forgave_stay_as_they_were_judged(
        self, node: NodeAtHand
    ) -> None:
        """Seen to fail: a bad hour after the retry excused what had been the task's own fault."""
        node.has(a_task(max_attempts=1))
        fails(node, "iris")
        for number in range(2, 5):
            node.has(a_task(number, max_attempts=1))
            fails(node, "iris")
        node.say(c.RetryNow(uid(), "fixed it", ADA))
        fails(node, "iris")
        shown = node.shown(uid())
        assert shown is not None
        assert [one.get("blamed") for one in shown.attempts] == [None, False]

    def test_an_agent_that_has_recovered_does_not_blame_a_task_afterwards(
        self, node: NodeAtHand
    ) -> None:
        """Fails when only how the agents do now is asked: the bad hour is the task's fault then."""
        two_agents(node)
        node.has(a_task(2, max_attempts=1))
        fails(node, "ada")
        node.has(a_task(max_attempts=10))
        fails(node, "ada")
        node.has(a_task(3))
        got = node.claimed("ada")
        assert node.start(got)
        assert node.finish(got).state == "COMPLETED"
        for _ in range(2):
            ready_again(node)
            assert fails(node, "eve").state == "RETRYING"
        assert care(node)["poison"] is False

    def test_a_person_forgives_poison_too(self, node: NodeAtHand) -> None:
        """Fails when failures from before the retry still count."""
        two_agents(node)
        node.has(a_task(max_attempts=3))
        fails(node, "ada")
        ready_again(node)
        fails(node, "eve")
        ready_again(node)
        node.wake(after=GRACE_S)
        assert fails(node, "ada").state == "DEAD_LETTERED"
        node.say(c.RetryNow(uid(), "fixed it", ADA))
        assert fails(node, "ada").state == "RETRYING"

    def test_a_dead_letter_tells_every_attempt_and_what_they_cost(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=2))
        fails(node, "iris", "timeout", cost_usd="0.10", duration_s=7.5)
        ready_again(node)
        fails(node, "iris", "flux", cost_usd="0.205", duration_s=1.5)
        (letter,) = node.ask(q.DeadLetters()).letters
        told = [
            {name: one[name] for name in ("n", "node", "agent", "error_kind", "message",
                                          "duration_s", "cost_usd", "counted")}
            for one in letter.attempts
        ]  # fmt: skip
        same = {"node": "iris", "agent": "iris", "message": "exit 1", "counted": True}
        assert told == [
            {**same, "n": 1, "error_kind": "timeout", "duration_s": 7.5, "cost_usd": "0.10"},
            {**same, "n": 2, "error_kind": "flux", "duration_s": 1.5, "cost_usd": "0.205"},
        ]
        assert letter.care == {"poison": False, "reviewed": None, "resolution": None,
                               "total_cost_usd": "0.305"}  # fmt: skip
        assert letter.task.body == ""

    def test_what_named_no_cost_has_none(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=1))
        fails(node, "iris")
        assert care(node)["total_cost_usd"] is None

    def test_who_looked_at_a_dead_letter_is_written_down(self, node: NodeAtHand) -> None:
        dies(node)
        assert node.say(c.Review(uid(), "the API is gone", ADA)).outcome == "changed"
        said = care(node)["reviewed"]
        assert (said["by"], said["note"]) == ("human:ada", "the API is gone")
        assert node.state(uid()) == "DEAD_LETTERED"
        assert node.ask(q.ListTasks()).care[uid()]["reviewed"] == said

    def test_only_the_dead_are_reviewed(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert rule_of(node.say(c.Review(uid()))) == "not_dead"
        assert refusal(node, c.Review(uid(2))) == "unknown_task"
        assert care(node)["reviewed"] is None

    @pytest.mark.parametrize(
        ("order", "what"),
        [
            (c.Resolve(uid(), "done", "by hand", ADA), "done"),
            (c.Resolve(uid(), "cancelled", "by hand", ADA), "cancelled"),
            (c.Cancel(uid(), "by hand", ADA), "cancelled"),
            (c.RetryNow(uid(), "by hand", ADA), "retried"),
        ],
    )
    def test_what_became_of_a_dead_letter_is_kept(
        self, node: NodeAtHand, order: c.Command[c.Changed], what: str
    ) -> None:
        """Fails when the letter is gone with its state: dead letters never disappear."""
        dies(node)
        assert node.say(order).outcome == "changed"
        said = care(node)["resolution"]
        assert (said["what"], said["by"], said["reason"]) == (what, "human:ada", "by hand")
        assert letters(node) == []
        assert letters(node, resolved=True) == [uid()]

    def test_a_second_death_begins_anew(self, node: NodeAtHand) -> None:
        dies(node)
        node.say(c.Review(uid(), "seen", ADA))
        node.say(c.RetryNow(uid(), "again", ADA))
        fails(node, "iris")
        assert care(node)["reviewed"] is None
        assert care(node)["resolution"] is None
        assert letters(node, resolved=True) == letters(node) == [uid()]

    def test_a_cancelled_task_that_never_died_is_no_dead_letter(self, node: NodeAtHand) -> None:
        node.has(a_task())
        node.say(c.Cancel(uid(), "no", ADA))
        assert letters(node, resolved=True) == []

    def test_dead_letters_come_in_pages(self, node: NodeAtHand) -> None:
        for number in (1, 2, 3):
            dies(node, a_task(number, max_attempts=1))
        page = node.ask(q.DeadLetters(limit=2))
        assert [letter.task.uid for letter in page.letters] == [uid(1), uid(2)]
        assert page.next is not None
        assert letters(node, after=page.next) == [uid(3)]
        assert node.ask(q.DeadLetters(limit=3)).next is None
        assert letters(node, poison=True) == []

    def test_what_is_known_of_a_dead_letter_outlives_a_restart(self, node: NodeAtHand) -> None:
        dies(node)
        node.say(c.Review(uid(), "seen", ADA))
        before = care(node)
        node.reopen()
        assert care(node) == before

    def test_what_is_forgotten_is_forgotten_whole(self, node: NodeAtHand) -> None:
        dies(node)
        node.say(c.Resolve(uid(), "done", "by hand", ADA))
        node.clock.advance(31 * 86_400)
        assert node.say(c.Forget()) > 0
        assert node.dump()["care"] == []

    def test_a_dead_letter_is_never_forgotten(self, node: NodeAtHand) -> None:
        dies(node)
        node.clock.advance(400 * 86_400)
        node.say(c.Forget())
        assert letters(node) == [uid()]

    def test_what_everybody_here_has_failed_may_be_tried_elsewhere_once(
        self, make_node: MakeNode
    ) -> None:
        """Fails when it is never marked, or still is when it comes back from there."""
        iris, loom = make_node("iris"), make_node("loom")
        iris.has(a_task(1, max_attempts=9), a_task(2, priority=9))
        assert elsewhere(iris) == ([], {"failed_by_all_here": 2})
        fails(iris, "iris")
        ready_again(iris)
        assert elsewhere(iris) == ([uid(1)], {"failed_by_all_here": 1})
        loom.takes(xfer(1), iris.gives_away(xfer(1), iris.task(uid()), why="retried"),
                   giver="iris", why="retried")  # fmt: skip
        fails(loom, "loom")
        ready_again(loom)
        assert elsewhere(loom, "iris") == ([], {"failed_by_all_here": 1})
        iris.takes(xfer(2), loom.gives_away(xfer(2), loom.task(uid()), to="iris"), giver="loom")
        assert elsewhere(iris) == ([], {"failed_by_all_here": 2})

    def test_marks_of_what_has_ended_are_let_go_of(self, node: NodeAtHand) -> None:
        """Each would cost a look at every report; one that waits keeps its mark."""
        node.has(a_task(1, max_attempts=9), a_task(2, max_attempts=9, priority=9))
        fails(node, "iris")
        fails(node, "iris")
        assert node.facts().retried == 0, "both wait for their time"
        node.clock.advance(20)
        assert node.wake().readied == 2
        assert node.facts().retried == 2
        node.say(c.Cancel(uid(1), "no", ADA))
        assert node.facts().retried == 1
        node.say(c.Forget())
        assert {one[0]: one[2] for one in node.dump()["care"]} == {uid(1): 0, uid(2): 1}

    def test_who_waits_for_another_agent_here_need_not_move(self, node: NodeAtHand) -> None:
        two_agents(node)
        node.has(a_task())
        fails(node, "ada")
        ready_again(node)
        assert elsewhere(node) == ([], {"failed_by_all_here": 1})

    def test_a_pinned_task_is_tried_here_alone(self, node: NodeAtHand) -> None:
        node.has(a_task(pinned=True))
        fails(node, "iris")
        ready_again(node)
        assert elsewhere(node) == ([], {"failed_by_all_here": 1})

    def test_what_may_be_tried_elsewhere_obeys_the_other_rules(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("iris", "gpu", slots=8))
        node.has(a_task(needs=["gpu"]))
        fails(node, "iris")
        ready_again(node)
        wanting = q.Wanting("loom", skills=())
        chosen = node.ask(q.Candidates("retried", (wanting,)))
        assert (chosen.tasks, chosen.kept) == ((), {"needs_are_met": 1})

    def test_a_retry_for_a_move_is_nobodys_here_until_its_time_is_over(
        self, node: NodeAtHand
    ) -> None:
        """Fails without the word: a free slot of the node that failed it is faster than any hub.

        A restart, other agents and a move that comes to nothing change nothing in that.
        """
        dies(node)
        word = c.RetryNow(uid(), "elsewhere", ADA, 60.0)
        tried = node.say(word, dry_run=True)
        assert (tried.not_here_until, node.state(uid())) == (
            "2026-03-10T03:46:00.000Z", "DEAD_LETTERED")  # fmt: skip
        assert node.say(word).not_here_until == tried.not_here_until
        assert not takes(node, "iris")
        node.reopen()
        two_agents(node)
        assert not takes(node, "ada")
        assert (node.facts().unmet, node.facts().unmet_more) == ((), 0), "nobody lacks anything"
        assert node.escrow(xfer(1), node.task(uid())).outcome == "escrowed"
        assert node.abort(xfer(1), uid()).outcome == "aborted"
        node.wake(after=59.999)
        assert node.say(word).not_here_until == tried.not_here_until, "the same word, no new time"
        assert not takes(node, "ada")
        assert node.facts().next_at == tried.not_here_until, "nobody has to come and free it"
        node.wake(after=0.001)
        assert node.facts().next_at is None
        assert node.say(word).not_here_until is None
        assert takes(node, "ada")

    def test_what_was_retried_for_a_move_is_anybodys_where_it_comes_to(
        self, node: NodeAtHand, make_node: MakeNode
    ) -> None:
        """Also where it comes back to while the word would still hold."""
        loom = make_node("loom")
        dies(node)
        node.say(c.RetryNow(uid(), "elsewhere", ADA, 600.0))
        loom.takes(xfer(1), node.gives_away(xfer(1), node.task(uid())), giver="iris")
        node.takes(xfer(2), loom.gives_away(xfer(2), loom.task(uid()), to="iris"), giver="loom")
        assert takes(node, "iris")

    def test_a_person_who_retries_what_is_kept_for_a_move_has_it_tried_here(
        self, node: NodeAtHand
    ) -> None:
        dies(node)
        node.say(c.RetryNow(uid(), "elsewhere", ADA, 600.0))
        said = node.say(c.RetryNow(uid(), "here then", ADA))
        assert (said.outcome, said.already, said.not_here_until) == ("changed", True, None)
        assert takes(node, "iris")

    def test_what_is_not_ready_at_once_is_kept_for_no_move(self, node: NodeAtHand) -> None:
        """It waits for its own time, as long as that is; what runs already runs on."""
        node.has(a_task(not_before="2026-03-11T00:00:00.000Z"))
        node.say(c.Cancel(uid(), "no", ADA))
        said = node.say(c.RetryNow(uid(), "elsewhere", ADA, 60.0))
        assert (node.state(uid()), said.not_here_until) == ("PENDING", None)
        got = node.running(a_task(2))
        assert node.say(c.RetryNow(got.task.uid, "x", ADA, 60.0)).outcome == "refused"
