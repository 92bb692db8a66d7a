"""Holds one talk against nodes that lie, babble, drip, repeat themselves and never answer."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from agent_node.lines import line_of
from agent_node.reports import parse_report
from agent_node.strict import LINE_MAX
from arc.errors import (
    AnswerUnreadable,
    ArcError,
    NodeCannotServe,
    NodeRefused,
    NodeSilent,
    NodeUnreachable,
    NoNodeProgram,
    OtherHub,
    OutcomeUnknown,
)
from arc.links import complaints
from arc.links import talk as talks
from arc.links.talk import Talk
from tests.hub.links.test_familiar import a_status, an_answer

GREETING = (
    b'{"agent-node":"0.1.0","wire":1,"node":"iris","incarnation":"01ARZ3NDEKTSV4RRFFQ69G5FAV",'
    b'"generation":12}\n'
)


class Peer:
    """A node in the test's own hand: what it is sent it keeps, what it says is said by `says`."""

    def __init__(self, *, greets: bool = True) -> None:
        self.heard: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.stuck, self.closed = 0, False
        self.talk = Talk("iris", self.heard.append)
        self.talk.connect(self)
        if greets:
            self.says(GREETING)

    def send(self, line: bytes) -> None:
        if self.closed:
            raise BrokenPipeError("gone")
        self.sent.append(json.loads(line))

    def unsent(self) -> int:
        return self.stuck

    def close(self) -> None:
        self.closed = True

    def says(self, *lines: bytes) -> None:
        self.talk.received(b"".join(lines))

    def answers(self, place: int, **result: Any) -> None:
        said = {"id": self.sent[place]["id"], "ok": True, "result": result}
        self.says(json.dumps(said).encode() + b"\n")

    def answers_tightly(self, place: int, **result: Any) -> None:
        """The same as a node writes it, without a byte too many."""
        self.says(line_of({"id": self.sent[place]["id"], "ok": True, "result": result}))

    async def asked(self, do: str = "status", timeout_s: float = 30) -> asyncio.Task[Any]:
        """A request under way."""
        task = asyncio.create_task(self.talk.ask(do, {}, timeout_s))
        await asyncio.sleep(0)
        return task


async def error_of(task: asyncio.Task[Any]) -> ArcError:
    with pytest.raises(ArcError) as raised:
        await task
    return raised.value


# --- Before the greeting --------------------------------------------------------------------------


async def test_what_a_login_shell_prints_is_skipped_and_kept_as_a_note() -> None:
    peer = Peer(greets=False)
    peer.says(b"\x1b[1mWelcome\x07\r\n", b"no newline at the end " + GREETING)
    assert (await peer.talk.greeted(1)).node == "iris"
    assert peer.talk.noise.startswith("36 bytes: ")
    assert "\\x1b[1mWelcome" in peer.talk.noise
    assert "\x1b" not in peer.talk.noise


async def test_a_greeting_may_come_a_byte_at_a_time() -> None:
    peer = Peer(greets=False)
    for byte in b"motd\n" + GREETING:
        peer.says(bytes([byte]))
    assert (await peer.talk.greeted(1)).generation == 12


@pytest.mark.parametrize("noise", [b"x" * 9000, b"a line\n" * 700, b"\n" * 5000, b"\0" * 10**6])
async def test_more_noise_than_four_kilobytes_is_no_node(noise: bytes) -> None:
    peer = Peer(greets=False)
    for place in range(0, len(noise), 1000):
        peer.says(noise[place : place + 1000])
    with pytest.raises(NoNodeProgram, match="prints text") as raised:
        await peer.talk.greeted(1)
    assert "login scripts" in raised.value.hint
    assert peer.closed


@pytest.mark.parametrize("line", [
    b'{"agent-node":"0.1.0"}',
    b'{"agent-node":"0.1.0","wire":0,"node":"iris","incarnation":"x","generation":-1}',
    GREETING.strip().replace(b"iris", b"../iris"),
    GREETING.strip()[:-1] + b',"node":"loom"}',
])  # fmt: skip
async def test_a_greeting_that_cannot_be_believed_is_unreadable(line: bytes) -> None:
    peer = Peer(greets=False)
    peer.says(line + b"\n")
    with pytest.raises(AnswerUnreadable, match="greeting"):
        await peer.talk.greeted(1)
    assert peer.closed


async def test_a_node_that_cannot_serve_is_quoted() -> None:
    peer = Peer(greets=False)
    peer.says(b'{"id":null,"ok":false,"error":{"code":"store_corrupt","message":"page 7"}}\n')
    with pytest.raises(NodeCannotServe, match="store_corrupt: page 7") as raised:
        await peer.talk.greeted(1)
    assert raised.value.hint == "arc explain store_corrupt"


