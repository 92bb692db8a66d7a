"""`arc why`: every step adds up, and every way it names does move the task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node.task import State
from arc.decisions.answers import CHANGE, ESCALATE, WAIT, History, Reach, WhyTask
from arc.decisions.changes import Situation, apply
from arc.decisions.domains import Role
from arc.decisions.explain import Steal, StealPlan
from arc.decisions.limits import StealLimits
from arc.decisions.memory import Memory
from arc.decisions.view import NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen
from arc.decisions.why import why_node, why_task
from arc.decisions.why_states import LIVES
from arc.operations.queues import _ordered

from ..fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_agent_report,
    an_idle_node,
    an_unseen_node,
    queues,
    some_queued,
)
from .fleets import fleets, whole

SUMMARY = a_queued(50, priority=6, skills=("arc-research",), subject="Summarise the thread")


def the_scene(*nodes: NodeSeen | NodeUnseen, task: QueuedTask = SUMMARY) -> Situation:
    """Nine wait on iris, one of them the summary; its queue is whole."""
    others = some_queued(8, priority=3, skills=("arc-research",))
    view = a_view(a_busy_node("iris", 9), *nodes)
    return Situation(view, queues(a_queue("iris", *others, task)), DOMAINS, StealLimits())


def ways_of(why: WhyTask) -> list[tuple[str, ...]]:
    return [tuple(change.says for change in way.changes) for way in why.ways]


def test_each_step_says_who_drops_out_and_the_numbers_add_up() -> None:
    why = why_task(SUMMARY, "iris", the_scene(
        a_node("forge", state="draining", reason="disk swap", idle=False),
        an_idle_node("loom", role=Role(owns=("integrations",))),
        a_node("spark", running_count=1), an_unseen_node("arc"),
    ))  # fmt: skip

    assert all(check.met for check in why.checks)
    assert (why.receivers, why.verdict) == (4, WAIT)
    assert why.result == (
        "0 of 4 nodes could take it now; may_do_this_work: loom: it belongs to research; "
        "the node does integrations"
    )
    left = [(step.rule, step.alone, step.left) for step in why.steps if step.dropped]
    assert left == [
        ("node_answers", 3, 3), ("takes_new_work", 2, 2), ("nothing_to_do", 1, 1),
        ("may_do_this_work", 0, 0),
    ]  # fmt: skip
    assert [(one.node, one.because) for step in why.steps for one in step.dropped] == [
        ("arc", "no answer within 10 s"), ("forge", "draining: disk swap"),
        ("spark", "1 running, 0 waiting"),
        ("loom", "loom: it belongs to research; the node does integrations"),
    ]  # fmt: skip


def test_the_shortest_way_is_told_with_what_to_type() -> None:
    why = why_task(SUMMARY, "iris", the_scene(an_idle_node("loom", role=Role(also=("ci",)))))

    assert ways_of(why) == [("loom also did research",)]
    assert why.ways[0].changes[0].command == "arc nodes edit loom --also ci,research"
    assert why.ways[0].to == "loom"


def test_a_task_that_the_next_cycle_moves_says_so() -> None:
    why = why_task(SUMMARY, "iris", the_scene(an_idle_node("loom")))

    assert (why.verdict, why.result) == (WAIT, "the next cycle moves it to loom")
    assert why.ways == ()


def test_a_task_that_is_too_urgent_moves_with_another_limit() -> None:
    urgent = a_queued(50, priority=4, skills=("arc-research",))
    why = why_task(urgent, "iris", the_scene(an_idle_node("loom"), task=urgent))

    assert [(check.rule, check.said) for check in why.checks if not check.met] == [
        ("low_enough_priority", "P4; we steal P5 and less urgent")]  # fmt: skip
    assert ways_of(why) == [("rebalance.steal_from were P4",)]


def test_a_task_behind_the_caps_is_told_how_much_room_it_needs() -> None:
    tasks = some_queued(12)
    situation = Situation(a_view(a_busy_node("iris", 12), an_idle_node("loom")),
                          queues(a_queue("iris", *tasks)), DOMAINS, StealLimits())  # fmt: skip
    why = why_task(tasks[4], "iris", situation)

    assert why.kept is not None
    assert why.kept.rule == "receiver_has_room"
    assert ways_of(why) == [("rebalance.per_node were 5",)]
    assert why.verdict == WAIT


def test_where_no_way_leads_on_and_its_node_does_not_run_it_somebody_has_to_look() -> None:
    stopped = a_busy_node("iris", 9, dispatcher="stopped")
    lost = a_queued(50, skills=("unheard-of",))
    situation = Situation(a_view(stopped, an_idle_node("loom")),
                          queues(a_queue("iris", *some_queued(8), lost)), DOMAINS)  # fmt: skip
    why = why_task(lost, "iris", situation)

    assert (why.verdict, why.ways, why.reach.ahead) == (ESCALATE, (), None)
    assert why.kept is not None
    assert "no domain has any of its skills (unheard-of)" in why.kept.because


def test_where_a_setting_is_the_only_way_on_it_is_change() -> None:
    stopped = a_busy_node("iris", 9, dispatcher="stopped")
    situation = Situation(a_view(stopped, an_idle_node("loom", role=Role())),
                          queues(a_queue("iris", *some_queued(8), SUMMARY)), DOMAINS)  # fmt: skip

    assert why_task(SUMMARY, "iris", situation).verdict == CHANGE


def test_a_queue_that_could_not_be_read_is_the_fourth_answer() -> None:
    unread = QueueUnseen("iris", "unknown_request", "unknown op 'pending'", "ARC-REFUSED")
    situation = Situation(a_view(a_busy_node("iris"), an_idle_node("loom")), {"iris": unread})
    past = History(cycles=56, could_not_look=56)

    why = why_task(SUMMARY, "iris", situation, history=past)

    assert (why.verdict, why.could_not_look) == (ESCALATE, unread)
    assert why.result == "could not look: iris: unknown op 'pending'"
    assert why.history.could_not_look == 56


def test_a_node_that_does_not_answer_is_the_fourth_answer_too() -> None:
    situation = Situation(a_view(an_unseen_node("iris"), an_idle_node("loom")), {})

    why = why_task(SUMMARY, "iris", situation)

    assert why.could_not_look is not None
    assert why.could_not_look.code == "ARC-SSH-UNREACHABLE"


def test_a_task_on_a_suspended_node_says_how_it_is_asked_again() -> None:
    word = an_unseen_node("iris", rule="suspended", because="suspended by ada: heat", code="")

    why = why_task(SUMMARY, "iris", Situation(a_view(word, an_idle_node("loom")), {}))

    assert why.verdict == ESCALATE
    assert why.result == ("could not look: iris: suspended by ada: heat; nothing is moved from "
                          "there. arc nodes resume iris")  # fmt: skip


@pytest.mark.parametrize("state", [state for state in State if state != State.READY])
def test_every_state_but_ready_has_its_own_answer(state: State) -> None:
    task = a_queued(50, state=state.value)
    why = why_task(task, "iris", the_scene(an_idle_node("loom")))

    assert why.life == LIVES[state]
    assert why.result
    assert all(" TASK" not in command for command in why.by_hand)


@pytest.mark.parametrize("state", ["CLAIMED", "RUNNING", "VALIDATING"])
def test_what_runs_where_no_daemon_does_needs_one(state: str) -> None:
    """Fails when it says only that it runs: nobody takes in how it ends."""
    task, stopped = a_queued(50, state=state), a_busy_node("iris", 9, dispatcher="stopped")
    why = why_task(task, "iris", Situation(a_view(stopped, an_idle_node("loom")), {}))

    assert why.verdict == ESCALATE
    assert why.own_node is not None
    assert "iris's daemon does not run" in why.result
    assert "On iris: agent-node" in why.result
    seen = Situation(a_view(a_busy_node("iris", 9), an_idle_node("loom")), {})
    assert why_task(task, "iris", seen).result == LIVES[state].says


def test_why_a_node_gets_nothing_counts_all_that_waits_elsewhere() -> None:
    situation = the_scene(an_idle_node("loom", role=Role(owns=("ci",))))
    why = why_node("loom", situation)

    assert (why.part, why.gets) == ("idle", ())
    assert [(rule, count) for rule, count, _ in why.elsewhere] == [
        ("low_enough_priority", 8), ("may_do_this_work", 1)]  # fmt: skip
    assert all(check.met for check in why.receives)
    assert [check.rule for check in why.gives if not check.met] == ["busy_node_is_busy"]


def test_a_node_that_a_count_keeps_from_waiting_work_is_told_by_which_rule() -> None:
    """Fails when it says that nobody looked, and that the next look would move it."""
    view = a_view(a_busy_node("iris", 2), an_idle_node("loom"), an_idle_node("forge"))
    soon = Situation(view, queues(a_queue("iris", a_queued(1), a_queued(2))), DOMAINS,
                     StealLimits(policy="swift"), Memory(typical_s={"": 1.0}))  # fmt: skip
    for name in ("loom", "forge"):
        found = why_node(name, soon).stranded
        assert found is not None
        assert (found.cause, found.rule, found.beside) == ("rule", "gain_worth_it", "iris")

    late = why_node("loom", replace(soon, memory=Memory()))
    assert late.stranded is not None
    assert late.gets[0].task.uid == late.stranded.uid
    assert late.stranded.cause == "nobody_looked"


def test_why_a_node_that_was_not_seen_gets_nothing_is_that_it_was_not_seen() -> None:
    why = why_node("forge", the_scene(an_unseen_node("forge")))

    assert why.part == "out"
    assert why.receives[0].said == "no answer within 10 s"


def test_a_way_that_asks_for_more_than_another_to_the_same_node_is_not_told() -> None:
    """Guard: with `shortest` taken out, the idle node's state is told beside the limit alone."""
    urgent = a_queued(50, priority=4, skills=("arc-research",))
    why = why_task(urgent, "iris", the_scene(
        an_idle_node("loom"), a_node("spark", state="paused", role=Role(also=("research",))),
        a_node("forge", running_count=1, role=Role(also=("research",))), task=urgent,
    ))  # fmt: skip

    assert [(way.to, [change.key for change in way.changes]) for way in why.ways] == [
        ("loom", ["steal_from"]), ("forge", ["steal_from", "idle"])]  # fmt: skip


