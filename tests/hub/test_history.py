"""What the hub remembers of a fleet: arrivals, stints, samples, stretches; read beside the hub."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database

from agent_node import commands as c
from agent_node.clock import iso
from arc.decisions.limits import StealLimits
from arc.decisions.lives import OVER, Ended, Lives, Turned
from arc.errors import NoHistory, StateBroken
from arc.history import History
from arc.journal import Journal
from arc.journal_history import KEEP_HISTORY_DAYS
from arc.journal_tables import STEPS
from arc.sensor import Moved
from arc.settings import SensorEntry
from tests.builders import START, FakeClock, uid, xfer
from tests.sensors_stage import Scene

HEALTH, REBALANCE, ROUTER = "fleet-health", "fleet-rebalance", "fleet-router"
FAST = {name: SensorEntry(2.0) for name in (HEALTH, REBALANCE, ROUTER)}


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Scene]:
    """A fleet like the demo's: everything is looked at every two seconds."""
    made = Scene(tmp_path, entries=FAST)
    yield made
    made.close()


def past(day: Scene) -> History:
    return History(day.hub.settings.state)


def always(day: Scene) -> tuple[datetime, datetime]:
    return START - timedelta(days=1), day.hub.clock.now() + timedelta(seconds=1)


def looks(day: Scene, sensor: str = HEALTH) -> Any:
    report = day.run(sensor)
    day.hub.journal.runs.add(report, began=day.hub.clock.now(), because="interval")
    return report


def claims(day: Scene, node: str) -> tuple[str, int]:
    machine = day.fleet.machines[node]
    got = machine.store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    return got.task.uid, got.n


def ends(day: Scene, node: str, task: str, n: int, kind: Any = "completed", **said: Any) -> None:
    day.fleet.machines[node].store.apply(c.Finish(task, n, c.Result(kind, **said)))


def seconds(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - START).total_seconds()


# --- Arrivals -------------------------------------------------------------------------------------


def test_a_task_arrives_once_with_what_it_is_like_however_often_it_moves(day: Scene) -> None:
    day.asks("inbox", "add", tasks=[{
        "uid": uid(900), "subject": "x", "skills": ["arc-research"], "needs": ["gpu"],
        "priority": 3, "expected_s": 90, "source": "human:lukas"}])  # fmt: skip
    day.has("forge", 1, pinned=True)
    looks(day)
    looks(day, ROUTER)
    day.passes(60)
    looks(day)

    first, second = sorted(past(day).arrivals(*always(day)), key=lambda one: one.node)
    assert (first.node, first.how, first.pinned, first.needs) == ("forge", "added", True, ())
    assert (first.expected_s, first.domain) == (None, "")
    assert (second.uid, second.node, second.how) == (uid(900), "inbox", "added")
    assert (second.priority, second.skills, second.needs) == (3, ("arc-research",), ("gpu",))
    assert (second.pinned, second.expected_s, second.source) == (False, 90.0, "human")


def test_what_came_by_a_move_gives_way_to_where_the_task_was_made(day: Scene) -> None:
    """The taker may be heard before the giver."""
    day.asks("inbox", "add", tasks=[
        {"uid": uid(1), "subject": "x", "skills": ["arc-research"], "priority": 4}])  # fmt: skip
    looks(day, ROUTER)
    assert day.waiting("iris") == 1
    inbox = day.hub.links.pop("inbox")
    looks_without_the_inbox(day)
    (came,) = past(day).arrivals(*always(day))
    assert (came.node, came.how, came.priority) == ("iris", "arrived", 4)

    day.hub.links["inbox"] = inbox
    looks(day)
    (came,) = past(day).arrivals(*always(day))
    assert (came.node, came.how, came.priority) == ("inbox", "added", 4)


def looks_without_the_inbox(day: Scene) -> None:
    from arc.looking import look
    from sensors.hearing import hear_events

    day.hub.links["inbox"] = day.hub.inbox
    seen = day._do(look(day.hub))
    day._do(hear_events(day.hub, seen, [one for one in seen.view.seen if one.name == "iris"]))


