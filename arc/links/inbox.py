"""Reaches the hub's own queue, which lies in its state folder and is answered in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_node.clock import Clock, iso, parse_iso
from agent_node.commands import Forget, Wake
from agent_node.desk import Outcome, Session
from agent_node.errors import BadInput, DiskBroken, NodeError
from agent_node.home import Home, HomeLock, check_home
from agent_node.lines import line_of
from agent_node.opening import opened
from agent_node.passing import Passing
from agent_node.replies import Answers
from agent_node.report import withdraw
from agent_node.strict import LINE_MAX, JsonObject, decode_object
from agent_node.text import safe_text
from arc.durable import write_durably
from arc.errors import LinkError, NodeRefused, NodeUnreachable, OtherHub

from . import EventHeard, HelloWords, Met, Told
from .answers import (
    LATER_HUB,
    Greeting,
    changes,
    met_by_later_hub,
    parse_greeting,
    parse_met,
    refusal,
    text_of,
    unanswered,
)

if TYPE_CHECKING:
    from agent_node.store.sqlite import SqliteStore

log = logging.getLogger("arc.links")

NAME = "inbox"
WAKE_EVERY_S = 1.0  # leases that ended and times that came are looked for no more often than this
SETTINGS = """\
# The hub's own queue: what nobody has been given yet. Nothing runs here.
name = "inbox"
queue_max = 100000
"""
OWNER = "hub"  # a file in the home: for which hub's instance the queue was opened last
OWNER_MAX = 64
BRINGS_WORK = frozenset(
    ("add", "activate", "retry", "resolve", "release", "cancel", "submit", "ended", "alive",
     "graph_cancel", "artifact_put")
)  # fmt: skip


class _Said(NamedTuple):
    """A status that was told, and how often the queue had been changed by then."""

    told: JsonObject
    applied: int


class InboxLink:
    """A `Link` to a store of the same kind as every node's, held open under its own lock.

    One request at a time, each a whole transaction, and no waiting inside one. Nothing is ever
    dispatched here, so a `hold` into it needs `even_if_stopped`. A queue that another instance of
    the hub left here is quarantined: that one may still give the same tasks away. Once its disk
    failed nothing is asked of it any more, and `broke` is told why: only another process may go on.
    """

    def __init__(
        self, home: Path, words: HelloWords, *, clock: Clock,
        broke: Callable[[str], None] = lambda because: None, assume_usd: str | None = None,
    ) -> None:  # fmt: skip
        self.name = NAME
        self.requests = 0
        self.met: Met | None = None
        self._home, self._words, self._clock = Home(home), words, clock
        self._passing = Passing(self._home.generation, clock)
        self._held = ExitStack()
        self._answers: Answers | None = None
        self._session = Session("hub")
        self._woke_at = 0.0
        self._said: _Said | None = None
        self._listener: EventHeard | None = None
        self._closed = False
        self._broke, self._broken = broke, ""  # why nothing is asked any more
        self._assume_usd = assume_usd

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        """The result of one request; it is there at once, so there is nothing to wait for."""
        given = fields or {}
        answers = self._open()
        if self.met is not None and self.met.old_term and changes(do, given):
            raise OtherHub(f"{self.name}: {self.met.old_term}; {do} was not sent")
        self._wake(answers)
        if do == "status":
            return self._report(answers, given)
        result = self._say(answers, do, given)
        if self._listener is not None and do in BRINGS_WORK:
            asyncio.get_running_loop().call_soon(self._listener, self.name, "task_ready")
        return result

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        """Nothing is put here: `ask` waits for nobody either."""
        return False

    async def meet(self, *, anew: bool = False) -> Met:
        """What our own queue answered to hello, once it is open."""
        answers = self._open()
        if anew:
            self.met = self._hello(answers, parse_greeting(answers.greeting()))
        assert self.met is not None, "an open inbox has been greeted"
        return self.met

    def assume(self, usd: str | None) -> None:
        """What a task that names no `max_cost_usd` reserves from now on; None: what node.toml of
        this queue says, which is nothing.
        """
        self._assume_usd = usd
        if (answers := self._answers) is not None:
            self._do(answers, lambda: self._assume(answers))

    def _assume(self, answers: Answers) -> None:
        money = answers.desk.settings.money
        assumed = replace(money, assume_usd=self._assume_usd or money.assume_usd)
        _file(answers).spend_within(assumed, from_now_on=False)

    def doubt(self) -> str:
        """Why nothing here may be let go of by its age now; empty: it may. Its status says so."""
        live = _file(self._open()).live
        live.clock_doubt = self._passing.look()
        return live.clock_doubt

    def forget(self) -> bool:
        """Let go of a little of what ended long ago, by a node's own rules; whether more may go."""
        answers, little = self._open(), Forget()
        return self._do(answers, lambda: answers.desk.store.apply(little)) >= little.limit

    async def listen(self, heard: EventHeard) -> None:
        """Tell `heard` when work may have come in."""
        self._listener = heard

    async def close(self) -> None:
        """Give the queue and its lock back."""
        self._closed, self._answers, self.met, self._said = True, None, None, None
        try:
            self._held.close()
        except (NodeError, OSError) as error:  # its report is made anew at the next start
            log.warning("inbox_unreported", extra={"node": self.name, "because": str(error)})

    def _open(self) -> Answers:
        if self._answers is not None:
            return self._answers
        if self._closed:
            raise NodeUnreachable(self.name, "the hub has closed its inbox; nothing was asked")
        if self._broken:
            raise NodeUnreachable(self.name, self._broken)
        try:
            answers = self._enter()
            greeting = parse_greeting(answers.greeting())
            self.met = self._hello(answers, greeting)
        except LinkError:
            self._held.close()
            raise
        except (NodeError, OSError) as error:
            self._held.close()
            if isinstance(error, DiskBroken):
                self._break_off(str(error))
            text = f"the hub's own queue cannot be opened: {error}; nothing was asked"
            raise NodeUnreachable(self.name, text) from error
        self._answers = answers
        return answers

    def _enter(self) -> Answers:
        """The queue under its lock, made first where there is none; leases that ended end now."""
        make_home(self._home)
        check_home(self._home)
        lock = HomeLock.try_take(self._home)
        if lock is None:
            raise NodeUnreachable(self.name, f"{self._home.root}: another process holds its lock")
        self._woke_at = self._clock.boottime()
        instance, owner = self._words.instance, _owner(self._home)
        left = owner is not None and owner != instance
        why = f"copied from the state folder of another hub, instance {owner}" if left else ""
        held = self._held.enter_context(opened(self._home, lock, self._clock, distrust=why))
        if self._assume_usd is not None:
            self._assume(held)
        if owner != instance:
            # After the quarantine, never before.
            write_durably(self._home.root / OWNER, instance, point="inbox")
        return held

    def _hello(self, answers: Answers, greeting: Greeting) -> Met:
        words = self._words.to(greeting.incarnation, fenced=False)
        try:
            met = parse_met(self._say(answers, "hello", words))
            parse_iso(met.at)
            return met
        except NodeRefused as refused:
            if refused.rule not in LATER_HUB:
                raise
            return met_by_later_hub(greeting, self._words.term, refused.because)

    def _wake(self, answers: Answers) -> None:
        now = self._clock.boottime()
        if now - self._woke_at >= WAKE_EVERY_S:
            self._woke_at = now
            self._do(answers, lambda: answers.desk.store.apply(Wake()))

    def _do(self, answers: Answers, work: Callable[[], Outcome]) -> Outcome:
        """What it owes nobody an answer for: it fails as a link does, and ends with its disk."""
        try:
            return work()
        except NodeError as error:
            if answers.desk.store.broken:
                self._break_off(str(error))
            raise NodeUnreachable(self.name, f"{error}; nothing was asked") from error

    def _report(self, answers: Answers, fields: JsonObject) -> JsonObject:
        """What it says of itself; the same as just now where nothing was written meanwhile and
        nothing waits in it whose age would have grown: each look at the fleet asks for it. Each
        wake counts as a change, so the free disk is looked at as often.
        """
        store = answers.desk.store
        if self._said is None or self._said.applied != store.applied:
            told = self._say(answers, "status", fields)
            self._said = _Said(told, store.applied) if _stands_still(told) else None
            return told
        self.requests += 1
        return {**self._said.told, "written_at": iso(self._clock.now())}

    def _say(self, answers: Answers, do: str, fields: JsonObject) -> JsonObject:
        """Through the same strict lines as any node, so that nothing works here and not there."""
        self.requests += 1
        line = line_of({"id": self.requests, "do": do, **fields})
        if len(line) > LINE_MAX:
            text = f"{do} takes {len(line)} bytes, a line {LINE_MAX}; ask for less at a time"
            raise NodeRefused(self.name, "line_too_long", text)
        answered = answers.answer(self._session, line[:-1])
        try:
            said = decode_object(answered)
        except BadInput as error:
            raise unanswered(self.name, do, f"its answer is no message: {error}", lies=True,
                             changed=changes(do, fields)) from error  # fmt: skip
        result = said.get("result")
        if answers.desk.store.broken:
            self._break_off(text_of(said.get("error"), "message"))
        if said.get("ok") is True and isinstance(result, dict):
            return result
        if self._broken and not changes(do, fields):
            raise NodeUnreachable(self.name, self._broken)
        raise refusal(self.name, do, said.get("error"), changes=changes(do, fields))

    def _break_off(self, because: str) -> None:
        """What this connection would answer may not be on the disk: it answers nothing more."""
        self._answers = self.met = self._said = None
        self._broken = (f"its disk failed ({because}); this hub ends, so that the next one reads "
                        "what is really there; nothing was asked")  # fmt: skip
        withdraw(self._home)
        self._broke(self._broken)


def _file(answers: Answers) -> SqliteStore:
    from agent_node.store.sqlite import SqliteStore  # loaded by now: it is open

    store = answers.desk.store
    assert isinstance(store, SqliteStore), "this queue is a file beside the hub"
    return store


def _stands_still(status: JsonObject) -> bool:
    """Whether only what is written here can change what it says."""
    return not status.get("pending_count") and not status.get("doubts")


def make_home(home: Home) -> None:
    """A home for the inbox, for its owner alone; one that is there stays as it is."""
    home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.config.exists():
        return
    write_durably(home.config, SETTINGS, point="inbox")


def _owner(home: Home) -> str | None:
    """The instance that had the queue last; None: it is new."""
    try:
        with (home.root / OWNER).open("rb") as file:
            return safe_text(file.read(OWNER_MAX).decode("utf-8", "replace").strip())
    except FileNotFoundError:
        return None
