"""A hub whose wall clock was wrong for a while: nothing it wrote then holds the fleet up later."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_node.clock import iso
from arc.decisions.alerts import Alert, Edge
from arc.decisions.failing import attracts_no_work
from arc.decisions.limits import HealthLimits
from arc.decisions.notices import TROUBLES, Happened
from arc.decisions.outbox import COMPLETED, EndHeard
from arc.hub import Hub
from arc.journal import Journal
from arc.journal_nodes import ALERTS_A_DAY, Ended
from arc.leaving import PATIENCE_S, _is_late
from arc.links import Met
from arc.listening import Listening
from arc.looking import facts_of
from arc.running import Upkeep
from arc.schedule import Schedule
from arc.sensor import Moved, SensorReport
from arc.settings import NodeEntry
from arc.steady import why_not_by_age
from tests.builders import DAY, FakeClock
from tests.fleet_builders import a_view, an_idle_node
from tests.hub_builders import a_hub
from tests.virtual_time import in_virtual_time

HEALTH = HealthLimits()
AHEAD = timedelta(days=40)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def journal(tmp_path: Path, clock: FakeClock) -> Iterator[Journal]:
    book = Journal(tmp_path / "journal.db", clock)
    yield book
    book.close()


def five_failed(journal: Journal, clock: FakeClock) -> None:
    ended = [Ended(n, clock.now(), f"T{n}", well=False) for n in range(1, 6)]
    journal.nodes.hear("loom", "A", 5, ended)


def why_no_work(hub: Hub) -> str:
    view = a_view(an_idle_node("loom"))
    said = attracts_no_work(view.seen[0], facts_of(hub, view)["loom"], HEALTH)
    return said.because if said else ""


def test_a_node_that_failed_under_a_clock_that_was_ahead_has_its_trial_in_time(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Seen to fail: it was tried with one task in 40d 0h, and what ended well ended nothing."""
    hub = a_hub(tmp_path, clock, sensors=())
    clock.wall += AHEAD
    five_failed(hub.journal, clock)
    clock.wall -= AHEAD
    hub.journal.put_right()

    assert why_no_work(hub) == "the last 5 tasks failed, one after the other"
    clock.advance(HEALTH.failing_within_s + 1)
    assert why_no_work(hub) == ""
    clock.advance(1)
    hub.journal.nodes.hear("loom", "A", 6, [Ended(6, clock.now(), "T6", well=True)])
    facts = facts_of(hub, a_view(an_idle_node("loom")))["loom"]
    assert (facts.again_s, facts.ended, facts.failed) == (None, 1, 0)
    in_virtual_time(hub.close())


def test_what_ended_last_is_the_last_whatever_the_clock_showed(
    journal: Journal, clock: FakeClock
) -> None:
    """Seen to fail: what was written by a clock that was ahead stayed the newest for ever."""
    clock.wall += AHEAD
    five_failed(journal, clock)
    clock.wall -= AHEAD
    journal.put_right()
    journal.nodes.hear("loom", "A", 6, [Ended(6, clock.now(), "T6", well=True)])
    assert [one.uid for one in journal.nodes.ends_of("loom")] == [f"T{n}" for n in range(1, 7)]


def test_a_hub_that_starts_under_a_clock_that_is_right_again_puts_it_right(
    tmp_path: Path, clock: FakeClock
) -> None:
    clock.wall += AHEAD
    first = Journal(tmp_path / "journal.db", clock)
    five_failed(first, clock)
    first.nodes.refuse([("T1", "iris", "paused")])
    first.close()

    clock.wall -= AHEAD
    second = Journal(tmp_path / "journal.db", clock)
    assert {one.at for one in second.nodes.ends_of("loom")} == {clock.now()}
    clock.advance(601)
    assert second.nodes.refused(within_s=600) == {}
    second.close()


def test_a_clock_that_is_set_right_by_a_little_rewrites_nothing(
    journal: Journal, clock: FakeClock
) -> None:
    five_failed(journal, clock)
    was = clock.now()
    clock.wall -= timedelta(seconds=59)
    journal.put_right()
    assert {one.at for one in journal.nodes.ends_of("loom")} == {was}


