"""Commands for the node as a whole, or one agent of it: `pause`, `resume` and `drain`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from math import isfinite

from agent_node.envelope import Answer
from agent_node.queries import MISSING
from agent_node.stood import stood_before
from agent_node.text import safe_text

from .around import Around, Request
from .catalogue import Runnable
from .shapes import some_objects, words


def steer_arguments(parser: ArgumentParser) -> None:
    """The words of `pause` and `resume`."""
    parser.add_argument("--agent", metavar="NAME", help="only this agent of the node")
    parser.add_argument("--reason", default="", help="why, for whoever looks later")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen")


def drain_arguments(parser: ArgumentParser) -> None:
    """The words of `drain`."""
    steer_arguments(parser)
    parser.add_argument("--deadline-s", type=seconds, metavar="S", help="how long running work has")
    parser.add_argument("--then", choices=("requeue", "wait"), help="what follows the deadline")


def seconds(text: str) -> float:
    """A length of time that JSON can say; how long it may be is the node's own business."""
    if not isfinite(value := float(text)):
        raise ValueError(text)
    return value


def pause(options: Namespace, around: Around) -> Answer:
    """Nothing new starts; what runs ends by itself."""
    return steer("pause", options, around)


def resume(options: Namespace, around: Around) -> Answer:
    """Work starts again."""
    return steer("resume", options, around)


def drain(options: Namespace, around: Around) -> Answer:
    """Nothing new starts, and the hub may take what waits."""
    return steer("drain", options, around)


def steer(do: str, options: Namespace, around: Around, **more: object) -> Answer:
    """One word on the node or on one agent of it, and its new state."""
    request: Request = {"do": do, "reason": options.reason, "by": around.by, **more}
    for name in ("agent", "deadline_s", "then"):
        value = getattr(options, name, None)
        if value is not None:
            request[name] = value
    if options.dry_run:
        request["dry_run"] = True
    result = around.door(request)
    agent = getattr(options, "agent", None)
    what = f"agent {agent}" if agent else "the node"
    said = f"{what} is now {words(result, 'state', do)}"
    if options.dry_run:
        said = f"dry run, nothing changed: {what} would be {words(result, 'state', do)}"
    already = do == "resume" and result.get("already") is True
    if already:
        said = f"{what} is {words(result, 'state', do)} already"
    if result.get("reason"):
        said += f", because {words(result, 'reason')}"
    said += "; nothing was changed" if already else ""
    before = stood_before(result, dry_run=bool(options.dry_run)) if do != "resume" else ""
    said += f"\n{before}" if before else ""
    if do == "resume" and agent is None:
        said += _still_held(around)
    return Answer({**result, "dry_run": bool(options.dry_run)}, safe_text(said, keep="\n"))


def _still_held(around: Around) -> str:
    """An agent that was paused by name stays so when the node goes on; what is missing, too, but no
    word brings that.
    """
    held = [
        words(agent, "name")
        for agent in some_objects(around.door({"do": "status"}), "agents")
        if agent.get("held") and agent.get("held") != MISSING
    ]
    return "".join(
        f"\nagent {name} is still held; to go on: agent-node resume --agent {name}"
        for name in held
    )


COMMANDS = {
    "pause": Runnable(steer_arguments, pause),
    "resume": Runnable(steer_arguments, resume),
    "drain": Runnable(drain_arguments, drain),
}
