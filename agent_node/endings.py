"""Looks how an attempt ended: by the shim's verdict, and without one by what can be proved."""

from __future__ import annotations

from dataclasses import replace

from .answers import read_answer
from .commands import Result
from .evidence import (
    Alive,
    Dead,
    Evidence,
    Leftovers,
    Unprovable,
    is_locked,
    judge_attempt,
    read_shim_record,
)
from .failpoints import failpoint
from .other_evidence import Unseen, judge_other
from .processes import read_boot_id
from .results import cut_short, judge_end
from .runs import Run
from .verdicts import read_verdict


def look_at_end(run: Run) -> Result | Alive | Leftovers | Unseen:
    """The attempt's one result, or what still stands in its way. Reading only; never waits."""
    result = _from_verdict(run)
    if result is not None:
        return result
    evidence = _evidence(run)
    if isinstance(evidence, Dead):
        # A verdict written between the two looks is final now, and it comes first.
        return _from_verdict(run) or _cut_short(run, evidence.why)
    if isinstance(evidence, Unprovable):
        return unproved(run, evidence.why)
    return evidence


def unproved(run: Run, why: str | None, *, duration_s: float | None = None) -> Result:
    """It may run on, and how it ends nobody knows; what its program said by now that it cost was
    spent. A validator says nothing of that.
    """
    said = read_answer(run.folder) if run.judging is None else run.judging.found
    return Result("unproved", message=why, cost_usd=said.cost_usd,
                  tokens=dict(said.tokens or {}) or None, duration_s=duration_s)  # fmt: skip


def as_stalled(run: Run, result: Result) -> Result:
    """With the model that was used. Proven dead after it was ended for giving no sign of life: that
    is a failure of its own.
    """
    result = replace(result, model=run.model) if run.model else result
    if not run.stalled or result.kind != "interrupted":
        return result
    return replace(result, kind="failed", error_kind="stalled", message=run.stop_why)


def _evidence(run: Run) -> Evidence | Unseen:
    """Our own processes we look at ourselves; at another user's, only that user's warden can."""
    if run.user is None:
        known = run.signed_in or run.started  # else that shim may not have taken it yet
        return judge_attempt(run.folder, run.token, claimed_boot=run.boot_id,
                             shim=run.shim if known else None)  # fmt: skip
    sight, run.sight = run.sight, None
    return judge_other(run.folder, claimed_boot=run.boot_id, shim=run.shim, sight=sight)


def _from_verdict(run: Run) -> Result | None:
    """None without a verdict, or while a lock is held: the program can write a file, too."""
    verdict = read_verdict(run.folder)
    if verdict is None or is_locked(run.folder.shim_lock) or is_locked(run.folder.tree_lock):
        return None
    failpoint("dispatch.before_result")
    if verdict.kind == "could_not_start" and not run.started:
        run.unstarted = verdict
    end = judge_end(verdict, read_answer(run.folder), requeue=run.requeue)
    return end if end.kind != "unproved" else unproved(run, end.message, duration_s=end.duration_s)


def _cut_short(run: Run, why: str) -> Result:
    """Interrupted, at what its program had written by then that it costs; but an attempt whose
    program never started costs the task nothing at all.

    A missing record proves that only in the boot in which it would have been written, and only
    where nobody heard of a start: a power cut and the program itself can empty a file.
    """
    same_boot = run.boot_id == read_boot_id()
    never_started = not run.started and same_boot and read_shim_record(run.folder) is None
    if never_started:
        return Result("requeued", message=why)
    return cut_short(read_answer(run.folder), why, requeue=run.requeue)