def test_a_node_with_a_home_of_its_own_is_started_there() -> None:
    """A bare `agent-node start` would start another node, in the usual place."""
    assert Role().how_to_start("a") == "on a: agent-node start"
    assert Role(home="/b c").how_to_start("a") == "on a: AGENT_NODE_HOME='/b c' agent-node start"


def on_forge(task: QueuedTask, *others: NodeSeen, **fields: Any) -> WhyTask:
    """One task waits on forge, which is as the fields say; the others stand beside it."""
    view = a_view(a_busy_node("forge", 1, **{"running_count": 0, **fields}), *others)
    return why_task(task, "forge", Situation(view, queues(a_queue("forge", task)), DOMAINS))


@pytest.mark.parametrize(("fields", "says", "verdict"), [
    ({"dispatcher": "stopped"},
     "forge's daemon does not run; nothing starts there. On forge: agent-node start", ESCALATE),
    ({"state": "paused", "reason": "disk swap"},
     "forge is paused: disk swap; nothing starts there. arc nodes resume forge", CHANGE),
    ({"state": "draining"},
     "forge is draining; nothing starts there. arc nodes resume forge", CHANGE),
    ({"state": "quarantined", "reason": "restored"},
     "forge is quarantined: restored; nothing starts there. On forge: agent-node release",
     ESCALATE),
    ({"age_s": 1200.0},
     ("forge: its report is 20m old; we use one for 10m; whether anything starts there is not "
      "known. arc doctor --node forge"), ESCALATE),
    ({"agents": ()},
     "no agent on forge takes work; nothing starts there. arc nodes show forge", CHANGE),
])  # fmt: skip
def test_a_node_that_starts_nothing_is_the_first_answer(
    fields: dict[str, Any], says: str, verdict: str
) -> None:
    why = on_forge(a_queued(1, skills=("deploy",)), **fields)

    assert (why.result, why.verdict, why.reach.ahead) == (says, verdict, None)
    assert why.own_node is not None
    assert why.receivers_say.startswith("0 of 0 nodes could take it now; ")


