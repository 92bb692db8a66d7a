"""Commands that stay: `run`, the daemon, and `serve`, the hub's end of the line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agent_node.envelope import Answer
from agent_node.errors import BadInput

from .around import Around
from .catalogue import Runnable


def run_arguments(parser: ArgumentParser) -> None:
    """The words of `run`."""
    parser.add_argument("--until-idle", action="store_true", help="end when nothing is left to do")


def run(options: Namespace, around: Around) -> Answer:
    """The daemon; its end is the answer."""
    home = around.home
    from agent_node.running import run as run_daemon

    ended = run_daemon(home, until_idle=bool(options.until_idle))
    return Answer({"exit_code": ended.code, "left": [*ended.left]}, "", ended.code)


def serve_arguments(parser: ArgumentParser) -> None:
    """The words of `serve`."""
    parser.add_argument("--stdio", action="store_true", help="speak the wire on stdin and stdout")


def serve(options: Namespace, around: Around) -> Answer:
    """Answer requests until the other side closes."""
    if not options.stdio:
        raise BadInput("only --stdio is there: agent-node serve --stdio", "serve")
    home = around.home
    from agent_node.serve import serve_stdio

    code = serve_stdio(home)
    return Answer({"exit_code": code}, "", code)


COMMANDS = {
    "run": Runnable(run_arguments, run),
    "serve": Runnable(serve_arguments, serve),
}
