"""A connected peer costs bounded memory, gets its answers in order, and is cut when it must be."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from agent_node.conversation import OWED_HIGH, Conversation
from agent_node.lines import Lines
from agent_node.strict import LINE_MAX
from tests.builders import uid
from tests.node.wire.talking import Talk

HUB, OWNER = b'{"session":"hub"}\n', b'{"session":"owner"}\n'


def a_talk(iris: Talk, opening: bytes = OWNER) -> Conversation:
    talk = Conversation(iris.answers)
    talk.feed(opening)
    exhaust(talk)
    return talk


def exhaust(talk: Conversation) -> None:
    while talk.turn():
        pass


def finished(talk: Conversation) -> bool:
    """Asked anew each time; a type checker takes a property for what it was before."""
    return talk.finished


def heard(talk: Conversation) -> list[dict[str, Any]]:
    """Everything that is owed, read by the peer."""
    lines = bytes(talk.owed).splitlines()
    talk.sent(len(talk.owed))
    return [json.loads(line) for line in lines]


def asked(talk: Conversation, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    talk.feed(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
    exhaust(talk)
    return heard(talk)


def test_a_hub_is_greeted_and_the_owner_is_not(iris: Talk) -> None:
    assert [line["node"] for line in heard(a_talk(iris, HUB))] == ["iris"]
    assert heard(a_talk(iris, OWNER)) == []
    assert heard(a_talk(iris, b'{"session":"hub","greeted":true,"term":3,"hub":"arc"}\n')) == []


@pytest.mark.parametrize(
    "line", [b"{}", b"hello", b'{"session":"king"}', b'{"session":"hub","term":-1}']
)
def test_who_does_not_say_who_it_is_is_not_heard(iris: Talk, line: bytes) -> None:
    talk = a_talk(iris, line + b"\n" + b'{"id":1,"do":"doubts"}\n')
    assert [one["error"]["code"] for one in heard(talk)] == ["bad_input"]
    assert talk.finished
    assert not talk.well_ended


def test_lines_are_put_together_from_any_pieces(iris: Talk) -> None:
    talk = a_talk(iris)
    line = b'{"id":1,"do":"doubts"}\n{"id":2,"do":"doubts"}\n'
    for place in range(len(line)):
        talk.feed(line[place : place + 1])
        exhaust(talk)
    assert [one["id"] for one in heard(talk)] == [1, 2]


def test_endless_input_without_a_newline_takes_no_more_than_a_line(iris: Talk) -> None:
    """Guard: `too_long`. Without it this holds 200 MiB; seen."""
    talk = a_talk(iris)
    piece = b"x" * 65_536
    tracemalloc.start()
    for _ in range(200 * 16):
        talk.feed(piece)
        exhaust(talk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * LINE_MAX
    assert [one["error"]["code"] for one in heard(talk)] == ["bad_input"]
    assert talk.finished


def test_a_line_of_the_largest_size_is_taken_and_one_byte_more_is_not(iris: Talk) -> None:
    for extra, code in ((0, None), (1, "bad_input")):
        talk = a_talk(iris)
        frame = b'{"id":1,"do":"doubts","x":""}'
        line = frame[:-2] + b"y" * (LINE_MAX - len(frame) + extra) + frame[-2:]
        talk.feed(line + b"\n")
        exhaust(talk)
        (reply,) = heard(talk)
        assert reply.get("error", {}).get("code") == code


def test_a_peer_that_does_not_read_is_not_answered_any_further(iris: Talk) -> None:
    """Guard: the bound on what is owed. Without it the answers of all lines pile up; seen."""
    iris.has(1, body="x" * 250_000)
    talk = a_talk(iris)
    request = json.dumps({"id": 1, "do": "show", "uid": uid(1)}).encode() + b"\n"
    talk.feed(request * 100)
    exhaust(talk)
    assert OWED_HIGH < len(talk.owed) < OWED_HIGH + 300_000
    assert not talk.reads
    answered = 0
    while talk.owed:
        answered += len(heard(talk))
        exhaust(talk)
    assert answered == 100
    assert talk.reads


def test_while_a_whole_line_waits_no_more_is_read(iris: Talk) -> None:
    talk = a_talk(iris)
    talk.feed(b'{"id":1,"do":"doubts"}\n' * 2)
    assert talk.may_turn
    assert not talk.reads
    exhaust(talk)
    assert talk.reads


def test_the_talk_is_over_when_the_peer_has_said_and_heard_all(iris: Talk) -> None:
    talk = a_talk(iris)
    talk.feed(b'{"id":1,"do":"doubts"}\n{"id":2,"do"')
    talk.feed(b"")
    assert not finished(talk)
    exhaust(talk)
    assert not finished(talk)
    assert [one["id"] for one in heard(talk)] == [1]
    assert finished(talk)
    assert talk.well_ended


def test_news_comes_to_who_asked_for_it_and_to_nobody_else(iris: Talk) -> None:
    some, all_of_it, none = a_talk(iris), a_talk(iris), a_talk(iris)
    assert asked(some, {"id": 1, "do": "subscribe", "events": ["idle"]})[0]["ok"]
    assert len(asked(all_of_it, {"id": 1, "do": "subscribe"})[0]["result"]["events"]) == 8
    for talk in (some, all_of_it, none):
        talk.push("busy", 1, "2026-03-10T03:45:00.000Z")
        talk.push("idle", 2, "2026-03-10T03:45:01.000Z")
    assert heard(some) == [{"event": "idle", "seq": 2, "at": "2026-03-10T03:45:01.000Z"}]
    assert [one["event"] for one in heard(all_of_it)] == ["busy", "idle"]
    assert heard(none) == []


def test_a_subscriber_that_does_not_read_is_cut(iris: Talk) -> None:
    """Guard: the bound in `push`. Without it unread news grows for ever; seen."""
    talk = a_talk(iris)
    asked(talk, {"id": 1, "do": "subscribe"})
    for seq in range(30_000):
        talk.push("busy", seq, "2026-03-10T03:45:00.000Z")
    assert len(talk.owed) <= OWED_HIGH
    assert talk.cut
    assert talk.finished
    assert not talk.well_ended


def test_a_subscriber_to_whom_a_long_answer_is_on_its_way_is_not_cut(iris: Talk) -> None:
    """A slow line is no peer that does not read. Fails where all that is owed counts as news."""
    talk = a_talk(iris)
    asked(talk, {"id": 1, "do": "subscribe"})
    talk.owed += b" " * (OWED_HIGH + 1)
    talk.push("busy", 1, "2026-03-10T03:45:00.000Z")
    assert not talk.cut
    assert talk.owed.endswith(b'03:45:00.000Z"}\n')


def test_taking_lines_from_a_large_buffer_stays_linear() -> None:
    """A search that began at the front each time would take minutes here."""
    lines = Lines()
    line = b"x" * 1_000_000
    for place in range(0, len(line), 100):
        lines.add(line[place : place + 100])
        assert not lines.waiting
    lines.add(b"\n" + b"y\n" * 100_000)
    assert lines.take() == line
    assert sum(lines.waiting and lines.take() == b"y" for _ in range(100_000)) == 100_000
    lines.add(b"begun")
    lines.put_back(b"z")
    assert (lines.take(), lines.rest(), len(lines)) == (b"z", b"begun", 0)
    with pytest.raises(IndexError):
        lines.take()
