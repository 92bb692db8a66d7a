"""The report says what the database says, and `idle` is true exactly when the rule says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_node.clock import iso
from agent_node.config import MIB, AgentSettings, NodeSettings
from agent_node.queries import AgentFacts, Doubt, NodeFacts
from agent_node.reports import parse_report
from agent_node.status import build_report
from tests.builders import START, uid, xfer

AGENT = AgentSettings(name="iris", run=("true",), slots=2, skills=("web", "db"))
SETTINGS = NodeSettings(name="iris", disk_floor=0, agents=(AGENT,))
FACTS = NodeFacts(
    name="iris", incarnation="01J", generation=5, state="active", reason="", term=0, hub=None,
    fleet=None, xfer_floor="", waits_for_hub=False, counts={}, movable=0, oldest_ready_at=None,
    oldest_held_at=None, idle_since="2026-03-10T03:40:00.000Z",
    agents=(AgentFacts("iris", "active", 2, 0, None),), domains={}, last_task=None, next_at=None,
    next_lease=None, drain_until=None, drain_then=None, event_seq=0,
)  # fmt: skip


def held(age_s: float) -> Doubt:
    return Doubt(xfer(1), uid(1), 1, "taker", "HELD", "loom", None, age_s)


def report(
    *doubts: Doubt, dispatching: bool = True, **facts: Any
) -> dict[str, Any]:
    return build_report(
        replace(FACTS, **facts), doubts, settings=SETTINGS, now=START, disk_free=MIB,
        dispatching=dispatching, version="0.1.0",
    )  # fmt: skip


def test_an_empty_running_node_is_idle_since_its_last_task() -> None:
    said = report()
    assert (said["idle"], said["idle_since"]) == (True, "2026-03-10T03:40:00.000Z")
    assert (said["schema"], said["written_at"]) == ("fleet-status/1", iso(START))


@pytest.mark.parametrize("facts", [
    {"idle_since": "2026-03-12T03:45:00.000Z"},
    {"idle_since": None, "last_task": {"ended_at": "2026-03-12T03:45:00.000Z"}},
], ids=["by its own word", "by its last task"])  # fmt: skip
def test_a_node_is_never_idle_since_a_time_to_come(facts: dict[str, Any]) -> None:
    """The clock was put back. Seen to fail: a hub that read it believed nothing of the report."""
    said = report(**facts)
    assert (said["idle"], said["idle_since"]) == (True, said["written_at"])


@pytest.mark.parametrize(
    ("idle", "why", "facts"),
    [
        (False, "a task waits", {"counts": {"READY": 1}}),
        (False, "claimed", {"counts": {"CLAIMED": 1}}),
        (False, "running", {"counts": {"RUNNING": 1}}),
        (False, "validating", {"counts": {"VALIDATING": 1}}),
        (False, "on its way out", {"counts": {"ESCROW": 1}}),
        (True, "waits for its time", {"counts": {"CREATED": 1, "PENDING": 1, "RETRYING": 1}}),
        (True, "over", {"counts": {"COMPLETED": 9, "PARKED": 1, "DEAD_LETTERED": 2}}),
        (False, "paused", {"state": "paused"}),
        (False, "draining", {"state": "draining"}),
        (False, "quarantined", {"state": "quarantined"}),
    ],
)
def test_idle_is_true_exactly_when_nothing_waits_runs_or_travels(
    idle: bool, why: str, facts: dict[str, Any]
) -> None:
    said = report(**facts)
    assert said["idle"] is idle, why
    assert (said["idle_since"] is not None) is idle


def test_a_node_whose_dispatcher_is_stopped_is_never_idle() -> None:
    """Guard: `dispatching and` in the rule. Without it a dead node attracts work; seen."""
    said = report(dispatching=False)
    assert (said["dispatcher"], said["idle"], said["idle_since"]) == ("stopped", False, None)


def test_a_daemon_that_cannot_start_anything_says_so() -> None:
    """A machine below its floor, or without its agent's program, looks idle and healthy."""
    gone = AgentFacts("iris", "missing", 2, 0, None, "there is no program no-such-program here")
    said = build_report(replace(FACTS, agents=(gone,)), (),
                        settings=replace(SETTINGS, disk_floor=2**30), now=START, disk_free=7,
                        dispatching=True, version="1")  # fmt: skip
    again = "it is given work again once it can be started: agent-node doctor"
    assert said["needs_you"] == [
        "7 B of disk are free, less than disk_floor (1.0 GiB): nothing starts or is taken in",
        f"agent iris: there is no program no-such-program here; {again}",
    ]