def test_what_an_older_node_does_not_tell_stays_unknown(day: Scene) -> None:
    """A node of the version before has no traits in its events: NULL, and never a guess."""
    from tests.hub_nodes import twisted

    day._do(day.hub.links["forge"].meet())
    day.hub.links["forge"] = twisted(day.hub.links["forge"], without_traits)
    day.has("forge", 1, priority=2)
    looks(day)
    (came,) = past(day).arrivals(*always(day))
    assert (came.node, came.priority, came.domain, came.pinned) == ("forge", None, None, None)
    assert (came.skills, came.needs, came.expected_s, came.source) == (None, None, None, None)


def without_traits(do: str, result: Any) -> Any:
    if do == "events":
        return {"events": [{key: value for key, value in one.items() if key != "traits"}
                           for one in result["events"]]}  # fmt: skip
    return result


# --- Stints ---------------------------------------------------------------------------------------


def test_an_attempt_is_one_stint_from_its_claim_to_its_end(day: Scene) -> None:
    day.has("iris", 1, priority=2)
    day.passes(10)
    task, n = claims(day, "iris")
    looks(day)
    (runs,) = past(day).stints(*always(day))
    assert (runs.node, runs.uid, runs.n, runs.agent, runs.priority) == ("iris", task, 1, "iris", 2)
    assert (runs.outcome, runs.ended_at, runs.cost_usd) == ("", None, None)
    assert seconds(runs.claimed_at) == seconds(runs.started_at) == pytest.approx(10, abs=0.1)

    day.passes(50)
    ends(day, "iris", task, n, cost_usd="0.125", duration_s=50.0)
    looks(day)
    (over,) = past(day).stints(*always(day))
    assert (over.outcome, over.cost_usd, over.error_kind) == ("completed", Decimal("0.125"), "")
    assert seconds(over.ended_at) == pytest.approx(60, abs=0.1)


def test_every_attempt_has_its_own_end(day: Scene) -> None:
    day.has("iris", 1, max_attempts=3)
    task, n = claims(day, "iris")
    ends(day, "iris", task, n, "failed", error_kind="timeout", cost_usd="0.5")
    day.passes(700)
    day.fleet.machines["iris"].wake()
    task, n = claims(day, "iris")
    day.asks("iris", "cancel", uid=task, reason="not wanted", by="human:x")
    ends(day, "iris", task, n, "failed", error_kind="cancelled")
    looks(day)

    found = [(one.n, one.outcome, one.error_kind) for one in past(day).stints(*always(day))]
    assert found == [(1, "failed", "timeout"), (2, "cancelled", "")]


def test_a_node_that_is_heard_twice_has_no_stint_twice(day: Scene) -> None:
    """The number of what was heard last is lost, as with a journal that lost its last moment."""
    day.has("iris", 2)
    task, n = claims(day, "iris")
    ends(day, "iris", task, n, cost_usd="1.0")
    claims(day, "iris")
    looks(day)
    before = past(day).stints(*always(day)), past(day).arrivals(*always(day))
    assert [one.outcome for one in before[0]] == ["completed", ""]

    day.hub.journal._rows.write("DELETE FROM heard WHERE node = 'iris'")
    looks(day)
    assert (past(day).stints(*always(day)), past(day).arrivals(*always(day))) == before


def test_a_node_that_is_heard_twice_keeps_the_end_that_was_known(day: Scene) -> None:
    """A history that is heard again cannot be told differently; without the guard it could."""
    day.has("iris", 1)
    task, n = claims(day, "iris")
    ends(day, "iris", task, n, cost_usd="1.0")
    looks(day)
    later = day.hub.clock.now()
    book = day.hub.journal.history
    book.hear("iris", "ANOTHER", Lives((Ended(task, n, later, "failed", cost=9),)))
    (kept,) = past(day).stints(*always(day))
    assert (kept.outcome, kept.cost_usd) == ("completed", Decimal(1))