@pytest.mark.parametrize(("fields", "needs", "settings"), [
    ({"state": "paused"}, (), False),  # a word to one node is all that it takes
    ({"state": "paused"}, ("gpu",), True),  # it would not start there either way
    ({"dispatcher": "stopped"}, (), True),
    ({"state": "paused", "dispatcher": "stopped"}, (), True),
])  # fmt: skip
def test_where_a_resume_lets_it_run_no_limit_of_the_whole_fleet_is_suggested(
    fields: dict[str, Any], needs: tuple[str, ...], settings: bool
) -> None:
    """Seen to fail: beside `arc nodes resume forge` stood four other limits for the whole fleet."""
    able = an_idle_node("loom", agents=(an_agent_report("loom", skills=("gpu",)),))
    why = on_forge(a_queued(1, priority=1, needs=needs), able, **fields)

    assert why.own_node is not None
    assert any(change.kind == "limit" for way in why.ways for change in way.changes) is settings
    assert why.by_hand  # one task, by a person's word


def test_a_task_that_its_own_node_never_starts_says_what_it_lacks() -> None:
    why = on_forge(a_queued(1, skills=("deploy",), needs=("gpu",)))

    assert (why.verdict, why.reach.ahead) == (CHANGE, None)
    assert why.result == ("no node of the fleet has gpu; it waits until one has. On forge, or on "
                          "another: node.toml: [[agent]] skills: add gpu")  # fmt: skip


