"""The commands `arc nodes …`."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import time
from typing import Annotated

import typer

from agent_node.strict import JsonObject
from arc.errors import ArcError, WrongUse
from arc.operations import Told

from . import joining_words, upgrading_words
from .answering import ANSWER_S, say, tell
from .around import Around, here
from .draining import watch_drain
from .options import DryRun, Node, Reason, Yes, moment, only_said, seconds, words

WATCH_S = 1.0
nodes = typer.Typer(help="The machines of the fleet.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(nodes, name="nodes")


@nodes.callback()
def nodes_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_nodes() if context.invoked_subcommand is None else None


@nodes.command("list")
def list_nodes() -> int:
    """Every node: how it is reached, how it is, and whose work it does."""
    from arc.text.nodes import render_nodes

    return tell("nodes.list", "nodes.list", {}, render_nodes, names_unread=True)


@nodes.command("show")
def show_node(name: Node) -> int:
    """One node whole, with the age of what is known."""
    from arc.text.nodes import render_node

    return tell("nodes.show", "nodes.show", {"node": name}, render_node, names_unread=True)


def _steer(
    verb: str, args: JsonObject, wait_s: float = ANSWER_S, *, watched: bool = False
) -> int:
    from arc.text.steered import render_steered, render_watched

    render = render_watched if watched else render_steered
    return tell(f"nodes.{verb}", f"nodes.{verb}", only_said(args), render, wait_s=wait_s)


@nodes.command("pause")
def pause_node(
    name: Node,
    reason: Reason = "",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent of it.")] = "",
    dry_run: DryRun = False,
) -> int:
    """It takes nothing new and keeps its queue; what runs goes on."""
    return _steer("pause", {"node": name, "reason": reason, "agent": agent, "dry_run": dry_run})


@nodes.command("resume")
def resume_node(
    name: Node,
    reason: Reason = "",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent of it.")] = "",
    dry_run: DryRun = False,
) -> int:
    """It takes work again; a suspended node is asked again."""
    return _steer("resume", {"node": name, "reason": reason, "agent": agent, "dry_run": dry_run})


@nodes.command("drain")
def drain_node(
    name: Node,
    reason: Reason = "",
    deadline: Annotated[str, typer.Option("--deadline", help="For what runs: 30m.")] = "",
    then: Annotated[str, typer.Option("--then", help="After it: wait or requeue.")] = "wait",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent of it.")] = "",
    yes: Yes = False,
    watch: Annotated[
        bool | None, typer.Option("--watch/--no-watch", help="Until it is empty; on a terminal.")
    ] = None,
    dry_run: DryRun = False,
) -> int:
    """Its waiting tasks go to others, what runs may finish. Ctrl-C stops watching only."""
    if then not in {"wait", "requeue"}:
        raise WrongUse("drain: --then wait or --then requeue")
    args: JsonObject = {"node": name, "reason": reason, "then": then, "agent": agent, "yes": yes,
                        "deadline_s": seconds(deadline, "--deadline") if deadline else None,
                        "dry_run": dry_run}  # fmt: skip
    watched = (here().asks_people if watch is None else watch) and not dry_run
    code = _steer("drain", args, wait_s=120.0, watched=watched)
    return watch_drain(name) if watched and not code else code


@nodes.command("suspend")
def suspend_node(
    name: Node,
    reason: Reason = "",
    until: Annotated[str, typer.Option("--until", help="A time, or 6h.")] = "",
    dry_run: DryRun = False,
) -> int:
    """The hub does not even ask it: no moves, no alarms; it works on by itself."""
    return _steer("suspend", {"node": name, "reason": reason, "dry_run": dry_run,
                              "until": moment(until, "--until") if until else ""})  # fmt: skip


@nodes.command("fence")
def fence_node(
    name: Node,
    yes_it_is_off: Annotated[
        bool, typer.Option("--yes-it-is-off", help="Your word that the machine is off.")
    ] = False,
    reason: Reason = "",
    dry_run: DryRun = False,
) -> int:
    """Own again what had been moved to a machine that is off for good, and has not ended there."""
    from arc.text.nodes import render_fenced

    args = only_said({"node": name, "yes_it_is_off": yes_it_is_off, "reason": reason,
                      "dry_run": dry_run})  # fmt: skip
    return tell("nodes.fence", "nodes.fence", args, render_fenced, wait_s=300.0)


@nodes.command("logs")
def node_logs(
    name: Node,
    task: Annotated[str, typer.Argument(metavar="TASK")],
    attempt: Annotated[int | None, typer.Option("--attempt", help="Not the last one.")] = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="What went to stderr.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
) -> int:
    """What a task's program wrote there."""
    from arc.text.nodes import render_log_piece

    around = here()
    args = only_said({"node": name, "task": task, "attempt": attempt,
                      "stream": "stderr" if stderr else "stdout"})  # fmt: skip
    while True:
        told = around.ask(around, "nodes.logs", args, timeout_s=ANSWER_S)
        say("nodes.logs", told, render_log_piece, around)
        at_end = told.data.get("next") == told.data.get("size")
        over = told.data.get("ended") and not told.data.get("text") if follow else at_end
        if over:
            if not told.data.get("size") and not stderr:
                _point_at_stderr(around, args)
            return told.exit
        if not told.data.get("text"):
            time.sleep(WATCH_S)
        args["offset"] = told.data.get("next")


def _point_at_stderr(around: Around, args: JsonObject) -> None:
    """A program that fails mostly says why on stderr: whoever sees nothing is told of it."""
    try:
        told = around.ask(around, "nodes.logs", {**args, "stream": "stderr", "offset": 0},
                          timeout_s=ANSWER_S)  # fmt: skip
    except ArcError:
        return  # stdout was read, and that was what was asked
    if told.data.get("size"):
        around.talk(f"nothing on stdout; {told.data['size']} bytes on stderr: --stderr\n")


@nodes.command("edit")
def edit_node(
    name: Node,
    owns: Annotated[str | None, typer.Option("--owns", help="Domains, with commas.")] = None,
    also: Annotated[str | None, typer.Option("--also", help="May take when idle.")] = None,
    never: Annotated[str | None, typer.Option("--never", help="Never touches.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Where SSH finds it.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Of its SSH server.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Whom to log in as.")] = None,
    dry_run: DryRun = False,
) -> int:
    """Change its entry in fleet.yaml, comments kept; a running hub follows by itself."""
    from arc.config import parse_fleet
    from arc.config_check import new_doubts
    from arc.door import fleet_of
    from arc.editing import edit_node as edit
    from arc.text.config import render_edited

    lists = {"owns": owns, "also": also, "never": never}
    changes: JsonObject = {key: words([text]) for key, text in lists.items() if text is not None}
    plain: JsonObject = {"host": host, "port": port, "user": user}
    changes |= {key: value for key, value in plain.items() if value is not None}
    if not changes:
        raise WrongUse("edit: nothing to change; name --owns, --also, --never, --host, …")
    around = here()
    edited = edit(fleet_of(around.fleet, around.environ), name, changes, dry_run=dry_run)
    data: JsonObject = {"node": name, "changes": changes, "changed": edited.changed,
                        "diff": edited.diff(), "dry_run": dry_run}  # fmt: skip
    warnings = new_doubts(*(parse_fleet(text, edited.path)
                            for text in (edited.before, edited.after)))  # fmt: skip
    return say("nodes.edit", Told(data, warnings=warnings), render_edited, around)


# Once, and not with every command line that is made: a test makes hundreds in one process.
joining_words.register(nodes)
upgrading_words.register(nodes)
