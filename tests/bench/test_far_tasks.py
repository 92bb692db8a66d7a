"""The tasks of the bench's far nodes are told as a real node tells its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_node.clock import parse_iso
from arc.decisions.lives import Claimed, Ended, lives_of
from bench.far_tasks import EVERY_S, Shift, asked_after, at_work
from bench.hub_far import status_of

BEGAN_S = 1_800_000_000.0
NOW_S = BEGAN_S + 20 * EVERY_S


@pytest.mark.parametrize("name", ["n000", "n001", "n499"])
def test_events_are_numbered_as_they_happen_and_a_hub_believes_them(name: str) -> None:
    """Fails where a task lasts beyond the start of the next one."""
    shift = Shift(name, BEGAN_S)
    events = shift.events(0, NOW_S)
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    moments = [parse_iso(str(one["at"])) for one in events]
    assert moments == sorted(moments)
    now = datetime.fromtimestamp(NOW_S, UTC)
    lives = lives_of(zip(events, moments, strict=True), now=now)
    assert not lives.unbelieved
    claimed = sum(isinstance(one, Claimed) for one in lives.steps)
    ended = sum(isinstance(one, Ended) for one in lives.steps)
    assert (claimed - ended, ended) == (len(shift.running(NOW_S)), shift.done(NOW_S))
    assert ended > 15


def test_who_asks_on_is_told_the_rest() -> None:
    shift = Shift("n007", BEGAN_S)
    whole = shift.events(0, NOW_S)
    after = asked_after(b'{"id":1,"do":"events","after_seq":9}')
    assert shift.events(after, NOW_S) == whole[9:]


def test_a_report_says_what_runs() -> None:
    shift = Shift("n007", BEGAN_S)
    said = [at_work(status_of("n007"), shift, BEGAN_S + second) for second in range(2 * EVERY_S)]
    assert {(one["idle"], one["running_count"], one["free_slots"]) for one in said} == {
        (True, 0, 4), (False, 1, 3)}  # fmt: skip
