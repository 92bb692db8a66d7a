"""Commands for a running task about itself: `heartbeat`, `progress` and `spawn`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agent_node.deadlines import passed_already
from agent_node.envelope import Answer
from agent_node.errors import BadInput, NodeError
from agent_node.fields import TEXT_MAX
from agent_node.strict import JsonObject, decode_object
from agent_node.text import safe_text
from agent_node.ulid import fresh_ulid

from .around import Around, Request
from .catalogue import Runnable
from .drafting import draft, draft_arguments, read_input
from .shapes import words

WHOLE = 100


GRAPH_MAX = 7 * 1024 * 1024  # one request is one line of at most 8 MiB


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
    parser.add_argument(
        "text", nargs="+", metavar="[N%] TEXT", help="how far it is, for people"
    )
    plain_arguments(parser)


def progress(options: Namespace, around: Around) -> Answer:
    """Say how far the task is; longer texts are cut, for a status line is no log."""
    request = {**about_self("progress", around), "text": _how_far(options.text)}
    result = around.own_door(_dry(request, options))
    return Answer(result, "")


def _how_far(said: list[str]) -> str:
    """The words as one text; a share stands first and goes from 0% to 100%."""
    share = said[0].removesuffix("%")
    if share != said[0] and share.isdecimal() and int(share[:9]) > WHOLE:
        raise BadInput(f"{said[0][:20]} is more than all of it", "progress")
    return " ".join(said)[:TEXT_MAX]


def spawn_arguments(parser: ArgumentParser) -> None:
    """The words of `spawn`."""
    more = parser.add_argument
    more("subject", nargs="?", metavar="SUBJECT", help="what to do, in one line")
    more("--graph", metavar="F", help="a whole graph as JSON, from a file or - for stdin")
    more("--wait", action="store_true", help="put this task back until that work has ended")
    draft_arguments(parser)
    plain_arguments(parser)


def spawn(options: Namespace, around: Around) -> Answer:
    """Queue a task whose parent is this one, or a whole graph of them."""
    request = about_self("spawn", around)
    if (options.subject is None) == (options.graph is None):
        raise BadInput("give a SUBJECT or --graph, one of them", "subject")
    if options.wait:
        request["wait"] = True
    if options.graph is None:
        parent: JsonObject = {"parent": str(request["uid"])}
        request["task"] = {**draft(options, around, source=around.by), **parent}
    else:
        from agent_node.graph_document import minted  # a heartbeat needs none of it

        raw = read_input(options.graph, around, at_most=GRAPH_MAX, field="--graph")
        request["graph"] = minted(decode_object(raw), fresh_ulid)
    result = around.own_door(_dry(request, options))
    what = words(result, "dag" if options.graph else "uid")
    said = f"{words(result, 'outcome', 'added')} {what}"
    if options.wait and result.get("waits") is False:
        said += "; that has ended, and how stands in the context: there is nothing to wait for"
    elif options.wait:
        said += "; this task waits for it: end now with exit 0, and it is tried again afterwards"
    dry = "dry run, nothing changed: " if options.dry_run else ""
    made = request.get("task")
    new = [made] if isinstance(made, dict) and result.get("outcome") != "exists" else []
    return Answer(result, safe_text(dry + said),
                  warnings=tuple(passed_already(new, around.clock.now())))  # fmt: skip


COMMANDS = {
    "heartbeat": Runnable(plain_arguments, heartbeat),
    "progress": Runnable(progress_arguments, progress),
    "spawn": Runnable(spawn_arguments, spawn),
}