@pytest.mark.parametrize(("agent", "outcome", "typed"), [
    ("iris", "failed", f"agent-node log {uid(7)} --stderr"),
    ("loom", "failed", "agent-node list --state RETRYING --state DEAD_LETTERED"),
    ("iris", "interrupted", "agent-node list --state RETRYING --state DEAD_LETTERED"),
])  # fmt: skip
def test_an_agent_that_fails_everything_is_named_with_what_to_type(
    agent: str, outcome: str, typed: str
) -> None:
    """Seen to fail: `agent iris fails again and again`, and nothing that a person could do."""
    failing = AgentFacts("iris", "failing", 2, 0, None)
    last = {"uid": uid(7), "n": 1, "agent": agent, "outcome": outcome}
    said = report(agents=(failing,), last_task=last)
    assert said["needs_you"] == [f"agent iris fails again and again: {typed}"]


def test_an_agent_without_its_program_has_no_slot_and_is_held_like_a_paused_one() -> None:
    """Seen to fail: the hub sent it work. `paused` is what a hub of before knows of it."""
    gone = AgentFacts("iris", "missing", 2, 0, None, "there is no program claude here")
    said = report(incarnation=uid(9), agents=(gone, AgentFacts("loom", "active", 1, 0, None)))
    first = said["agents"][0]
    assert (said["free_slots"], said["slots"]) == (1, 3)
    assert (first["state"], first["paused"], first["held"]) == ("available", True, "missing")
    assert parse_report(said).agents[0].missing == "there is no program claude here"
    assert parse_report(said).agents[1].missing == ""


@pytest.mark.parametrize(
    ("disk_floor", "disk_free", "free_slots"),
    [(8 * MIB, 8 * MIB, 2), (8 * MIB, 8 * MIB - 1, 0), (0, MIB, 2), (0, MIB - 1, 0)],
)
def test_a_node_below_its_floor_of_disk_has_no_slot_to_fill(
    disk_floor: int, disk_free: int, free_slots: int
) -> None:
    """Seen to fail: what waited there counted as work that it starts at once by itself, and stayed
    beside idle machines until somebody made room; and so where the floor is 0 and the disk is full.
    """
    said = build_report(FACTS, (), settings=replace(SETTINGS, disk_floor=disk_floor),
                        now=START, disk_free=disk_free, dispatching=True, version="1")  # fmt: skip
    assert (said["free_slots"], said["idle"]) == (free_slots, True)
    assert bool(said["needs_you"]) is (free_slots == 0)


def test_a_full_disk_needs_a_person_where_the_floor_is_0() -> None:
    said = build_report(FACTS, (), settings=SETTINGS, now=START, disk_free=7, dispatching=True,
                        version="1")  # fmt: skip
    why = "less than an attempt's own files may take (1.0 MiB): nothing starts or is taken in"
    assert said["needs_you"] == [f"7 B of disk are free, {why}"]


def test_a_disk_that_does_not_say_how_large_it_is_is_not_full() -> None:
    """A ramfs has 0 bytes of 0 free, and room."""
    said = build_report(FACTS, (), settings=SETTINGS, now=START, disk_free=0, disk_total=0,
                        dispatching=True, version="1")  # fmt: skip
    assert (said["free_slots"], said["needs_you"]) == (2, [])


@pytest.mark.parametrize(("age_s", "idle"), [(0.0, False), (599.999, False), (600.0, True)])
def test_a_copy_held_for_ten_minutes_no_longer_blocks_and_needs_you(
    age_s: float, idle: bool
) -> None:
    said = report(held(age_s), counts={"HELD": 1})
    assert said["idle"] is idle
    assert bool(said["needs_you"]) is idle
    assert said["doubts"][0]["state"] == "HELD"


def test_a_held_copy_that_stopped_blocking_does_not_backdate_idleness() -> None:
    said = report(held(660.0), counts={"HELD": 1}, idle_since=None)
    assert said["idle_since"] == "2026-03-10T03:44:00.000Z"


def test_counts_slots_and_ages_are_what_the_database_says() -> None:
    agents = (AgentFacts("iris", "active", 3, 1, "2026-03-10T03:44:59.000Z"),
              AgentFacts("slow", "paused", 2, 0, None))  # fmt: skip
    said = report(
        counts={"READY": 4, "RUNNING": 1, "CLAIMED": 1, "COMPLETED": 0}, agents=agents, movable=3,
        oldest_ready_at="2026-03-10T03:44:00.000Z",
    )  # fmt: skip
    assert (said["pending_count"], said["running_count"], said["movable_count"]) == (4, 2, 3)
    assert (said["slots"], said["free_slots"]) == (5, 2)
    assert said["counts"] == {"CLAIMED": 1, "READY": 4, "RUNNING": 1}
    assert said["oldest_ready_s"] == 60.0
    assert said["skills"] == ["db", "web"]
    assert said["agents"][0]["skills"] == ["web", "db"]


