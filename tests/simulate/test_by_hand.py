"""A fleet small enough to be worked out on paper comes to the same in the simulator, exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arc.simulate.bounds import makespan_bound_s
from arc.simulate.central import able_of
from arc.simulate.comparing import compared
from arc.simulate.engine import Run, simulate
from arc.simulate.policies import parse_policy
from arc.simulate.scene import INBOX, MS, Away, Kind, Scene
from tests.simulate.hands import a_job, a_place, a_scene, run, starts_s

# Eight tasks of ten minutes come to ada at once, while bob has nothing.
EIGHT = a_scene(
    a_place("ada"), a_place("bob"), *(a_job(number, "ada", 600) for number in range(1, 9))
)


def test_arc0_takes_two_from_eight_and_leaves_the_other_node_idle_beside_the_rest() -> None:
    """At 0 s bob is idle for no two minutes yet. At 300 s ada has seven waiting: two go, until five
    are left, the last ones first; they land at 305 s. Then ada never has more than five again.
    """
    ended = run(EIGHT, "arc0")
    assert starts_s(ended) == {
        1: ("ada", 0), 2: ("ada", 600), 3: ("ada", 1200), 4: ("ada", 1800), 5: ("ada", 2400),
        6: ("ada", 3000), 7: ("bob", 905), 8: ("bob", 305),
    }  # fmt: skip
    assert ended.makespan_s == 3600
    assert [*ended.waits_s["all"]] == [0, 305, 600, 905, 1200, 1800, 2400, 3000]
    assert (ended.thefts, ended.regrets, ended.never_started) == (2, 0, 0)
    # bob stands free from 0 to 305 s and from 1505 s on, until ada starts the last one at 3000 s.
    assert ended.idle_beside_work == pytest.approx((305 + 1495) / (2 * 3600))
    # Looked at every 300 s: once before anybody moved anything, four times below the threshold.
    assert ended.stranded_s == {("bob", "nobody_looked"): 300, ("bob", "busy_node_is_busy"): 1200}
    assert makespan_bound_s(EIGHT, able_of(EIGHT)) == 2400


def test_swift_feeds_the_idle_node_at_once_with_one_task_more_than_it_has_slots() -> None:
    """At 0 s bob gets one for its slot and one to have at hand, and again when it ends that one."""
    ended = run(EIGHT, "swift")
    assert starts_s(ended) == {
        1: ("ada", 0), 2: ("bob", 5), 3: ("ada", 600), 4: ("bob", 605), 5: ("ada", 1200),
        6: ("bob", 1210), 7: ("ada", 1800), 8: ("bob", 1810),
    }  # fmt: skip
    assert ended.makespan_s == 2410
    assert ended.idle_beside_work == pytest.approx((5 + 5) / (2 * 2410))
    assert ended.thefts == 4


def test_without_thefts_everything_waits_where_it_came() -> None:
    ended = run(EIGHT, "none")
    assert starts_s(ended) == {number: ("ada", 600 * (number - 1)) for number in range(1, 9)}
    assert ended.idle_beside_work == pytest.approx(4200 / (2 * 4800))


def test_the_bound_spreads_the_work_over_both_at_no_cost() -> None:
    ended = simulate(EIGHT, parse_policy("central"))
    assert ended.makespan_s == 2400
    assert [*ended.waits_s["all"]] == [0, 0, 600, 600, 1200, 1200, 1800, 1800]


def test_with_on_idle_a_cycle_starts_when_the_minimum_is_over_and_not_at_the_interval() -> None:
    """bob is idle from 0 s on, so at 120 s it is looked at; two move, and land five seconds later.

    Seen to fail with the waiting for the minimum left out.
    """
    ended = run(EIGHT, "arc0:on_idle=true")
    assert starts_s(ended)[8] == ("bob", 125)


def test_urgent_work_goes_first_on_a_node_and_stays_there_under_arc0() -> None:
    scene = a_scene(
        a_place("ada"), a_place("bob"), a_job(1, "ada", 60), a_job(2, "ada", 60, priority=8),
        a_job(3, "ada", 60, priority=1), *(a_job(n, "ada", 60, priority=2) for n in range(4, 10)),
    )  # fmt: skip
    ended = run(scene, "arc0:every=5s,idle_min=0s,busy_over=0,per_node=9")
    assert starts_s(ended)[1] == ("ada", 0)
    assert starts_s(ended)[3] == ("ada", 60)
    assert [n for n, (node, _) in starts_s(ended).items() if node == "bob"] == [2]


def test_a_theft_after_which_the_task_starts_no_earlier_is_regretted() -> None:
    """swift takes it that a task runs for ten minutes; these run for two seconds, and the move
    takes five.
    """
    ended = run(a_scene(a_place("ada"), a_place("bob"), a_job(1, "ada", 2), a_job(2, "ada", 2)),
                "swift")  # fmt: skip
    assert starts_s(ended)[2] == ("bob", 5)
    assert (ended.thefts, ended.regrets) == (1, 1)


def test_thefts_a_task_are_those_of_the_tasks_that_count() -> None:
    """What came before the measured stretch was stolen as well, and is not divided by the others.

    Seen to fail where all thefts were divided by the tasks that came in the stretch.
    """
    late = (a_job(9, "ada", 600, at_s=7200), a_job(10, "ada", 600, at_s=7200))
    ended = run(replace(EIGHT, jobs=(*EIGHT.jobs, *late), measured_from_ms=7000 * MS), "swift")
    assert (ended.tasks, ended.thefts, ended.stolen) == (2, 5, 5)
    assert ended.thefts_counted == 1
    figures = compared(parse_policy("swift"), [ended], [1.0], None)
    assert figures.thefts_per_task.mean == 0.5


def test_the_hubs_own_queue_is_routed_at_the_interval_to_the_owner() -> None:
    kind = Kind(domain="own-bob")
    scene = a_scene(a_place("ada"), a_place("bob"), a_job(1, INBOX, 10, at_s=1, kind=kind))
    assert starts_s(run(scene, "arc0"))[1] == ("bob", 1805)
    assert starts_s(run(scene, "swift"))[1] == ("bob", 6)


def test_a_node_that_is_away_starts_nothing_and_is_given_nothing() -> None:
    away = a_place("bob", away=(Away(0, 1_000_000),))
    scene = a_scene(a_place("ada"), away, *(a_job(number, "ada", 600) for number in range(1, 9)),
                    a_job(9, "bob", 60))  # fmt: skip
    ended = run(scene, "swift")
    assert starts_s(ended)[9] == ("bob", 1000)
    assert min(at for node, at in starts_s(ended).values() if node == "bob") == 1000


def test_what_waits_on_a_node_that_is_away_stays_there() -> None:
    """A node that is paused keeps its queue."""
    away = a_place("bob", away=(Away(0, 1_000_000),))
    scene = a_scene(a_place("ada"), away, *(a_job(number, "bob", 60) for number in range(1, 4)))
    assert min(at for _, at in starts_s(run(scene, "swift")).values()) == 1000


def test_what_nobody_can_run_is_told_and_does_not_keep_the_clock_running() -> None:
    needy = Kind(domain="shared", needs=("gpu",))
    scene = a_scene(a_place("ada"), a_place("bob"), a_job(1, "ada", 60, kind=needy))
    for word in ("none", "arc0", "swift"):
        made = Run(scene, parse_policy(word))
        ended = made.to_the_end()
        assert (ended.never_started, ended.waits_s["all"]) == (1, ())
        assert made.now_ms < 12 * 3600 * 1000


def test_who_needs_what_another_node_has_is_moved_there() -> None:
    needy = Kind(domain="shared", needs=("gpu",))
    scene = a_scene(a_place("ada"), a_place("bob", skills=("gpu",)), a_job(1, "ada", 60),
                    a_job(2, "ada", 60, kind=needy))  # fmt: skip
    assert starts_s(run(scene, "none")) == {1: ("ada", 0), 2: ("ada", -0.001)}
    assert starts_s(run(scene, "swift"))[2] == ("bob", 5)
    assert starts_s(simulate(scene, parse_policy("central")))[2] == ("bob", 0)


def test_pinned_work_stays_whatever_is_free() -> None:
    scene = a_scene(a_place("ada"), a_place("bob"), a_job(1, "ada", 60),
                    a_job(2, "ada", 60, kind=Kind(domain="shared", pinned=True)))  # fmt: skip
    assert starts_s(run(scene, "swift"))[2] == ("ada", 60)
    assert starts_s(simulate(scene, parse_policy("central")))[2] == ("ada", 60)


def test_the_bound_of_the_makespan_looks_at_each_set_of_nodes_and_at_when_work_comes() -> None:
    own = Kind(domain="own-ada")
    scene = a_scene(
        a_place("ada"), a_place("bob"), a_job(1, "ada", 100, kind=own),
        a_job(2, "ada", 100, kind=own), a_job(3, "bob", 10, at_s=500),
    )  # fmt: skip
    assert makespan_bound_s(scene, able_of(scene)) == 510
    late = a_scene(*scene.places, *scene.jobs,
                   *(a_job(number, "ada", 100, at_s=1000, kind=own) for number in (4, 5)))
    assert makespan_bound_s(late, able_of(late)) == 1200
    assert makespan_bound_s(Scene((a_place("ada"),), ()), {}) == 0


def test_the_hub_does_one_thing_after_the_other() -> None:
    """At 0 s bob is fed. cy's task ends at 1 s: it is fed only when bob's has landed."""
    own = Kind(domain="own-cy")
    scene = a_scene(
        a_place("ada"), a_place("bob"), a_place("cy"), a_job(1, "cy", 1, kind=own),
        *(a_job(number, "ada", 600) for number in range(2, 12)),
    )  # fmt: skip
    found = starts_s(run(scene, "swift", transfer_s=50.0))
    assert min(at for node, at in found.values() if node == "bob") == 50
    assert min(at for node, at in found.values() if node == "cy" and at > 0) == 100


def test_of_twenty_waits_the_p95_is_the_last_but_one_in_the_band_of_its_priority() -> None:
    """Three queues of twenty, each of one band's both edges, and nothing moves."""
    waiting = {"ada": (60, (1, 3), "P1-P3"), "bob": (30, (4, 6), "P4-P6"),
               "cy": (10, (7, 10), "P7-P10")}  # fmt: skip
    scene = a_scene(*map(a_place, waiting), *(
        a_job(number, node, takes_s, priority=edges[number % 2])
        for at, (node, (takes_s, edges, _)) in enumerate(waiting.items())
        for number in range(20 * at, 20 * at + 20)
    ))  # fmt: skip
    policy = parse_policy("none")
    found = compared(policy, [run(scene, "none")], [1.0], None)
    for takes_s, _, band in waiting.values():
        assert found.wait_p95_s[band].mean == 18 * takes_s
        assert found.wait_s[band].mean == 9.5 * takes_s
    assert {*found.wait_p95_s} == {"all", *(band for _, _, band in waiting.values())}
