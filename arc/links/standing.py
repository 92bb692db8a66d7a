"""Keeps one session with a node standing: opened when needed, once for all who wait, and again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from agent_node.clock import Clock, parse_iso
from agent_node.envelope import Exit
from agent_node.errors import BadInput
from agent_node.strict import JsonObject, JsonValue
from agent_node.wire import EVENTS
from arc.errors import (
    AnswerUnreadable,
    ArcError,
    LinkError,
    NodeRefused,
    NodeUnreachable,
    WrongNode,
)

from . import HEARS_NOW, READ_S, READS, WRITE_S, EventHeard, HelloWords, Met, Told
from .answers import LATER_HUB, Greeting, met_by_later_hub, parse_met
from .pausing import FIRST_S, MOST_S, PATIENCE_S, REFUSED_MOST_S, Pausing
from .session import Session
from .talk import Talk
from .way import Way

GREET_S = 10.0  # for the node's program to start and speak
CLOSED = "the hub has closed this link; nothing was asked"
OPEN_S = 40.0  # for all of it: connect, log in, greet, hello
CLOSE_S = 5.0  # for what was under way to end by itself; then it is left to itself

EVERY_EVENT: list[JsonValue] = [*sorted(EVENTS)]

Fenced = Callable[[str, str], bool]  # (node, incarnation): whether a person declared it dead
Pause = Callable[[float], Awaitable[None]]


class StandingLink:
    """A `Link` over any `Way`. One opening at a time serves everybody who waits for one.

    After a failed opening, and after a session that did not last, the next one waits (`Pausing`).
    Who asks meanwhile gets the last error again, unless the wait is short; `meet` tries anew.
    """

    def __init__(
        self, name: str, way: Way, words: HelloWords, *, clock: Clock, rng: random.Random,
        is_fenced: Fenced, pause: Pause = asyncio.sleep, mend: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self._way, self._words = way, words
        self._clock = clock
        self._is_fenced, self._pause, self._mend = is_fenced, pause, mend
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._opens: asyncio.Future[Session]  # what whoever waits is told of it
        self._pausing = Pausing(clock, rng)
        self._last_error: ArcError | None = None
        self._troubled = False  # the last session broke, or the last opening failed
        self._listener: EventHeard | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False
        self.requests = 0
        self.noise = ""
        """What the node's login shell printed before the greeting; empty: nothing."""

    @property
    def met(self) -> Met | None:
        """What the node answered to the hello of the session that is open; None: none is."""
        session = self._open_session()
        return session.met if session else None

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        """The result of one request; reads have 10 s and mutations 15 s unless told otherwise."""
        given = fields or {}
        left = timeout_s if timeout_s is not None else READ_S if do in READS else WRITE_S
        session = self._open_session()
        if session is None:
            began = self._clock.boottime()
            session = await self._opened(left)
            left = max(left - (self._clock.boottime() - began), 0.0)
        if session.talk.owes and do in READS:
            left = min(left, PATIENCE_S)  # one silent node holds nobody up twice
        session.check(do, given)
        self.requests += 1
        result = await session.ask(do, given, left)
        if do == "status" and self._misses_news(session, result):
            await self._subscribe(session)
        return result

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        """Ask without waiting, for questions that change nothing; False: `ask` is the way."""
        session = self._open_session()
        if session is None or do not in READS or (self._listener and not session.hears):
            return False
        left = min(timeout_s, PATIENCE_S) if session.talk.owes else timeout_s
        try:
            session.talk.put(do, {}, left, told, reports=do == "status")
        except ArcError as error:
            told(error)
        else:
            self.requests += 1
        return True

    async def meet(self, *, anew: bool = False) -> Met:
        """What the node answered to hello; opens a session now if there is none, pause or not."""
        session = self._open_session()
        if session is not None and anew:
            session.talk.retire("it is another node than the one that was met")
            session.talk.close()
            session = self._open_session()
        if session is None:
            self._pausing.forgive()
            session = await self._opened(OPEN_S)
        return session.met

    async def listen(self, heard: EventHeard) -> None:
        """Tell the node's events to `heard` from now on, and keep a session open to hear them."""
        self._listener = heard
        session = self._open_session()
        if session is not None and not session.hears:
            await self._subscribe(session)
        if self._keeper is None and not self._closed:
            self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.name}")

    async def close(self) -> None:
        """End it all in a few seconds at most; closing twice is fine. Who waits learns of it."""
        self._closed = True
        going = {task for task in (self._keeper, self._opening) if task and not task.done()}
        for task in going:
            task.cancel()
        late = (await asyncio.wait(going, timeout=CLOSE_S))[1] if going else ()
        if self._opening in late:
            _fail(self._opens, NodeUnreachable(self.name, CLOSED))
        self._keeper = self._opening = None
        if self._session is not None:
            self._session.talk.close("the hub closed the link")
        await self._way.close()

    # --- Opening --------------------------------------------------------------------------------

    def _open_session(self) -> Session | None:
        session = self._session
        ended = session and (session.talk.over or session.talk.retires)
        if session is None or not ended:
            return session
        self._session = None
        self._pausing.ended(self._clock.boottime() - session.since)
        self._last_error = NodeUnreachable(self.name, ended)
        self._troubled = not session.talk.retires
        return None

    async def _opened(self, limit_s: float) -> Session:
        if self._closed:
            raise NodeUnreachable(self.name, CLOSED)
        if self._opening is None or self._opening.done():
            self._check_pause()
            self._opening = asyncio.create_task(self._open(), name=f"open {self.name}")
            self._opens = asyncio.get_running_loop().create_future()
            self._opening.add_done_callback(partial(_tell, self.name, self._opens))
        if self._troubled:
            limit_s = min(limit_s, PATIENCE_S)  # the opening goes on; who asks next may have it
        # Not the opening itself: a keeper once took its own cancelling for that one's, and stayed.
        done, _ = await asyncio.wait({self._opens}, timeout=limit_s)
        if done:
            return done.pop().result()
        if self._troubled and self._last_error is not None:
            raise self._last_error.with_traceback(None)
        raise NodeUnreachable(self.name, f"no contact within {limit_s:g}s ({self._way.stage});"
                              " nothing was asked")  # fmt: skip

    def _check_pause(self) -> None:
        """Return when the next try is near enough to wait for it; else the last error again."""
        if self._last_error and self._pausing.wait_s > PATIENCE_S:
            raise self._last_error.with_traceback(None)

    async def _open(self) -> Session:
        if self._pausing.wait_s > 0:
            await self._pause(self._pausing.wait_s)
        talk = Talk(self.name, self._heard)
        try:
            async with asyncio.timeout(OPEN_S):
                session = await self._begin(talk)
        except TimeoutError as error:
            talk.close()
            text = f"no session within {OPEN_S:g}s ({self._way.stage}); nothing was asked"
            raise self._failed(NodeUnreachable(self.name, text)) from error
        except ArcError as error:
            talk.close()
            self._failed(error)
            raise
        except asyncio.CancelledError:
            talk.close()
            raise
        self._session, self._troubled = session, False
        return session

    async def _begin(self, talk: Talk) -> Session:
        await self._way.open(talk)
        greeting = await talk.greeted(GREET_S)
        self.noise = talk.noise
        if greeting.node != self.name:
            text = f"the node that answers there is {greeting.node}; nothing was asked of it"
            raise WrongNode(self.name, text, hint=self._mend)
        met = await self._hello(talk, greeting)
        session = Session(self.name, talk, met, self._clock.boottime())
        if self._listener is not None:
            await self._subscribe(session)
        return session

    async def _hello(self, talk: Talk, greeting: Greeting) -> Met:
        fenced = self._is_fenced(self.name, greeting.incarnation)
        words = self._words.to(greeting.incarnation, fenced=fenced)
        sent_at, began = self._clock.now(), self._clock.boottime()
        self.requests += 1
        try:
            result = await talk.ask("hello", words, READ_S)
        except NodeRefused as refused:
            if refused.rule not in LATER_HUB:
                raise
            return met_by_later_hub(greeting, self._words.term, refused.because)
        took_s = self._clock.boottime() - began
        try:
            met = parse_met(result)
            off_s = (parse_iso(met.at) - sent_at).total_seconds() - took_s / 2
        except (BadInput, ValueError, OverflowError) as error:
            text = f"its answer to hello cannot be read: {error}"
            raise AnswerUnreadable(self.name, text) from error
        return replace(met, clock_off_s=off_s)

    def _failed(self, error: ArcError) -> ArcError:
        refused = error.exit_code == Exit.LOGIN
        self._pausing.failed(most_s=REFUSED_MOST_S if refused else MOST_S)
        self._last_error, self._troubled = error, True
        return error

    # --- News -----------------------------------------------------------------------------------

    def _heard(self, event: str) -> None:
        if self._listener is not None:
            self._listener(self.name, event)

    def _misses_news(self, session: Session, status: JsonObject) -> bool:
        """A daemon has come since this session began."""
        has_news = status.get("dispatcher") == "running"
        return has_news and self._listener is not None and not session.hears

    async def _subscribe(self, session: Session) -> None:
        """A node without a daemon has no news and says so; it is asked again after a status.

        Whatever else goes wrong shows in the next request: news only makes things sooner.
        """
        session.hears = session.talk.wants_news = True
        self.requests += 1
        try:
            await session.talk.ask("subscribe", {"events": EVERY_EVENT}, READ_S)
        except LinkError as error:  # without an answer it may have happened: its news is no lie
            session.hears, session.talk.wants_news = False, not isinstance(error, NodeRefused)
        else:
            self._heard(HEARS_NOW)

    async def _keep(self) -> None:
        """As long as somebody listens there is a session, or the next one is being tried."""
        while True:
            try:
                session = self._open_session() or await self._opened(OPEN_S)
            except LinkError:
                await self._pause(max(self._pausing.wait_s, FIRST_S))
            else:
                await session.talk.closed.wait()


def _tell(name: str, opens: asyncio.Future[Session], opening: asyncio.Task[Session]) -> None:
    """Hand what became of an opening to whoever waits; nobody but `close` cancels one."""
    error = NodeUnreachable(name, CLOSED) if opening.cancelled() else opening.exception()
    if error is not None:
        _fail(opens, error)
    elif not opens.done():
        opens.set_result(opening.result())


def _fail(opens: asyncio.Future[Session], error: BaseException) -> None:
    if not opens.done():
        opens.set_exception(error)
        opens.exception()  # who waited may have given up; it has been kept for the next one
