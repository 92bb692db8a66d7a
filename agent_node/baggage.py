"""Has files carried to attempts that begin and from those that ended, a little at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from .artifact_words import ArtifactGone, KeptPlace
from .artifacts import shelf_of
from .attempts import AttemptFolder
from .belongings import InputGone, hand_in, hand_over, has_files
from .carrying import Carrying, NotCarried, fetch
from .commands import Claimed, Command, Finish, Result
from .config import AgentSettings, NodeSettings
from .errands import Errands
from .errors import DiskTrouble, NodeError
from .failpoints import failpoint
from .gathering import gather, gather_by
from .graph_words import WaitAsked
from .home import Home
from .job import INPUTS, WORK
from .log import log
from .other_user import OtherUser
from .runs import Run, Runs
from .store.sqlite import SqliteStore
from .strict import JsonObject
from .workplace import STAGED

AT_ONCE_S = 0.005  # of each turn of the loop; a piece that was begun is finished
AGAIN_S = 1.0
TRIES = 3  # of taking another user's files

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
        errands: Errands,
    ) -> None:
        self._store, self._runs, self._settings = store, runs, settings
        self._later, self._record, self._freed = later, record, freed
        self._errands = errands
        self._shelf = shelf_of(home.root)
        self._busy: set[Run] = set()

    def give(
        self, run: Run, agent: AgentSettings, claimed: Claimed, then: Callable[[Claimed], None]
    ) -> None:
        """Lay the files it is to be given into its folder, then go on; at once without any."""
        context = claimed.context
        if not context or not has_files(context):
            then(claimed)
            return
        if run.user is not None:
            self._give_there(run, run.user, claimed, then)
            return
        shown = "" if agent.prefix else run.folder.path
        self._begin(
            run,
            hand_in(context, run.folder, self._shelf, shown),
            lambda given: then(claimed._replace(context=given)),
            lambda error: self._give_back(run, error),
        )

    def take(self, run: Run, result: Result) -> None:
        """Put the files that it names on the shelf, then record it; at once without any."""
        self._remove_inputs(run)
        if result.kind != "completed" or not result.artifacts or self._waits(run):
            self._record(run, result)
            return
        if run.user is not None:
            self._take_there(run, run.user, result, tries=TRIES)
            return
        self._begin(
            run,
            gather(result.artifacts, self._place_of(run), self._shelf),
            lambda found: self._taken(run, replace(result, artifacts=found)),
            lambda error: self._taken(run, replace(result, artifacts=[_lost(error)])),
        )

    def _give_there(
        self, run: Run, user: OtherUser, claimed: Claimed, then: Callable[[Claimed], None]
    ) -> None:
        """The same in that user's home, by a warden: the node opens nothing there itself."""
        place = user.place(run.uid, run.n)
        self._carry(
            run,
            {"do": "lay", "folder": f"{place}{STAGED}"},
            hand_over(claimed.context or {}, run.folder, self._shelf, place),
            lambda given: then(claimed._replace(context=given)),
            lambda error: self._give_back(run, error),
        )

    def _take_there(self, run: Run, user: OtherUser, result: Result, *, tries: int) -> None:
        """A warden that somebody of its user ended is followed by another, a few times."""

        def fail(error: Exception) -> None:
            if tries > 1 and isinstance(error, NotCarried):
                self._later(AGAIN_S, lambda: self._take_there(run, user, result, tries=tries - 1))
            else:
                self._taken(run, replace(result, artifacts=[_lost(error)]))

        self._carry(
            run,
            {"do": "fetch", "place": self._place_of(run)},
            gather_by(partial(fetch, self._shelf), result.artifacts or []),
            lambda found: self._taken(run, replace(result, artifacts=found)),
            fail,
        )

    def _carry(
        self,
        run: Run,
        errand: JsonObject,
        work: Generator[bytes, bytes, T],
        then: Callable[[T], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """Once for each run, as below, but with a warden that answers each word of `work`."""
        if run in self._busy or run.user is None:
            return
        self._busy.add(run)
        carrying = Carrying(work, lambda: self._runs.find(run.uid, run.n) is run, then, fail)

        def over(reply: JsonObject | None) -> None:
            self._busy.discard(run)
            carrying.over(reply)

        self._errands.talk(run.user, lambda: errand, carrying.hear, over)

    def _remove_inputs(self, run: Run) -> None:
        """Nobody reads them any more: what was laid out in another user's home goes."""
        if run.user is None:
            return
        try:
            os.rmdir(_folder_of(run).file(INPUTS))
        except OSError:
            return  # nothing was
        place = run.user.place(run.uid, run.n)
        folders: JsonObject = {"do": "remove", "folders": [f"{place}{STAGED}", f"{place}/{INPUTS}"]}
        self._errands.send(run.user, lambda: folders, lambda reply: None)

    def _taken(self, run: Run, result: Result) -> None:
        failpoint("artifact.before_result")
        self._record(run, result)

    def _begin(
        self,
        run: Run,
        work: Generator[bytes, bytes, T],
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
        work: Generator[bytes, bytes, T],
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

    def _place_of(self, run: Run) -> str:
        """Where its program worked."""
        agent = next((one for one in self._settings.agents if one.name == run.agent), None)
        if agent is not None and agent.cwd:
            return agent.cwd
        folder = _folder_of(run)
        kept = self._store.read(KeptPlace(run.uid)) if self._store.live.graphs else None
        n = folder.n if kept is None else kept
        if run.user is not None:
            return f"{run.user.place(run.uid, n)}/{WORK}"
        return os.path.join(os.path.dirname(folder.path), str(n))

    def _give_back(self, run: Run, error: Exception) -> None:
        """Nothing ran, so nothing is lost: the task waits, for a file that is gone or for room."""
        log("attempt_not_started", task=run.uid, attempt=run.n, because=str(error))
        self._remove_inputs(run)
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


def _folder_of(run: Run) -> AttemptFolder:
    """The attempt's own, also while what it left is judged in another."""
    return run.judging.program if run.judging else run.folder


def _lost(error: Exception) -> JsonObject:
    return {"name": "", "because": f"none could be taken: {error}"}
