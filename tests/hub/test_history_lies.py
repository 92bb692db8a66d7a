"""A node that lies about times, attempts and money: bounded, cut to what can be, and said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.decisions.lives import lives_of
from arc.history import History
from arc.journal_history import KEEP_HISTORY_DAYS, NODE_STEPS_MAX
from arc.sensor import Moved
from tests.builders import START, uid
from tests.hub_nodes import twisted
from tests.sensors_stage import Scene

AHEAD = iso(START + timedelta(days=400))


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def tells(day: Scene, *events: JsonObject) -> History:
    """The node iris tells these events, once, and is heard."""
    told = [{"seq": n, "at": iso(START), **one} for n, one in enumerate(events, 1)]

    def lie(do: str, result: Any) -> Any:
        return {"events": [told.pop(0) for _ in told[:999]]} if do == "events" else result

    day._do(day.hub.links["iris"].meet())
    day.hub.links["iris"] = twisted(day.hub.links["iris"], lie)
    day.passes(100)
    day.run("fleet-health")
    return History(day.hub.settings.state)


def said(day: Scene) -> list[JsonObject]:
    return [line.fields for line in day.hub.journal.runs.lines(limit=1000)
            if line.event == "history_not_believed"]  # fmt: skip


def always() -> tuple[Any, Any]:
    return START - timedelta(days=1000), START + timedelta(days=1000)


def test_what_is_still_to_come_is_taken_to_have_been_now_and_that_is_said(day: Scene) -> None:
    past = tells(day, {"event": "task_claimed", "uid": uid(1), "n": 1, "by": "iris", "at": AHEAD},
                 {"event": "task_completed", "uid": uid(1), "n": 1, "at": AHEAD})  # fmt: skip
    (stint,) = past.stints(*always())
    now = day.hub.clock.now()
    assert now - timedelta(seconds=5) < stint.claimed_at <= (stint.ended_at or now) <= now
    assert said(day) == [{"future": 2}]


def test_an_end_before_its_beginning_has_no_length_rather_than_a_negative_one(day: Scene) -> None:
    past = tells(day,
                 {"event": "task_claimed", "uid": uid(1), "n": 1, "at": iso(START)},
                 {"event": "task_started", "uid": uid(1), "n": 1,
                  "at": iso(START - timedelta(hours=2))},
                 {"event": "task_completed", "uid": uid(1), "n": 1,
                  "at": iso(START - timedelta(hours=1))})  # fmt: skip
    (stint,) = past.stints(*always())
    assert stint.claimed_at == stint.started_at == stint.ended_at
    assert abs(stint.claimed_at - START) < timedelta(seconds=1)


@pytest.mark.parametrize(("event", "wrong"), [
    ({"event": "task_completed", "n": 1, "data": {"cost_usd": "-5"}}, "cost"),
    ({"event": "task_completed", "n": 1, "data": {"cost_usd": "1e99"}}, "cost"),
    ({"event": "task_completed", "n": 1, "data": {"cost_usd": 5}}, "cost"),
    ({"event": "task_completed", "n": 1, "data": {"duration_s": -5}}, "seconds"),
    ({"event": "task_completed", "n": 1, "data": {"duration_s": 1e300}}, "seconds"),
    ({"event": "task_claimed", "n": 10**15}, "attempt"),
    ({"event": "task_claimed", "n": True}, "attempt"),
    ({"event": "task_claimed"}, "attempt"),
    ({"event": "task_claimed", "n": 1, "uid": "../../etc"}, "uid"),
    ({"event": "task_added", "traits": {"priority": 10**9}}, "priority"),
    ({"event": "task_added", "traits": {"priority": 5, "expected_s": -1}}, "seconds"),
])  # fmt: skip
def test_what_cannot_be_is_left_out_and_said(day: Scene, event: JsonObject, wrong: str) -> None:
    past = tells(day, {"uid": uid(1), **event})
    assert [wrong in fields for fields in said(day)] == [True]
    for stint in past.stints(*always()):
        assert stint.cost_usd is None
        assert stint.claimed_at == stint.ended_at
    for came in past.arrivals(*always()):
        assert came.expected_s is None
        assert came.priority in (None, 5)


def test_a_node_with_a_million_attempts_pushes_nobody_else_out(day: Scene) -> None:
    """Without the limit an hour of a node's own invention is the whole of the history."""
    from arc.decisions.lives import Claimed, Lives, Traits

    book, at = day.hub.journal.history, day.hub.clock.now()
    many = [Claimed(uid(1), n, at, "iris", Traits()) for n in range(1, 70_001)]
    wrong = book.hear("iris", "LIFE", Lives(tuple(many)))
    assert wrong == {"too_many": 70_000 - NODE_STEPS_MAX}
    assert book.hear("iris", "LIFE", Lives(tuple(many[:5]))) == {}  # it was said in this hour
    (count,) = day.hub.journal._rows.read("SELECT count(*) AS n FROM stint")
    assert count["n"] == NODE_STEPS_MAX
    assert book.hear("loom", "LIFE", Lives((many[0],))) == {}
    day.passes(3600)
    assert book.hear("iris", "LIFE", Lives(tuple(many[-5:]))) == {}
    (count,) = day.hub.journal._rows.read("SELECT count(*) AS n FROM stint")
    assert count["n"] == NODE_STEPS_MAX + 6


