"""The hub's door answers every line once, whatever comes in, and no client is another's trouble."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from agent_node.clock import SystemClock
from agent_node.strict import LINE_MAX, JsonObject, JsonValue
from arc import door, operations, reception
from arc.errors import NeedsWord, OtherHub, WaitedTooLong, WrongUse
from arc.hub import Hub
from arc.lease import Lease
from arc.operations import Operation, Told
from arc.reception import Reception
from tests.hub_builders import a_hub


@dataclass(eq=False)
class SlowHub(Hub):
    """A hub whose slow operation lasts until the test says that it is over."""

    waits: asyncio.Event = field(default_factory=asyncio.Event)


async def echo(hub: Hub, args: JsonObject) -> Told:
    return Told(dict(args), warnings=("w",), partial=({"node": "iris"},), exit=3)


async def slow(hub: Hub, args: JsonObject) -> Told:
    assert isinstance(hub, SlowHub)
    await hub.waits.wait()
    return Told({"slow": True})


async def refuses(hub: Hub, args: JsonObject) -> Told:
    raise NeedsWord("not without a word", hint="add --yes")


async def breaks(hub: Hub, args: JsonObject) -> Told:
    raise KeyError("subject that nobody should read")


async def no_json(hub: Hub, args: JsonObject) -> Told:
    return Told({"odd": cast("JsonValue", object())})


async def huge(hub: Hub, args: JsonObject) -> Told:
    return Told({"x": "y" * LINE_MAX})


DOUBLES: dict[str, Operation] = {"echo": echo, "slow": slow, "refuses": refuses, "breaks": breaks,
                                 "no_json": no_json, "huge": huge}  # fmt: skip


@pytest.fixture(autouse=True)
def doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "OPERATIONS", DOUBLES)
    monkeypatch.setattr(reception, "OPERATIONS", DOUBLES)
    monkeypatch.setattr(reception, "operation", DOUBLES.__getitem__)
    monkeypatch.setattr(operations, "operation", DOUBLES.__getitem__)


def a_folder(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / "fleet.yaml").write_text("version: 1\n")
    return place


@asynccontextmanager
async def an_open_hub(place: Path) -> AsyncIterator[SlowHub]:
    hub = SlowHub(**vars(a_hub(a_folder(place), SystemClock(), sensors=())))
    answers = Reception(hub)
    await answers.open()
    try:
        yield hub
    finally:
        await answers.close()
        await hub.close()


async def ask(hub: Hub, op: str, *, timeout_s: float = 10.0, **args: JsonValue) -> Told:
    """As a command of another process asks: blocking, so in a thread of its own."""
    told = await asyncio.to_thread(door.ask, hub.settings.file, op, args, by="human:me",
                                   timeout_s=timeout_s)
    assert told is not None, "no hub was found"
    return told


async def raw(hub: Hub, *lines: bytes, answers: int = 1) -> list[dict[str, Any]]:
    """What comes back for these bytes."""
    reader, writer = await connect(hub)
    writer.write(b"".join(lines))
    said = [json.loads(await asyncio.wait_for(reader.readline(), 10)) for _ in range(answers)]
    await left(writer)
    return said


async def left(writer: asyncio.StreamWriter) -> None:
    """The client is gone."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def connect(hub: Hub) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_unix_connection(sock=door._connected(hub.settings.state),
                                              limit=LINE_MAX)


async def test_an_operation_comes_back_whole(tmp_path: Path) -> None:
    async with an_open_hub(tmp_path) as hub:
        told = await ask(hub, "echo", task="7k3f")
    assert told == Told({"task": "7k3f", "by": "human:me"}, 3, ({"node": "iris"},), ("w",))


async def test_a_refusal_is_the_same_error_at_the_other_end(tmp_path: Path) -> None:
    async with an_open_hub(tmp_path) as hub:
        with pytest.raises(door.Answered) as told:
            await ask(hub, "refuses")
    error = told.value
    assert (error.code, error.exit_code, error.hint) == ("ARC-NEEDS-YES", 7, "add --yes")
    assert str(error) == "not without a word"


async def test_a_fault_ends_one_operation_and_shows_its_place_alone(tmp_path: Path) -> None:
    """With the broad except in `answered` removed, nobody answers and this fails."""
    async with an_open_hub(tmp_path) as hub:
        with pytest.raises(door.Answered) as told:
            await ask(hub, "breaks")
        assert (await ask(hub, "echo")).exit == 3
    assert told.value.code == "ARC-FAULT"
    assert "test_reception.py" in str(told.value)
    assert "nobody should read" not in str(told.value)


