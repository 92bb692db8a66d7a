"""Runs a task as a local command: a fixed argv, an allow-listed environment, the work on stdin."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from ..attempts import AttemptFolder
from ..commands import Claimed
from ..config import AgentSettings, NodeSettings
from ..home import Home
from ..job import (
    ANSWER_JSON,
    CONTEXT_JSON,
    SOCKET_NAME,
    STDIN,
    TASK_JSON,
    TASK_SOCK,
    TREE_LOCK,
    WORK,
    Job,
)
from ..lines import line_of
from ..other_user import OtherUser, find_other_user
from ..retries import choose_model
from ..strict import JsonObject
from ..task import Task, to_wire
from ..validation import SAID_MAX
from ..workplace import BIN

# What any program may need to find its way; everything else has to be named in `env`.
PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM")
_OWN = ("SHELL", "TMPDIR")  # of the node's own user: nothing for anybody else
_PLACE = re.compile(r"\{([a-z_0-9]+)\}")


class Check(NamedTuple):
    """What judges an output: its command, what it reads, how long it may take, where it starts."""

    argv: tuple[str, ...]
    stdin: bytes
    max_s: float
    workplace: str


class CommandExecutor:
    """An agent's own argv; no shell, and no word of the task in it."""

    def __init__(self) -> None:
        self._passed: dict[AgentSettings, dict[str, str]] = {}

    def prepare(
        self,
        claimed: Claimed,
        agent: AgentSettings,
        folder: AttemptFolder,
        *,
        home: Home,
        settings: NodeSettings,
    ) -> Job:
        """Write task.json and stdin into the folder, and say what the shim has to do."""
        task = claimed.task
        document = task_json(task, claimed.context)
        folder.add(TASK_JSON, document)
        stdin = TASK_JSON
        if agent.stdin != "json":
            stdin = STDIN
            folder.add(STDIN, stdin_text(task, agent).encode())
        if claimed.context:
            folder.add(CONTEXT_JSON, as_line(claimed.context))
        user = find_other_user(agent.run_as) if agent.run_as else None
        if user is not None:
            folder.add(TREE_LOCK, b"")  # ours, for its programs could close theirs to us
        if agent.starter:
            folder.share()
        place = user.place(folder.uid, folder.n) if user else ""
        env = environment(claimed, agent, folder, home=home, passed=self._passed_to(agent))
        kept = kept_place(claimed, folder, user)
        if kept:
            env["AGENT_WORKSPACE"] = kept
        return Job(
            uid=task.uid,
            n=claimed.n,
            token=claimed.token,
            argv=tuple(agent.run),
            env=env | about_place(user, place, env["PATH"]) if user else env,
            cwd=agent.cwd or kept
            or (f"{place}/{WORK}" if place else "" if agent.prefix else folder.path),
            shared=bool(agent.starter),
            place=place,
            stdin=stdin,
            max_s=task.max_s if task.max_s is not None else agent.max_s,
            grace_s=float(settings.grace_s),
            output_cap=settings.output_cap,
        )

    def prepare_check(
        self,
        claimed: Claimed,
        agent: AgentSettings,
        folder: AttemptFolder,
        check: Check,
        *,
        home: Home,
        settings: NodeSettings,
    ) -> Job:
        """The same for a validator: as the same user, where the program worked, on its output.

        What it writes is never taken for the program's own answer.
        """
        folder.add(STDIN, check.stdin)
        user = find_other_user(agent.run_as) if agent.run_as else None
        if agent.starter:
            folder.share()
        env = environment(claimed, agent, folder, home=home, passed=self._passed_to(agent))
        if user is not None:
            env |= {"HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        place = f"{user.place(folder.uid, folder.n)}/{WORK}" if user else check.workplace
        return Job(
            uid=claimed.task.uid,
            n=claimed.n,
            token=claimed.token,
            argv=check.argv,
            env={name: value for name, value in env.items() if name != "AGENT_ANSWER"},
            cwd=agent.cwd or ("" if agent.prefix else place),
            shared=bool(agent.starter),
            stdin=STDIN,
            max_s=check.max_s,
            grace_s=float(settings.grace_s),
            output_cap=SAID_MAX,
            mute=True,
        )

    def _passed_to(self, agent: AgentSettings) -> dict[str, str]:
        """Read once an agent: a daemon's own environment does not change."""
        if agent not in self._passed:
            passed = passed_on(os.environ, agent.env)
            own = _OWN if agent.run_as else ()
            kept = {name: value for name, value in passed.items() if name not in own}
            self._passed[agent] = {"PATH": os.defpath, **kept} if agent.run_as else kept
        return self._passed[agent]


def about_place(user: OtherUser, place: str, path: str) -> dict[str, str]:
    """What is different for another user: who it is, where it may write, and how it speaks."""
    return {
        "HOME": user.home,
        "USER": user.name,
        "LOGNAME": user.name,
        "PATH": f"{path}:{user.folder}/{BIN}",
        "AGENT_ANSWER": f"{place}/{ANSWER_JSON}",
        SOCKET_NAME: f"{place}/{TASK_SOCK}",
    }


def task_json(task: Task, context: JsonObject | None = None) -> bytes:
    """The task as its program reads it: the same object as on the wire, with its `context`."""
    document = {**to_wire(task), "context": context} if context else to_wire(task)
    return as_line(document)


def as_line(document: JsonObject) -> bytes:
    """A whole document on one line, for a program."""
    return line_of(document)


def kept_place(claimed: Claimed, folder: AttemptFolder, user: OtherUser | None) -> str:
    """Where the attempt worked whose folder was kept for this one; empty: none was."""
    if claimed.workspace is None:
        return ""
    if user is not None:
        return f"{user.place(folder.uid, claimed.workspace)}/{WORK}"
    return os.path.join(os.path.dirname(folder.path), str(claimed.workspace))


def stdin_text(task: Task, agent: AgentSettings) -> str:
    """The body alone, or the agent's template with the task's fields in their places."""
    if agent.template is None:
        return task.body
    values = to_wire(task)
    return _PLACE.sub(lambda place: _filled(values, place), agent.template)


def _filled(values: Mapping[str, object], place: re.Match[str]) -> str:
    name = place.group(1)
    if name not in values:
        return place.group(0)
    value = values[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def passed_on(base: Mapping[str, str], named: tuple[str, ...]) -> dict[str, str]:
    """What of the daemon's environment a program gets: an allow-list, never all of it."""
    wanted = (*PASSED_ON, *named, *(name for name in base if name.startswith("LC_")))
    return {name: base[name] for name in wanted if name in base}


def environment(
    claimed: Claimed,
    agent: AgentSettings,
    folder: AttemptFolder,
    *,
    home: Home,
    passed: Mapping[str, str],
) -> dict[str, str]:
    """Exactly what the program sees: what is passed on, and who it is."""
    task = claimed.task
    model = choose_model(
        failures=task.failures, models=task.models, fallback=task.fallback_models,
        offered=agent.models,
    )  # fmt: skip
    return {
        **passed,
        "AGENT_TASK_UID": task.uid,
        "AGENT_TASK_ATTEMPT": str(claimed.n),
        "AGENT_TASK_SUBJECT": task.subject,
        "AGENT_TASK_MODEL": model,
        "AGENT_NAME": agent.name,
        "AGENT_NODE_HOME": str(home.root),
        # Another user cannot walk down to the folder, but starts in it.
        "AGENT_ANSWER": ANSWER_JSON if agent.prefix else folder.file(ANSWER_JSON),
        "AGENT_ATTEMPT_TOKEN": claimed.token,
        **_about_context(claimed, agent, folder),
    }


def _about_context(
    claimed: Claimed, agent: AgentSettings, folder: AttemptFolder
) -> dict[str, str]:
    """Where its context lies. Another user has it on stdin alone: it cannot open our files."""
    if not claimed.context or agent.run_as:
        return {}
    return {"AGENT_CONTEXT": CONTEXT_JSON if agent.prefix else folder.file(CONTEXT_JSON)}
