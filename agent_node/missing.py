"""Keeps agents whose program is not here from claiming, and notices when it is here again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import NamedTuple

from .clock import Clock
from .commands import Result
from .config import AgentSettings, NodeSettings
from .log import log
from .runs import Run
from .store.live import Live
from .text import safe_text

LOOK_S = 30.0  # between two looks that nobody asked for
SOON_S = 0.2  # between two for which there was a reason: something may have come to be claimed
WHY_MAX = 1000  # characters of what a shim said
HELD_MAX_S = 300.0  # that a program is left alone which is there and cannot be started
WRITTEN_S = 5.0  # after which a file that was written to is taken for whole


def why_missing(agent: AgentSettings) -> str:
    """Why this agent's program cannot be started here; empty where nothing is known against it.

    What another user may start only that user can see. What lies beside a task is the task's own.
    """
    if agent.starter:
        return ""
    if agent.cwd is not None and not os.path.isdir(agent.cwd):
        return f"there is no folder {safe_text(agent.cwd)} here, its cwd"
    if agent.cwd is not None and not os.access(agent.cwd, os.X_OK):
        return f"its cwd, {safe_text(agent.cwd)}, may not be entered"
    if not _is_its_own(agent) or program_of(agent) is not None:
        return ""
    return f"there is no program {safe_text(agent.run[0])} here"


def program_of(agent: AgentSettings) -> str | None:
    """Where its program lies. An entry of PATH that is empty or relative is looked for in its cwd;
    without one it means each task's new folder, where no program lies.
    """
    name, cwd = agent.run[0], agent.cwd
    if "/" in name:
        return shutil.which(os.path.join(cwd or "", name))
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    places = [os.path.join(cwd or "", entry) for entry in entries]
    return shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, places)))


def _is_its_own(agent: AgentSettings) -> bool:
    """Whether its program is the node's, and is not looked for in a task's folder."""
    name = agent.run[0]
    return "/" not in name or os.path.isabs(name) or agent.cwd is not None


class _Hold(NamedTuple):
    """Of a program that is there and could not be started."""

    until: float
    last: float  # whatever is written to it meanwhile
    wait: float
    why: str
    sight: tuple[int, int]


def _sight(agent: AgentSettings) -> tuple[int, int]:
    """Which file its program is, and when that was written last; zeros where nobody can look."""
    place = program_of(agent)
    try:
        seen = os.stat(place) if place is not None else None
    except OSError:
        seen = None
    return (0, 0) if seen is None else (seen.st_ino, seen.st_mtime_ns)


def _cause(why: str) -> str:
    """The same for each task, whose folder stands in the words before it."""
    return why.rpartition("[Errno ")[2]


class Programs:
    """Which agents are held for want of their program, and why: `Live.missing`."""

    def __init__(self, settings: NodeSettings, live: Live, clock: Clock) -> None:
        self._settings, self._live, self._clock = settings, live, clock
        self._looked_at = float("-inf")
        self._failed: dict[str, _Hold] = {}

    def there(self) -> Sequence[AgentSettings]:
        """The agents that may be given work; those without a program are looked at once more."""
        agents = self._settings.agents
        if not self._live.missing:
            return agents
        self.look(every_s=SOON_S)
        return [agent for agent in agents if agent.name not in self._live.missing]

    def of(self, name: str) -> AgentSettings | None:
        """The agent of this name, if it may be given work as far as its program goes."""
        return None if name in self._live.missing else self._settings.agent(name)

    def look(self, *, every_s: float = LOOK_S) -> bool:
        """Look at every program, unless somebody just did; whether anything is different now."""
        now = self._clock.boottime()
        if now < self._looked_at + every_s:
            return False
        self._looked_at = now
        changes = [self._note(agent.name, self._why(agent, now)) for agent in self._settings.agents]
        return any(changes)

    def excused(self, run: Run, end: Result) -> Result:
        """The task does not pay for an attempt that could not start for want of the program: it
        waits again, and the agent is held from here on.
        """
        agent, verdict = self._settings.agent(run.agent), run.unstarted
        if agent is None or verdict is None or run.judging is not None:
            return end
        why = why_missing(agent)
        absent = verdict.missing and _is_its_own(agent)
        if not (why or absent or (verdict.no_folder and agent.cwd is not None)):
            return end
        self._hold(agent, why, f"its program could not be started: {verdict.because}")
        return Result("requeued", message=f"could not start: {why or verdict.because}"[:WHY_MAX])

    def _hold(self, agent: AgentSettings, why: str, otherwise: str) -> None:
        """What is there all the same is left alone for a while, twice as long each time: no task
        pays for it, so that nothing else would end that. What ends beside it, while it is held
        already, is the same time.
        """
        held, now = self._failed.get(agent.name), self._clock.boottime()
        if not why and (held is None or now >= held.until):
            same = held is not None and _cause(held.why) == _cause(otherwise)
            why = held.why if held is not None and same else otherwise[:WHY_MAX]
            wait = LOOK_S if held is None else min(2 * held.wait, HELD_MAX_S)
            self._failed[agent.name] = _Hold(now + wait, now + wait, wait, why, _sight(agent))
            if same:
                self._live.missing[agent.name] = why  # which was told the first time
        elif not why and held is not None:
            why = held.why
        self._note(agent.name, why)

    def started(self, name: str) -> None:
        """Nothing speaks against it any more."""
        if self._failed.pop(name, None) is not None and name not in self._live.missing:
            log("program_found", node=name, because="it starts again")

    def _why(self, agent: AgentSettings, now: float) -> str:
        """Why it is given nothing now. A program that was replaced may start: it is tried at once,
        and one that is being written once nobody has written for a moment.
        """
        why, held = why_missing(agent), self._failed.get(agent.name)
        if held is None:
            return why
        sight = _sight(agent)
        if why or sight[0] != held.sight[0]:
            del self._failed[agent.name]
            return why
        if sight != held.sight:
            held = held._replace(sight=sight, until=min(held.last, now + WRITTEN_S))
            self._failed[agent.name] = held
        return held.why if now < held.until else ""

    def _note(self, name: str, why: str) -> bool:
        before = self._live.missing.get(name, "")
        if why == before:
            return False
        if why:
            self._live.missing[name] = why
            log("program_missing", node=name, because=f"{why}; it is given nothing")
        else:
            del self._live.missing[name]
            if name not in self._failed:  # else it is only tried once more
                log("program_found", node=name, because="it is given work again")
        return True