def test_what_ran_on_a_node_that_came_back_as_another_is_not_taken_to_run_on(day: Scene) -> None:
    day.has("iris", 1)
    task, _ = claims(day, "iris")
    looks(day)
    heard = day.hub.clock.now()
    day.passes(300)
    journal = day.hub.journal
    journal.history.came_back("iris", "01J0000000000000000000ZZZZ", journal.nodes.heard_at("iris"))

    (lost,) = past(day).stints(*always(day))
    assert (lost.uid, lost.outcome) == (task, "unknown")
    assert abs(seconds(lost.ended_at) - seconds(heard)) < 1


def test_an_end_whose_beginning_was_not_heard_has_the_length_that_it_tells(day: Scene) -> None:
    """As after an upgrade of the hub: what was heard before it is not heard again."""
    day.has("iris", 1)
    task, n = claims(day, "iris")
    looks(day)
    day.hub.journal._rows.write("DELETE FROM stint")
    day.passes(100)
    ends(day, "iris", task, n, duration_s=40.0)
    looks(day)
    (found,) = past(day).stints(*always(day))
    assert seconds(found.ended_at) - seconds(found.claimed_at) == pytest.approx(40)


def test_stints_of_one_second_are_whole_where_all_is_looked_at_every_two(quick: Scene) -> None:
    quick.has("iris", 6)
    for _ in range(6):
        task, n = claims(quick, "iris")
        quick.passes(1)
        ends(quick, "iris", task, n, duration_s=1.0)
        quick.passes(1)
        looks(quick)
    lengths = [seconds(one.ended_at) - seconds(one.claimed_at)
               for one in past(quick).stints(*always(quick))]  # fmt: skip
    assert lengths == pytest.approx([1.0] * 6, abs=0.05)


def test_a_window_has_every_stint_that_reaches_into_it_and_no_other(day: Scene) -> None:
    day.has("iris", 3)
    for length in (10, 100, 1000):
        task, n = claims(day, "iris")
        day.passes(length)
        ends(day, "iris", task, n)
    looks(day)

    def within(since: float, until: float, **more: Any) -> list[float]:
        window = START + timedelta(seconds=since), START + timedelta(seconds=until)
        return [round(seconds(one.claimed_at)) for one in past(day).stints(*window, **more)]

    assert within(0, 5000) == [0, 10, 110]
    assert within(20, 50) == [10]
    assert within(50, 200) == [10, 110]
    assert within(2000, 3000) == []
    assert within(0, 5000, limit=2) == [10, 110]
    assert within(0, 5000, nodes=["iris"]) == [0, 10, 110]
    assert within(0, 5000, nodes=["loom"]) == []


# --- Samples --------------------------------------------------------------------------------------


def of(day: Scene, node: str) -> list[Any]:
    return [one for one in past(day).samples(*always(day)) if one.node == node]


def test_looks_that_see_the_same_are_one_sample_up_to_the_last_of_them(day: Scene) -> None:
    for _ in range(4):
        looks(day)
        day.passes(300)
    (flat,) = of(day, "iris")
    assert (flat.state, flat.pending, flat.running, flat.slots) == ("running", 0, 0, 8)
    assert seconds(flat.at) == pytest.approx(0, abs=1)
    assert seconds(flat.until) == pytest.approx(900, abs=1)
    assert flat.idle


def test_what_was_seen_holds_until_the_look_that_sees_something_else(day: Scene) -> None:
    looks(day)
    day.passes(300)
    day.has("iris", 3)
    looks(day)
    before, after = of(day, "iris")
    assert before.until == after.at
    assert (before.pending, after.pending, after.idle) == (0, 3, False)


def test_a_time_in_which_nobody_looked_is_a_gap_and_no_flat_line(day: Scene) -> None:
    """Two and a half intervals: one look that came late, or failed, is no gap."""
    looks(day)
    day.passes(700)
    looks(day)
    assert len(of(day, "iris")) == 1
    day.passes(800)
    looks(day)
    before, after = of(day, "iris")
    assert seconds(before.until) == pytest.approx(700, abs=1)
    assert seconds(after.at) == pytest.approx(1500, abs=1)


