"""What a store promises about tasks that wait for other tasks, and about whole graphs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import graph_words as g
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import Refused
from agent_node.graph_document import read_graph
from agent_node.graphs import Derived, Graph
from agent_node.store.spawning import PUT_BACK_MAX
from agent_node.strict import JsonObject, JsonValue
from tests.builders import NodeAtHand, a_task, rule_of, uid, xfer
from tests.node.store.contract import Contract, MakeNode

DAG = "01DAG000000000000000000099"


def a_graph(number: int = 1, *, title: str = "release", **tasks: JsonValue) -> Graph:
    """A graph whose tasks say nothing but what they wait for; `then` and `key` are its own."""
    heads = ("then", "key", "budget_usd", "urgent_overdraft")
    own: JsonObject = {name: tasks.pop(name) for name in heads if name in tasks}
    document: JsonObject = {
        "title": title, "id": f"01DAG{number:021d}", **own,
        "tasks": {name: {"subject": name, **_said(said)} for name, said in tasks.items()},
    }  # fmt: skip
    return read_graph(document, mint=Derived(f"01DAG{number:021d}", "tasks"))


def _said(said: JsonValue) -> dict[str, JsonValue]:
    return said if isinstance(said, dict) else {"after": said}


def of(graph: Graph, name: str) -> str:
    """The uid of the task of this name."""
    return next(one.task.uid for one in graph.members if one.name == name)


def submit(node: NodeAtHand, graph: Graph, **how: Any) -> g.Submitted:
    return node.say(g.Submit(graph), **how)


def states(node: NodeAtHand, graph: Graph) -> dict[str, str]:
    shown = node.ask(g.ShowGraph(graph.id))
    assert shown is not None
    return {str(one.name): one.state for one in shown.members}


def alone(node: NodeAtHand, number: int) -> str:
    """How a task that is in no graph stands as a graph of one."""
    shown = node.ask(g.ShowGraph(uid(number)))
    assert shown is not None
    return shown.facts.state


def event_number(event: JsonObject) -> int:
    number = event["seq"]
    assert isinstance(number, int)
    return number


def facts(node: NodeAtHand, graph: Graph) -> g.GraphFacts:
    shown = node.ask(g.ShowGraph(graph.id))
    assert shown is not None
    return shown.facts


def ended(node: NodeAtHand, kind: Any = "completed", **more: Any) -> str:
    """Claim the next task and end it so; its subject. Nothing is tried twice here."""
    got = node.running()
    node.finish(got, kind, **more)
    return got.task.subject


def dies(node: NodeAtHand) -> str:
    """Claim the next task and let it die."""
    return ended(node, "failed", error_kind="auth_failure")


def meets_a_hub(node: NodeAtHand) -> None:
    node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))


def told(uid_: str, state: str = "COMPLETED", **more: Any) -> g.EndTold:
    return g.EndTold(uid_, state, "loom", "2026-03-10T03:45:00.000Z", **more)


def tell(node: NodeAtHand, *ends: g.EndTold) -> list[str]:
    return [noted.outcome for noted in node.say(g.NoteEnds(ends))]


_NOT_FOLLOWED = "dag_not_followed"


class KeepsGraphs(Contract):
    def test_a_task_that_is_in_no_graph_is_a_graph_of_one_that_ends_as_graphs_end(
        self, node: NodeAtHand
    ) -> None:
        """Fails when who was cancelled by a person has failed: a graph is `cancelled` then."""
        edges = {3: "fail", 4: "skip", 5: "run"}
        node.has(a_task(1, max_attempts=1))
        node.has(*(a_task(number, depends_on=[{"uid": uid(1), "on_failure": what}])
                   for number, what in edges.items()))  # fmt: skip
        node.has(a_task(6, not_before="2027-01-01T00:00:00Z"), a_task(7, max_attempts=1))
        assert {alone(node, number) for number in (1, 3, 4, 5, 6, 7)} == {"running"}
        node.finish(node.running(), "failed")
        node.say(c.Cancel(uid(6), "no more"))
        ends = {number: alone(node, number) for number in (1, 3, 4, 5, 6)}
        assert ends == {1: "failed", 3: "failed", 4: "completed", 5: "running", 6: "cancelled"}
        node.say(c.Cancel(uid(1), "nor this"))
        assert (alone(node, 1), alone(node, 3)) == ("cancelled", "failed")
        node.say(c.RetryNow(uid(6), "after all"))
        assert alone(node, 6) == "running"

    def test_only_what_waits_for_nothing_is_ready(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"], c=["a", "b"])
        assert submit(node, graph) == g.Submitted(graph.id, "added", 3)

        assert states(node, graph) == {"a": "READY", "b": "PENDING", "c": "PENDING"}
        blocked = node.task(of(graph, "b")).blocked_by
        assert [why["rule"] for why in blocked if isinstance(why, dict)] == ["waits_for"]
        assert (graph.roots, graph.leaves) == ((of(graph, "a"),), (of(graph, "c"),))

    def test_an_end_releases_exactly_what_waited_for_it_alone(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"], c=["a", "b"])
        submit(node, graph)
        assert ended(node) == "a"
        assert states(node, graph) == {"a": "COMPLETED", "b": "READY", "c": "PENDING"}
        assert node.task(of(graph, "b")).blocked_by == []
        assert [ended(node), ended(node)] == ["b", "c"]
        assert facts(node, graph).state == "completed"
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_the_event_of_an_end_keeps_its_number_beside_what_it_released(
        self, node: NodeAtHand
    ) -> None:
        graph = a_graph(a=[], b=["a"], then={"title": "t", "tasks": {"x": {"subject": "x"}}})
        submit(node, graph)
        ended(node)
        ended(node)
        for name in "ab":
            said = [one["event"] for one in node.events(of(graph, name))]
            assert said[-3:] == ["task_claimed", "task_started", "task_completed"], said
        numbers = [event_number(one) for one in node.ask(q.Events())]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    @pytest.mark.parametrize(
        ("on_failure", "after_it", "graph_is"),
        [
            ("fail", {"b": "CANCELLED", "c": "CANCELLED"}, "failed"),
            ("skip", {"b": "CANCELLED", "c": "READY"}, "running"),
            ("run", {"b": "READY", "c": "PENDING"}, "running"),
        ],
    )
    def test_each_edge_says_what_a_bad_end_does(
        self, node: NodeAtHand, on_failure: str, after_it: dict[str, str], graph_is: str
    ) -> None:
        graph = a_graph(a=[], b=[{"task": "a", "on_failure": on_failure}], c=["b"])
        submit(node, graph)
        dies(node)
        assert states(node, graph) == {"a": "DEAD_LETTERED", **after_it}
        assert facts(node, graph).state == graph_is

    def test_what_was_left_out_fails_nobody(self, node: NodeAtHand) -> None:
        graph = a_graph(
            a={"subject": "a", "max_attempts": 1}, b=[{"task": "a", "on_failure": "skip"}], c=["b"]
        )
        submit(node, graph)
        node.say(c.Cancel(of(graph, "a")))
        assert ended(node) == "c"
        why = node.task(of(graph, "b")).failure_reason
        assert str(why).startswith(f"skipped: {of(graph, 'a')}")
        assert facts(node, graph).state == "failed"  # a itself was cancelled

    def test_a_chain_of_thousands_ends_in_one_pass(self, node: NodeAtHand) -> None:
        names = [f"t{number}" for number in range(3000)]
        chain: Any = {name: names[place - 1 : place] if place else []
                      for place, name in enumerate(names)}  # fmt: skip
        graph = a_graph(**chain)
        submit(node, graph)
        dies(node)
        assert facts(node, graph).counts == {"CANCELLED": 2999, "DEAD_LETTERED": 1}
        assert facts(node, graph).state == "failed"

    def test_the_whole_graph_or_nothing_of_it(self, make_node: MakeNode) -> None:
        node = make_node(queue_max=1)
        before = node.dump()
        assert rule_of(submit(node, a_graph(a=[], b=[]))) == "no_room"
        assert node.dump() == before
        node.has(a_task(1, uid=of(a_graph(a=[]), "a")))
        assert rule_of(submit(node, a_graph(a=[]))) == "uid_conflict"

    def test_a_dry_run_changes_nothing(self, node: NodeAtHand) -> None:
        before = node.dump()
        assert submit(node, a_graph(a=[], b=["a"]), dry_run=True).outcome == "added"
        assert node.dump() == before

    def test_a_graph_that_is_here_exists_and_another_one_conflicts(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"], key="nightly")
        submit(node, graph)
        before = node.dump()
        assert submit(node, graph).outcome == "exists"
        again = submit(node, a_graph(2, a=[], b=["a"], key="nightly"))
        assert (again.outcome, again.dag) == ("exists", graph.id)
        assert rule_of(submit(node, a_graph(3, a=[], key="nightly"))) == "key_conflict"
        assert rule_of(submit(node, a_graph(1, a=[], c=[]))) == "graph_conflict"
        assert node.dump() == before

    def test_a_graph_that_completed_starts_the_next_one_once(self, node: NodeAtHand) -> None:
        following: JsonValue = {"title": "next", "tasks": {"x": {"subject": "x"}}}
        graph = a_graph(a=[], then=following)
        submit(node, graph)
        ended(node)
        assert facts(node, graph).state == "completed"
        (second, first) = node.ask(g.ListGraphs()).graphs
        assert (second.title, second.after, first.then) == ("next", graph.id, second.id)
        assert ended(node) == "x"
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_events_have_no_gaps_where_an_end_starts_the_next_graph(self, node: NodeAtHand) -> None:
        """Fails when tasks come in before the events ahead of them are written: a number that no
        event has counts towards the generation, which the next start may find lower.
        """
        submit(node, a_graph(a=[], then={"title": "next", "tasks": {"x": {"subject": "x"}}}))
        ended(node)
        assert ended(node) == "x"
        numbers = [event["seq"] for event in node.ask(q.Events())]
        assert numbers == [*range(1, len(numbers) + 1)]
        node.clock.advance(2)
        node.reopen()
        assert node.facts().state == "active"

    def test_a_graph_that_failed_starts_nothing(self, node: NodeAtHand) -> None:
        submit(node, a_graph(a=[], then={"title": "next", "tasks": {"x": {"subject": "x"}}}))
        dies(node)
        assert len(node.ask(g.ListGraphs()).graphs) == 1

    def test_an_end_is_recorded_although_what_was_to_follow_cannot_be_taken_in(
        self, node: NodeAtHand
    ) -> None:
        """Its key is taken. Fails where nobody looks: the row of the end is refused with it, and
        the task is under way for ever.
        """
        following: JsonValue = {"title": "next", "tasks": {"x": {"subject": "x", "key": "k"}}}
        graph = a_graph(a=[], then=following)
        submit(node, graph)
        got = node.running()
        node.has(a_task(1, key="k"))
        node.finish(got)
        assert states(node, graph) == {"a": "COMPLETED"}
        (line,) = node.ask(g.ListGraphs()).graphs
        assert line.state == "completed"
        (said,) = [one for one in node.ask(q.Events(limit=1000)) if one["event"] == _NOT_FOLLOWED]
        assert said["uid"] == graph.id
        assert said["because"] == "a task of this key is here already: k"

    def test_a_graph_that_is_over_takes_no_more_tasks(self, node: NodeAtHand) -> None:
        """Fails where only graphs that never were are refused: the new task would open it again."""
        done, wrong = a_graph(1, a=[]), a_graph(2, a=[])
        submit(node, done)
        ended(node)
        submit(node, wrong)
        node.say(g.CancelGraph(wrong.id))
        for number, graph in enumerate((done, wrong), start=1):
            (added,) = node.add(a_task(number, dag=graph.id, parent=of(graph, "a")))
            assert (added.outcome, rule_of(added)) == ("refused", "graph_ended")
            assert node.shown(uid(number)) is None
        assert [facts(node, one).state for one in (done, wrong)] == ["completed", "cancelled"]

    def test_a_start_in_the_future_waits_for_it_after_the_edges_came(
        self, node: NodeAtHand
    ) -> None:
        later = "2026-03-10T04:45:00.000Z"
        graph = a_graph(a=[], b={"after": ["a"], "not_before": later})
        submit(node, graph)
        ended(node)
        assert (node.state(of(graph, "b")), node.facts().next_at) == ("PENDING", later)
        node.wake(3600)
        assert node.state(of(graph, "b")) == "READY"

    def test_no_hour_that_a_person_sets_starts_what_still_waits(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        submit(node, graph)
        node.say(c.SetFields(of(graph, "b"), {"not_before": "2026-03-10T03:46:00.000Z"}))
        node.wake(120)
        node.say(c.SetFields(of(graph, "b"), {"not_before": None}))
        assert node.state(of(graph, "b")) == "PENDING"
        ended(node)
        assert node.state(of(graph, "b")) == "READY"


class TakesEndsBack(Contract):
    def test_retrying_what_died_brings_back_what_that_death_had_ended(
        self, node: NodeAtHand
    ) -> None:
        graph = a_graph(a=[], b=["a"], c=["b"])
        submit(node, graph)
        dies(node)
        assert node.say(c.RetryNow(of(graph, "a"))).outcome == "changed"
        assert states(node, graph) == {"a": "READY", "b": "PENDING", "c": "PENDING"}
        assert facts(node, graph).state == "running"
        assert [ended(node) for _ in range(3)] == ["a", "b", "c"]
        assert facts(node, graph).state == "completed"

    def test_what_a_person_cancelled_stays_cancelled(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"], c=["a"])
        submit(node, graph)
        node.say(c.Cancel(of(graph, "b")))
        dies(node)
        node.say(c.Cancel(of(graph, "c")))  # an edge had ended it: now a person has, too
        node.say(c.RetryNow(of(graph, "a")))
        assert states(node, graph) == {"a": "READY", "b": "CANCELLED", "c": "CANCELLED"}

    def test_another_bad_end_still_holds_what_it_ended(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=[], c=["a", "b"])
        submit(node, graph)
        assert [dies(node), dies(node)] == ["a", "b"]
        node.say(c.RetryNow(of(graph, "a")))
        assert states(node, graph)["c"] == "CANCELLED"
        node.say(c.RetryNow(of(graph, "b")))
        assert states(node, graph)["c"] == "PENDING"

    def test_a_person_may_insist_on_what_an_edge_has_ended(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"], c=["b"])
        submit(node, graph)
        dies(node)
        assert node.say(c.RetryNow(of(graph, "b"))).outcome == "changed"
        assert [ended(node), ended(node)] == ["b", "c"]
        assert facts(node, graph).state == "failed"

    def test_a_dead_task_that_was_done_after_all_releases_what_waits(
        self, node: NodeAtHand
    ) -> None:
        graph = a_graph(a=[], b=["a"])
        submit(node, graph)
        dies(node)
        node.say(c.Resolve(of(graph, "a"), "done", "by hand"))
        assert states(node, graph) == {"a": "COMPLETED", "b": "READY"}
        assert facts(node, graph).state == "running"


class CancelsGraphs(Contract):
    def test_what_waits_ends_and_what_runs_is_asked_to(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=[], c=["a"])
        submit(node, graph)
        got = node.running()
        done = node.say(g.CancelGraph(graph.id, "not needed", c.Sender("human:ada")))
        assert done is not None
        assert (done.state, done.cancelled, done.stopping) == ("cancelled", 2, (got.task.uid,))
        node.finish(got, "cancelled")
        assert set(states(node, graph).values()) == {"CANCELLED"}
        assert (facts(node, graph).state, facts(node, graph).reason) == ("cancelled", "not needed")
        again = node.say(g.CancelGraph(graph.id))
        assert again is not None
        assert (again.cancelled, again.stopping) == (0, ())

    def test_what_was_on_its_way_ends_when_it_comes_back(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        submit(node, graph)
        node.escrow(xfer(), node.task(of(graph, "a")))
        done = node.say(g.CancelGraph(graph.id))
        assert done is not None
        assert done.elsewhere == (of(graph, "a"),)
        node.abort(xfer(), of(graph, "a"))
        assert states(node, graph) == {"a": "CANCELLED", "b": "CANCELLED"}

    def test_an_unknown_graph_is_none(self, node: NodeAtHand) -> None:
        assert node.say(g.CancelGraph(DAG)) is None


class HearsOfEndsElsewhere(Contract):
    def moved(self, node: NodeAtHand, graph: Graph, name: str = "a") -> str:
        meets_a_hub(node)
        submit(node, graph)
        node.gives_away(xfer(), node.task(of(graph, name)))
        return of(graph, name)

    def test_a_member_that_moved_away_is_awaited_until_its_end_is_told(
        self, node: NodeAtHand
    ) -> None:
        graph = a_graph(a=[], b=["a"])
        gone = self.moved(node, graph)
        assert (node.ask(g.Awaits()), node.facts().awaiting) == ((gone,), 1)
        assert states(node, graph)["a"] == "MOVED"

        assert tell(node, told(gone, output={"x": 1})) == ["noted"]
        assert states(node, graph) == {"a": "COMPLETED", "b": "READY"}
        assert (node.ask(g.Awaits()), node.facts().awaiting) == ((), 0)
        before = node.dump()
        assert tell(node, told(gone, output={"x": 1})) == ["known"]
        assert node.dump() == before

    def test_it_is_awaited_still_after_a_restart(self, node: NodeAtHand) -> None:
        gone = self.moved(node, a_graph(a=[], b=["a"]))
        node.reopen()
        assert node.ask(g.Awaits()) == (gone,)

    def test_an_end_that_nobody_waits_for_is_not_kept(self, node: NodeAtHand) -> None:
        before = node.dump()
        assert tell(node, told(uid(9))) == ["unawaited"]
        assert node.dump() == before

    def test_what_lives_here_knows_best(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        submit(node, graph)
        (noted,) = node.say(g.NoteEnds((told(of(graph, "a")),)))
        assert (noted.outcome, rule_of(noted)) == ("refused", "lives_here")
        assert states(node, graph) == {"a": "READY", "b": "PENDING"}

    def test_a_bad_end_that_was_told_may_be_taken_back(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        gone = self.moved(node, graph)
        tell(node, told(gone, "DEAD_LETTERED", because="auth_failure"))
        assert facts(node, graph).state == "failed"
        assert [one.outcome for one in node.say(g.TakeBack((gone,)))] == ["taken_back"]
        assert states(node, graph) == {"a": "MOVED", "b": "PENDING"}
        assert (facts(node, graph).state, node.ask(g.Awaits())) == ("running", (gone,))
        assert [one.outcome for one in node.say(g.TakeBack((gone, uid(8))))] == [
            "known", "unawaited"]  # fmt: skip
        tell(node, told(gone))
        assert [one.outcome for one in node.say(g.TakeBack((gone,)))] == ["known"]
        assert states(node, graph)["b"] == "READY"

    def test_done_is_said_last_whatever_was_told_before(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        gone = self.moved(node, graph)
        tell(node, told(gone, "CANCELLED"))
        assert tell(node, told(gone)) == ["noted"]
        assert states(node, graph)["b"] == "READY"
        assert tell(node, told(gone, "CANCELLED")) == ["known"]

    def test_a_member_that_comes_back_alive_is_no_end_any_more(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        gone = self.moved(node, graph)
        tell(node, told(gone, "CANCELLED"))
        copy = node.task(gone)
        node.takes(xfer(2), c_task(copy, epoch=copy.epoch + 2))
        assert states(node, graph) == {"a": "READY", "b": "PENDING"}
        assert [ended(node), ended(node)] == ["a", "b"]
        assert facts(node, graph).state == "completed"

    def test_a_task_born_elsewhere_joins_and_the_graph_waits_for_it(
        self, node: NodeAtHand
    ) -> None:
        graph = a_graph(a=[])
        submit(node, graph)
        births = (g.Birth(uid(7), graph.id, of(graph, "a"), "more"), g.Birth(uid(8), DAG))
        said = node.say(g.Join(births))
        assert [one.outcome for one in said] == ["joined", "refused"]
        assert rule_of(said[1]) == "unknown_graph"
        assert [one.outcome for one in node.say(g.Join(births[:1]))] == ["known"]
        ended(node)
        assert (facts(node, graph).state, node.ask(g.Awaits())) == ("running", (uid(7),))
        tell(node, told(uid(7)))
        assert facts(node, graph).state == "completed"

    def test_a_task_born_elsewhere_joins_no_graph_that_was_cancelled(
        self, node: NodeAtHand
    ) -> None:
        """The hub cancels it instead. Fails where any graph that is here is joined."""
        graph = a_graph(a=[])
        submit(node, graph)
        node.say(g.CancelGraph(graph.id))
        (said,) = node.say(g.Join((g.Birth(uid(7), graph.id, of(graph, "a")),)))
        assert (said.outcome, rule_of(said)) == ("refused", "graph_cancelled")
        assert (facts(node, graph).state, facts(node, graph).total) == ("cancelled", 1)
        assert node.ask(g.Awaits()) == ()

    def test_a_late_birth_makes_a_graph_run_again(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[])
        submit(node, graph)
        ended(node)
        assert node.say(g.Join((g.Birth(uid(7), graph.id),)))[0].outcome == "joined"
        assert facts(node, graph).state == "running"

    def test_a_foreign_task_may_be_waited_for_where_a_hub_could_tell_of_it(
        self, make_node: MakeNode
    ) -> None:
        alone, fleet = make_node("iris"), make_node("loom")
        waits = a_task(1, depends_on=[{"uid": uid(9), "on_failure": "fail"}])
        assert rule_of(alone.add(waits)[0]) == "unknown_task"
        meets_a_hub(fleet)
        fleet.has(waits)
        assert (fleet.state(uid(1)), fleet.ask(g.Awaits())) == ("PENDING", (uid(9),))
        tell(fleet, told(uid(9), "FAILED"))
        assert fleet.state(uid(1)) == "CANCELLED"

    def test_what_waits_in_a_circle_is_refused_by_its_names(self, node: NodeAtHand) -> None:
        meets_a_hub(node)
        node.has(a_task(1, depends_on=[uid(2)]), a_task(2, depends_on=[uid(3)]))
        (answer,) = node.add(a_task(3, depends_on=[uid(1)]))
        assert rule_of(answer) == "cycle"
        assert answer.because is not None
        assert all(uid(number) in answer.because.text for number in (1, 2, 3))
        assert node.state(uid(3)) is None

    def test_a_task_after_a_dead_one_ends_as_it_is_born(self, node: NodeAtHand) -> None:
        node.has(a_task(1))
        dies(node)
        node.has(a_task(2, depends_on=[uid(1)]), a_task(3, depends_on=[uid(2)]))
        assert [node.state(uid(number)) for number in (2, 3)] == ["CANCELLED", "CANCELLED"]

    def test_the_answer_says_of_which_end_a_new_task_was_cancelled(self, node: NodeAtHand) -> None:
        """Seen to fail: it said "added" of each, and nothing else."""
        node.has(a_task(1))
        dies(node)
        skips: list[JsonValue] = [{"uid": uid(1), "on_failure": "skip"}]
        runs: list[JsonValue] = [{"uid": uid(1), "on_failure": "run"}]
        added = node.say(c.Add((
            a_task(2, depends_on=[uid(1)]), a_task(3, depends_on=[uid(2)]), a_task(4),
            a_task(5, depends_on=skips), a_task(6, depends_on=runs), a_task(1),
        )))  # fmt: skip
        assert [(one.outcome, one.because.rule if one.because else "") for one in added] == [
            ("added", "dependency_failed"), ("added", "dependency_failed"), ("added", ""),
            ("added", "skipped"), ("added", ""), ("exists", "")]  # fmt: skip
        first, second, *_ = (str(one.because and one.because.text) for one in added)
        assert first == (f"{uid(1)} ended badly, so it was cancelled at once; retry {uid(1)} and "
                         f"both run, or add it anew with --after {uid(1)}:run")
        assert second.startswith(f"{uid(2)} ended badly, so it was cancelled at once")


class GivesInputs(Contract):
    def test_an_attempt_is_given_what_others_left(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b={"context": ["a", "a.outcome"]})
        submit(node, graph)
        ended(node, output={"x": 1})
        given = node.ask(g.Inputs(of(graph, "b")))
        assert given is not None
        assert given.context[f"task:{of(graph, 'a')}:output"] == {"x": 1}
        outcome = given.context[f"task:{of(graph, 'a')}:outcome"]
        assert isinstance(outcome, dict)
        assert (outcome["state"], outcome["node"]) == ("COMPLETED", "iris")

    def test_what_came_from_elsewhere_waits_until_its_inputs_are_here(
        self, make_node: MakeNode
    ) -> None:
        home, other = make_node("iris"), make_node("loom")
        for node in (home, other):
            meets_a_hub(node)
        graph = a_graph(a=[], b={"context": ["a"]})
        submit(home, graph)
        ended(home, output=[1, 2])
        moved = home.gives_away(xfer(), home.task(of(graph, "b")))
        other.takes(xfer(), moved, giver="iris")

        assert other.state(moved.uid) == "PENDING"
        (why,) = other.task(moved.uid).blocked_by
        assert isinstance(why, dict)
        assert why["rule"] == "inputs_missing"
        assert other.ask(g.Awaits()) == (of(graph, "a"),)
        tell(other, told(of(graph, "a"), output=[1, 2]))
        assert other.state(moved.uid) == "READY"
        given = other.ask(g.Inputs(moved.uid))
        assert given is not None
        assert given.context == {f"task:{of(graph, 'a')}:output": [1, 2]}

    def test_bytes_that_no_store_keeps_yet_are_waited_for(self, node: NodeAtHand) -> None:
        digest = hashlib.sha256(b"x").hexdigest()
        node.has(a_task(1, context_refs=[f"artifact:{digest}"]))
        assert node.state(uid(1)) == "PENDING"
        assert json.dumps(node.task(uid(1)).blocked_by).count("inputs_missing") == 1


class PutsBack(Contract):
    def spawn(self, node: NodeAtHand, got: c.Claimed, child: int = 5, *, waits: bool = True,
              **fields: Any) -> g.Spawned:  # fmt: skip
        parent = g.Parent(got.task.uid, got.n, waits=waits)
        return node.say(g.Spawn(a_task(child, **fields), parent, c.Sender("agent:iris")))

    def test_a_task_that_waits_for_its_child_goes_on_after_it(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1))
        assert self.spawn(node, got).outcome == "added"
        assert node.finish(got).accepted
        assert (node.state(uid(1)), node.state(uid(5))) == ("PENDING", "READY")
        task = node.task(uid(1))
        assert (task.failures, task.interruptions, task.pinned) == (0, 0, True)

        assert ended(node, output="from the child") == "work 5"
        again = node.running()
        assert (again.task.uid, again.n) == (uid(1), 2)
        given = node.ask(g.Inputs(uid(1)))
        assert given is not None
        assert given.workspace == 1
        (outcome,) = given.context.values()
        assert isinstance(outcome, dict)
        assert outcome["output"] == "from the child"
        assert node.finish(again).state == "COMPLETED"

    def test_it_goes_on_after_a_bad_end_too(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1))
        self.spawn(node, got)
        node.finish(got)
        dies(node)
        assert node.state(uid(1)) == "READY"

    def test_a_child_that_ended_first_keeps_nobody(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1))
        self.spawn(node, got)
        ended(node)
        node.finish(got)
        assert node.state(uid(1)) == "READY"

    def test_nobody_waits_again_for_what_it_was_given(self, node: NodeAtHand) -> None:
        """Without it a program that spawns by its key whenever it begins, begins for ever."""
        got = node.running(a_task(1))
        self.spawn(node, got, key="k")
        node.finish(got)
        ended(node)
        again = node.running()
        assert self.spawn(node, again, child=6, key="k", subject="work 5").outcome == "exists"
        assert node.finish(again).state == "COMPLETED"

    def begin_anew(self, node: NodeAtHand, times: int) -> c.Claimed:
        """A program that makes a new child whenever it begins, so many times; then it runs."""
        got = node.running()
        for _ in range(times):
            self.spawn(node, got, child=100 + got.n)
            node.finish(got)
            ended(node)
            got = node.running()
        return got

    def test_a_task_is_put_back_to_wait_so_many_times_and_no_more(self, node: NodeAtHand) -> None:
        """Without the bound it would begin anew for ever: what waits costs no try."""
        node.has(a_task(1))
        got = self.begin_anew(node, PUT_BACK_MAX)
        graph, parent = a_graph(a=[]), g.Parent(uid(1), got.n, waits=True)
        for refused in (lambda: self.spawn(node, got, child=6),
                        lambda: node.say(g.Submit(graph, parent=parent))):  # fmt: skip
            with pytest.raises(Refused, match=f"{uid(1)} was put back .* 100 times.*--key") as no:
                refused()
            assert (no.value.rule, "\n" in no.value.message) == ("put_back_too_often", False)
        assert (node.state(uid(6)), node.ask(g.WaitAsked(uid(1), got.n))) == (None, False)
        assert self.spawn(node, got, child=7, waits=False).outcome == "added"
        assert node.finish(got).state == "COMPLETED"

    def test_a_person_who_retries_it_lets_it_wait_again(self, node: NodeAtHand) -> None:
        node.has(a_task(1, max_attempts=1))
        got = self.begin_anew(node, PUT_BACK_MAX)
        assert node.finish(got, "failed", error_kind="crash").state == "DEAD_LETTERED"
        node.say(c.RetryNow(uid(1), "its program has a key now"))
        again = node.running()
        assert (again.n, self.spawn(node, again, child=6).outcome) == (PUT_BACK_MAX + 2, "added")

    def test_it_waits_again_for_what_lives_again(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1))
        self.spawn(node, got, key="k")
        node.finish(got)
        dies(node)
        again = node.running()
        node.say(c.RetryNow(uid(5)))
        assert self.spawn(node, again, child=6, key="k", subject="work 5").outcome == "exists"
        node.finish(again)
        assert (node.state(uid(1)), node.state(uid(5))) == ("PENDING", "READY")
        ended(node)
        assert node.state(uid(1)) == "READY"

    def test_who_was_cut_off_after_it_had_spawned_waits_for_that(self, node: NodeAtHand) -> None:
        """Of a task and of a whole graph alike, whose key the second try gives again."""
        got = node.running(a_task(1))
        self.spawn(node, got, key="k")
        graph = a_graph(a=[], b=["a"], key="g")
        parent = g.Parent(uid(1), got.n, waits=True)
        node.say(g.Submit(graph, parent=parent))
        node.finish(got, "interrupted")
        again = node.running()
        while again.task.uid != uid(1):
            node.finish(again)
            again = node.running()
        assert node.say(g.Submit(graph, parent=g.Parent(uid(1), again.n, waits=True))
                        ).outcome == "exists"  # fmt: skip
        assert node.ask(g.WaitAsked(uid(1), again.n))

    def test_who_waits_for_a_child_that_moved_away_before_hears_of_its_end(
        self, node: NodeAtHand
    ) -> None:
        """Without it nobody asks for that end, and the parent waits for ever."""
        meets_a_hub(node)
        got = node.running(a_task(1))
        self.spawn(node, got, key="k", waits=False)
        node.gives_away(xfer(), node.task(uid(5)))
        assert self.spawn(node, got, child=6, key="k", subject="work 5").outcome == "exists"
        node.finish(got)
        assert (node.state(uid(1)), node.ask(g.Awaits())) == ("PENDING", (uid(5),))
        tell(node, told(uid(5), output=1))
        assert node.state(uid(1)) == "READY"

    def test_what_a_dead_attempt_waited_for_holds_no_retry(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1, max_attempts=1))
        self.spawn(node, got, key="k")
        assert node.finish(got, "failed", error_kind="crash").state == "DEAD_LETTERED"
        node.say(c.RetryNow(uid(1)))
        assert node.state(uid(1)) == "READY"

    def test_who_waits_again_for_what_a_cut_off_attempt_made_says_so(
        self, node: NodeAtHand
    ) -> None:
        got = node.running(a_task(1))
        self.spawn(node, got, key="k")
        node.finish(got, "failed", error_kind="crash")
        child = node.running()
        node.wake(600)
        again = node.running()
        assert self.spawn(node, again, child=6, key="k", subject="work 5").outcome == "exists"
        node.finish(again)
        (why,) = node.task(uid(1)).blocked_by
        assert isinstance(why, dict)
        assert (node.state(uid(1)), why["rule"]) == ("PENDING", "waits_for")
        node.finish(child)
        assert node.state(uid(1)) == "READY"

    def test_an_attempt_that_failed_waits_for_nothing(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1))
        self.spawn(node, got)
        node.finish(got, "failed", error_kind="crash")
        assert node.state(uid(1)) == "RETRYING"
        node.wake(600)
        assert node.state(uid(1)) == "READY"

    def test_a_child_belongs_to_the_graph_of_its_parent(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[])
        submit(node, graph)
        got = node.running()
        self.spawn(node, got, waits=False)
        node.finish(got)
        assert facts(node, graph).state == "running"
        assert ended(node) == "work 5"
        assert facts(node, graph).state == "completed"
        (born,) = [one for one in node.events(uid(5)) if one["event"] == "task_added"]
        assert born["data"] == {"dag": graph.id, "parent": of(graph, "a")}

    def test_the_child_of_a_task_alone_is_alone_and_of_a_graph_of_one_task_a_member(
        self, node: NodeAtHand
    ) -> None:
        """Fails where the two are alike, whichever of them changes: people are told what to use."""
        got = node.running(a_task(1))
        self.spawn(node, got, waits=False)
        assert [alone(node, 1), alone(node, 5)] == ["running", "running"]
        node.finish(got)
        assert [alone(node, 1), alone(node, 5)] == ["completed", "running"]
        assert ended(node) == "work 5"
        graph = a_graph(only=[], budget_usd="3")
        submit(node, graph)
        got = node.running()
        self.spawn(node, got, child=6, waits=False, max_cost_usd="4")
        node.finish(got)
        assert isinstance(node.claim(), c.NothingToClaim)
        (held,) = node.task(uid(6)).blocked_by
        assert isinstance(held, dict)
        assert (facts(node, graph).state, held["rule"]) == ("running", "over_budget")
        node.say(g.CancelGraph(graph.id, "enough"))
        assert (facts(node, graph).state, node.state(uid(6))) == ("cancelled", "CANCELLED")

    def test_who_waits_for_its_child_is_waited_for_by_none_of_its_own(
        self, node: NodeAtHand
    ) -> None:
        got = node.running(a_task(1))
        with pytest.raises(Refused, match="a cycle"):
            self.spawn(node, got, depends_on=[uid(1)])
        assert node.state(uid(5)) is None

    def test_a_graph_that_it_made_is_waited_for_as_a_whole(self, node: NodeAtHand) -> None:
        got = node.running(a_task(1))
        graph = a_graph(a=[], b=["a"])
        parent = g.Parent(uid(1), got.n, waits=True)
        assert node.say(g.Submit(graph, parent=parent)).outcome == "added"
        node.finish(got)
        assert [ended(node), node.state(uid(1)), ended(node)] == ["a", "PENDING", "b"]
        assert node.state(uid(1)) == "READY"


class ForgetsGraphs(Contract):
    def test_a_graph_that_runs_keeps_what_its_tasks_left(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b={"context": ["a"]})
        submit(node, graph)
        ended(node, output=1)
        node.clock.advance(40 * 86_400)
        node.say(c.Forget(days=30))
        assert node.state(of(graph, "a")) == "COMPLETED"
        ended(node)
        node.clock.advance(40 * 86_400)
        node.say(c.Forget(days=30))
        node.say(c.Forget(days=30))
        left = node.dump()
        tables = ("graph", "member", "edge", "input", "told", "fell", "awaited")
        assert {name: left[name] for name in tables if left[name]} == {}


def c_task(task: Any, **fields: Any) -> Any:
    """The same task as another node would offer it."""
    from agent_node.task import built_task

    return built_task({**task.__dict__, "state": "READY", **fields})


class KeepsGraphsThroughAFence(Contract):
    def test_a_restored_home_asks_again_for_what_lives_elsewhere(self, node: NodeAtHand) -> None:
        """What was noted of an edge stays; what was given away since is barred, then awaited."""
        graph = a_graph(a=[], b=[], c=["a", "b"])
        submit(node, graph)
        ended(node)
        node.say(m.Quarantine("fenced"))
        for name in "bc":
            assert node.state(of(graph, name)) in ("READY", "PARKED")
        target = m.Target(of(graph, "b"), m.REOWN_STEP + 1)
        (barred,) = node.say(m.Bar((target,)))
        assert barred.outcome == "barred", barred
        assert node.ask(g.Awaits()) == (of(graph, "b"),)
        (owned,) = node.say(m.Reown((m.Target(of(graph, "c"), m.REOWN_STEP + 1),)))
        assert owned.outcome == "reowned", owned
        node.say(m.Release("looked"))
        assert states(node, graph) == {"a": "COMPLETED", "b": "MOVED", "c": "PENDING"}
        tell(node, told(of(graph, "b")))
        assert states(node, graph)["c"] == "READY"

    def test_nothing_of_a_graph_changes_in_quarantine(self, node: NodeAtHand) -> None:
        graph = a_graph(a=[], b=["a"])
        submit(node, graph)
        node.say(m.Quarantine("fenced"))
        words: list[c.Command[Any]] = [
            g.Submit(a_graph(2, x=[])), g.CancelGraph(graph.id), g.NoteEnds((told(uid(9)),)),
            g.TakeBack((uid(9),)), g.Join((g.Birth(uid(9), graph.id),)),
        ]  # fmt: skip
        for word in words:
            with pytest.raises(Refused) as caught:
                node.say(word)
            assert caught.value.code == "quarantined"
