"""Commands for a running task about itself: `heartbeat`, `progress` and `spawn`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agent_node.envelope import Answer
from agent_node.errors import NodeError
from agent_node.fields import TEXT_MAX
from agent_node.strict import JsonObject
from agent_node.text import safe_text

from .around import Around, Request
from .catalogue import Runnable
from .drafting import draft, draft_arguments
from .shapes import words


class NotInsideTask(NodeError):
    """The environment names no running task; nothing was sent."""

    code = "not_inside_a_task"
    exit_code = 2
    hint = "it is known by AGENT_TASK_UID, AGENT_TASK_ATTEMPT and AGENT_ATTEMPT_TOKEN"


def about_self(do: str, around: Around) -> Request:
    """The start of a request by the running task that we are part of."""
    uid = around.environ.get("AGENT_TASK_UID", "")
    attempt = around.environ.get("AGENT_TASK_ATTEMPT", "")
    token = around.environ.get("AGENT_ATTEMPT_TOKEN", "")
    if not uid or not attempt.isdecimal() or not token:
        raise NotInsideTask(f"agent-node {do}: works only inside a running task")
    return {"do": do, "uid": uid, "attempt": int(attempt), "token": token}


def _dry(request: Request, options: Namespace) -> Request:
    return {**request, "dry_run": True} if options.dry_run else request


def plain_arguments(parser: ArgumentParser) -> None:
    """The words of `heartbeat`."""
    parser.add_argument("--dry-run", action="store_true", help="say what would happen")


def heartbeat(options: Namespace, around: Around) -> Answer:
    """Say that the task is alive."""
    result = around.own_door(_dry(about_self("heartbeat", around), options))
    return Answer(result, "")


def progress_arguments(parser: ArgumentParser) -> None:
    """The words of `progress`."""
    parser.add_argument("text", metavar="TEXT", help="how far it is, for people")
    plain_arguments(parser)


def progress(options: Namespace, around: Around) -> Answer:
    """Say how far the task is; longer texts are cut, for a status line is no log."""
    request = {**about_self("progress", around), "text": options.text[:TEXT_MAX]}
    result = around.own_door(_dry(request, options))
    return Answer(result, "")


def spawn_arguments(parser: ArgumentParser) -> None:
    """The words of `spawn`."""
    parser.add_argument("subject", metavar="SUBJECT", help="what to do, in one line")
    draft_arguments(parser)
    plain_arguments(parser)


def spawn(options: Namespace, around: Around) -> Answer:
    """Queue a task whose parent is this one."""
    request = about_self("spawn", around)
    parent: JsonObject = {"parent": str(request["uid"])}
    task = {**draft(options, around, source=around.by), **parent}
    result = around.own_door(_dry({**request, "task": task}, options))
    outcome = words(result, "outcome", "added")
    said = f"{outcome} {words(result, 'uid', str(task['uid']))}"
    dry = "dry run, nothing changed: " if options.dry_run else ""
    return Answer(result, safe_text(dry + said))


COMMANDS = {
    "heartbeat": Runnable(plain_arguments, heartbeat),
    "progress": Runnable(progress_arguments, progress),
    "spawn": Runnable(spawn_arguments, spawn),
}