def test_a_node_that_does_not_answer_is_unknown_and_why(day: Scene) -> None:
    looks(day)
    day.passes(300)
    day.off("iris")
    looks(day)
    known, gone = of(day, "iris")
    assert (known.state, gone.state, gone.because) == ("running", "unknown", "unreachable")
    assert known.until == gone.at


def test_a_node_that_does_not_answer_is_known_up_to_the_last_look_at_any(day: Scene) -> None:
    """Seen to fail: up to the beginning of its own row, so that some minutes after its last answer
    it had no lane in a page of these minutes. A row that nobody goes on with, of a node that has
    left the fleet meanwhile, holds for some hours.
    """
    looks(day)
    day.off("iris")
    for _ in range(6):
        day.passes(300)
        looks(day)
    assert known_until(day, "iris") == of(day, "iris")[-1].until
    assert seconds(known_until(day, "iris")) == pytest.approx(1800, abs=1)
    with day.hub.journal._rows.transaction():
        day.hub.journal._rows.write(
            "UPDATE sample SET at = at - 86400000 WHERE node = 'iris' AND until IS NULL")
    assert seconds(known_until(day, "iris")) == pytest.approx(300, abs=1)


def known_until(day: Scene, name: str) -> datetime:
    return next(one.until for one in past(day).nodes() if one.name == name)


def test_a_node_that_is_paused_says_so(day: Scene) -> None:
    looks(day)
    day.asks("iris", "pause", reason="mending", by="human:x")
    day.passes(300)
    looks(day)
    assert [one.state for one in of(day, "iris")] == ["running", "paused"]


def test_a_hub_that_starts_again_leaves_a_gap_where_it_was_away(day: Scene) -> None:
    looks(day)
    day.passes(300)
    looks(day)
    day.passes(3000)
    journal = Journal(day.hub.journal.path, day.hub.clock)
    day.hub.journal.close()
    day.hub.journal = journal
    looks(day)
    before, after = of(day, "iris")
    assert seconds(before.until) == pytest.approx(300, abs=1)
    assert seconds(after.at) == pytest.approx(3300, abs=1)


def test_a_sample_is_written_anew_every_hour_so_that_no_reader_goes_back_further(
    day: Scene,
) -> None:
    for _ in range(30):
        looks(day)
        day.passes(300)
    rows = of(day, "iris")
    assert [round(seconds(one.at)) for one in rows] == [0, 3600, 7200]
    assert all(one.until == other.at for one, other in pairwise(rows))


# --- Stranded stretches ---------------------------------------------------------------------------


def stranded(day: Scene) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for one in past(day).stranded(*always(day)):
        key = one.node, one.rule if one.cause == "rule" else "nobody_looked"
        found[key] = found.get(key, 0.0) + one.seconds
    return found


def test_the_stretches_add_up_to_what_the_status_counts(tmp_path: Path) -> None:
    day = Scene(tmp_path, steal=StealLimits(busy_over=50))
    try:
        day.has("iris", 12, skills=["arc-research"], priority=9)
        for _ in range(6):
            looks(day)
            day.passes(300)
        day.has("loom", 1)
        looks(day)
        counted = day.hub.journal.nodes.stranded()
        assert counted
        assert stranded(day) == pytest.approx(counted)
        one = past(day).stranded(*always(day))[0]
        assert (one.beside, one.cause) == ("iris", "rule")
        length = seconds(one.until) - seconds(one.since)
        assert one.seconds == pytest.approx(length, abs=2)
        assert one.uid
    finally:
        day.close()


# --- Shares and depths ----------------------------------------------------------------------------


