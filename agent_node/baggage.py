"""Has files carried to attempts that begin and from those that ended, a little at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TypeVar

from .artifact_words import ArtifactGone, KeptPlace
from .artifacts import shelf_of
from .belongings import InputGone, hand_in, has_files
from .commands import Claimed, Command, Finish, Result
from .config import AgentSettings, NodeSettings
from .errors import DiskTrouble, NodeError
from .failpoints import failpoint
from .gathering import gather
from .graph_words import WaitAsked
from .home import Home
from .log import log
from .runs import Run, Runs
from .store.sqlite import SqliteStore
from .strict import JsonObject

AT_ONCE_S = 0.005  # of each turn of the loop; a piece that was begun is finished
AGAIN_S = 1.0

T = TypeVar("T")


class Baggage:
    """Between two pieces the loop goes on. What a crash cuts short is begun anew by evidence."""

    def __init__(
        self,
        store: SqliteStore,
        runs: Runs,
        *,
        home: Home,
        settings: NodeSettings,
        later: Callable[[float, Callable[[], None]], None],
        record: Callable[[Run, Result], None],
        freed: Callable[[], None],
    ) -> None:
        self._store, self._runs, self._settings = store, runs, settings
        self._later, self._record, self._freed = later, record, freed
        self._shelf = shelf_of(home.root)
        self._busy: set[Run] = set()

    def give(
        self, run: Run, agent: AgentSettings, claimed: Claimed, then: Callable[[Claimed], None]
    ) -> None:
        """Lay the files it is to be given into its folder, then go on; at once without any."""
        context = claimed.context
        if not context or not has_files(context) or run.user is not None:
            then(claimed)
            return
        shown = "" if agent.prefix else run.folder.path
        self._begin(
            run,
            hand_in(context, run.folder, self._shelf, shown),
            lambda given: then(replace(claimed, context=given)),
            lambda error: self._give_back(run, error),
        )

    def take(self, run: Run, result: Result) -> None:
        """Put the files that it names on the shelf, then record it; at once without any."""
        if result.kind != "completed" or not result.artifacts or self._waits(run):
            self._record(run, result)
            return
        self._begin(
            run,
            gather(result.artifacts, self._place_of(run), self._shelf),
            lambda found: self._taken(run, replace(result, artifacts=found)),
            lambda error: self._taken(run, replace(result, artifacts=[_lost(error)])),
        )

    def _taken(self, run: Run, result: Result) -> None:
        failpoint("artifact.before_result")
        self._record(run, result)

    def _begin(
        self,
        run: Run,
        work: Generator[None, None, T],
        then: Callable[[T], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """Once for each run, however often somebody looks at it meanwhile."""
        if run not in self._busy:
            self._busy.add(run)
            self._go_on(run, work, then, fail)

    def _go_on(
        self,
        run: Run,
        work: Generator[None, None, T],
        then: Callable[[T], None],
        fail: Callable[[Exception], None],
    ) -> None:
        if self._runs.find(run.uid, run.n) is not run:  # it was closed by evidence meanwhile
            self._busy.discard(run)
            work.close()
            return
        until = time.monotonic() + AT_ONCE_S
        try:
            while time.monotonic() < until:
                next(work)
        except StopIteration as done:
            self._busy.discard(run)
            then(done.value)
        except (OSError, NodeError) as error:
            self._busy.discard(run)
            fail(error)
        else:
            self._later(0.0, lambda: self._go_on(run, work, then, fail))

    def _waits(self, run: Run) -> bool:
        """It has nothing to show yet: its task is put back."""
        return self._store.live.graphs and self._store.read(WaitAsked(run.uid, run.n))

    def _place_of(self, run: Run) -> str | None:
        """Where its program worked; None: where we cannot look."""
        if run.user is not None:
            return None
        agent = next((one for one in self._settings.agents if one.name == run.agent), None)
        if agent is not None and agent.cwd:
            return agent.cwd
        folder = (run.judging.program if run.judging else run.folder).path
        kept = self._store.read(KeptPlace(run.uid)) if self._store.live.graphs else None
        return folder if kept is None else os.path.join(os.path.dirname(folder), str(kept))

    def _give_back(self, run: Run, error: Exception) -> None:
        """Nothing ran, so nothing is lost: the task waits, for a file that is gone or for room."""
        log("attempt_not_started", task=run.uid, attempt=run.n, because=str(error))
        back = Finish(run.uid, run.n, Result("requeued", message=str(error)))
        gone = [ArtifactGone(error.sha256)] if isinstance(error, InputGone) else []
        self._later(AGAIN_S, self._freed)
        self.insist([back, *gone], lambda: self._runs.remove(run))

    def insist(self, commands: Sequence[Command[object]], then: Callable[[], None]) -> None:
        """Until it is written, the task stays claimed: nothing else may happen to it."""
        try:
            self._store.together(commands)
        except DiskTrouble as error:
            log("result_waits", because=str(error))
            self._later(AGAIN_S, lambda: self.insist(commands, then))
        else:
            then()


def _lost(error: Exception) -> JsonObject:
    return {"name": "", "because": f"none could be taken: {error}"}
