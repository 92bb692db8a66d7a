"""The hub holds its lease, follows fleet.yaml and people's words, and wakes when nodes say so."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_node.clock import Clock, SystemClock
from agent_node.news import news_between
from agent_node.strict import JsonObject
from arc.config import read_fleet
from arc.errors import OtherHub
from arc.hub import INBOX, Hub, build_hub
from arc.journal_work import CRON
from arc.links import HEARS_NOW, EventHeard, HelloWords, Link, Met, Told
from arc.links.standing import Fenced
from arc.listening import Listening
from arc.running import Upkeep, run_hub
from arc.schedule import Schedule
from arc.settings import FleetSettings, NodeEntry, ScheduleEntry
from tests.builders import FakeClock
from tests.hub_builders import Counting, a_hub, scheduler_time
from tests.virtual_time import LoopClock, VirtualLoop

Story = Callable[[Listening, list[Counting]], Awaitable[None]]

FLEET = """\
version: 1
fleet: arc0
nodes:
  - {name: loom, host: loom.lan, user: agent, owns: []}
"""


class StillLink:
    """A node that is never reached: it only remembers what was done to it."""

    def __init__(self, name: str, words: HelloWords) -> None:
        self.name, self.words, self.requests, self.closed = name, words, 0, 0
        self.met: Met | None = None
        self.heard_by: EventHeard | None = None

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        raise AssertionError(f"{self.name} was asked {do}")

    async def meet(self, *, anew: bool = False) -> Met:
        old = "a later hub" if self.words.term <= 5 else ""
        return Met(self.name, "LIFE", 1, self.words.term, "active", "0.1.0", 1,
                   waits_for_hub=False, at="", clock_off_s=0.0, old_term=old)  # fmt: skip

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        return False

    async def listen(self, heard: EventHeard) -> None:
        self.heard_by = heard

    async def close(self) -> None:
        self.closed += 1


def still(link: Link) -> StillLink:
    """The link as what it is here."""
    assert isinstance(link, StillLink)
    return link


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[StillLink]:
    """Links that go nowhere, in the place of real ones; every one that was ever opened."""
    links: list[StillLink] = []

    def open_links(
        settings: FleetSettings, words: HelloWords, *, clock: Clock, rng: Random,
        is_fenced: Fenced, broke: Callable[[str], None], skip: frozenset[str],
    ) -> dict[str, StillLink]:  # fmt: skip
        fresh = {name: StillLink(name, words)
                 for name in (INBOX, *(node.name for node in settings.nodes)) if name not in skip}
        links.extend(fresh.values())
        return fresh

    monkeypatch.setattr("arc.hub.open_links", open_links)
    return links


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path


async def test_a_second_hub_does_not_start_on_the_same_state(
    fleet: Path, opened: list[StillLink],
) -> None:
    hub = build_hub(read_fleet(fleet))
    with pytest.raises(OtherHub, match=f"process {os.getpid()}"):
        build_hub(read_fleet(fleet))
    await hub.close()
    await build_hub(read_fleet(fleet)).close()


async def test_a_hub_that_cannot_be_built_gives_the_lease_back(
    fleet: Path, opened: list[StillLink],
) -> None:
    state = read_fleet(fleet).state
    state.mkdir()
    (state / "journal.db").mkdir()
    for _ in range(2):
        with pytest.raises(Exception, match="journal cannot be used"):
            build_hub(read_fleet(fleet))


async def test_a_node_that_is_added_removed_or_moved_is_followed(
    fleet: Path, opened: list[StillLink],
) -> None:
    hub = build_hub(read_fleet(fleet))
    loom, inbox = still(hub.links["loom"]), still(hub.inbox)
    one = hub.settings.nodes[0]

    await hub.follow(replace(hub.settings, nodes=(one, NodeEntry("iris", host="iris.lan"))))
    assert hub.links.keys() == {"loom", "iris", INBOX}
    assert hub.links["loom"] is loom

    await hub.follow(replace(hub.settings, nodes=(replace(one, owns=("research",)),)))
    assert hub.links == {"loom": loom, INBOX: inbox}
    assert hub.roles()["loom"].owns == ("research",)

    await hub.follow(replace(hub.settings, nodes=(replace(one, port=2222),)))
    assert hub.links["loom"] is not loom
    assert loom.closed == 1
    assert inbox.closed == 0
    await hub.close()


async def test_new_domains_are_said_to_every_node_in_a_new_hello(
    fleet: Path, opened: list[StillLink],
) -> None:
    from arc.decisions.domains import Domain

    hub = build_hub(read_fleet(fleet))
    before = still(hub.links["loom"]).words.domains["version"]
    await hub.follow(replace(hub.settings, domains=(Domain("research", skills=("x",)),)))
    domains = still(hub.links["loom"]).words.domains
    assert domains["version"] != before
    assert isinstance(domains["research"], dict)
    assert domains["research"]["skills"] == ["x"]
    await hub.close()


async def test_a_suspended_node_is_let_go_and_taken_up_again(
    fleet: Path, opened: list[StillLink],
) -> None:
    hub = build_hub(read_fleet(fleet))
    hub.journal.words.suspend("loom", reason="x", by="me")
    assert await hub.follow_words()
    assert hub.links.keys() == {INBOX}
    assert not await hub.follow_words()

    hub.journal.words.unsuspend("loom")
    assert await hub.follow_words()
    assert hub.links.keys() == {"loom", INBOX}
    await hub.close()


async def test_a_take_over_speaks_above_every_hub_that_was_heard(
    fleet: Path, opened: list[StillLink],
) -> None:
    hub = build_hub(read_fleet(fleet), take_over=True)
    assert await hub.outbid() > 5
    assert still(hub.links["loom"]).words.term == hub.lease.term
    await hub.close()

    again = build_hub(read_fleet(fleet))
    assert again.lease.term > 5
    await again.close()


def rewrite(path: Path, text: str) -> None:
    """Somebody saves the file."""
    path.write_text(text)


def upkeep_of(hub: Hub, said: list[str]) -> Upkeep:
    schedule = Schedule(hub)
    return Upkeep(hub, schedule, Listening(hub, schedule), said.append)


async def test_a_bad_fleet_yaml_changes_nothing_and_is_said_once(
    fleet: Path, opened: list[StillLink],
) -> None:
    """With the last good settings dropped, or the complaint repeated, this fails."""
    hub = build_hub(read_fleet(fleet), clock=FakeClock())
    said: list[str] = []
    upkeep = upkeep_of(hub, said)
    upkeep.stamp = (1, 1, 1)
    rewrite(fleet, FLEET + "nonsense: true\n")
    for _ in range(3):
        await upkeep.look()
    assert len(said) == 1
    assert "nonsense" in said[0]
    assert "nonsense" in hub.complaint  # `arc status` shows it for as long as it is so
    assert hub.complaint.startswith("line ")
    assert hub.settings.node("loom") is not None

    rewrite(fleet, FLEET.replace("loom", "iris"))
    upkeep.stamp = (2, 2, 2)
    await upkeep.look()
    assert hub.links.keys() == {"iris", INBOX}
    assert said[-1] == "fleet.yaml changed: 1 nodes, arc0"
    assert hub.complaint == ""
    assert [one.event for one in hub.journal.runs.lines()] == [
        "settings_refused", "settings_followed"]
    await hub.close()


async def test_a_fleet_yaml_that_is_gone_for_a_moment_is_no_empty_fleet(
    fleet: Path, opened: list[StillLink],
) -> None:
    hub = build_hub(read_fleet(fleet), clock=FakeClock())
    said: list[str] = []
    upkeep = upkeep_of(hub, said)
    upkeep.stamp = (1, 1, 1)
    os.unlink(fleet)
    await upkeep.look()
    assert "is not there" in said[0]
    assert "loom" in hub.links
    await hub.close()


async def test_once_runs_each_sensor_once_and_gives_everything_back(tmp_path: Path) -> None:
    some = [Counting("a", 300), Counting("b", 300)]
    told = await run_hub(a_hub(tmp_path, SystemClock(), sensors=some), once=True)
    assert [(one.report.sensor, one.because) for one in told] == [
        ("a", "arc up --once"), ("b", "arc up --once")]
    await a_hub(tmp_path, SystemClock()).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_hub_in_order(tmp_path: Path, number: signal.Signals) -> None:
    hub = a_hub(tmp_path, SystemClock(), sensors=[Counting("a", 300)])
    heard = asyncio.Event()
    running = asyncio.create_task(run_hub(hub, heard=lambda told: heard.set()))
    await asyncio.wait_for(heard.wait(), 10)
    os.kill(os.getpid(), number)
    await asyncio.wait_for(running, 10)
    assert not (hub.settings.state / "hub.sock").exists()
    await a_hub(tmp_path, SystemClock()).close()


def woken(place: Path, story: Story, **fields: Any) -> list[tuple[float, str, str]]:
    """Tell a story with ears; when which sensor ran, and why."""
    loop = VirtualLoop()
    clock = LoopClock(loop)
    told: list[tuple[float, str, str]] = []

    async def tell() -> None:
        names = ("fleet-router", "fleet-rebalance", "fleet-graphs")
        some = [Counting(name, 300.0) for name in names]
        hub = a_hub(place, clock, sensors=some, **fields)
        schedule = Schedule(hub, lambda one: told.append(
            (loop.time(), one.report.sensor, one.because)))
        listening = Listening(hub, schedule)
        listening.start()
        await story(listening, some)
        await listening.stop()
        await schedule.stop()
        await hub.close()

    with scheduler_time(clock):
        loop.run_until_complete(tell())
    loop.close()
    return told


def swift() -> dict[str, Any]:
    from arc.decisions.limits import StealLimits

    return {"policy": "swift", "steal": StealLimits(policy="swift")}


@pytest.mark.parametrize("awaiting", [True, False])
def test_a_task_that_finished_is_told_at_once_where_somebody_waits_for_one(
    tmp_path: Path, awaiting: bool
) -> None:
    """Also under arc0. Seen to fail with the guard taken away: every task of a fleet without graphs
    would start a run.
    """

    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.hub.awaiting = awaiting
        assert listening.wanted is awaiting
        listening.heard("loom", "task_finished")
        listening.heard("iris", "task_started")
        await asyncio.sleep(1)

    told = woken(tmp_path, story)
    assert told == ([(0.0, "fleet-graphs", "news from loom")] if awaiting else [])


def test_what_ended_before_a_node_was_listened_to_is_looked_for_at_once(tmp_path: Path) -> None:
    """Seen to fail: under arc0 nodes are listened to once somebody waits, up to two seconds later;
    a graph whose first task was over by then went on at the next minute.
    """
    words = HelloWords("arc0", "arc", 1, "01HVB0000000000000000000AA", {"version": "1"})

    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.hub.links["loom"] = StillLink("loom", words)
        await listening.follow()
        await asyncio.sleep(1)
        assert not still(listening.hub.links["loom"]).heard_by, "nobody waits yet"
        listening.hub.awaiting = True
        for _ in range(3):
            await listening.follow()
            await asyncio.sleep(2)

    assert woken(tmp_path, story) == [(1.0, "fleet-graphs", "news from inbox, loom")]


def test_under_swift_a_free_slot_is_served_at_once(tmp_path: Path) -> None:
    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.heard("loom", "free_slot")
        await asyncio.sleep(1)

    told = woken(tmp_path, story, **swift())
    assert told == [(0.0, "fleet-router", "news from loom"),
                    (0.0, "fleet-rebalance", "news from loom")]  # fmt: skip


def test_what_a_node_said_while_its_link_was_down_is_looked_for_when_it_is_back(
    tmp_path: Path,
) -> None:
    """Seen to fail: a slot that became free during a reconnect stayed idle beside waiting work
    until the sweep, up to a minute later.
    """

    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.hub.awaiting = True
        listening.heard("loom", HEARS_NOW)
        await asyncio.sleep(1)

    told = woken(tmp_path, story, **swift())
    assert told == [(0.0, "fleet-graphs", "news from loom"),
                    (0.0, "fleet-router", "news from loom"),
                    (0.0, "fleet-rebalance", "news from loom")]  # fmt: skip


def test_a_node_that_starts_a_task_is_given_the_next_one_from_the_hub(tmp_path: Path) -> None:
    """Guard removed once (only idle and free slots wake the router): nothing ran, nothing waited at
    hand, and every second short task of the hub waited for a whole cycle.
    """

    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.heard("loom", "task_started")
        await asyncio.sleep(1)

    assert woken(tmp_path, story, **swift()) == [(0.0, "fleet-router", "news from loom")]


def test_a_node_that_says_anything_is_looked_at_again_in_the_next_run(tmp_path: Path) -> None:
    async def story(listening: Listening, some: list[Counting]) -> None:
        for event in ("busy", "state_changed", "task_finished"):
            listening.heard(f"n-{event.replace('_', '-')}", event)
        assert listening.hub.stirred == {"n-busy", "n-state-changed", "n-task-finished"}

    assert woken(tmp_path, story, **swift()) == [], "none of these says that there is work to give"


def test_a_task_at_the_hub_wakes_the_router_and_surplus_on_a_node_the_rebalance(
    tmp_path: Path
) -> None:
    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.heard(INBOX, "task_ready")
        await asyncio.sleep(1)
        listening.heard("iris", "task_ready")
        await asyncio.sleep(1)

    told = woken(tmp_path, story, **swift())
    assert [sensor for _, sensor, _ in told] == ["fleet-router", "fleet-rebalance"]


def test_what_comes_in_during_a_run_is_served_by_the_next_one_together(tmp_path: Path) -> None:
    """A storm of events is no storm of runs."""

    async def story(listening: Listening, some: list[Counting]) -> None:
        some[1].act = lambda: asyncio.sleep(10)
        listening.heard("iris", "task_ready")
        await asyncio.sleep(1)
        for number in range(100):
            listening.heard(f"n{number % 3}", "task_ready")
        await asyncio.sleep(30)
        assert some[1].most == 1

    told = woken(tmp_path, story, **swift())
    assert [because for _, _, because in told] == ["news from iris", "news from n0, n1, n2"]


def test_under_arc0_an_event_starts_nothing(tmp_path: Path) -> None:
    async def story(listening: Listening, some: list[Counting]) -> None:
        for event in ("idle", "free_slot", "task_ready"):
            listening.heard("loom", event)
        await asyncio.sleep(1000)

    assert woken(tmp_path, story) == []


def test_on_idle_waits_until_the_node_has_been_idle_for_the_minimum(tmp_path: Path) -> None:
    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.heard("loom", "idle")
        await asyncio.sleep(60)
        listening.heard("loom", "busy")
        await asyncio.sleep(200)
        listening.heard("loom", "idle")
        await asyncio.sleep(200)

    told = woken(tmp_path, story, on_idle=True)
    assert told == [(380.0, "fleet-rebalance", "news from loom")]


def test_what_a_node_says_beside_idle_does_not_end_the_wait(tmp_path: Path) -> None:
    """Seen to fail: with `idle` a node says `free_slot`, in this order, and that one ended the wait
    for the minimum; no node that became idle ever started a cycle.
    """
    busy: JsonObject = {"idle": False, "free_slots": 0, "pending_count": 0, "state": "active"}
    said, _ = news_between(news_between((), busy)[1], busy | {"idle": True, "free_slots": 1})

    async def story(listening: Listening, some: list[Counting]) -> None:
        for event in ("task_finished", *said):
            listening.heard("loom", event)
        await asyncio.sleep(200)

    assert said == ["idle", "free_slot"]
    told = woken(tmp_path, story, on_idle=True)
    assert told == [(120.0, "fleet-rebalance", "news from loom")]


def test_a_link_that_comes_back_again_and_again_puts_no_idle_node_off(tmp_path: Path) -> None:
    """Seen to fail: each time the minimum began anew. As the node may have been busy meanwhile, it
    is looked at once more when the minimum is over that began last; one timer is kept at most.
    """

    async def story(listening: Listening, some: list[Counting]) -> None:
        for _ in range(5):
            listening.heard("loom", HEARS_NOW)
            listening.heard("loom", "idle")
            assert len(listening._waits) == 1
            await asyncio.sleep(50)
        await asyncio.sleep(500)

    told = woken(tmp_path, story, on_idle=True)
    assert [at for at, _, _ in told] == [120.0, 240.0, 360.0]


def test_a_disabled_sensor_is_not_woken(tmp_path: Path) -> None:
    from arc.settings import SensorEntry

    async def story(listening: Listening, some: list[Counting]) -> None:
        listening.heard("loom", "free_slot")
        await asyncio.sleep(1)

    off = {"fleet-rebalance": SensorEntry(300.0, enabled=False)}
    told = woken(tmp_path, story, entries=off, **swift())
    assert [sensor for _, sensor, _ in told] == ["fleet-router"]


async def test_a_schedule_that_was_taken_out_and_comes_back_begins_anew(tmp_path: Path) -> None:
    """Run once without: a month that it was not wanted was caught up with."""
    night = ScheduleEntry("night", "0 2 * * *", task={"subject": "x"})

    async def seen_to(*schedules: ScheduleEntry) -> object:
        hub = a_hub(tmp_path, SystemClock(), sensors=[], nodes=(), schedules=schedules)
        await upkeep_of(hub, []).look()
        last = hub.journal.work.last(CRON, "night")
        if schedules and last is None:
            hub.journal.work.begin(CRON, "night", "0 2 * * * UTC", hub.clock.now())
        await hub.close()
        return last

    assert await seen_to(night) is None
    assert await seen_to(night) is not None
    assert await seen_to() is None
    assert await seen_to(night) is None
