"""Takes over what an earlier daemon left: living shims, verdicts, and attempts that died."""

from __future__ import annotations

from collections.abc import Sequence

from .attempts import attempt_folder
from .clock import Clock
from .commands import Finish, Result
from .config import AgentSettings
from .dispatch import Dispatcher
from .errors import NodeError
from .home import Home
from .log import log
from .processes import Identity, process_table, ran_below
from .queries import OpenAttempt, OpenAttempts, ShowTask
from .runs import Run
from .takeover import TakenOver
from .task import State, Task
from .validation import is_judged


def adopt_all(
    dispatcher: Dispatcher, *, home: Home, agents: Sequence[AgentSettings], clock: Clock
) -> int:
    """Follow every attempt that the database believes to be under way, or close it with proof."""
    open_attempts = dispatcher.store.read(OpenAttempts())
    limits = {agent.name: agent.max_s for agent in agents}
    if open_attempts:
        dispatcher.store.apply(TakenOver(tuple((one.uid, one.n) for one in open_attempts)))
    for attempt in open_attempts:
        log("attempt_adopted", task=attempt.uid, attempt=attempt.n)
        try:
            run = _run_of(attempt, home)
        except NodeError as error:  # it has no place where evidence could lie
            unproved = Result("unproved", message=str(error))
            dispatcher.store.apply(Finish(attempt.uid, attempt.n, unproved))
            continue
        run.user = dispatcher.user_of(run.agent)
        run.judged = _judged(dispatcher, run.uid)
        run.max_s = limits.get(run.agent)
        if attempt.max_s is not None:
            run.max_s = left_s(attempt.max_s, _ran_s(run, clock))
        dispatcher.runs.add(run)
        dispatcher.look(run)
    return len(open_attempts)


def left_s(max_s: float, ran_s: float) -> float:
    """What is left of a limit that the task names. Its agent's an attempt has anew: node.toml may
    have changed since it began, and nobody is to be ended for that.
    """
    return max(0.0, max_s - ran_s)


def _ran_s(run: Run, clock: Clock) -> float:
    """By the age of what its shim started: where the oldest is gone, it has run longer."""
    return 0.0 if run.shim is None else ran_below(run.shim, process_table(), clock.boottime())


def _judged(dispatcher: Dispatcher, uid: str) -> Task | None:
    """The whole task, where its output has to be judged before it counts."""
    shown = dispatcher.store.read(ShowTask(uid))
    return shown.task if shown is not None and is_judged(shown.task.validate) else None


def _run_of(attempt: OpenAttempt, home: Home) -> Run:
    folder = attempt_folder(str(home.tasks), attempt.uid, attempt.n)
    run = Run(attempt.uid, attempt.n, attempt.agent, attempt.token, attempt.boot_id, folder)
    run.stop_why, run.started = attempt.stopping, attempt.state != State.CLAIMED
    run.validating = attempt.state == State.VALIDATING
    if attempt.pid is not None and attempt.start_ticks is not None:
        run.shim = Identity(attempt.pid, attempt.start_ticks, attempt.boot_id)
    return run
