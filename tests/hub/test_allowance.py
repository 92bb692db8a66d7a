"""The fleet's money a day holds wherever a hub gives work away, however short its life is."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_node.clock import SystemClock
from agent_node.strict import JsonObject, JsonValue
from arc import running
from arc.allowance import set_allowance
from arc.errors import MachineFailed, NodeUnreachable, StateBroken
from arc.hub import Hub
from arc.journal import Journal
from arc.listening import Listening
from arc.operations import LOOKS, OPERATIONS
from arc.reception import Reception
from arc.running import Upkeep, run_hub
from arc.schedule import Schedule
from arc.sensor import gives_away
from arc.settings import FleetSettings, NodeEntry, NotifyEntry, ScheduleEntry
from sensors import find_sensors
from tests.builders import uid, xfer
from tests.fleet.machines import MachineClock
from tests.hub.cli.desk import RealFleet
from tests.hub.test_fuse import meets_a_bad_disk
from tests.hub_builders import Counting, a_hub, settings_for
from tests.hub_nodes import some_nodes
from tests.sensors_stage import rows


@pytest.fixture
def real(tmp_path: Path) -> Any:
    """Two homes over pipes, one daemon, no hub yet."""
    made = RealFleet(tmp_path)
    yield made
    made.close()


async def limits_of(hub: Hub) -> list[object]:
    """What the hub's own queue says that the fleet may spend."""
    scopes = (await hub.inbox.ask("budget"))["scopes"]
    assert isinstance(scopes, list)
    return [one["limit_usd"] for one in scopes
            if isinstance(one, dict) and one["scope"] == "fleet"]


async def test_the_money_of_the_fleet_is_what_fleet_yaml_says_also_after_it_was_taken_out(
    tmp_path: Path,
) -> None:
    """Run once with the limit only said when it changes: one that was taken out while no hub ran
    held for ever.
    """
    async def limits(per_day: str | None) -> list[object]:
        hub = a_hub(tmp_path, SystemClock(), sensors=[], nodes=(), budget_per_day=per_day)
        await set_allowance(hub)
        said = await limits_of(hub)
        await hub.close()
        return said

    assert await limits(None) == []
    assert await limits("12.5") == ["12.5"]
    assert await limits("12.5") == ["12.5"]
    assert await limits(None) == []


async def test_a_limit_that_stands_is_not_written_again(tmp_path: Path) -> None:
    """Each order without a hub builds one: looking would write an event into the queue each time.
    Seen to fail without the look at what stands, and with its text compared instead of its sum.
    """
    asked = []
    for per_day in ("12.50", "12.50", "3"):
        hub = a_hub(tmp_path, SystemClock(), sensors=[], nodes=(), budget_per_day=per_day)
        before = await hub.inbox.ask("events", {"after": 0})
        await set_allowance(hub)
        asked.append(await hub.inbox.ask("events", {"after": 0}) != before)
        await hub.close()
    assert asked == [True, False, True]


async def test_one_round_by_hand_gives_nothing_away_beyond_the_day(tmp_path: Path) -> None:
    """Seen to fail: `arc up --once` ran the router, and said of its limit that none was set."""
    with some_nodes(tmp_path / "nodes", "iris", "loom") as nodes:
        clock = MachineClock(nodes.moment)
        entries = tuple(NodeEntry(name, local=True) for name in ("iris", "loom"))

        def built() -> Hub:
            return a_hub(tmp_path, clock, links=nodes.links, nodes=entries, budget_per_day="1")

        hub = built()
        tasks: list[JsonObject] = [
            {"uid": uid(n), "subject": "work", "max_cost_usd": "1"} for n in (1, 2)]
        await hub.inbox.ask("add", {"tasks": [*tasks]})
        moved = []
        for _ in range(2):
            told = await run_hub(hub, once=True)
            moved.append(sum(move.outcome == "moved" for one in told for move in one.report.moves))
            hub = built()
        await hub.close()
    assert moved == [1, 0]


async def test_a_task_that_names_no_cost_reserves_what_fleet_yaml_assumes(tmp_path: Path) -> None:
    """Seen to fail without what is assumed: all of them were given away on the same money. A
    changed word counts for the next one, also of a hub that runs.
    """
    with some_nodes(tmp_path / "nodes", "iris", "loom") as nodes:
        entries = tuple(NodeEntry(name, local=True) for name in ("iris", "loom"))
        hub = a_hub(tmp_path, MachineClock(nodes.moment), links=nodes.links, nodes=entries,
                    budget_per_day="1", assume_usd="0.6")  # fmt: skip
        tasks: list[JsonValue] = [{"uid": uid(n), "subject": "work"} for n in range(1, 5)]
        await hub.inbox.ask("add", {"tasks": tasks})
        await set_allowance(hub)
        reserved = []
        for number, assumed in ((1, "0.6"), (2, "0.6"), (3, "0.3"), (4, None)):
            await hub.follow(replace(hub.settings, assume_usd=assumed))
            move: JsonObject = {"xfer": xfer(number), "uid": uid(number), "epoch": 1}
            met = await hub.inbox.meet()
            await hub.inbox.ask("escrow", {"to": "iris", "why": "moved", "moves": [move],
                                           "incarnation": met.incarnation})  # fmt: skip
            scopes = rows((await hub.inbox.ask("budget"))["scopes"])
            (fleet,) = [one for one in scopes if one["scope"] == "fleet"]
            reserved.append((fleet["reserved_usd"], fleet["waiting"]))
        await hub.close()
    assert reserved == [("0.6", 0), ("0.6", 1), ("0.9", 1), ("0.9", 1)]