def test_a_task_whose_only_agent_is_without_its_program_waits_for_that() -> None:
    """Seen to fail: `add gpu` to the skills of a node that has them."""
    gpus = an_agent_report("gpus", skills=("gpu",), paused=True, missing="there is no program x")
    why = on_forge(a_queued(1, skills=("deploy",), needs=("gpu",)),
                   agents=(an_agent_report("forge"), gpus))  # fmt: skip

    assert (why.verdict, why.reach.ahead) == (ESCALATE, None)
    assert why.result == (
        "forge, agent gpus: there is no program x; no other agent there can run it, and it waits "
        "until that is installed. arc doctor --node forge")  # fmt: skip


def test_what_another_node_has_is_said_to_lack_on_its_own_alone() -> None:
    able = a_node("loom", agents=(an_agent_report("loom", skills=("gpu",)),))
    why = on_forge(a_queued(1, skills=("deploy",), needs=("gpu",)), able)

    assert why.result == ("forge: nothing there has gpu; it is never started there. On forge: "
                          "node.toml: [[agent]] skills: add gpu")  # fmt: skip


def test_a_task_that_a_drain_moves_is_said_to_be_drained() -> None:
    task = a_queued(1, skills=("deploy",))
    view = a_view(a_busy_node("forge", 1, state="draining"), an_idle_node("loom"))
    drained = StealPlan("arc0", (Steal("", task, "forge", "loom", "loom may", why="drained"),))

    why = why_task(task, "forge", Situation(view, queues(a_queue("forge", task)), DOMAINS),
                   drains=drained)  # fmt: skip

    assert (why.verdict, why.result) == (WAIT, "the next cycle drains it to loom")
    assert why.own_node is not None


PINNED_STAY = "3 pinned tasks stay, for no drain moves what is pinned"


@pytest.mark.parametrize(("fields", "says"), [
    ({"state": "draining", "pending_count": 4, "movable_count": 4},
     "draining: it is given nothing, and its drain moves what waits there to others"),
    ({"state": "draining", "pending_count": 4, "movable_count": 1},
     "draining: it is given nothing, and its drain moves what waits there to others, and "
     + PINNED_STAY),
    ({"state": "drained", "pending_count": 1, "movable_count": 0},
     "drained: it is given nothing, and 1 pinned task stays, for no drain moves what is pinned"),
    ({"state": "drained"}, "drained: it is given nothing, and nothing waits there"),
    ({"state": "paused", "pending_count": 4, "movable_count": 1}, ""),
    ({}, ""),
])  # fmt: skip
def test_a_node_that_drains_is_not_said_to_keep_its_work(
    fields: dict[str, Any], says: str
) -> None:
    """Seen to fail: `out: it neither gives nor takes`, right behind a drain that moved four."""
    view = a_view(a_node("forge", **fields), an_idle_node("loom"))

    assert why_node("forge", Situation(view, {}, DOMAINS)).says == says


