"""The command `log`: what a task's program wrote, made safe to look at."""

from __future__ import annotations

import json
import select
from argparse import ArgumentParser, Namespace
from typing import NamedTuple

from agent_node.envelope import Answer
from agent_node.errors import Refused
from agent_node.text import safe_text

from .around import Around, Request, Result
from .catalogue import Runnable
from .finding import find_uid
from .shapes import StrangeAnswer, one_object

FOLLOW_EVERY_S = 0.5
UNDERWAY = frozenset({"CLAIMED", "RUNNING", "VALIDATING"})


def log_arguments(parser: ArgumentParser) -> None:
    """The words of `log`."""
    parser.add_argument("uid", metavar="UID", help="the uid, its beginning or its end")
    parser.add_argument("--attempt", type=int, metavar="N", help="which one (default: the last)")
    parser.add_argument("--stderr", action="store_true", help="the other stream")
    parser.add_argument("--follow", action="store_true", help="go on until the task has ended")


def log(options: Namespace, around: Around) -> Answer:
    """The whole stream; with --follow it is printed as it grows."""
    request: Request = {"do": "log", "uid": find_uid(options.uid, around)}
    if options.attempt is not None:
        request["attempt"] = options.attempt
    if options.stderr:
        request["stream"] = "stderr"
    if options.follow:
        return _follow(request, around, as_json=options.json)
    stream = _rest_of(request, 0, around)
    data = {"uid": request["uid"], "attempt": stream.attempt, "text": stream.text}
    elsewhere = not stream.text and _point_at_stderr(request, around)
    return Answer(data, _readable(stream.text) or ("" if elsewhere else "nothing was written"))


class Stream(NamedTuple):
    """Some text of a log, the offset behind it, and of which attempt it is."""

    text: str
    after: int
    attempt: int | None = None


def _rest_of(request: Request, offset: int, around: Around) -> Stream:
    """Everything from this offset on, to where the stream ends now."""
    texts: list[str] = []
    while True:
        piece = _piece(around.door({**request, "offset": offset}))
        texts.append(piece.text)
        if piece.after <= offset:
            return Stream("".join(texts), offset, piece.attempt)
        offset = piece.after


def _piece(result: Result) -> Stream:
    text, after, attempt = (result.get(name) for name in ("text", "next", "attempt"))
    if not isinstance(text, str) or not isinstance(after, int):
        raise StrangeAnswer("the node's answer to log has no text, or no place where to go on")
    return Stream(text, after, attempt if isinstance(attempt, int) else None)


def _follow(request: Request, around: Around, *, as_json: bool) -> Answer:
    """Print what comes until the task no longer runs; the last look is after its end."""
    offset, running, wrote = 0, True, False
    while running:
        running = _is_underway(request, around)
        stream = _so_far(request, offset, around, running=running)
        offset = stream.after
        if stream.text:
            text, wrote = stream.text, True
            around.say(json.dumps({"text": text}) + "\n" if as_json else _readable(text))
        if running:
            select.select([], [], [], FOLLOW_EVERY_S)
    if not wrote:
        _point_at_stderr(request, around)
    return Answer({"uid": request["uid"], "ended": True}, "")


def _point_at_stderr(request: Request, around: Around) -> bool:
    """A program that fails mostly says why on stderr: whoever sees nothing is told of it."""
    if request.get("stream") == "stderr":
        return False
    try:
        size = around.door({**request, "stream": "stderr", "offset": 0, "limit": 1}).get("size")
    except Refused:
        return False  # no attempt of it left one
    if size:
        around.talk(f"nothing on stdout; {size} bytes on stderr: --stderr\n")
    return bool(size)


def _so_far(request: Request, offset: int, around: Around, *, running: bool) -> Stream:
    """A task that has just been claimed has written nothing yet; that is no error."""
    try:
        return _rest_of(request, offset, around)
    except Refused as error:
        if error.code != "not_found" or not running:
            raise
        return Stream("", offset)


def _is_underway(request: Request, around: Around) -> bool:
    task = one_object(around.door({"do": "show", "uid": request["uid"]}), "task")
    return task.get("state") in UNDERWAY


def _readable(text: str) -> str:
    return safe_text(text, keep="\n\t")


COMMANDS = {"log": Runnable(log_arguments, log)}
