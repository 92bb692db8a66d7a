"""Takes over what an earlier daemon left: living shims, verdicts, and attempts that died."""

from __future__ import annotations

from .attempts import attempt_folder
from .dispatch import Dispatcher
from .home import Home
from .log import log
from .queries import OpenAttempt, OpenAttempts
from .runs import Run


def adopt_all(dispatcher: Dispatcher, home: Home) -> int:
    """Follow every attempt that the database believes to be under way, or close it with proof."""
    open_attempts = dispatcher.store.read(OpenAttempts())
    for attempt in open_attempts:
        run = _run_of(attempt, home)
        dispatcher.runs.add(run)
        log("attempt_adopted", task=attempt.uid, attempt=attempt.n)
        dispatcher.look(run)
    return len(open_attempts)


def _run_of(attempt: OpenAttempt, home: Home) -> Run:
    folder = attempt_folder(str(home.tasks), attempt.uid, attempt.n)
    run = Run(attempt.uid, attempt.n, attempt.agent, attempt.token, attempt.boot_id, folder)
    run.stop_why = attempt.stopping
    return run
