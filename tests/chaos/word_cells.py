"""Has a fault happen to a real daemon as it carries out a word, and says the same word again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.crash_table import SIDES
from tests.chaos.hub import new_ulid
from tests.chaos.word_cases import HELLO, Case, WordCases
from tests.chaos.word_needs import WAITS
from tests.node.daemon.living import Bell, Daemon, Node, Refusal, Talk, is_stopped, until

HUB = b'{"session":"hub","greeted":true}\n'
OWNER = b'{"session":"owner"}\n'
ALONE = ("drain",)  # after it nothing runs; the others leave what may wait for words yet to come


class WordCells:
    """One node, on which a program runs all the while where it is `busy`; one action."""

    def __init__(self, node: Node, place: Path, action: str, *, busy: bool) -> None:
        self.node, self.action = node, action
        self.acked: list[str] = []  # what has to have run once when all is over
        self.stopped: list[str] = []  # what began, and was ended by a person's word
        self._places: Iterator[str] = iter(())
        self._owed: list[Callable[[], object]] = []
        self.token, self._ledger = place / "token", place / "ledger"
        self._seen = place / "seen"
        self._ledger.touch()
        self._gate = Bell(place / "gate")
        self._dice = Random(f"words {action}")
        self._talks: dict[bytes, Talk] = {}
        self._daemon: Daemon | None = None
        self._blows: list[str] = []  # those that the daemon which now runs has to tell of
        self._cases = WordCases(self)
        node.env["ARC_FAILPOINT_SEEN"] = str(self._seen)
        self.start(())
        self.busy = self.new_uid() if busy else ""
        if busy:
            self._keep_busy()

    def _keep_busy(self) -> None:
        body = f'echo "$AGENT_ATTEMPT_TOKEN" > {self.token}; {self.body(WAITS)}'
        self.talk(by_hub=False).ask("add", tasks=[{"uid": self.busy, "subject": "b", "body": body}])
        self.runs(self.busy)

    # --- what happens ---------------------------------------------------------------------------

    def campaign(self, words: Sequence[str], sides: Sequence[str] = SIDES) -> list[str]:
        """Each word meets it at each of these sides; the places that were reached."""
        places = [f"{do}.{side}" for do in words for side in sides]
        self._places = iter(places)
        self.start(self._next_place() if self.action == "kill" else places)
        for do in words:
            self._word(do, sides)
        return self._seen.read_text().split()[::2]

    def _word(self, do: str, sides: Sequence[str]) -> None:
        case = self._cases.case(do)
        if self.action == "stop":
            self._stands_still(do, case, sides)
        else:
            for side in sides:
                (self._dies if self.action == "kill" else self._fails)(do, case, side)
                assert case.happened() == (side == "after"), f"{do}.{side}"
                assert side == "before" or case.fenced is None or case.fenced(), f"{do}.{side}"
        first, second = self._told(do, case), self._told(do, case)
        assert case.says in json.dumps(second), (do, second)
        assert "refused" not in self._outcomes(first) | self._outcomes(second), (first, second)
        assert case.happened(), do
        assert case.fenced is None or case.fenced(), do
        if case.event is not None:
            most = 1 + case.again
            assert 1 <= self.count(*case.event) <= most, (do, self.count(*case.event))
        if case.then is not None:
            self._owed.append(case.then)
        if do in ALONE:
            self._pay()

    def _dies(self, do: str, case: Case, side: str) -> None:
        """Whoever comes after it will die at the next place."""
        assert self._daemon is not None
        with pytest.raises(ConnectionError):
            self._told(do, case)
        assert self._daemon.ended() == -signal.SIGKILL, f"{do}.{side}"
        self.start(self._next_place())

    def _next_place(self) -> list[str]:
        return [*islice(self._places, 1)]

    def _fails(self, do: str, case: Case, side: str) -> None:
        """One line to who asked, and one to the log."""
        assert self._daemon is not None
        with pytest.raises(Refusal) as refused:
            self._told(do, case)
        assert refused.value.code == "disk_broken", refused.value
        assert refused.value.message.startswith(f"{do}: the disk failed: "), refused.value
        assert "\n" not in refused.value.message
        self._blows.append(f"{do}.{side}")

    def _stands_still(self, do: str, case: Case, sides: Sequence[str]) -> None:
        assert self._daemon is not None
        pid, before = self._daemon.pid, len(self._lines())
        talk = self.talk(by_hub=case.by_hub, greeted=do != "hello")
        talk.say(do, **case.asks)
        for number, side in enumerate(sides, start=1):
            until(lambda number=number: len(self._lines()) == before + number  # type: ignore[misc]
                  and is_stopped(pid), f"{do}.{side}")  # fmt: skip
            assert self._lines()[-1].split()[0] == f"{do}.{side}"
            os.kill(pid, signal.SIGCONT)
        talk.answer(do)

    def _told(self, do: str, case: Case) -> dict[str, Any]:
        return self.talk(by_hub=case.by_hub, greeted=do != "hello").ask(do, **case.asks)

    def _outcomes(self, result: dict[str, Any]) -> set[str]:
        return {one["outcome"] for one in result.get("results", ()) if "outcome" in one}

    def _lines(self) -> list[str]:
        return self._seen.read_text().splitlines() if self._seen.exists() else []

    # --- the node -------------------------------------------------------------------------------

    def start(self, places: Sequence[str]) -> None:
        """A daemon that meets the action at these places, in the place of the one before."""
        if self._daemon is not None and self._daemon.process.poll() is None:
            assert self._daemon.stop() == 0, self._daemon.said
        self._judge()
        for talk in self._talks.values():
            talk.close()
        self._talks = {}
        armed = ",".join(f"{place}:{self.action}" for place in places)
        self._daemon = self.node.start(failpoint=armed)

    def _judge(self) -> None:
        """Of the daemon that has ended: no traceback, and each failure told in one line."""
        if self._daemon is None:
            return
        assert "Traceback" not in self._daemon.said, self._daemon.said
        assert "request_failed" not in self._daemon.said, self._daemon.said
        told = [line for line in self._daemon.said.splitlines() if '"disk_trouble"' in line]
        assert len(told) == len(self._blows), (told, self._blows)
        for line, place in zip(told, self._blows, strict=True):
            assert f"failpoint {place}" in line, (line, place)
        self._blows = []

    def talk(self, *, by_hub: bool, greeted: bool = True) -> Talk:
        """Of the node's owner, or of the hub, which says hello first, unless `greeted` is False."""
        opening = HUB if by_hub else OWNER
        if opening not in self._talks:
            self._talks[opening] = Talk(self.node.home, opening)
            if by_hub and greeted:
                self._talks[opening].ask("hello", **HELLO)
        return self._talks[opening]

    def refused_as_hub(self, do: str, **fields: Any) -> str:
        """The code of the refusal, in a talk of its own; "" when it is none."""
        talk = Talk(self.node.home, HUB)
        try:
            talk.ask(do, **fields)
        except Refusal as refused:
            return str(refused.code)
        finally:
            talk.close()
        return ""

    def state(self, uid: str) -> str:
        """"": it is not here."""
        try:
            return str(self.talk(by_hub=False).ask("show", uid=uid)["task"]["state"])
        except Refusal as refused:
            if refused.code != "not_found":
                raise
            return ""

    def count(self, event: str, mark: str) -> int:
        """How often this was written down, with the mark in it."""
        events = self.talk(by_hub=False).ask("events", after_seq=0, limit=1000)["events"]
        return sum(one["event"] == event and mark in json.dumps(one) for one in events)

    def new_uid(self) -> str:
        return new_ulid(self._dice)

    def body(self, script: str) -> str:
        """The script, which writes into this world's ledger and waits at its gate."""
        return script.format(ledger=self._ledger, gate=self._gate.path)

    def runs(self, uid: str) -> None:
        """Return once its program does."""
        until(lambda: self._begun(uid), f"the program of {uid}")

    def _begun(self, uid: str) -> int:
        return self._ledger.read_text().split().count(uid)

    # --- its end --------------------------------------------------------------------------------

    def _pay(self) -> None:
        for do in self._owed:
            do()
        self._owed = []

    def let_go(self) -> None:
        """What was to stop has stopped, and the program that ran all the while comes to its end."""
        self._pay()
        for uid in self.stopped:
            self.node.until(uid, "CANCELLED")
        if self.busy and self.state(self.busy) != "COMPLETED":
            self._gate.ring()
            self.node.until(self.busy, "COMPLETED")

    def end(self) -> None:
        """All that waits is worked off: each program that was to run has run exactly once."""
        self.let_go()
        self.node.configure(agents=_able(self.node.name), stop_grace_s=0)
        self.action = "nothing"
        self.start(())
        for uid in self.acked:
            self.node.until(uid, "COMPLETED")
        once = [*self.acked, *self.stopped, *filter(None, [self.busy])]
        assert sorted(self._ledger.read_text().split()) == sorted(once)
        assert self._daemon is not None
        assert self._daemon.stop() == 0
        self._judge()

    def close(self) -> None:
        for talk in self._talks.values():
            talk.close()
        self._gate.close()


def _able(name: str) -> str:
    return (f'[[agent]]\nname = "{name}"\nrun = ["sh", "-s"]\nstdin = "body"\nslots = 4\n'
            'skills = ["later"]\n')  # fmt: skip