@pytest.mark.parametrize(
    ("agent", "state"),
    [
        (AgentFacts("a", "active", 2, 1, None), "available"),
        (AgentFacts("a", "active", 2, 2, None), "full"),
        (AgentFacts("a", "failing", 2, 0, None), "failing"),
    ],
)
def test_an_agent_is_available_full_or_failing(agent: AgentFacts, state: str) -> None:
    assert report(agents=(agent,))["agents"][0]["state"] == state


@pytest.mark.parametrize(("running", "state"), [(1, "draining"), (0, "drained")])
def test_a_draining_node_has_drained_when_nothing_runs(running: int, state: str) -> None:
    assert report(state="draining", counts={"RUNNING": running})["state"] == state


def test_a_clock_that_was_set_back_gives_no_negative_age() -> None:
    said = report(counts={"READY": 1}, oldest_ready_at="2026-03-10T04:00:00.000Z")
    assert said["oldest_ready_s"] == 0.0


def test_agents_are_shown_before_a_daemon_has_ever_run() -> None:
    said = report(agents=(), dispatching=False)
    assert [agent["name"] for agent in said["agents"]] == ["iris"]
    assert said["slots"] == 2


def test_a_state_that_no_version_has_is_not_repeated() -> None:
    """Seen to fail with every name taken: an escape in one reached the operator's terminal."""
    said = report(incarnation=uid(1))
    said["counts"] = {"\x1b[31mREADY": 5, "READY": 1, "LATER_STATE": 2}
    assert parse_report(said).counts == {"READY": 1, "LATER_STATE": 2}


def test_what_waits_where_no_daemon_runs_any_more_needs_a_person() -> None:
    """Seen to fail: said only of a node whose daemon had never run."""
    assert report(counts={"READY": 2}, dispatching=False)["needs_you"] == [
        "2 READY, and no daemon runs here: agent-node start"]
    assert report(counts={}, dispatching=False)["needs_you"] == []
    assert report(counts={"READY": 2}, state="paused", dispatching=False)["needs_you"] == []
    assert report(counts={"READY": 2})["needs_you"] == []


def test_a_node_whose_daemon_never_ran_says_so_and_nothing_of_needs() -> None:
    """Seen to fail with the needs compared to agents that the store does not know yet."""
    said = report(agents=(), counts={"READY": 2}, unmet=(((), 2),), dispatching=False)
    assert said["needs_you"] == ["2 READY, and no daemon has run here yet: agent-node run"]
    assert report(agents=(), counts={}, dispatching=False)["needs_you"] == []


def test_a_node_that_names_no_agent_is_not_told_to_start_its_daemon() -> None:
    """Seen to fail: `agent-node run` ran, started nothing, and was asked for again."""
    for dispatching in (False, True):
        said = build_report(
            replace(FACTS, agents=(), counts={"READY": 2}), (), disk_free=MIB, now=START,
            settings=replace(SETTINGS, agents=()), dispatching=dispatching, version="0",
        )  # fmt: skip
        text = "no agent here has a program for them: node.toml names none; agent-node doctor"
        assert said["needs_you"] == [f"2 READY, but {text}"]


def test_what_no_agent_here_can_run_is_counted_and_said() -> None:
    """Seen to fail with the count left out: a hub took it for work that starts here at once."""
    said = report(counts={"READY": 3}, unmet=((("gpu",), 2),), incarnation=uid(1))
    assert parse_report(said).unmet_count == 2
    assert "2 READY, but no agent here has: gpu" in said["needs_you"]
    assert parse_report(said).unmet_needs == ((("gpu",), 2),)
    assert report(agents=(), counts={"READY": 2}, unmet=(((), 2),))["unmet_count"] == 0
    # Those beyond what is listed by kind are counted with them.
    assert report(counts={"READY": 9}, unmet=((("gpu",), 2),), unmet_more=5)["unmet_count"] == 7


@pytest.mark.parametrize("wrong", [
    None, "gpu", [1], [{"needs": "gpu", "count": 2}], [{"needs": ["gpu"], "count": "many"}],
    [{"needs": ["gpu"], "count": 0}],
])  # fmt: skip
def test_needs_that_are_told_wrongly_make_no_report_unreadable(wrong: Any) -> None:
    """They are for people: no rule looks at them."""
    assert parse_report({**report(incarnation=uid(1)), "unmet_needs": wrong}).unmet_needs == ()