async def test_a_node_that_cannot_serve_gives_its_own_advice() -> None:
    """Taken away once: called `no_node`, it had the operator join the machine anew."""
    peer = Peer(greets=False)
    peer.says(b'{"id":null,"ok":false,"error":{"code":"home_open_to_others","message":"/x: 0755",'
              b'"hint":"chmod 700 /x"}}\n')  # fmt: skip
    with pytest.raises(NodeCannotServe) as raised:
        await peer.talk.greeted(1)
    assert raised.value.hint == "on iris: chmod 700 /x"


@pytest.mark.parametrize("code", ["; rm -rf ~", "$(reboot)", "Two Words", "x" * 41])
async def test_a_code_that_is_no_name_is_quoted_and_never_told_to_be_typed(code: str) -> None:
    peer = Peer(greets=False)
    said = {"id": None, "ok": False, "error": {"code": code, "message": "no"}}
    peer.says(json.dumps(said, separators=(",", ":")).encode() + b"\n")
    with pytest.raises(NodeCannotServe) as raised:
        await peer.talk.greeted(1)
    assert raised.value.hint == ""


async def test_a_node_that_only_starts_is_asked_again_later() -> None:
    peer = Peer(greets=False)
    peer.says(b'{"id":null,"ok":false,"error":{"code":"starting","message":"ask again"}}\n')
    with pytest.raises(NodeUnreachable, match="starting") as raised:
        await peer.talk.greeted(1)
    assert type(raised.value) is NodeUnreachable


async def test_silence_before_the_greeting_has_a_limit() -> None:
    with pytest.raises(NodeSilent, match="did not greet within"):
        await Peer(greets=False).talk.greeted(0.01)


# --- Answers --------------------------------------------------------------------------------------


async def test_answers_may_come_in_any_order() -> None:
    peer = Peer()
    first, second = await peer.asked(), await peer.asked("list")
    peer.answers(1, n=2)
    peer.answers(0, n=1)
    assert (await first, await second) == ({"n": 1}, {"n": 2})


async def test_an_answer_may_drip_in() -> None:
    peer = Peer()
    asked = await peer.asked()
    for byte in b'{"id":1,"ok":true,"result":{"a":"\xc3\xa4"}}\n':
        peer.says(bytes([byte]))
    assert await asked == {"a": "ä"}


LIES = {
    "garbage": b"Traceback (most recent call last):\n",
    "no utf-8": b'{"id":1,"ok":true,"result":{"a":"\xff"}}\n',
    "a key twice": b'{"id":1,"ok":true,"result":{"a":1,"a":2}}\n',
    "an id twice": b'{"id":7,"id":1,"ok":true,"result":{}}\n',
    "nan": b'{"id":1,"ok":true,"result":{"a":NaN}}\n',
    "too large a number": b'{"id":1,"ok":true,"result":{"a":18446744073709551616}}\n',
    "nul": b'{"id":1,"ok":true,"result":{"a":"\\u0000"}}\n',
    "half a character": b'{"id":1,"ok":true,"result":{"a":"\\ud800"}}\n',
    "deep": b'{"id":1,"ok":true,"result":' + b'{"a":' * 20 + b"1" + b"}" * 21 + b"\n",
    "very deep": b"[" * 100_000 + b"\n",
    "a list": b"[1]\n",
    "an empty line": b"\n",
    "another id": b'{"id":2,"ok":true,"result":{}}\n',
    "true as id": b'{"id":true,"ok":true,"result":{}}\n',
    "id as text": b'{"id":"1","ok":true,"result":{}}\n',
    "no result": b'{"id":1,"ok":true}\n',
    "a result that is none": b'{"id":1,"ok":true,"result":[]}\n',
    "ok as text": b'{"id":1,"ok":"true","result":{}}\n',
    "an error that is none": b'{"id":1,"ok":false,"error":"no"}\n',
    "news unasked": b'{"event":"idle","seq":1,"at":"x"}\n',
    "no end": b"x" * (LINE_MAX + 1),
    "8 MiB and one": b'{"id":1,"ok":true,"result":{"a":"' + b"x" * LINE_MAX + b'"}}\n',
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_what_is_no_answer_ends_the_talk_and_says_what_changed(lie: bytes) -> None:
    """Each request learns it at once, the mutation that it may have happened."""
    peer = Peer()
    asked, changing = await peer.asked(), await peer.asked("add")
    peer.sent.clear()
    peer.says(lie if lie != LIES["another id"] else lie.replace(b"2", b"9"))
    assert isinstance(await error_of(asked), AnswerUnreadable)
    assert isinstance(await error_of(changing), OutcomeUnknown)
    assert peer.closed
    assert peer.talk.over
    assert len(peer.talk.over) < 1000
    with pytest.raises(NodeUnreachable, match="nothing was sent"):
        await peer.talk.ask("status", {}, 1)
    assert peer.sent == []


async def test_an_answer_given_twice_ends_the_talk() -> None:
    peer = Peer()
    asked = await peer.asked()
    peer.answers(0)
    peer.answers(0)
    assert await asked == {}
    assert "nobody asked" in str(peer.talk.over)


async def test_a_lie_after_an_answer_does_not_take_it_back() -> None:
    peer = Peer()
    asked = await peer.asked()
    peer.says(b'{"id":1,"ok":true,"result":{"n":1}}\nnonsense\n')
    assert await asked == {"n": 1}
    assert peer.closed


async def test_that_our_own_line_was_refused_is_said_in_the_nodes_words() -> None:
    peer = Peer()
    asked = await peer.asked()
    peer.says(b'{"id":null,"ok":false,"error":{"code":"bad_input","message":"no UTF-8"}}\n')
    assert "bad_input: no UTF-8" in str(await error_of(asked))


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("do", "code", "kind"), [
    ("escrow", "disk", NodeRefused),
    ("escrow", "old_term", OtherHub),
    ("escrow", "other_hub", OtherHub),
    ("hello", "old_term", NodeRefused),
    ("escrow", "fault", OutcomeUnknown),
    ("cancel", "batch_full", OutcomeUnknown),
    ("hold", "disk_broken", OutcomeUnknown),
    ("status", "disk_broken", NodeRefused),
    ("list", "fault", NodeRefused),
    ("list", "batch_full", NodeRefused),
    ("escrow", "", NodeRefused),
])  # fmt: skip
async def test_an_error_says_what_may_have_changed(do: str, code: str, kind: type) -> None:
    peer = Peer()
    asked = await peer.asked(do)
    error = {"code": code, "message": "because \x1b[2J"}
    peer.says(json.dumps({"id": 1, "ok": False, "error": error}).encode() + b"\n")
    said = await error_of(asked)
    assert type(said) is kind
    assert "because \\x1b[2J" in str(said)
    assert peer.talk.over is None


