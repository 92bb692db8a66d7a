"""The commands `arc dag …`: graphs of tasks that wait for one another."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_node.strict import LINE_MAX, JsonObject
from arc.errors import WrongUse

from .answering import tell
from .around import here
from .options import DryRun, Reason, only_said, words

READS = "a graph is read from a YAML or JSON file, or with - from stdin"
SUBMIT_S = 120.0  # ten thousand tasks take a while to be checked and written

dag = typer.Typer(help="Graphs: tasks that wait for one another.", invoke_without_command=True)
Dag = Annotated[
    str, typer.Argument(help="Beginning or end of its id, or of a task's uid.", metavar="ID")
]


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(dag, name="dag")


@dag.callback()
def dag_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_dags() if context.invoked_subcommand is None else None


@dag.command("submit")
def submit_dag(
    file: Annotated[str, typer.Argument(help="YAML or JSON; - is stdin.", metavar="FILE|-")],
    dry_run: DryRun = False,
) -> int:
    """A whole graph for the hub's queue, or nothing of it; cycles are named."""
    from arc.text.dags import render_submitted

    from .graph_files import graph_in

    around = here()
    raw, name = _read(file), "stdin" if file == "-" else file
    document = graph_in(raw, name, by=around.by, talk=around.talk)
    args: JsonObject = {"graph": document, "by": around.by, "dry_run": dry_run}
    return tell("dag.submit", "dag.submit", args, render_submitted, wait_s=SUBMIT_S)


def _read(file: str) -> bytes:
    """The file's bytes; one that is too long is read no further than it takes to know that."""
    if file == "-":
        return here().stdin.read(LINE_MAX + 1)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(LINE_MAX + 1)
    except OSError as error:
        raise WrongUse(f"{file}: cannot be read: {error.strerror}", hint=READS) from error


@dag.command("list")
def list_dags(
    everything: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="running, completed, failed, cancelled; repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="So many at most.")] = 200,
) -> int:
    """Graphs that run or failed, wherever in the fleet they live."""
    from arc.text.dags import render_list

    states = [str(one).lower() for one in words(state)]
    args = only_said({"all": everything, "states": [*states], "limit": limit})
    return tell("dag.list", "dag.list", args, render_list)


@dag.command("show")
def show_dag(
    one: Dag,
    limit: Annotated[int, typer.Option("--limit", help="Lines of tasks; 0: all.")] = 200,
) -> int:
    """A picture of one graph: its levels, its critical path, and where each task is."""
    from functools import partial

    from arc.text.dags import render_show

    return tell("dag.show", "dag.show", {"dag": one}, partial(render_show, most=limit))


@dag.command("cancel")
def cancel_dag(one: Dag, reason: Reason = "", dry_run: DryRun = False) -> int:
    """Every open task of the graph, wherever it is; nodes that are away are told later."""
    from arc.text.dags import render_cancelled

    args = only_said({"dag": one, "reason": reason, "by": here().by, "dry_run": dry_run})
    return tell("dag.cancel", "dag.cancel", args, render_cancelled)


@dag.command("budget")
def budget_of_dag(
    one: Dag,
    usd: Annotated[str, typer.Argument(help="Such as 12.50; none: no limit.", metavar="USD")],
    urgent_overdraft: Annotated[bool | None, typer.Option(
        "--urgent-overdraft/--no-urgent-overdraft", show_default=False,
        help="Whether P1 to P4 may go on beyond it; else as it was.")] = None,
    dry_run: DryRun = False,
) -> int:
    """What a graph may spend from now on; what waited for more money goes on at once."""
    from arc.text.dags import render_budgeted

    args = only_said({"dag": one, "limit_usd": usd, "by": here().by, "dry_run": dry_run})
    args |= {} if urgent_overdraft is None else {"urgent_overdraft": urgent_overdraft}
    return tell("dag.budget", "dag.budget", args, render_budgeted)
