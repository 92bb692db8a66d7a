"""Remembers who answered late, so that a cycle waits for none much longer than for the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .decisions.view import NodeUnseen
from .tally import NOT_OVER_A_WIRE

TIMES = 4  # as long as the slowest of the others: what is beyond that is no matter of distance
LEAST_S = 0.25  # nobody is late sooner who answered the last time
USUAL_TIMES = 2  # as long as the node itself took the last time,
USUAL_MOST_S = 1.0  # but no longer than this,
SHARE = 0.05  # nor than this part of the time since the last cycle: that is what others may lose


@dataclass(frozen=True, slots=True)
class LateNews:
    """What became of a question that a cycle no longer waited for."""

    node: str
    event: Literal["answer_came_late", "answer_never_came"]
    took_s: float
    because: str = ""


@dataclass(eq=False)
class Lateness:
    """What one hub knows of its nodes' slowness; all times in seconds by the hub's boot clock.

    Of each node one question at most is open beyond its cycle: until it has been answered, or has
    run out of its own time, no cycle asks or waits for that node. No answer makes a node unseen,
    never idle and never empty.
    """

    open: dict[str, float] = field(default_factory=dict)  # nobody waits for it; when it was asked
    came_late: set[str] = field(default_factory=set)  # since it was last taken from here
    background: set[object] = field(default_factory=set)  # what still waits for open questions
    _took: dict[str, float] = field(default_factory=dict)  # for its last answer
    _late: set[str] = field(default_factory=set)  # the last time; no answer at all is late, too
    _known: set[str] = field(default_factory=set)  # once answered, or failed: no first contact
    _news: list[LateNews] = field(default_factory=list)
    _told: dict[str, str] = field(default_factory=dict)
    _failed: dict[str, NodeUnseen] = field(default_factory=dict)  # what came of its last question
    _last: float | None = None  # when the last cycle had been answered

    def wait_s(
        self, waiting: Collection[str], answered: Mapping[str, float], now: float
    ) -> float | None:
        """How long after its questions a cycle may wait for these, given how long each of the
        others took; None: until they have run out of their own time.

        Only where most have answered is one of them late, and a first contact takes as long as it
        takes. Who was late the last time says nothing of the others, and is waited for as long as
        they take (where none of them was asked: took), or as costs them next to nothing; the hub's
        own queue is none of them: where all nodes failed, nobody is there to be held up. Who failed
        the last time is not waited for at all: to open a session takes many times as long as an
        answer, and who is mute lets one be opened; both succeed or fail behind the cycle.
        """
        prompt = [name for name in waiting if name not in self._late]
        if len(prompt) > len(answered) or not self._known.issuperset(waiting):
            return None
        others = answered or {
            name: took for name, took in self._took.items()
            if name not in self._late and name != NOT_OVER_A_WIRE
        }
        if others and all(name in self._failed for name in waiting):
            return max(others.values())
        spare_s = USUAL_MOST_S if self._last is None else SHARE * (now - self._last)
        usual_s = USUAL_TIMES * max(self._took.get(name, 0.0) for name in waiting)
        return max(
            TIMES * max(others.values(), default=LEAST_S),
            LEAST_S if prompt else 0.0,
            min(usual_s, USUAL_MOST_S, spare_s),
        )

    def answered(self, name: str, took_s: float) -> None:
        """In time."""
        self._known.add(name)
        self._late.discard(name)
        self._took[name] = took_s
        self._told.pop(name, None)
        self._failed.pop(name, None)

    def failed(self, name: str, found: NodeUnseen) -> None:
        """An error came instead, while somebody still waited."""
        self._known.add(name)
        self._late.add(name)
        self._failed[name] = found

    def failure_of(self, name: str) -> NodeUnseen | None:
        """Why its last question came to nothing, while the next one is open; None: it did not."""
        return self._failed.get(name)

    def gave_up(self, name: str, asked: float) -> None:
        """Nobody waits for it any more; what becomes of it is heard by `came`."""
        self.open[name] = asked
        self._late.add(name)

    def came(self, name: str, now: float, failed: NodeUnseen | None = None) -> None:
        """An open question has come to its end; no `failed`: with an answer."""
        took_s = now - self.open.pop(name, now)
        if failed is not None:
            self._took.pop(name, None)
            self._failed[name] = failed
            self._note(LateNews(name, "answer_never_came", took_s, failed.because))
        else:
            self._failed.pop(name, None)
            self._took[name] = took_s
            self.came_late.add(name)
            self._note(LateNews(name, "answer_came_late", took_s))

    def over(self, now: float) -> None:
        """A cycle has its answers."""
        self._last = now

    def take(self) -> tuple[set[str], Sequence[LateNews]]:
        """Who answered late, and what to write down, since this was last taken."""
        came, self.came_late = self.came_late, set()
        news, self._news = self._news, []
        return came, news

    def _note(self, news: LateNews) -> None:
        """Once for each turn: who is late in every cycle is not told of in every cycle."""
        if self._told.get(news.node) != news.event:
            self._told[news.node] = news.event
            self._news.append(news)
