"""Why each task of a list waits, or stands where it is, as its node says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_node.commands import (
    AgentRow,
    Because,
    Claim,
    Claimed,
    Finish,
    NothingToClaim,
    Result,
    SetAgents,
    Stalled,
)
from agent_node.queries import Listed
from agent_node.standing import TEXT_MAX, NodeNow, Standing, node_now, reason_of
from agent_node.store import standings
from agent_node.strict import LINE_MAX
from agent_node.takeover import TakenOver
from agent_node.task import task_from
from agent_node.wire import listed_out, result_line
from tests.builders import NodeAtHand, a_task, uid
from tests.node.store.test_sqlite import Sqlite, read_only
from tests.node.wire import talking
from tests.node.wire.talking import Talk, a_move, a_settle, offers_of

FROM_IRIS: dict[str, Any] = {"from": "iris"}  # `from` is no name that Python lets a call use
FROM_LOOM: dict[str, Any] = {"from": "loom"}
HELLO: dict[str, Any] = {"fleet": "arc0", "hub": "arc", "wire": [1, 1], "term": 1}


@pytest.fixture
def iris(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path / "iris")
    yield talk
    talk.close()


def reasons(talk: Talk, **asked: Any) -> dict[str, tuple[str, str]]:
    said = talk.ask("list", why=True, **asked)["reasons"]
    return {at: (one["rule"], one["text"]) for at, one in said.items()}


def reason(talk: Talk, number: int = 1, **asked: Any) -> tuple[str, str]:
    return reasons(talk, **asked)[uid(number)]


def test_a_list_says_why_only_where_it_is_asked(iris: Talk) -> None:
    """A hub that reads a thousand tasks at a time has reasons of its own."""
    iris.has(1)
    assert "reasons" not in iris.ask("list")
    assert iris.ask("list", why=True)["reasons"] == {}, "it starts at once: nothing holds it"


def test_what_holds_the_whole_node_is_said_of_each_ready_task(
    iris: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    iris.has(1)
    monkeypatch.setattr(talking, "DISK_FREE", 1000)
    assert reason(iris) == ("disk_floor", "1000 B of disk are free, less than 1.0 GiB")
    iris.has(2, needs=["gpu"])
    assert reason(iris, 2) == ("needs_unmet", "no agent here has: gpu"), "no free disk mends that"
    iris.host.dispatching = False
    assert reason(iris, 2)[0] == "no_daemon", "the next one may have who has it"
    assert reason(iris) == ("no_daemon", "no daemon runs on iris: agent-node run")
    iris.ask("pause", reason="holidays", by="human:ada")
    assert reason(iris) == ("paused", "iris is paused (holidays)")


@pytest.mark.parametrize(("overdraft", "said"), [("false", {2, 3}), ("true", {3})])
def test_what_waits_for_money_says_so_however_urgent_it_is(
    tmp_path: Path, overdraft: str, said: set[int]
) -> None:
    """Seen to fail: where nothing goes on over budget, P1 to P4 waited without any reason."""
    money = f'budget_usd = "1"\nurgent_overdraft = {overdraft}\n'
    iris = Talk(tmp_path / "iris", settings=money)
    iris.has(1)
    got = iris.running()
    iris.store.apply(Finish(uid(1), got.n, Result("completed", cost_usd="1")))
    iris.has(2, priority=4)
    iris.has(3, priority=5)
    held = dict.fromkeys(map(uid, said), "over_budget")
    assert {at: rule for at, (rule, _) in reasons(iris).items()} == held
    got_more = iris.store.apply(Claim("iris"))
    assert isinstance(got_more, NothingToClaim if 2 in said else Claimed)
    iris.close()


def test_a_node_without_agents_is_told_as_one(iris: Talk) -> None:
    iris.has(1)
    report = {**iris.ask("status"), "agents": []}
    stops = node_now(report, disk_needed=0).stops
    assert stops == Because("no_agent", "node.toml of iris names no agent: agent-node doctor")
    task = task_from(iris.task())
    assert reason_of(task, Standing(), NodeNow(stops), now=iris.clock.now()) == stops


def test_who_could_run_it_is_full_or_held_or_not_there(iris: Talk) -> None:
    iris.has(1, 2)
    iris.running()
    iris.running()
    iris.has(3)
    iris.has(4, needs=["gpu", "rust"])
    assert reason(iris, 3) == ("full", "agent iris runs as many as it has slots: 2")
    assert reason(iris, 4) == ("needs_unmet", "no agent here has: gpu, rust")
    iris.ask("pause", agent="iris", reason="-", by="human:ada")
    assert reason(iris, 3) == ("paused", "agent iris is paused: -")
    iris.store.apply(SetAgents((AgentRow("iris", 2, ("web",)), AgentRow("second", 1, ()))))
    assert uid(3) not in reasons(iris), "one that may run it is free"
    assert reason(iris, 1) == ("", "on agent iris")
    iris.host.dispatching = False
    unheard = "on agent iris; no daemon runs, the next one hears how it ended"
    assert reason(iris, 1) == ("", unheard)


def test_who_fails_and_has_no_free_slot_is_full_as_well(iris: Talk) -> None:
    """Seen to fail: its state says that it fails, and what waited for a slot had no reason."""
    iris.has(1, 2)
    iris.running()
    iris.running()
    iris.store._db.execute("UPDATE agent SET streak = 99")
    iris.has(3)
    assert iris.ask("status")["agents"][0]["state"] == "failing"
    assert reason(iris, 3) == ("full", "agent iris runs as many as it has slots: 2")


def test_a_retry_says_when_it_comes_and_how_it_failed(iris: Talk) -> None:
    iris.has(1)
    got = iris.running()
    iris.store.apply(Finish(uid(1), got.n, Result("failed", error_kind="crash", message="exit 3")))
    rule, text = reason(iris)
    assert (rule, text[:9], text[17:]) == ("", "again at ", ", attempt 2 of 3; crash: exit 3")
    again = iris.task()["retry_at"]
    assert text[9:17] == again[11:19]


def test_a_retry_says_what_stops_its_node_until_then(iris: Talk) -> None:
    """Seen to fail: it was tried again at that time, where no daemon ran that would do it."""
    iris.has(1)
    got = iris.running()
    iris.store.apply(Finish(uid(1), got.n, Result("failed", error_kind="crash", message="exit 3")))
    iris.host.dispatching = False
    stops = "no daemon runs on iris: agent-node run"
    assert reason(iris)[1][17:] == f", attempt 2 of 3; {stops}; crash: exit 3"
    iris.ask("pause", reason="holidays", by="human:ada")
    assert reason(iris)[1][17:] == ", attempt 2 of 3; iris is paused (holidays); crash: exit 3"


def test_what_is_pending_says_for_what(iris: Talk) -> None:
    """A day is named where it is another one."""
    iris.has(1, not_before="2026-03-10T23:00:00.000Z")
    iris.has(2, not_before="2026-03-12T23:00:00.000Z")
    iris.has(3, depends_on=[{"uid": uid(1)}])
    assert reason(iris, 1) == ("not_before", "it waits for its time, 23:00:00")
    assert reason(iris, 2) == ("not_before", "it waits for its time, 2026-03-12 23:00:00")
    assert reason(iris, 3)[0] == "waits_for"


def test_what_is_on_its_way_or_gone_names_the_other_node(tmp_path: Path, iris: Talk) -> None:
    iris.has(1)
    got = iris.ask("escrow", to="loom", why="stolen", lease_s=60, moves=[a_move(1)])
    assert reason(iris) == ("", "on its way to loom")
    loom = Talk(tmp_path / "loom", "loom")
    loom.ask("hold", why="stolen", moves=offers_of(got), **FROM_IRIS)
    assert reason(loom) == ("", "on its way here from iris")
    loom.close()
    iris.ask("commit", moves=[a_settle(1)])
    assert reason(iris, states=["MOVED"]) == ("", "now on loom")


def test_what_waits_for_a_person_or_ended_says_what_was_said_of_it(iris: Talk) -> None:
    """Who was cancelled before it ran has that only in its events."""
    iris.has(1, 2, 3)
    got = iris.running()
    iris.store.apply(Finish(uid(1), got.n, Result("unproved", message="gone\nwithout a word")))
    iris.ask("cancel", uids=[uid(2)], reason="not wanted", by="human:ada")
    assert reason(iris, 1) == ("", "not proven dead: gone without a word")
    assert reason(iris, 2) == ("", "not wanted")
    got = iris.running()
    iris.ask("cancel", uids=[uid(3)], reason="too slow", by="human:ada")
    assert reason(iris, 3) == ("stopping", "it was told to end: too slow")
    iris.store.apply(Finish(uid(3), got.n, Result("failed", error_kind="crash")))
    assert iris.task(3)["state"] == "CANCELLED"
    assert reason(iris, 3) == ("", "too slow")


def test_what_was_told_of_its_attempt_is_not_why_it_was_cancelled(iris: Talk) -> None:
    """Seen to fail: the list said of it that a daemon which was started follows attempt 1."""
    iris.has(1)
    got = iris.running()
    iris.ask("cancel", uids=[uid(1)], reason="too slow", by="human:ada")
    assert iris.store.apply(TakenOver(((uid(1), got.n),))) == 1
    assert iris.store.apply(Stalled(uid(1), got.n, because="no sign of life"))
    iris.store.apply(Finish(uid(1), got.n, Result("interrupted")))
    assert iris.task(1)["state"] == "CANCELLED"
    assert reason(iris) == ("", "too slow")
    told = [one["event"] for one in iris.ask("show", uid=uid(1))["events"]]
    assert {"task_adopted", "task_stalled"} <= {*told}


def test_what_another_node_may_own_waits_for_the_hub_after_a_boot(
    tmp_path: Path, iris: Talk
) -> None:
    loom = Talk(tmp_path / "loom", "loom")
    loom.has(1)
    got = loom.ask("escrow", to="iris", why="stolen", lease_s=60, moves=[a_move(1)])
    loom.close()
    iris.ask("hello", session=iris.hub, **HELLO)
    iris.ask("hold", why="stolen", moves=offers_of(got), **FROM_LOOM)
    iris.ask("activate", moves=[a_settle(1, "loom")])
    assert reasons(iris) == {}
    iris.clock.reboot()
    text = "another node may own it; no hub was heard since the boot"
    assert reason(iris) == ("waits_for_hub", text)


def test_reasons_are_counted_where_a_line_is_filled() -> None:
    """Seen to fail: what stands beside the tasks went beyond the line, and the list was refused."""
    tasks = tuple(a_task(n, seq=n, extra={"much": "y" * 7_250}) for n in range(1, 1001))
    listed = Listed(tasks, None, order={task.uid: {"tier": "NORMAL"} for task in tasks})
    reasons = {task.uid: Because("full", "y" * TEXT_MAX) for task in tasks}
    page = listed_out(listed, reasons)
    line = result_line(7, page)
    assert (len(line) <= LINE_MAX, b"batch_full" in line) == (True, False)
    assert page["next"] == len(page["tasks"]) < len(tasks)  # type: ignore[arg-type]
    assert len(page["reasons"]) == len(page["order"]) == page["next"]  # type: ignore[arg-type]


@pytest.mark.parametrize("query", [standings._HERE, standings._ABLE, standings._GONE,
                                   standings._WORD])  # fmt: skip
def test_a_long_queue_is_not_looked_through_for_its_reasons(tmp_path: Path, query: str) -> None:
    """Fails where SQLite would read every task, event or copy for those of one page."""
    NodeAtHand(Sqlite(), tmp_path).close()
    with closing(read_only(tmp_path)) as db:
        plan = [str(step) for *_, step in db.execute(f"EXPLAIN QUERY PLAN {query}", ("[]",))]
    assert {step.split()[1] for step in plan if step.startswith("SCAN")} <= {"j", "a"}, plan
