"""Keeps the zygotes up, hands attempts to them, and hears which shims took them."""

from __future__ import annotations

import selectors
from collections.abc import Callable

from .attempts import AttemptFolder
from .config import AgentSettings
from .job import Job
from .kept import AtHand, Kept
from .log import log
from .zygote_link import Spawned, Zygote, ZygoteGone, parcel

_AGAIN_S, _AGAIN_MAX_S = 0.02, 5.0


class Starters:
    """One zygote for each way of changing user; a dead one is started again, ever more slowly."""

    def __init__(
        self,
        zygotes: dict[tuple[str, ...], Zygote],
        selector: selectors.BaseSelector,
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._zygotes, self._selector, self._later = zygotes, selector, later
        self._down: dict[Zygote, int] = {}
        self._deaths: dict[Zygote, int] = {}
        self.at_hand = AtHand(later)
        self.on_spawned: Callable[[Spawned], None] = lambda spawned: None
        self.on_went_on: Callable[[str, int, Kept], None] = lambda uid, n, kept: None
        self.on_restarted: Callable[[], None] = lambda: None

    def watch(self) -> None:
        """Be told what they report, from now on."""
        for zygote in self._zygotes.values():
            self._register(zygote)

    @property
    def are_up(self) -> bool:
        """Whether an attempt handed over now would be taken."""
        return not self._down

    @property
    def pids(self) -> list[int]:
        """The children of this process that are zygotes."""
        return [zygote.pid for zygote in self._zygotes.values()]

    def hand_over(self, agent: AgentSettings, job: Job, folder: AttemptFolder) -> None:
        """Give an attempt to a shim at hand, or to one that waits; `ZygoteGone` when none does."""
        zygote = self._zygotes[agent.starter]
        with parcel(job, folder, zygote.door) as (message, descriptors):
            while (kept := self.at_hand.take(agent.name)) is not None:
                if kept.give(message, descriptors):
                    self.on_went_on(job.uid, job.n, kept)
                    return
                kept.dismiss()
            zygote.send(message, descriptors)

    def hear_all(self) -> None:
        """Whoever has reported by now is heard, before this process goes."""
        for zygote in self._zygotes.values():
            if zygote not in self._down:
                self._hear(zygote)

    def _register(self, zygote: Zygote) -> None:
        self._selector.register(zygote, selectors.EVENT_READ, lambda _: self._hear(zygote))

    def _hear(self, zygote: Zygote) -> None:
        try:
            for spawned in zygote.replies():
                self._deaths.pop(zygote, None)
                self.on_spawned(spawned)
        except ZygoteGone as error:
            log("zygote_gone", because=str(error))
            self._selector.unregister(zygote)
            zygote.close()
            self._deaths[zygote] = self._down[zygote] = self._deaths.get(zygote, 0) + 1
            wait = min(_AGAIN_S * 2 ** self._deaths[zygote], _AGAIN_MAX_S)
            self._later(wait, lambda: self._restart(zygote))

    def _restart(self, zygote: Zygote) -> None:
        try:
            zygote.start()
        except ZygoteGone as error:
            log("zygote_gone", because=str(error))
            self._later(_AGAIN_MAX_S, lambda: self._restart(zygote))
            return
        self._down.pop(zygote, None)
        self._register(zygote)
        self.on_restarted()
