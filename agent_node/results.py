"""Turns a shim's verdict and a program's own answer into the one result that is recorded."""

from __future__ import annotations

from dataclasses import replace

from .answers import Answer
from .clock import iso
from .commands import Result
from .verdicts import Verdict

_MESSAGE_MAX = 2000


def judge_end(verdict: Verdict, answer: Answer, *, requeue: bool) -> Result:
    """How the attempt ended. `requeue`: the node itself had asked the program to stop."""
    if verdict.survivors:
        text = f"{verdict.survivors} of its processes could not be killed"
        return Result("unproved", message=text, duration_s=verdict.duration_s)
    if verdict.kind == "stopped":
        stopped = cut_short(answer, verdict.because, requeue=requeue)
        return replace(stopped, duration_s=verdict.duration_s)
    if verdict.kind == "timeout":
        return _failed(verdict, answer, "timeout", verdict.because)
    if verdict.kind == "could_not_start":
        return _failed(verdict, answer, "crash", f"could not start: {verdict.because}")
    if answer.error is not None:
        return _failed(verdict, answer, answer.error.kind, answer.error.message)
    if not verdict.succeeded:
        return _failed(verdict, answer, "crash", verdict.because)
    if answer.problem is not None:
        return _failed(verdict, answer, "invalid_output", answer.problem)
    return Result(
        "completed",
        output=answer.output,
        artifacts=list(answer.artifacts),
        cost_usd=answer.cost_usd,
        tokens=dict(answer.tokens) or None,
        duration_s=verdict.duration_s,
        exit_code=verdict.exit_code,
    )


def cut_short(answer: Answer, why: str, *, requeue: bool) -> Result:
    """The end of an attempt that did not end by itself: what it left counts for nothing, and what
    it said that it cost was spent.
    """
    return Result("requeued" if requeue else "interrupted", message=why, cost_usd=answer.cost_usd,
                  tokens=dict(answer.tokens) or None)  # fmt: skip


def _failed(verdict: Verdict, answer: Answer, kind: str, message: str) -> Result:
    retry_at = answer.error.retry_at if answer.error else None
    return Result(
        "failed",
        error_kind=kind,
        message=message[:_MESSAGE_MAX],
        cost_usd=answer.cost_usd,
        tokens=dict(answer.tokens) or None,
        retry_at=None if retry_at is None else iso(retry_at),
        duration_s=verdict.duration_s,
        exit_code=verdict.exit_code,
    )