async def test_the_rule_of_a_refusal_is_the_nodes_own() -> None:
    peer = Peer()
    asked = await peer.asked("set")
    error = {"code": "refused", "rule": "in_transfer", "message": "it moves", "hint": "wait"}
    peer.says(json.dumps({"id": 1, "ok": False, "error": error}).encode() + b"\n")
    said = await error_of(asked)
    assert isinstance(said, NodeRefused)
    assert (said.rule, said.because, said.hint) == ("in_transfer", "it moves", "wait")


# --- Time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("do", "kind", "says"), [
    ("status", NodeSilent, "nothing changed there"),
    ("escrow", OutcomeUnknown, "it may have happened"),
])  # fmt: skip
async def test_what_is_not_answered_in_time_says_what_changed(
    do: str, kind: type, says: str
) -> None:
    said = await error_of(await Peer().asked(do, timeout_s=0.01))
    assert type(said) is kind
    assert says in str(said)


async def test_a_dry_run_that_is_not_answered_changed_nothing() -> None:
    with pytest.raises(NodeSilent):
        await Peer().talk.ask("escrow", {"dry_run": True}, 0.01)


async def test_an_answer_that_comes_too_late_is_thrown_away_once() -> None:
    peer = Peer()
    await error_of(await peer.asked(timeout_s=0.01))
    peer.answers(0)
    assert peer.talk.over is None
    peer.answers(0)
    assert peer.talk.over is not None


def put(peer: Peer, do: str, timeout_s: float) -> list[Any]:
    """A request that nobody waits for; what it is told, as it is told."""
    told: list[Any] = []
    peer.talk.put(do, {}, timeout_s, told.append)
    return told


async def test_what_is_put_is_told_once_whatever_becomes_of_it() -> None:
    peer = Peer()
    answered, silent, cut = put(peer, "status", 30), put(peer, "add", 0.02), put(peer, "list", 30)
    peer.answers(0, pending_count=1)
    assert (answered, silent, cut) == ([{"pending_count": 1}], [], [])
    await error_of(await peer.asked("status", 0.04))
    peer.talk.ended("the line broke")
    assert [type(one) for one in (*silent, *cut)] == [OutcomeUnknown, NodeUnreachable]
    assert len(answered) == 1


