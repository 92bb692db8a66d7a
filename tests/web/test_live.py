"""Open pages are told what changed and nothing else; none of them is the others' trouble."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from agent_node.strict import JsonObject
from arc.operations import Told
from arc.settings import FleetSettings, HookEntry
from arc.web import live, serving
from arc.web.live import change_of, stale_panels
from tests.web.serving_stage import PATIENCE_S, Listener, listening, served
from tests.web.stage import DeskFleet, Stage


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.02)
    monkeypatch.setattr(live, "LINGER_S", 0.1)


def applied(state: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What a page knows after a change, put together as the page does it."""
    state = {} if said["full"] else state
    nodes = {**state.get("nodes", {}), **said["nodes"]}
    return {**state, **said["set"],
            "nodes": {name: one for name, one in nodes.items() if name not in said["gone"]}}


async def until(cond: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if cond():
                return
            await asyncio.sleep(0.01)


async def to_the_end(one: Listener) -> None:
    while True:
        await one.next()


async def test_a_page_is_told_everything_once_and_then_what_changed(stage: Stage) -> None:
    async with served(stage) as page:
        one = await listening(page)
        kind, said = await one.next()
        assert (kind, said["full"], set(said["nodes"])) == ("now", True, {"iris", "loom", "spark"})
        known = applied({}, said)
        stage.desk.hub.journal.runs.log("something_happened")
        kind, said = await one.next()
        assert (kind, said["full"], said["nodes"]) == ("now", False, {})
        assert set(said["set"]) == {"cursors"}
        known = applied(known, said)
        assert await one.next() == ("stale", {"panels": ["lanes", "life"]})
        await stage.door.ask("status", {}, by="x", timeout_s=9)  # a look
        _, said = await one.next()
        assert set(said["nodes"]) == {"iris", "loom", "spark"}
        known = applied(known, said)
        now = (await stage.ask("/api/v1/now", host=f"127.0.0.1:{page.port}")).data
        assert known == {name: x for name, x in now.items() if name not in ("version", "unchanged")}
        one.close()


async def test_the_hub_is_asked_once_for_all_pages_and_only_while_somebody_looks_on(
    stage: Stage,
) -> None:
    """Asked by each page, there would be three times as many questions."""
    asked = stage.door.asked
    async with served(stage) as page:
        await asyncio.sleep(0)
        assert asked == []
        pages = [await listening(page) for _ in range(3)]
        for one in pages:
            assert (await one.next())[0] == "now"
        assert len(stage.page.web.live._watchers) == 3
        assert [one.get_name() for one in asyncio.all_tasks()].count("live") == 1
        before = len(asked)
        assert {op for op, _, _ in asked} == {"page.now"}
        await until(lambda: len(asked) >= before + 10)
        for one in pages:
            one.close()
        await until(lambda: not stage.page.web.live._watchers)
        poll = stage.page.web.live._poll
        assert poll is not None
        await until(poll.done)
        quiet = len(asked)
        again = await listening(page)
        assert (await again.next())[0] == "now"  # who comes back finds it all
        assert len(asked) > quiet
        again.close()


async def test_a_hub_that_leaves_and_comes_back_under_an_open_page_is_told_both_times(
    stage: Stage,
) -> None:
    async with served(stage) as page:
        one = await listening(page)
        _, first = await one.next()
        stage.door.hub_leaves()
        kind, said = await one.next()
        assert (kind, said["error"]["code"]) == ("trouble", "ARC-NO-HUB")
        assert said["seen_at"] >= first["seen_at"]  # how old what it shows is
        stage.door.away = None
        live_now = stage.page.web.live
        live_now._version = "of another hub"
        kinds = {(await one.next())[0] for _ in range(1)}
        assert kinds <= {"trouble", "now"}
        assert live_now.trouble is None
        late = await listening(page)
        kind, said = await late.next()
        assert (kind, said["full"]) == ("now", True)
        one.close()
        late.close()


async def test_too_many_pages_are_turned_away_and_the_others_stay(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAMS_MAX", 2)
    async with served(stage) as page:
        pages = [await listening(page) for _ in range(2)]
        for one in pages:
            await one.next()
        said = await stage.ask("/live", host=f"127.0.0.1:{page.port}")
        assert (said.status, said.code) == (503, "ARC-WEB-CROWDED")
        pages[0].close()
        await until(lambda: len(stage.page.web.live._watchers) == 1)
        third = await listening(page)
        assert (await third.next())[0] == "now"
        for one in (pages[1], third):
            one.close()


async def test_of_many_pages_that_open_at_once_no_more_stay_than_there_is_room_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the second look all of them find room, for none of them is in yet."""
    monkeypatch.setattr(live, "STREAMS_MAX", 3)
    monkeypatch.setattr(live, "EVERY_S", 0.02)
    async with served(stage) as page:
        room = stage.page.web.live
        for _ in range(2):
            streams = [room.stream() for _ in range(9)]
            room.check_room()
            firsts = await asyncio.gather(*(anext(one, None) for one in streams))
            assert (len(room._watchers), sum(one is not None for one in firsts)) == (3, 3)
            for one in streams:
                await one.aclose()  # type: ignore[attr-defined]
        other = await listening(page)
        assert (await other.next())[0] == "now"
        other.close()


def big(n: int) -> JsonObject:
    return {"version": str(n), "unchanged": False, "cursors": {"run": n},
            "nodes": {f"n{k}": {"text": f"{n}" * 200} for k in range(500)}}  # fmt: skip


async def test_a_browser_that_stops_reading_is_let_go_and_costs_little_until_then(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the limit on writing, it stays for ever and what it is sent piles up."""
    monkeypatch.setattr(serving, "IMPATIENT_S", 0.5)
    monkeypatch.setattr(live, "SLOW_S", 3600.0)  # the stream's own limit, not tried here
    count = 0

    async def ask(op: str, args: JsonObject, *, by: str, timeout_s: float) -> Told:
        nonlocal count
        count += 1
        return Told(big(count))

    monkeypatch.setattr(stage.door, "ask", ask)
    async with served(stage) as page:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", page.port))
        deaf.sendall(page.get("/live"))
        await until(lambda: len(stage.page.web.live._watchers) == 1)
        good = await listening(page)
        for _ in range(10):
            assert (await good.next())[0] in ("now", "stale")  # nobody waits for the other one
        async with asyncio.timeout(PATIENCE_S):
            while len(stage.page.web.live._watchers) > 1:
                await good.next()
        deaf.close()
        good.close()


async def test_it_ends_within_a_second_however_many_look_on(stage: Stage) -> None:
    """Without the end of the streams, the server waits for them, and then cuts them off."""
    async with served(stage) as page:
        pages = [await listening(page) for _ in range(8)]
        for one in pages:
            await one.next()
        idle = await page.connect()
        began = asyncio.get_running_loop().time()
        page.stop.set()
        await page.running
        assert asyncio.get_running_loop().time() - began < 1.0
        for one in pages:
            with pytest.raises(EOFError):
                await to_the_end(one)
            one.close()
        idle[1].close()


async def test_who_connects_and_asks_nothing_is_let_go(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "IMPATIENT_S", 0.1)
    async with served(stage) as page:
        reader, writer = await page.connect(b"GET / HT")
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
        writer.close()


JSON_POST = (b"POST /webhooks/ci HTTP/1.1\r\nHost: localhost\r\n"
             b"Content-Type: application/json\r\n")  # fmt: skip
UNFINISHED = {
    "the head of a second request": (b"GET /favicon.ico HTTP/1.1\r\nHost: localhost\r\n\r\n", b"G"),
    "a body": (JSON_POST + b"Content-Length: 99\r\n\r\n", b"{"),
    "a body behind another request": (
        b"GET /favicon.ico HTTP/1.1\r\nHost: localhost\r\n\r\n" + JSON_POST
        + b"Content-Length: 99\r\n\r\n{", b""),
    "a body that nobody wants": (
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNFINISHED)
async def test_who_begins_a_request_and_does_not_end_it_is_let_go_however_it_drips(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Without the time that a request has, a hundred of these keep everybody else out for ever."""
    monkeypatch.setattr(serving, "IMPATIENT_S", 0.2)
    monkeypatch.setattr(serving, "BODY_S", 0.2)
    hook = HookEntry("ci", stage.settings.state / "none", {"subject": "x"})
    stage.knows(webhooks=(hook,))
    async with served(stage) as page:
        begun, more = UNFINISHED[what]
        reader, writer = await page.connect(begun)
        dripping = asyncio.create_task(drip(writer, more))
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError):
                while await reader.read(4096):
                    pass
        dripping.cancel()
        writer.close()


async def drip(writer: Any, more: bytes) -> None:
    """A byte now and then, so that it never looks asleep."""
    for byte in more:
        await asyncio.sleep(0.05)
        writer.write(bytes([byte]))


async def test_what_is_no_http_amidst_an_answer_ends_that_connection_alone(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the guard, h11 raises into the loop, and each such byte is a page of traceback."""
    async with served(stage) as page:
        reader, writer = await page.connect(
            b"GET /live HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.write(b"zz\r\n")
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError):
                while await reader.read(4096):
                    pass
        writer.close()
        other = await listening(page)
        assert (await other.next())[0] == "now"
        other.close()
    assert not [one for one in caplog.records if one.levelname in ("ERROR", "CRITICAL")]


async def test_who_leaves_before_the_end_of_his_order_is_no_fault_of_ours(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its own answer, anybody fills the log with faults by hanging up."""
    stage.knows(webhooks=(HookEntry("ci", stage.settings.state / "none", {"subject": "x"}),))
    begun: list[bool] = []
    now = DeskFleet.now

    async def noted(fleet: DeskFleet) -> FleetSettings:
        begun.append(True)  # it is asked for once, before the body is waited for
        return await now(fleet)

    monkeypatch.setattr(DeskFleet, "now", noted)
    async with served(stage) as page:
        _, writer = await page.connect(JSON_POST + b"Content-Length: 99\r\n\r\n{")
        await until(lambda: bool(begun))
        writer.close()
        other = await listening(page)
        await other.next()
        other.close()
    assert not [one for one in caplog.records if one.levelname in ("ERROR", "CRITICAL")]


def test_a_change_holds_what_differs_and_stale_names_whom_that_concerns() -> None:
    old: JsonObject = {"a": 1, "b": 2, "nodes": {"x": {"v": 1}, "y": {"v": 1}}, "cursors": {
        "run": 1, "move": 1, "look": "a", "rows": 1}}  # fmt: skip
    new: JsonObject = {"a": 1, "b": 3, "nodes": {"x": {"v": 2}}, "cursors": {
        "run": 1, "move": 2, "look": "a", "rows": 1}}  # fmt: skip
    assert change_of(old, new) == {"set": {"b": 3, "cursors": new["cursors"]},
                                   "nodes": {"x": {"v": 2}}, "gone": ["y"]}
    assert stale_panels(old, new) == ["feeds", "lanes"]
    assert change_of(new, new) == {"set": {}, "nodes": {}, "gone": []}
    assert stale_panels({}, new) == []