def test_what_is_older_than_the_history_is_not_written_down(day: Scene) -> None:
    old = iso(START - timedelta(days=KEEP_HISTORY_DAYS + 1))
    past = tells(day, {"event": "task_claimed", "uid": uid(1), "n": 1, "at": old},
                 {"event": "task_added", "uid": uid(2), "at": "yesterday"})  # fmt: skip
    assert past.stints(*always()) == ()
    (came,) = past.arrivals(*always())  # a stamp that is none: when it was heard
    assert day.hub.clock.now() - came.at < timedelta(seconds=5)


def test_words_of_a_node_are_cut_to_a_length(day: Scene) -> None:
    past = tells(day, {"event": "task_added", "uid": uid(1), "traits": {
        "priority": 5, "skills": ["x" * 10_000] * 1000, "domain": "d" * 10_000,
        "source": "s" * 10_000, "needs": "none"}})  # fmt: skip
    (came,) = past.arrivals(*always())
    assert came.skills == ("x" * 64,) * 64
    assert (len(came.domain or ""), len(came.source or ""), came.needs) == (64, 64, None)


def hears(day: Scene, node: str, *events: JsonObject) -> None:
    """The hub's history hears this of a node, as of an hour before now."""
    now = day.hub.clock.now()
    told = [(event, now - timedelta(hours=1)) for event in events]
    day.hub.journal.history.hear(node, "L", lives_of(told, now=now))


def test_a_node_turns_no_task_that_never_was_there(day: Scene) -> None:
    """Neither ready, nor over, nor anew; and of its own none was ready before it came."""
    for n, state in ((1, "PENDING"), (2, "READY"), (3, "READY")):
        hears(day, "iris", {"event": "task_added", "uid": uid(n), "state": state})
    hears(day, "iris", {"event": "task_cancelled", "uid": uid(3), "state": "CANCELLED"})
    before = History(day.hub.settings.state).arrivals(*always())
    lies: list[JsonObject] = [
        {"event": "task_ready", "uid": uid(1), "was": "PENDING", "state": "READY"},
        {"event": "task_cancelled", "uid": uid(2), "was": "READY", "state": "CANCELLED"},
        {"event": "task_retried", "uid": uid(3), "was": "CANCELLED", "state": "READY"},
    ]
    hears(day, "loom", *lies)
    assert History(day.hub.settings.state).arrivals(*always()) == before
    day.hub.journal.runs.add_moves(tuple(
        Moved("X", uid(n), "iris", "loom", "moved") for n in (1, 2, 3)))  # fmt: skip
    early = day.hub.clock.now() - timedelta(days=13)
    day.hub.journal.history.hear("loom", "L", lives_of(
        [(event, early) for event in lies], now=day.hub.clock.now()))  # fmt: skip
    one, two, three = History(day.hub.settings.state).arrivals(*always())
    assert (one.ready_at, two.ended_at, three.ended_at) == (one.at, two.at, None)
