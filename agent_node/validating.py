"""Has outputs judged once their programs have ended: each by a shim, as the program itself was."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from .artifacts import sync_folder
from .attempts import AttemptFolder, read_untrusted
from .commands import Claimed, Result, Validate
from .config import AgentSettings, NodeSettings
from .errors import BadInput, DiskTrouble, NodeError
from .evidence import read_shim_record
from .executors.command import Check, CommandExecutor
from .graph_words import WaitAsked
from .home import Home
from .judge import judge_command
from .log import log
from .processes import read_boot_id
from .runs import Judging, Run
from .starters import Starters
from .store.sqlite import SqliteStore
from .strict import JsonObject
from .task import Task, to_wire
from .validation import (
    COMMANDS,
    TIMEOUT_MAX_S,
    TRIES,
    Broken,
    Judgement,
    NoRule,
    Passed,
    Rejected,
    judge_check,
    timeout_of,
)

AGAIN_S = 1.0  # doubled each time: a validator that broke may be well again a moment later
_LOOK_EVERY_S = 1.0
_LOG_MAX = 64 * 1024

Later = Callable[[float, Callable[[], None]], None]


class Validating:
    """Starts validators in folders `check-K` of their attempts; the dispatcher follows them."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        home: Home,
        settings: NodeSettings,
        starters: Starters,
        later: Later,
        look: Callable[[Run], None],
        record: Callable[[Run, Result], None],
        flush: Callable[[], None],
    ) -> None:
        self._store, self._home, self._settings = store, home, settings
        self._starters, self._later, self._flush = starters, later, flush
        self._look, self._record = look, record
        self._executor = CommandExecutor()

    def judge(self, run: Run, end: Result) -> Result | None:
        """What to record; None: a validator runs, and `look` is called when it has ended."""
        if run.judging is None:
            if end.kind != "completed":
                return end
            if run.stop_why is not None:  # it ended well, unasked for any more, and unjudged
                return _cut_short(run, run.stop_why, end)
            return self._enter(run, end)
        if end.kind == "unproved":
            return end
        return self._follow(run, run.judging, _judgement(run, run.judging, end))

    def _enter(self, run: Run, found: Result) -> Result | None:
        """The first look at an attempt that ended well; after a crash, at its last validator."""
        if self._store.read(WaitAsked(run.uid, run.n)):
            return found  # it has nothing to show yet: its task is put back
        try:
            self._flush()
            if not run.validating:
                _put_away(run.folder)
            self._store.apply(Validate(run.uid, run.n))
        except DiskTrouble as error:
            log("validation_waits", task=run.uid, attempt=run.n, because=str(error))
            run.silent = 0  # its program has ended well: it owes no sign while we wait for the disk
            self._later(_LOOK_EVERY_S, lambda: self._look(run))
            return None
        except OSError as error:
            return replace(found, kind="unvalidated", message=f"its folder is not ours: {error}")
        last = _last_check(run.folder)
        run.judging = Judging(run.folder, found, last)
        if not last:
            return self._next(run, run.judging)
        assert run.judged is not None, "only what has to be judged comes here"
        run.max_s = timeout_of(run.judged.validate, TIMEOUT_MAX_S)
        run.folder = _folder_of(run.folder, last)
        record = read_shim_record(run.folder)
        run.boot_id = record.identity.boot_id if record else run.boot_id
        run.shim = record.identity if record else None
        self._later(0.0, lambda: self._look(run))
        return None

    def _follow(self, run: Run, judging: Judging, said: Judgement) -> Result | None:
        """What a validator's word means for the attempt. One that had ended before it could be
        stopped is heard all the same: what it ended with is not what the program left.
        """
        log("output_judged", task=run.uid, attempt=run.n, because=type(said).__name__.lower())
        found = judging.found
        if isinstance(said, Passed):
            return found
        if isinstance(said, Rejected):
            return replace(
                found, kind="failed", error_kind="invalid_output", message=said.why, output=None,
                artifacts=[],
            )  # fmt: skip
        if run.stop_why is not None:
            return _cut_short(run, run.stop_why, found)
        if isinstance(said, NoRule) or judging.tries >= TRIES:
            return replace(found, kind="unvalidated", message=said.why)
        run.shim = None
        wait = AGAIN_S * 2 ** (judging.tries - 1)
        self._later(wait, lambda: self._try_again(run, judging))
        return None

    def _try_again(self, run: Run, judging: Judging) -> None:
        result = self._next(run, judging)
        if result is not None:
            self._record(run, result)

    def _next(self, run: Run, judging: Judging) -> Result | None:
        """Start the next validator; None: it is on its way, or the evidence will say why not."""
        agent = next((one for one in self._settings.agents if one.name == run.agent), None)
        task = run.judged
        assert task is not None, "only what has to be judged comes here"
        check = None if agent is None else self._check_of(task, judging)
        if agent is None or check is None:
            why = f"node.toml has no agent {run.agent} or no validator for it any more"
            return replace(judging.found, kind="unvalidated", message=why)
        run.judging = replace(judging, tries=judging.tries + 1)
        run.folder = _folder_of(judging.program, judging.tries + 1)
        run.boot_id, run.started, run.looks = read_boot_id(), False, 0
        run.silent = 0  # whatever was silent before it, its program or a validator, this one begins
        self._store.live.stalled.pop(run.uid, None)
        run.max_s = check.max_s
        try:
            self._start(run, agent, task, check)
        except (OSError, NodeError) as error:
            log("validator_not_started", task=run.uid, attempt=run.n, because=str(error))
        self._later(_LOOK_EVERY_S, lambda: self._look(run))
        return None

    def _start(self, run: Run, agent: AgentSettings, task: Task, check: Check) -> None:
        os.mkdir(run.folder.path, 0o700)
        claimed = Claimed(task, run.n, run.token)
        job = self._executor.prepare_check(
            claimed, agent, run.folder, check, home=self._home, settings=self._settings
        )
        self._starters.hand_over(agent, job, run.folder)

    def _check_of(self, task: Task, judging: Judging) -> Check | None:
        validate, output = task.validate, judging.found.output
        kind, workplace = str(validate.get("kind")), judging.program.path
        if kind not in COMMANDS:
            case: JsonObject = {
                "validate": validate, "output": output,
                "extras_path": self._settings.extras_path,
            }  # fmt: skip
            return Check(judge_command(), _json(case), timeout_of(validate, None), workplace)
        named = validate.get("validator")
        known = next((one for one in self._settings.validators if one.name == named), None)
        if known is None:
            return None
        whole: JsonObject = {"task": to_wire(task), "output": output}
        if known.stdin == "json":
            stdin = _json(whole)
        else:
            stdin = output.encode() if isinstance(output, str) else _json(output)
        return Check(known.run, stdin, timeout_of(validate, known.max_s), workplace)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _cut_short(run: Run, why: str, end: Result) -> Result:
    """What it left counts for nothing; what it cost was spent."""
    kind: Literal["requeued", "interrupted"] = "requeued" if run.requeue else "interrupted"
    return Result(kind, message=why, cost_usd=end.cost_usd, tokens=end.tokens,
                  duration_s=end.duration_s)  # fmt: skip