def test_what_a_drain_moves_is_what_its_node_loses_and_another_gets() -> None:
    task = a_queued(1, skills=("deploy",))
    view = a_view(a_busy_node("forge", 1, state="draining"), an_idle_node("loom"))
    here = Situation(view, queues(a_queue("forge", task)), DOMAINS)
    drains = (Steal("", task, "forge", "loom", "loom may", why="drained"),)

    assert why_node("forge", here, drains=drains).loses == drains
    assert why_node("loom", here, drains=drains).gets == drains
    assert why_node("loom", here, drains=drains).loses == ()


def test_a_run_that_is_skipped_says_which_half_was_missing() -> None:
    quiet = on_forge(a_queued(1), an_idle_node("loom"))
    crowded = why_task(SUMMARY, "iris", the_scene(a_node("loom", running_count=1)))

    assert quiet.result == (
        "1 of 1 nodes could take it, but the next cycle does not give it away; the rebalance is "
        "skipped: no node has enough waiting to be taken from; busy_node_is_busy: forge: 1 "
        "waiting; we steal above 5"
    )
    assert crowded.result == (
        "0 of 1 nodes could take it now; the rebalance is skipped: no node is idle"
    )


def test_a_node_that_is_not_busy_beside_one_that_is_says_so_of_itself() -> None:
    few = a_queued(60)
    view = a_view(a_busy_node("iris", 9), a_busy_node("forge", 1), an_idle_node("loom"))
    why = why_task(few, "forge", Situation(
        view, queues(a_queue("iris", *some_queued(9)), a_queue("forge", few)), DOMAINS))

    assert why.result.endswith("; busy_node_is_busy: forge: 1 waiting; we steal above 5")


@pytest.mark.parametrize("fields", [
    {"dispatcher": "stopped"}, {"state": "paused"}, {"state": "quarantined"}, {"agents": ()},
    {"role": Role(never=("research",))}, {"age_s": 1200.0},
])  # fmt: skip
def test_no_move_by_hand_is_proposed_that_would_be_refused_or_never_run(
    fields: dict[str, Any]
) -> None:
    """Guard: chosen by free slots alone, spark is proposed here."""
    spark = a_node("spark", slots=9, **{"role": Role(), **fields})

    assert why_task(SUMMARY, "iris", the_scene(spark)).by_hand == ()


def test_by_hand_the_node_that_came_furthest_is_proposed_and_needs_count() -> None:
    gpu = a_queued(50, skills=("arc-research",), needs=("gpu",), pinned=True)
    able = (an_agent_report("loom", skills=("gpu",)),)
    scene = the_scene(
        a_node("forge", slots=9), a_node("spark", slots=5, capabilities=("gpu",), running_count=1),
        an_idle_node("loom", agents=able), task=gpu,
    )  # fmt: skip

    assert why_task(gpu, "iris", scene).by_hand == (
        f"arc tasks move {gpu.uid} --to loom --yes --reason '…'",)  # fmt: skip


def test_nothing_is_sent_by_hand_from_a_quarantined_node() -> None:
    assert on_forge(a_queued(1), an_idle_node("loom"), state="quarantined").by_hand == ()


def reach(*before: float | None, left_s: float | None = None, **fields: Any) -> Reach:
    """Of a P9 task behind P1 tasks of so many seconds, on iris."""
    ahead = [a_queued(n, priority=1, expected_s=s) for n, s in enumerate(before, 1)]
    task = a_queued(90, priority=9)
    view = a_view(a_busy_node("iris", len(ahead) + 1, **fields))
    situation = Situation(view, queues(a_queue("iris", task, *ahead)), DOMAINS)
    return why_task(task, "iris", situation, left_s=left_s).reach