def test_the_shares_of_a_bucket_are_its_whole_time_each_moment_once(day: Scene) -> None:
    looks(day)
    day.passes(300)
    day.has("iris", 2)
    claims(day, "iris")
    looks(day)
    day.passes(300)
    day.asks("iris", "pause", reason="mending", by="human:x")
    looks(day)
    day.passes(300)
    looks(day)

    start = past(day).samples(*always(day))[0].at
    found = past(day).shares(start, start + timedelta(seconds=1200), 4)
    assert found.step_s == 300
    iris = next(one for one in found.nodes if one.node == "iris")
    assert iris.idle == pytest.approx((1, 0, 0, 0), abs=0.01)
    assert iris.busy == pytest.approx((0, 1, 0, 0), abs=0.01)
    assert iris.paused == pytest.approx((0, 0, 1, 0), abs=0.01)
    assert iris.unknown == pytest.approx((0, 0, 0, 1), abs=0.01)
    assert iris.depth[1:3] == pytest.approx((1, 1), abs=0.01)
    assert iris.running[1] == pytest.approx(1, abs=0.01)
    depths = next(one for one in past(day).depths(start, start + timedelta(seconds=600), 2).nodes
                  if one.node == "iris")  # fmt: skip
    assert (depths.most, depths.slots) == ((0, 1), (8, 8))


def test_the_shares_of_a_node_that_never_answered_are_unknown_and_not_missing(day: Scene) -> None:
    """Seen to fail: it had none, and no row in the heat map and in the report."""
    day.off("iris")
    for _ in range(3):
        looks(day)
        day.passes(300)
    found = past(day).shares(START, START + timedelta(seconds=600), 2).nodes
    iris = next(one for one in found if one.node == "iris")
    assert (iris.unknown, iris.busy, iris.idle) == ((1.0, 1.0), (0.0, 0.0), (0.0, 0.0))
    assert iris.depth == iris.running == (None, None)