class Looking(Counting):
    """A sensor that gives no work to any node."""

    gives_away = False


async def test_a_round_whose_limit_cannot_be_set_gives_nothing_away(tmp_path: Path) -> None:
    """Nothing is given away on a limit that may be another one, and the reason is said. Seen to
    fail: health and notices did not run either.
    """
    gives = Counting("a", 300)
    looks = Looking("b", 300, lambda: asks_for_a(hub))
    hub = a_hub(tmp_path, SystemClock(), sensors=[gives, looks], nodes=(), budget_per_day="1")

    async def asks_for_a(hub: Hub) -> None:
        """As `fleet-graphs` does of the router."""
        assert hub.schedule is not None
        hub.schedule.soon("a", "a graph went on", woken=frozenset())

    (tmp_path / ".arc" / "inbox").write_text("no folder")
    told = await run_hub(hub, once=True)
    assert (gives.began, len(looks.began)) == ([], 1)
    assert [(one.report.sensor, one.report.outcome) for one in told] == [
        ("a", "failed"), ("b", "done"), ("a", "failed")]
    assert told[0].report.summary.startswith("failed: left out: inbox: ")


def test_who_gives_work_away_waits_for_the_limit(tmp_path: Path) -> None:
    """Of ours these two, and whatever another package brings."""
    giving = {one.name for one in find_sensors(every_one(tmp_path), offered=()).sensors
              if gives_away(one)}  # fmt: skip
    assert giving == {"fleet-router", "fleet-rebalance"}
    assert gives_away(Counting("of another package", 300))


def every_one(place: Path) -> FleetSettings:
    """A fleet.yaml that gives every sensor of ours something to do."""
    return settings_for(place, notify=(NotifyEntry("ada", ("parked",), command=("true",)),),
                        schedules=(ScheduleEntry("night", "0 2 * * *", task={"subject": "x"}),))


async def test_a_disk_that_breaks_over_the_limit_ends_the_hub_and_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: it ended as a node that was not reached, and the log had no line of it."""
    looks = Looking("b", 300)
    hub = a_hub(tmp_path, SystemClock(), sensors=[looks], nodes=(), budget_per_day="1")

    async def breaks(hub: Hub) -> None:
        await meets_a_bad_disk(hub)
        raise NodeUnreachable("inbox", "its disk failed")

    monkeypatch.setattr(running, "set_allowance", breaks)
    with pytest.raises(MachineFailed, match="its disk failed"):
        await run_hub(hub, once=True)
    assert looks.began == []
    journal = Journal(tmp_path / ".arc" / "journal.db", SystemClock())
    assert [line.event for line in journal.runs.lines()].count("inbox_disk_broken") == 1
    journal.close()


async def test_the_limit_holds_before_the_first_sensor_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was set beside the first runs, and beside the first orders that the door took."""
    stop = asyncio.Event()
    found: dict[str, object] = {}
    hub = a_hub(tmp_path, SystemClock(), sensors=[], nodes=(), budget_per_day="1")

    async def opens(reception: Reception) -> None:
        found["orders"] = await limits_of(hub)

    def starts(schedule: Schedule) -> None:
        found["runs"] = hub.allowance
        stop.set()

    monkeypatch.setattr(Reception, "open", opens)
    monkeypatch.setattr(Schedule, "start", starts)
    async with asyncio.timeout(20):
        await run_hub(hub, stop=stop)
    assert found == {"orders": ["1"], "runs": ("1", False)}