def test_its_own_node_starts_it_when_what_is_before_it_is_done() -> None:
    assert reach(60.0, 120.0, left_s=30.0) == Reach(3, 3, 210.0)
    assert reach(60.0, 120.0, left_s=30.0, slots=2, running_count=2) == Reach(3, 4, 105.0)
    assert reach(left_s=None, running_count=0) == Reach(1, 0, 0.0)


@pytest.mark.parametrize("last_first", [True, False])
def test_of_one_priority_who_came_first_is_first_in_line(*, last_first: bool) -> None:
    """Seen to fail: tasks of one millisecond were told in the order of the chance in their uids."""
    came = [a_queued(number, priority=6) for number in (7, 3, 9)]
    queue = a_queue("iris", *(reversed(came) if last_first else came))
    view = a_view(a_busy_node("iris", len(came)))
    scene = Situation(view, queues(replace(queue, last_first=last_first)), DOMAINS)
    assert [why_task(task, "iris", scene).reach.place for task in came] == [1, 2, 3]


@pytest.mark.parametrize("urgent_first", [True, False])
def test_a_whole_queue_knows_in_which_order_it_is(*, urgent_first: bool) -> None:
    came = [a_queued(7, priority=6), a_queued(3, priority=6), a_queued(9, priority=2)]
    queue = _ordered(a_queue("iris", *came), urgent_first=urgent_first)
    assert isinstance(queue, Queue)
    assert queue.last_first is not urgent_first
    assert queue.tasks == tuple([came[2], came[0], came[1]][:: 1 if urgent_first else -1])


def test_without_durations_only_the_tasks_before_it_are_counted() -> None:
    """Guard: with ten minutes for a task that does not say, a time stands here."""
    assert reach(60.0, None, left_s=30.0) == Reach(3, 3, None)
    assert reach(60.0, 120.0, left_s=None) == Reach(3, 3, None)


@pytest.mark.parametrize(("node", "says"), [
    (a_node("loom", running_count=1, pending_count=3), "it is not idle: 1 runs, 3 wait"),
    (a_node("loom", dispatcher="stopped"), "it is not idle: its daemon does not run"),
    (a_node("loom", state="draining"), "it is not idle: it is draining"),
    (a_node("loom", idle=False), "it is not idle: a transfer is under way"),
])  # fmt: skip
def test_a_node_that_is_not_idle_says_what_it_is_instead(node: NodeSeen, says: str) -> None:
    said = {check.rule: check.said for check in why_node("loom", the_scene(node)).receives}

    assert said["idle_long_enough"] == says
    if node.report.dispatcher == "stopped":
        assert said["nothing_to_do"] == "its daemon does not run"


@settings(max_examples=60, deadline=None)
@given(fleets(), st.data())
def test_every_way_that_is_told_moves_the_task(
    fleet: tuple[Situation, dict[str, Any]], data: st.DataObject
) -> None:
    """And the steps account for every other node. Guard: told untried, the ways fail here."""
    situation, ready = fleet
    seen = whole(situation, ready)
    places = [(name, task) for name, tasks in ready.items() for task in tasks]
    if not places:
        return
    name, task = data.draw(st.sampled_from(places))

    why = why_task(task, name, seen)

    for way in why.ways:
        shorter = [one for one in why.ways
                   if one.to == way.to and set(one.changes) < set(way.changes)]  # fmt: skip
        assert not shorter, "a way asks for all that a shorter one asks for, and more"
        steals = apply(way.changes, seen).plan().steals
        assert [steal.idle for steal in steals if steal.task.uid == task.uid] == [way.to]
    if why.steps:
        dropped = [one.node for step in why.steps for one in step.dropped]
        assert len(dropped) + why.steps[-1].left == why.receivers
        assert len(set(dropped)) == len(dropped)
        assert why.receivers == len(seen.view.seen) + len(seen.view.unseen) - 1
        assert all(step.left <= step.alone for step in why.steps)