def _judgement(run: Run, judging: Judging, end: Result) -> Judgement:
    assert run.judged is not None, "only what has to be judged comes here"
    if end.kind in ("interrupted", "requeued"):
        return Broken(f"the validator was interrupted: {end.message}")
    timed_out = end.error_kind == "timeout"
    kind = str(run.judged.validate.get("kind"))
    said = _said(run.folder) or (end.message or "").encode()
    return judge_check(kind, exit_code=end.exit_code, timed_out=timed_out, said=said)


def _said(folder: AttemptFolder) -> bytes:
    """Head and tail of what it printed, whichever of its streams says anything; it is capped."""
    for path in (folder.stdout, folder.stderr):
        try:
            said = read_untrusted(path, _LOG_MAX)
        except (BadInput, NodeError):
            continue
        if said and said.strip():
            return said
    return b""


def _folder_of(program: AttemptFolder, number: int) -> AttemptFolder:
    return AttemptFolder(f"{program.path}/check-{number}", program.uid, program.n)


def _put_away(program: AttemptFolder) -> None:
    """No validator was begun yet, so what bears the name of one's folder is the program's own.

    Before the queue says that validators may have begun: after a crash in between, or a power cut,
    they would be taken for ours.
    """
    for number in range(1, TRIES + 1):
        place = _folder_of(program, number).path
        if os.path.lexists(place):
            os.rename(place, f"{place}.{secrets.token_hex(8)}")
            sync_folder(Path(program.path))


def _last_check(program: AttemptFolder) -> int:
    """How many validators were begun for this attempt, by their folders."""
    numbers = [number for number in range(1, TRIES + 1)
               if os.path.isdir(_folder_of(program, number).path)]  # fmt: skip
    return max(numbers, default=0)