async def test_a_trouble_beside_it_keeps_no_limit_from_being_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the steps were one chain, and the first that failed ended it."""
    hub = a_hub(tmp_path, SystemClock(), sensors=[], nodes=(), budget_per_day="1")
    said: list[str] = []
    schedule = Schedule(hub)
    upkeep = Upkeep(hub, schedule, Listening(hub, schedule), said.append)

    async def fails() -> None:
        raise StateBroken("the words cannot be read")

    monkeypatch.setattr(upkeep, "_follow_file", fails)
    monkeypatch.setattr(hub, "follow_words", fails)
    for _ in range(2):
        await upkeep.look()
    assert (len(said), said[0].count("the words cannot be read")) == (1, 1), "each trouble once"
    assert await limits_of(hub) == ["1"]
    await hub.close()


@pytest.mark.parametrize("fails", ["the door", "the sources"])
async def test_no_trouble_keeps_the_hub_from_keeping_its_time_and_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Seen to fail: where the door could not be opened again, the journal grew for ever, and a
    clock that was set kept every sensor waiting.
    """
    hub = a_hub(tmp_path, SystemClock(), sensors=[], nodes=())
    done: list[str] = []
    schedule = Schedule(hub)
    upkeep = Upkeep(hub, schedule, Listening(hub, schedule), done.append, Reception(hub))

    def breaks(*given: object) -> None:
        raise StateBroken(f"{fails} cannot be kept")

    if fails == "the door":
        monkeypatch.setattr(upkeep.reception, "keep", breaks)
    else:
        monkeypatch.setattr(hub.journal.work, "forget_others", breaks)
    monkeypatch.setattr(schedule, "keep_time", lambda: done.append("time"))
    monkeypatch.setattr(hub.journal, "prune", lambda by_age: done.append("journal"))
    await upkeep.look()
    assert done == ["time", "journal", f"{fails} cannot be kept\nthe hub runs on with what it knew"]
    assert fails == "the door" or upkeep.sources_of is None, "it is tried again"
    await hub.close()


def test_without_a_hub_the_limit_is_told_and_obeyed(real: RealFleet) -> None:
    """Seen to fail: `arc budget` said that no limit was set, and the router went by none."""
    real.file.write_text(real.file.read_text() + 'budget: {per_day: "1"}\n')
    (limit,) = real.arc("budget", "--json").data["scopes"]
    assert (limit["scope"], limit["limit_usd"], limit["remaining_usd"]) == ("fleet", "1", None)
    added = real.arc("tasks", "add", "work", "--max-cost", "5", "--json")
    (limit,) = real.arc("budget", "--json").data["scopes"]
    assert (limit["scope"], limit["limit_usd"], limit["remaining_usd"]) == ("fleet", "1", "1")
    real.arc("sensors", "run", "fleet-router")
    task = real.arc("tasks", "show", added.data["results"][0]["uid"], "--json").data["task"]
    assert (task["state"], "over_budget" in str(task["blocked_by"])) == ("PENDING", True)


def test_without_a_hub_what_names_no_cost_reserves_what_is_assumed(real: RealFleet) -> None:
    """Fails where only a hub that runs, and read the file anew, tells its queue."""
    real.file.write_text(real.file.read_text() + 'budget: {per_day: "1", assume_usd: "0.6"}\n')
    for subject in ("one", "two"):
        real.arc("tasks", "add", subject)
    real.arc("sensors", "run", "fleet-router")
    (fleet,) = [one for one in real.arc("budget", "--json").data["scopes"]
                if one["scope"] == "fleet"]  # fmt: skip
    assert (fleet["reserved_usd"], fleet["remaining_usd"], fleet["waiting"]) == ("0.6", "0.4", 1)


def test_a_limit_that_cannot_be_set_is_said_with_what_was_asked(real: RealFleet) -> None:
    """Who looks at a fleet in trouble is answered all the same."""
    real.file.write_text(real.file.read_text() + 'budget: {per_day: "1"}\n')
    (real.place / ".arc").mkdir(mode=0o700)
    (real.place / ".arc" / "inbox").write_text("no folder")
    ran = real.arc("sensors", "run", "fleet-health")
    assert "the limit in fleet.yaml (budget) was not set: inbox: " in ran.err
    ran = real.arc("budget")
    assert ran.code == 3
    assert "inbox: the hub's own queue cannot be opened" in ran.err


def test_who_only_looks_sets_no_limit_and_is_told_so(real: RealFleet) -> None:
    """Seen to fail: `arc plan`, and whatever was only tried, set a changed limit, and `arc log`
    opened the queue.
    """
    real.file.write_text(real.file.read_text() + 'budget: {per_day: "1"}\n')
    inbox = real.place / ".arc" / "inbox"
    assert "the limit in fleet.yaml (budget) is not set yet" in real.arc("log").err
    assert not inbox.exists(), "nobody had anything to look for in it"
    real.arc("plan")
    real.arc("nodes", "pause", "iris", "--dry-run")
    assert limits(real) == []
    real.arc("tasks", "add", "work")
    assert limits(real) == ["1"]
    assert real.arc("log").err == ""


def limits(real: RealFleet) -> list[str]:
    """The limits that stand in the hub's own queue."""
    with closing(sqlite3.connect(real.place / ".arc" / "inbox" / "queue.db")) as database:
        return [limit for (limit,) in database.execute("SELECT limit_usd FROM budget")]


def test_what_only_looks_is_an_operation() -> None:
    assert OPERATIONS.keys() >= LOOKS