def test_a_node_met_in_the_future_is_a_trouble_as_soon_as_one_met_today(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Seen to fail: a node that died under the wrong clock was no alert for forty days."""
    hub = a_hub(tmp_path, clock, sensors=())
    clock.wall += AHEAD
    hub.journal.nodes.meet([Met(node="loom", incarnation="A", generation=1, term=1, state="active",
                                version="1", wire=1, waits_for_hub=False, at="", clock_off_s=0.0)])
    clock.wall -= AHEAD
    hub.journal.put_right()
    clock.advance(HEALTH.stale_after_s)
    facts = facts_of(hub, a_view(an_idle_node("loom")))["loom"]
    assert facts.unseen_s == HEALTH.stale_after_s
    in_virtual_time(hub.close())


def a_move(xfer: str) -> Moved:
    return Moved(xfer=xfer, uid=xfer, busy="iris", idle="loom", outcome="moved", priority=5,
                 busy_incarnation="A", idle_incarnation="B", why="stolen")  # fmt: skip


def test_moves_of_the_future_use_up_no_cap_and_no_trial(
    journal: Journal, clock: FakeClock
) -> None:
    """Seen to fail: they counted within every window, so the node was given nothing; and the one
    task of a trial had been given in the future, so the trial never ended. They keep their times.
    """
    since = clock.now() - timedelta(seconds=300)
    clock.wall += AHEAD
    journal.runs.add(SensorReport("a", "done", "x", moves=(a_move("X1"),)), began=clock.now(),
                     because="x")  # fmt: skip
    clock.wall -= AHEAD
    journal.put_right()
    assert journal.nodes.taken(since, ["stolen"]) == {}
    assert journal.nodes.given_since("loom", since) is None

    journal.runs.add_moves((a_move("X2"),))
    assert journal.nodes.taken(since, ["stolen"]) == {"loom": 1}
    assert journal.nodes.given_since("loom", since) == clock.now()
    assert max(one.at for one in journal.runs.moves()) == clock.now() + AHEAD


def test_alerts_of_the_future_are_none_of_the_three_of_today(
    journal: Journal, clock: FakeClock
) -> None:
    """Seen to fail: nobody was told of that node until the day came that the clock had shown."""
    clock.wall += AHEAD
    for n in range(ALERTS_A_DAY):
        journal.nodes.note(Edge(began=(Alert("iris", f"rule_{n}", "why"),)))
    clock.wall -= AHEAD
    assert len(journal.nodes.note(Edge(began=(Alert("iris", "rule_9", "why"),)))) == 1


def test_troubles_of_the_future_are_none_of_those_that_receivers_were_told_of_today(
    journal: Journal, clock: FakeClock
) -> None:
    def trouble(number: int) -> Happened:
        return Happened(TROUBLES[0], f"loom:{number}", "loom", "x", clock.now())

    kind = TROUBLES[0]
    receiver = journal.notices.receivers(["mail"])["mail"]
    clock.wall += AHEAD
    journal.notices.note_troubles([trouble(n) for n in range(ALERTS_A_DAY)], stays_s=3600.0)
    clock.wall -= AHEAD
    journal.notices.note_troubles([trouble(9)], stays_s=3600.0)
    assert len(journal.notices.waiting(receiver, [kind])) == ALERTS_A_DAY + 1


async def test_a_running_hub_puts_it_right_as_soon_as_its_clock_is_put_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    hub = a_hub(tmp_path, clock, sensors=(), nodes=())
    schedule = Schedule(hub)
    upkeep = Upkeep(hub, schedule, Listening(hub, schedule), lambda text: None)
    clock.wall += AHEAD
    await upkeep.look()
    five_failed(hub.journal, clock)
    clock.wall -= AHEAD
    await upkeep.look()
    assert {one.at for one in hub.journal.nodes.ends_of("loom")} == {clock.now()}
    await hub.close()


@pytest.mark.parametrize("age_s", [-40 * 86_400.0, PATIENCE_S])
def test_an_end_of_the_future_is_not_waited_for_any_longer_than_an_old_one(
    clock: FakeClock, age_s: float
) -> None:
    """Seen to fail: those who wait for a task were not told of its end for forty days, because its
    node could not yet be asked what it had left.
    """
    seen: Any = SimpleNamespace(whole=a_view(an_idle_node("loom")),
                                hub=SimpleNamespace(clock=clock))  # fmt: skip
    at = iso(clock.now() - timedelta(seconds=age_s))
    assert _is_late(seen, EndHeard("T", "loom", COMPLETED, at))
    assert not _is_late(seen, EndHeard("T", "loom", COMPLETED, iso(clock.now())))


def a_run(journal: Journal, clock: FakeClock) -> None:
    journal.runs.add(SensorReport("a", "done", "x"), began=clock.now(), because="x")


def log_of(hub: Hub) -> list[str]:
    return [line.event for line in hub.journal.runs.lines()]


def upkeep_of(hub: Hub) -> Upkeep:
    schedule = Schedule(hub)
    return Upkeep(hub, schedule, Listening(hub, schedule), lambda text: None)


def test_a_cancel_that_is_owed_never_grows_old(journal: Journal, clock: FakeClock) -> None:
    """Seen to fail: after 30 days, or at one start under a clock that was wrong, what a person had
    cancelled ran all the same once its node was back.
    """
    journal.outbox.owe_cancels(["T1"], by="human:ada", reason="wrong")
    clock.advance(400 * DAY)
    journal.prune()
    assert [one.uid for one in journal.outbox.owed_cancels()] == ["T1"]


async def test_a_hub_that_starts_under_a_clock_that_is_ahead_forgets_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Seen to fail: all runs, moves, ends and lines were gone with the first look at the time, and
    at each start under that clock anew. Once is a hub that was off for forty days: it forgets when
    its clock has gone on for a day.
    """
    hub = a_hub(tmp_path, clock, sensors=(), nodes=())
    a_run(hub.journal, clock)
    clock.wall += AHEAD
    for _ in range(3):  # starts
        upkeep = upkeep_of(hub)
        for _ in range(23):
            a_run(hub.journal, clock)
            await upkeep.look()
            clock.advance(3600)
        clock.wall -= timedelta(hours=23)
    assert len(hub.journal.runs.last("a", 100)) == 1 + 3 * 23
    assert log_of(hub) == ["forgetting_waits"] * 3

    clock.advance(DAY + 60)
    await upkeep.look()
    assert len(hub.journal.runs.last("a", 100)) == 3 * 23
    await hub.close()


async def test_a_clock_set_on_while_the_hub_runs_costs_no_history(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = a_hub(tmp_path, clock, sensors=(), nodes=())
    pruned: list[bool] = []

    def prunes(*, by_age: bool) -> None:
        pruned.append(by_age)

    monkeypatch.setattr(hub.journal.history, "prune", prunes)
    upkeep = upkeep_of(hub)
    for _ in range(26):
        a_run(hub.journal, clock)
        clock.advance(3600)
    await upkeep.look()
    clock.wall += AHEAD
    clock.advance(301)
    await upkeep.look()
    assert pruned == [True, False]
    await hub.close()


@pytest.mark.parametrize(
    ("offs", "steady"),
    [([], True), ([5.0, -80_000.0], True), ([-40 * DAY], False), ([0.0, -40 * DAY], False),
     ([0.0, 0.0, -40 * DAY], True), ([0.0, -40 * DAY, 40 * DAY], False)],
)  # fmt: skip
def test_the_nodes_say_whether_the_hub_may_forget_by_its_clock(
    tmp_path: Path, clock: FakeClock, offs: list[float], *, steady: bool
) -> None:
    """One of them may live on the hub's own machine and have its clock, so half is enough to doubt.
    Seen to fail where only the hub's own clock was asked, a day after it was set wrong.
    """
    names = [f"n{number}" for number in range(len(offs))]
    hub = a_hub(tmp_path, clock, sensors=(), nodes=[NodeEntry(name, name) for name in names])
    a_run(hub.journal, clock)
    clock.advance(1.5 * DAY)
    hub.journal.nodes.meet([
        Met(node=name, incarnation="A", generation=1, term=1, state="active", version="1", wire=1,
            waits_for_hub=False, at="", clock_off_s=off)
        for name, off in zip(names, offs, strict=True)
    ])
    assert (why_not_by_age(hub) == "") is steady
    in_virtual_time(hub.close())
