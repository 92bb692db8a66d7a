"""Holds one talk with a node over any stream of bytes: requests out, answers and news in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from agent_node.errors import BadInput
from agent_node.lines import Lines, line_of
from agent_node.reports import StatusReport
from agent_node.strict import LINE_MAX, JsonObject, decode_object
from agent_node.wire import EVENTS
from arc.errors import ArcError, NodeRefused, NodeSilent, NodeUnreachable, OutcomeUnknown

from . import Told
from .answers import Greeting, changes, code_of, last_words, refusal, text_of, unanswered
from .asked import Asked, bare, settle
from .complaints import OFTEN_MAX, OFTEN_S, Complaints
from .doorstep import Doorstep
from .familiar import Familiar
from .way import Channel

UNSENT_MAX = 2 * LINE_MAX  # bytes that wait for a node which does not read
SHORT, SHORT_MAX = frozenset({"hello", "subscribe"}), 1024 * 1024  # bytes
OWED_MAX = 256  # answers that came too late, or never: a talk that owes more is over
NEWS_MAX = 500  # pieces of news in a second; a node has no reason for more


class Talk:
    """One session with one node; it ends once and for all, and `over` then says why.

    The channel's owner tells it what came (`received`, `complained`, `ended`); these never raise,
    and hold a bounded number of bytes whatever the node sends. Requests may overlap, answers come
    in any order; what nobody asked for, what is no answer, and what never ends closes the talk.
    """

    def __init__(self, node: str, heard: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._node, self._heard = node, heard
        self._channel: Channel | None = None
        self._lines, self._familiar = Lines(), Familiar()
        self._asked: dict[int, Asked] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._owed: set[int] = set()
        self._last_id = 0
        self._doorstep = Doorstep(node)
        self._complaints = Complaints(self._loop.time)
        self._news_since, self._news = 0.0, 0
        self._greeting: asyncio.Future[Greeting] = self._loop.create_future()
        self.over: str | None = None
        """Why the talk ended; None while it goes on."""
        self.lied = False  # whether it ended by what no node says
        self.retires = ""
        """Why nothing more is asked here; empty: nothing speaks against it."""
        self.closed = asyncio.Event()
        self.wants_news = False

    def connect(self, channel: Channel) -> None:
        """From here on the node may be spoken to."""
        self._channel = channel
        if self.over is not None:
            channel.close()

    # --- What the channel's owner tells ---------------------------------------------------------

    def received(self, data: bytes) -> None:
        """The node wrote this."""
        if self.over is not None:
            return
        if self._greeting.done() and not self._lines and data.find(b"\n") == len(data) - 1:
            self._read(data)  # one whole line, as nearly always
            return
        self._lines.add(data)
        if not self._greeting.done():
            self._look_for_greeting()
        while self._greeting.done() and not self.closed.is_set():
            self._lines.limit = self._longest()
            if self._lines.too_long:
                self._lied(f"a line of more than {self._lines.limit} bytes")
            elif self._lines.waiting:
                self._read(self._lines.take())
            else:
                return

    def complained(self, data: bytes) -> None:
        """The node wrote this to its stderr; the last of it is kept for an error to repeat."""
        if self.over is None and self._complaints.add(data):
            self._lied(f"more than {OFTEN_MAX} bytes in {OFTEN_S:g}s on its stderr")

    def ended(self, why: str, *, exit_status: int | None = None) -> None:
        """Nothing more will come. Before a greeting that means: no agent-node is there."""
        if not self._greeting.done() and self.over is None:
            nobody = self._doorstep.nobody(why, self._complaints.last, exit_status)
            self._nobody_greets(nobody)
        words = last_words(self._complaints.last)
        self._end(f"{why}; its last words: {words}" if words else why, lies=False)

    # --- What the link asks ---------------------------------------------------------------------

    @property
    def noise(self) -> str:
        """What a login shell printed before the greeting, safe and cut; empty: nothing."""
        return self._doorstep.noise

    @property
    def owes(self) -> bool:
        """Whether an answer is late that somebody has stopped waiting for."""
        return bool(self._owed)

    async def greeted(self, timeout_s: float) -> Greeting:
        """Who answers here, or why nobody does."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._greeting
        except TimeoutError as error:
            said = f"; it printed {self.noise}" if self.noise else ""
            message = f"agent-node did not greet within {timeout_s:g}s{said}"
            raise NodeSilent(self._node, f"{message}; nothing was asked") from error

    async def ask(self, do: str, fields: JsonObject, timeout_s: float) -> JsonObject:
        """The result of one request, within so many seconds, or an error that says what changed."""
        answer: asyncio.Future[JsonObject] = self._loop.create_future()
        number = self.put(do, fields, timeout_s, partial(settle, answer))
        try:
            return await answer
        finally:
            if self._asked.pop(number, None) is not None and self.over is None:
                self._owe(number)
            self._leave_if_done()

    def retire(self, why: str) -> None:
        """Ask nothing more here; the talk ends with the last answer."""
        self.retires = why
        self._leave_if_done()

    def put(
        self, do: str, fields: JsonObject, timeout_s: float, told: Told, *, reports: bool = False
    ) -> int:
        """Send one request; within so many seconds `told` gets its result, or the error that it
        became, once. It is called from within: it must neither wait nor raise. `reports`: what is
        known again may be told as the report that it is, already read.
        """
        number, until = self._send(do, fields), self._loop.time() + timeout_s
        asked = Asked(number, do, changes(do, fields), told, timeout_s, until, reports)
        self._asked[number] = asked
        if self._alarm is None or until < self._alarm.when():
            self._arm(until)
        return number

    def close(self, why: str = "the hub ended the session") -> None:
        """End the talk; who still waits learns that no answer came."""
        self._end(why, lies=False)

    def _send(self, do: str, fields: JsonObject) -> int:
        if self.over is not None or self._channel is None:
            raise NodeUnreachable(self._node, f"{self.over or 'not connected'}; nothing was sent")
        number = self._last_id + 1
        line = line_of({"id": number, "do": do, **fields}) if fields else bare(number, do)
        if len(line) > LINE_MAX:
            text = f"{do} takes {len(line)} bytes, a line {LINE_MAX}; ask for less at a time"
            raise NodeRefused(self._node, "line_too_long", text)
        if self._channel.unsent() > UNSENT_MAX:
            text = f"does not read what it is sent ({self._channel.unsent()} bytes wait)"
            raise NodeUnreachable(self._node, f"{text}; {do} was not sent")
        try:
            self._channel.send(line)
        except OSError as error:
            self._end(f"the session broke: {error}", lies=False)
            raise NodeUnreachable(self._node, f"{self.over}; {do} was not sent") from error
        self._last_id = number
        return number

    def _leave_if_done(self) -> None:
        if self.retires and not self._asked:
            self._end(self.retires, lies=False)

    def _arm(self, until: float) -> None:
        """One timer for all that is asked; an answer leaves it, for it may serve the next one."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(until, self._ring, until)

    def _ring(self, now: float) -> None:
        self._alarm = None
        for asked in [one for one in self._asked.values() if one.until <= now]:
            self._too_late(asked)
        if self._asked:
            self._arm(min(one.until for one in self._asked.values()))

    def _too_late(self, asked: Asked) -> None:
        if self._asked.pop(asked.number, None) is None:
            return
        late = f"within {asked.timeout_s:g}s"
        if asked.changes:
            error: ArcError = OutcomeUnknown(self._node, asked.do, f"none {late}")
        else:
            text = f"{asked.do} was not answered {late}; nothing changed there"
            error = NodeSilent(self._node, text)
        asked.told(error)
        self._owe(asked.number)
        self._leave_if_done()

    def _owe(self, number: int) -> None:
        """The answer may still come, once; then it is thrown away."""
        self._owed.add(number)
        if len(self._owed) > OWED_MAX:
            self._end(f"it owes {len(self._owed)} answers", lies=False)

    def _longest(self) -> int:
        """Bytes that a line may take now: few questions have long answers."""
        short = all(asked.do in SHORT for asked in self._asked.values())
        return SHORT_MAX if short and not self._owed else LINE_MAX

    def _look_for_greeting(self) -> None:
        found = self._doorstep.look(self._lines)
        if isinstance(found, ArcError):
            self._nobody_greets(found)
            self._end("nobody greeted", lies=True)
        elif found is not None:
            self._greeting.set_result(found)

    def _nobody_greets(self, error: ArcError) -> None:
        if not self._greeting.done():
            self._greeting.set_exception(error)
            self._greeting.exception()  # it is kept for whoever asks, and asking is no duty

    def _read(self, line: bytes) -> None:
        known = self._familiar.recall(line, self._asked)
        if known is not None:
            self._settle(*known)
            return
        try:
            said = decode_object(line)
        except BadInput as error:
            self._lied(f"what is no message: {error}")
            return
        if "event" in said:
            self._take_news(said)
        else:
            self._take_answer(said, line)

    def _take_answer(self, said: JsonObject, line: bytes) -> None:
        number, ok = said.get("id"), said.get("ok")
        asked = self._asked.get(number) if type(number) is int else None
        result, error = said.get("result"), said.get("error")
        if asked is None:
            self._take_unasked(said)
        elif ok is True and type(result) is dict:
            known = self._familiar.learn(line, result) if asked.reports else result
            self._settle(asked, known)
        elif ok is False and type(error) is dict:
            self._settle(asked, refusal(self._node, asked.do, error, changes=asked.changes))
        else:
            self._lied(f"an answer to {asked.do} that is neither a result nor an error")

    def _settle(self, asked: Asked, said: JsonObject | StatusReport | ArcError) -> None:
        del self._asked[asked.number]
        asked.told(said)
        self._leave_if_done()

    def _take_unasked(self, said: JsonObject) -> None:
        number, error = said.get("id"), said.get("error")
        if type(number) is int and number in self._owed:
            self._owed.remove(number)
        elif number is None and said.get("ok") is False:
            self._lied(f"{code_of(error)}: {text_of(error, 'message')}")
        else:
            self._lied("an answer to what nobody asked")

    def _take_news(self, said: JsonObject) -> None:
        event, now = said["event"], self._loop.time()
        if not self.wants_news or not isinstance(event, str) or event not in EVENTS:
            self._lied("news that nobody asked for")
            return
        if now - self._news_since >= 1:
            self._news_since, self._news = now, 0
        self._news += 1
        if self._news > NEWS_MAX:
            self._lied(f"more than {NEWS_MAX} pieces of news in a second")
            return
        self._loop.call_soon(self._heard, event)

    def _lied(self, what: str) -> None:
        self._end(f"it said {what}; the session was ended", lies=True)

    def _end(self, why: str, *, lies: bool) -> None:
        if self.over is not None:
            return
        self.over, self.lied = why, lies
        self._nobody_greets(NodeUnreachable(self._node, f"{why}; nothing was asked"))
        self._lines.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        waiting, self._asked = self._asked, {}
        for asked in waiting.values():
            asked.told(unanswered(self._node, asked.do, why, lies=lies, changed=asked.changes))
        if self._channel is not None:
            self._channel.close()
        self.closed.set()