async def test_who_takes_reports_is_told_one_and_who_asks_beside_it_the_result() -> None:
    """Whatever the talk knows again, `ask` gives what the node wrote."""
    peer, status = Peer(), {**a_status(), "node": "iris"}
    told: list[Any] = []
    for _ in range(2):
        peer.talk.put("status", {}, 30, told.append, reports=True)
        peer.says(an_answer(status, len(peer.sent)) + b"\n")
    asked = await peer.asked("status")
    peer.says(an_answer(status, len(peer.sent)) + b"\n")
    assert told == [parse_report(status)] * 2
    assert await asked == status
    peer.talk.put("status", {}, 30, told.append, reports=True)
    peer.says(an_answer(status, 4), an_answer(status, 4))
    assert peer.talk.over is None  # a line without an end is none yet
    peer.says(b"\n")
    assert isinstance(told[-1], AnswerUnreadable)


async def test_a_later_question_with_less_time_has_its_own_limit() -> None:
    """Seen to fail with the alarm left as the first question set it."""
    peer = Peer()
    long = put(peer, "status", 30)
    async with asyncio.timeout(5):
        assert isinstance(await error_of(await peer.asked("status", 0.02)), NodeSilent)
    assert long == []


async def test_who_stops_waiting_leaves_the_talk_as_it_was() -> None:
    peer = Peer()
    asked = await peer.asked()
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    peer.answers(0)
    other = await peer.asked()
    peer.answers(1, n=1)
    assert await other == {"n": 1}


async def test_a_node_that_never_answers_is_left_before_it_owes_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(talks, "OWED_MAX", 3)
    peer = Peer()
    for _ in range(4):
        await error_of(await peer.asked(timeout_s=0.001))
    assert "owes" in str(peer.talk.over)
    assert peer.closed


# --- Room -----------------------------------------------------------------------------------------


async def test_a_node_that_does_not_read_is_not_sent_more() -> None:
    peer = Peer()
    peer.stuck = talks.UNSENT_MAX + 1
    with pytest.raises(NodeUnreachable, match="does not read"):
        await peer.talk.ask("escrow", {}, 1)
    assert peer.sent == []
    peer.stuck = 0
    asked = await peer.asked()
    peer.answers(0)
    await asked


async def test_nothing_that_a_node_prints_grows_our_memory() -> None:
    """With the ring or the line limit taken away this holds hundreds of MiB."""
    peer = Peer()
    asked = await peer.asked()
    piece, complaint = b"e" * 32768, b"e" * (complaints.OFTEN_MAX // 1000)
    tracemalloc.start()
    for _ in range(1000):
        peer.talk.complained(complaint)
        peer.says(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await error_of(asked)
    assert peak < 4 * LINE_MAX
    assert len(peer.talk._complaints.last) <= complaints.KEPT_MAX


async def test_complaints_without_an_end_end_the_talk() -> None:
    """Seen to fail: they were read for as long as the session stood, at the others' cost."""
    peer = Peer()
    asked, changing = await peer.asked(), await peer.asked("add")
    peer.talk.complained(b"e" * complaints.OFTEN_MAX)
    assert peer.talk.over is None
    peer.talk.complained(b"e")
    assert isinstance(await error_of(asked), AnswerUnreadable)
    assert isinstance(await error_of(changing), OutcomeUnknown)
    assert peer.closed
    assert "on its stderr" in str(peer.talk.over)


def test_who_complains_a_little_for_a_long_time_is_left_alone() -> None:
    at = 0.0
    heard = complaints.Complaints(lambda: at)
    for _ in range(10):
        at += complaints.OFTEN_S
        assert not heard.add(b"e" * complaints.OFTEN_MAX)
    assert heard.add(b"e")


async def test_a_channel_that_broke_is_noticed_before_anything_leaves() -> None:
    peer = Peer()
    peer.closed = True
    with pytest.raises(NodeUnreachable, match="was not sent"):
        await peer.talk.ask("escrow", {}, 1)


# --- News -----------------------------------------------------------------------------------------


async def test_news_that_was_asked_for_is_told() -> None:
    peer = Peer()
    peer.talk.wants_news = True
    peer.says(b'{"event":"idle","seq":1,"at":"x"}\n{"event":"task_ready","seq":2,"at":"x"}\n')
    await asyncio.sleep(0)
    assert peer.heard == ["idle", "task_ready"]


@pytest.mark.parametrize("event", [b'"reboot"', b"7", b"null", b'["idle"]'])
async def test_news_of_another_kind_ends_the_talk(event: bytes) -> None:
    peer = Peer()
    peer.talk.wants_news = True
    peer.says(b'{"event":' + event + b"}\n")
    assert "nobody asked" in str(peer.talk.over)
    assert peer.heard == []


async def test_a_flood_of_news_ends_the_talk() -> None:
    peer = Peer()
    peer.talk.wants_news = True
    peer.says(b'{"event":"idle","seq":1,"at":"x"}\n' * 5000)
    await asyncio.sleep(0)
    assert "in a second" in str(peer.talk.over)
    assert len(peer.heard) <= talks.NEWS_MAX