def test_stranded_time_is_taken_from_idle_time_and_costs_fall_where_attempts_ended(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal.db", FakeClock())
    rows = journal._rows
    at = int(START.timestamp() * 1000)
    with rows.transaction():
        rows.write("INSERT INTO sample VALUES (1,'loom',?,?,'running','',0,0,2,2,NULL)",
                   [at, at + 1_000_000])  # fmt: skip
        rows.write("INSERT INTO stranded_stretch VALUES (1,'loom',?,?,400.0,'rule','r','iris','')",
                   [at + 100_000, at + 500_000])  # fmt: skip
        rows.write(
            "INSERT INTO stint (node, life, uid, n, agent, claimed_at, ended_at, outcome, cost)"
            " VALUES ('loom','L','U',1,'a',?,?,'completed',250000)",
            [at, at + 700_000],
        )
    journal.close()
    found = History(tmp_path).shares(START, START + timedelta(seconds=1000), 2)
    (loom,) = found.nodes
    assert (loom.stranded, loom.idle, loom.busy) == ((0.8, 0.0), (0.2, 1.0), (0.0, 0.0))
    assert loom.cost_usd == (0.0, 0.25)
    assert loom.stranded_share == 0.4


# --- The reader -----------------------------------------------------------------------------------


def test_it_reads_while_the_hub_writes_and_holds_nothing_open(day: Scene) -> None:
    looks(day)
    with day.hub.journal._rows.transaction():
        day.hub.journal._rows.write("DELETE FROM sample")
        assert past(day).nodes()  # as of the last commit
    assert past(day).nodes() == ()
    day.hub.journal._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_it_changes_nothing(day: Scene) -> None:
    looks(day)
    day.hub.journal.close()
    path = day.hub.journal.path
    before = path.read_bytes()
    assert past(day).span().until > START
    assert past(day).runs(*always(day))
    assert path.read_bytes() == before


def test_no_journal_one_without_history_and_a_broken_one_are_three_clear_errors(
    tmp_path: Path,
) -> None:
    with pytest.raises(NoHistory, match=r"journal\.db"):
        History(tmp_path).span()

    path = tmp_path / "journal.db"
    older = Database(path)
    STEPS.apply(older, stop_before="history")
    older.close()
    with pytest.raises(NoHistory, match="keeps no history yet"):
        History(tmp_path).shares(START, START + timedelta(days=1), 10)

    Journal(path, FakeClock()).close()
    with pytest.raises(NoHistory, match="nothing has been written down"):
        History(tmp_path).span()
    assert History(tmp_path).stints(START, START + timedelta(days=1)) == ()

    raw = bytearray(path.read_bytes())
    raw[100:] = b"\xff" * (len(raw) - 100)
    path.write_bytes(bytes(raw))
    with pytest.raises(StateBroken, match=r"journal\.db"):
        History(tmp_path).span()


def test_a_journal_of_the_version_before_is_migrated_and_keeps_what_it_had(tmp_path: Path) -> None:
    path, clock = tmp_path / "journal.db", FakeClock()
    older = Database(path)
    STEPS.apply(older, stop_before="history")
    older.execute("INSERT INTO heard (node, incarnation, seq, at) VALUES ('iris','L',7,?)",
                  [iso(clock.now())])  # fmt: skip
    older.conn.commit()
    older.close()
    journal = Journal(path, clock)
    assert journal.nodes.heard_up_to("iris", "L") == 7
    journal.close()
    assert History(tmp_path).stints(START, START + timedelta(days=1)) == ()


def test_a_journal_from_before_tasks_had_ends_learns_them_from_what_else_it_knows(
    tmp_path: Path,
) -> None:
    """Otherwise every task that ever came would be taken to wait still."""
    path, clock = tmp_path / "journal.db", FakeClock()
    older = Database(path)
    STEPS.apply(older, stop_before="turns_of_tasks")
    at = int(START.timestamp() * 1000)
    for name in ("RAN", "GONE", "OPEN"):
        older.execute("INSERT INTO arrival (uid, at, node, how) VALUES (?,?,'iris','added')",
                      [name, at])  # fmt: skip
    older.execute("INSERT INTO stint (node, life, uid, n, agent, claimed_at, ended_at, outcome)"
                  " VALUES ('iris','L','RAN',1,'a',?,?,'completed')", [at, at + 5000])  # fmt: skip
    older.execute("INSERT INTO task_end (node, uid, state, at)"
                  " VALUES ('iris','GONE','CANCELLED',?)",
                  [iso(START + timedelta(seconds=7))])  # fmt: skip
    older.conn.commit()
    older.close()
    with pytest.raises(NoHistory, match="keeps no history yet"):  # its hub is the version before
        History(tmp_path).arrivals(START, START + timedelta(days=1))
    Journal(path, clock).close()
    came = {one.uid: one for one in History(tmp_path).arrivals(START, START + timedelta(days=1))}
    ended = {name: one.ended_at and seconds(one.ended_at) for name, one in came.items()}
    assert ended == {"RAN": 5.0, "GONE": 7.0, "OPEN": None}
    assert {one.ready_at for one in came.values()} == {START}
    left = History(tmp_path).standing(START + timedelta(seconds=6))
    assert {one.came.uid for one in left} == {"GONE", "OPEN"}


def test_a_task_is_over_once_and_stays_so_when_its_node_is_heard_again(day: Scene) -> None:
    day.has("iris", 2)
    task, n = claims(day, "iris")
    day.passes(60)
    ends(day, "iris", task, n)
    looks(day)
    before = past(day).arrivals(*always(day))
    assert [one.ended_at and round(seconds(one.ended_at)) for one in before] == [60, None]
    assert [one.ready_at == one.at for one in before] == [True, True]
    day.passes(60)
    day.hub.journal._rows.write("DELETE FROM heard WHERE node = 'iris'")
    looks(day)
    assert past(day).arrivals(*always(day)) == before
    later = Turned(task, day.hub.clock.now(), OVER)
    day.hub.journal.history.hear("iris", "ANOTHER", Lives((later,)))
    assert past(day).arrivals(*always(day)) == before


def test_moves_runs_and_what_they_kept_are_read_back(day: Scene) -> None:
    day.has("iris", 12, skills=["arc-research"], priority=9)
    day.passes(300)
    report = looks(day, REBALANCE)
    run = past(day).runs(*always(day), sensor=REBALANCE)[-1]
    assert (run.sensor, run.looked, run.acted) == (REBALANCE, report.looked, report.acted)
    assert past(day).decisions(run.id)
    moves = past(day).moves(*always(day))
    assert len(moves) == len(report.moves)
    fed = past(day).feeds(*always(day))
    assert sum(one.moves for one in fed) == sum(one.outcome == "moved" for one in moves)
    if moves:
        came, stints, gone = past(day).life_of(moves[0].uid)
        assert gone[0] == moves[0]
        assert (came, stints) == (None, ())


def test_a_doubt_that_the_taker_ended_is_a_move_and_one_that_the_giver_ended_is_none(
    day: Scene,
) -> None:
    """Seen to fail: who fed whom left out the one, and a task of the other stood at its taker."""
    day.asks("inbox", "add", tasks=[{"uid": uid(n), "subject": "x"} for n in (1, 2)])
    looks(day)
    day.hub.journal.runs.add_moves((
        Moved(xfer(1), uid(1), "iris", "loom", "in_doubt", why="stolen"),
        Moved(xfer(1), uid(1), "iris", "loom", "settled", why="doubt", rule="taker_has_it"),
        Moved(xfer(2), uid(2), "iris", "loom", "in_doubt", why="stolen"),
        Moved(xfer(2), uid(2), "iris", "loom", "settled", why="doubt"),
        Moved(xfer(3), uid(3), "iris", "loom", "moved", why="drained"),
        Moved(xfer(3), uid(3), "iris", "loom", "settled", why="doubt", rule="taker_has_it"),
    ))  # fmt: skip
    day.passes(60)
    fed = past(day).feeds(*always(day))
    assert [(one.busy, one.idle, one.why, one.moves) for one in fed] == [
        ("iris", "loom", "drained", 1), ("iris", "loom", "stolen", 1)]  # fmt: skip
    assert day.hub.journal.runs.count_moved(always(day)[0]) == 2
    stood = {one.came.uid: one.node for one in past(day).standing(day.hub.clock.now())}
    assert (stood[uid(1)], stood[uid(2)]) == ("loom", "inbox")


# --- Keeping --------------------------------------------------------------------------------------


def test_history_goes_after_two_weeks_and_what_still_runs_stays(tmp_path: Path) -> None:
    clock = FakeClock()
    journal = Journal(tmp_path / "journal.db", clock)
    at = int(clock.now().timestamp() * 1000)
    with journal._rows.transaction():
        for number, ended in ((1, at + 1000), (2, None)):
            journal._rows.write(
                "INSERT INTO stint (node, life, uid, n, agent, claimed_at, ended_at, outcome)"
                " VALUES ('iris','L',?,1,'a',?,?,'')", [str(number), at, ended])  # fmt: skip
        journal._rows.write("INSERT INTO arrival (uid, at, node, how)"
                            " VALUES ('1',?,'iris','added')", [at])  # fmt: skip
    clock.advance(86_400 * KEEP_HISTORY_DAYS - 60)
    journal.history.prune()
    assert counts(journal) == {"stint": 2, "arrival": 1}
    clock.advance(120)
    journal.history.prune()
    assert counts(journal) == {"stint": 1, "arrival": 0}
    journal.close()


def counts(journal: Journal) -> dict[str, int]:
    return {table: int(str(journal._rows.read(f"SELECT count(*) AS n FROM {table}")[0]["n"]))
            for table in ("stint", "arrival")}  # fmt: skip


def test_a_reader_waits_for_nobody_though_the_writer_never_ends(day: Scene) -> None:
    looks(day)
    writer = sqlite3.connect(day.hub.journal.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert past(day).span().until > START
    writer.execute("ROLLBACK")
    writer.close()