async def test_an_unknown_operation_says_which_and_what_to_do(tmp_path: Path) -> None:
    async with an_open_hub(tmp_path) as hub:
        with pytest.raises(door.Answered, match="no operation 'later'") as told:
            await ask(hub, "later")
    assert told.value.exit_code == 2
    assert "another version" in told.value.hint


async def test_a_slow_operation_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    async with an_open_hub(tmp_path) as hub:
        lines = [json.dumps({"id": n, "op": op, "args": {}}).encode() + b"\n"
                 for n, op in enumerate(["slow", "echo", "echo"])]
        reader, writer = await connect(hub)
        writer.write(b"".join(lines))
        first = [json.loads(await reader.readline())["id"] for _ in range(2)]
        assert sorted(first) == [1, 2]
        hub.waits.set()
        assert json.loads(await reader.readline())["told"]["data"] == {"slow": True}
        await left(writer)


async def test_a_client_that_leaves_ends_nothing_that_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with an_open_hub(tmp_path) as hub:
        done = asyncio.Event()
        waits = hub.waits.wait

        async def notes() -> None:
            await waits()
            done.set()

        monkeypatch.setattr(hub.waits, "wait", notes)
        _, writer = await connect(hub)
        writer.write(b'{"id":1,"op":"slow","args":{}}\n')
        await writer.drain()
        await left(writer)
        await asyncio.sleep(0)
        hub.waits.set()
        await asyncio.wait_for(done.wait(), 10)
        assert (await ask(hub, "echo")).exit == 3


@pytest.mark.parametrize("line", [
    b"not json\n", b"[]\n", b'{"op":7}\n', b'{"op":"echo","args":[]}\n', b'{"op":"echo"}\n',
    b'{"op":"echo","op":"echo","args":{}}\n', b'{"op":"echo","args":{"x":NaN}}\n',
    b'{"op":"echo","args":{"x":"\\u0000"}}\n', b"\xff\xfe\n", b"[" * 5000 + b"\n",
])  # fmt: skip
async def test_what_is_no_request_is_an_error_and_no_traceback(tmp_path: Path, line: bytes) -> None:
    async with an_open_hub(tmp_path) as hub:
        (said,) = await raw(hub, line)
        assert said["ok"] is False
        assert said["error"]["exit"] == 2
        assert (await ask(hub, "echo")).exit == 3


@pytest.mark.parametrize("op", ["no_json", "huge"])
async def test_an_answer_that_cannot_be_sent_is_an_error(tmp_path: Path, op: str) -> None:
    async with an_open_hub(tmp_path) as hub:
        with pytest.raises(door.Answered):
            await ask(hub, op)


async def test_a_line_without_an_end_is_not_held_for_ever(tmp_path: Path) -> None:
    async with an_open_hub(tmp_path) as hub:
        reader, writer = await connect(hub)
        writer.write(b"x" * (LINE_MAX + 70_000))
        said = json.loads(await asyncio.wait_for(reader.readline(), 30))
        assert "bytes at most" in said["error"]["message"]
        assert await reader.read() == b""
        await left(writer)


async def test_a_crowd_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reception, "CLIENTS_MAX", 2)
    async with an_open_hub(tmp_path) as hub:
        others = [await connect(hub) for _ in range(2)]
        for reader, writer in others:
            writer.write(b'{"id":1,"op":"echo","args":{}}\n')
            await reader.readline()
        with pytest.raises(door.Answered, match="too many"):
            await ask(hub, "echo")
        for _, writer in others:
            await left(writer)


async def test_the_socket_is_for_its_owner_and_any_path_fits(tmp_path: Path) -> None:
    place = tmp_path / ("long-" * 20) / ("folder-" * 20)
    async with an_open_hub(place) as hub:
        path = hub.settings.state / "hub.sock"
        assert len(str(path)) > 107
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert (await ask(hub, "echo")).exit == 3
    assert not path.exists()


