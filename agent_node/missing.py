"""Keeps agents whose program is not here from claiming, and notices when it is here again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

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


def why_missing(agent: AgentSettings) -> str:
    """Why this agent's program cannot be started here; empty where nothing is known against it.

    What another user may start only that user can see. What lies beside a task is the task's own.
    """
    if agent.starter:
        return ""
    if agent.cwd is not None and not os.path.isdir(agent.cwd):
        return f"there is no folder {safe_text(agent.cwd)} here, its cwd"
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


class Programs:
    """Which agents are held for want of their program, and why: `Live.missing`."""

    def __init__(self, settings: NodeSettings, live: Live, clock: Clock) -> None:
        self._settings, self._live, self._clock = settings, live, clock
        self._looked_at = float("-inf")
        self._failed: dict[str, tuple[float, float, str]] = {}  # until when, how long, and why

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
        changes = [self._note(agent.name, why_missing(agent) or self._refused(agent.name, now))
                   for agent in self._settings.agents]  # fmt: skip
        return any(changes)

    def excused(self, run: Run, end: Result) -> Result:
        """The task does not pay for an attempt that could not start for want of the program: it
        waits again, and the agent is held from here on.
        """
        agent, verdict = self._settings.agent(run.agent), run.unstarted
        if agent is None or verdict is None or run.judging is not None:
            return end
        why = why_missing(agent)
        if not why and not (verdict.missing and _is_its_own(agent)):
            return end
        self._hold(agent, why, f"its program could not be started: {verdict.because}")
        return Result("requeued", message=f"could not start: {why or verdict.because}"[:WHY_MAX])

    def _hold(self, agent: AgentSettings, why: str, otherwise: str) -> None:
        """What is there all the same is left alone for a while, twice as long each time: no task
        pays for it, so that nothing else would end that.
        """
        if not why:
            _, before, _ = self._failed.get(agent.name, (0.0, LOOK_S / 2, ""))
            wait = min(2 * before, HELD_MAX_S)
            self._failed[agent.name] = self._clock.boottime() + wait, wait, otherwise[:WHY_MAX]
        self._note(agent.name, why or otherwise[:WHY_MAX])

    def started(self, name: str) -> None:
        """Nothing speaks against it any more."""
        self._failed.pop(name, None)

    def _refused(self, name: str, now: float) -> str:
        until, _, why = self._failed.get(name, (now, 0.0, ""))
        return why if now < until else ""

    def _note(self, name: str, why: str) -> bool:
        before = self._live.missing.get(name, "")
        if why == before:
            return False
        if why:
            self._live.missing[name] = why
            log("program_missing", node=name, because=f"{why}; it is given nothing")
        else:
            del self._live.missing[name]
            log("program_found", node=name, because="it is given work again")
        return True