async def test_a_socket_that_was_taken_away_comes_back_and_who_is_inside_stays(
    tmp_path: Path
) -> None:
    """Seen to fail without `keep`: the hub ran on, and no command reached it until a restart."""
    hub = a_hub(a_folder(tmp_path), SystemClock(), sensors=())
    answers = Reception(hub)
    await answers.open()
    reader, writer = await connect(hub)
    writer.write(b"{}\n")
    await asyncio.wait_for(reader.readline(), 10)
    (hub.settings.state / "hub.sock").unlink()
    for _ in range(2):
        await answers.keep()
        assert (await ask(hub, "echo")).exit == 3
    writer.write(b"{}\n")
    assert json.loads(await asyncio.wait_for(reader.readline(), 10))["ok"] is False
    await left(writer)
    await answers.close()
    await hub.close()
    assert not (hub.settings.state / "hub.sock").exists()


async def test_a_dead_hubs_socket_is_nobody_and_the_next_hub_takes_its_place(
    tmp_path: Path
) -> None:
    (tmp_path / ".arc").mkdir()
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(tmp_path / ".arc" / "hub.sock"))
    assert door.ask(tmp_path / "fleet.yaml", "echo", {}, by="me") is None
    async with an_open_hub(tmp_path) as hub:
        assert (await ask(hub, "echo")).exit == 3


async def test_a_hub_of_another_fleet_is_not_asked(tmp_path: Path) -> None:
    """Two fleet files in one folder share the usual place of the state."""
    async with an_open_hub(tmp_path) as hub:
        other = tmp_path / "other.yaml"
        other.write_text("version: 1\n")
        told = await asyncio.to_thread(door.ask, other, "echo", {}, by="me", timeout_s=5)
        assert told is None
        assert (await ask(hub, "echo")).exit == 3


async def test_a_state_folder_elsewhere_is_found_by_the_settings(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    async with an_open_hub(tmp_path / "far"):
        fleet.write_text(f"version: 1\nfleet: arc0\nhub: {{state: {tmp_path}/far/.arc}}\n")
        with pytest.raises(door.Answered) as told:  # it is there, and serves its own file
            await asyncio.to_thread(door.ask, fleet, "echo", {}, by="me", timeout_s=5)
    assert told.value.code == "ARC-OTHER-FLEET"


async def test_waiting_too_long_says_that_it_may_still_happen(tmp_path: Path) -> None:
    async with an_open_hub(tmp_path) as hub:
        with pytest.raises(WaitedTooLong, match="may still do it"):
            await ask(hub, "slow", timeout_s=0.05)
        hub.waits.set()


def test_without_a_hub_one_lives_for_the_moment(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("version: 1\nfleet: arc0\nnodes: []\n")
    assert door.ask(fleet, "echo", {}, by="me") is None

    told = door.ask_alone(fleet, "echo", {"a": 1}, by="human:me")
    assert told.data == {"a": 1, "by": "human:me"}
    with Lease.take(tmp_path / ".arc", hub="arc", clock=SystemClock()):
        pass  # it was given back


def test_an_error_of_the_moments_hub_is_the_error_itself(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("version: 1\nfleet: arc0\nnodes: []\n")
    with pytest.raises(NeedsWord):
        door.ask_alone(fleet, "refuses", {}, by="me")
    with pytest.raises(WrongUse):
        door.ask_alone(fleet, "later", {}, by="me")


def test_a_lease_that_somebody_silent_holds_is_named_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "STARTING_S", 0.1)
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("version: 1\nfleet: arc0\nnodes: []\n")
    lease = Lease.take(tmp_path / ".arc", hub="arc", clock=SystemClock())
    with pytest.raises(OtherHub, match=f"process {os.getpid()}"):
        door.ask_alone(fleet, "echo", {}, by="me")
    lease.close()


def test_a_hub_that_is_just_starting_is_waited_for(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("version: 1\nfleet: arc0\nnodes: []\n")
    lease = Lease.take(tmp_path / ".arc", hub="arc", clock=SystemClock())
    timer = threading.Timer(0.2, lease.close)
    timer.start()
    assert door.ask_alone(fleet, "echo", {}, by="me").exit == 3
    timer.join()


def test_a_question_loads_none_of_the_hubs_packages() -> None:
    import subprocess
    import sys

    code = ("import sys; import arc.door; "
            "print([m for m in ('asyncssh','apscheduler','sqlite_utils','pydantic','rich',"
            "'asyncio') if m in sys.modules])")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True, timeout=30)
    assert said.stdout.strip() == "[]"


