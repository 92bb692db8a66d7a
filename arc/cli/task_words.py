"""The commands `arc tasks …` and `arc doubts …`."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

from typing import Annotated

import typer

from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State
from arc.errors import NeedsWord, WrongUse

from .adding_words import add_task, import_tasks
from .answering import tell
from .drafting import fields_of
from .options import (
    DryRun,
    Priority,
    Reason,
    Tasks,
    Yes,
    one_word_of,
    only_said,
    sure,
    words,
)

States = Annotated[
    list[str] | None, typer.Option("--state", "--status", help="READY, RUNNING, …; repeatable.")
]
tasks = typer.Typer(help="Tasks, wherever in the fleet they are.", no_args_is_help=False,
                    invoke_without_command=True)  # fmt: skip
doubts = typer.Typer(help="Transfers that are not over.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(tasks, name="tasks")
    app.add_typer(doubts, name="doubts")


@tasks.callback()
def tasks_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_tasks() if context.invoked_subcommand is None else None


def states_of(given: list[str] | None) -> list[JsonValue]:
    """States however they were typed; a wrong one is answered with one that is alike."""
    wanted = [str(one).upper() for one in words(given)]
    known = [str(one) for one in State]
    for one in wanted:
        if one not in known:
            raise WrongUse(f"--state: there is no state {one!r}{one_word_of(one, known)}",
                           hint=f"there are: {', '.join(known)}")  # fmt: skip
    return [*wanted]


@tasks.command("list")
def list_tasks(  # noqa: PLR0913, PLR0917 - one option for each thing to choose by
    state: States = None,
    node: Annotated[str, typer.Option("--node", help="Of this node alone.")] = "",
    priority: Annotated[
        int | None, typer.Option("--priority", "-p", help="Of this priority.")
    ] = None,
    subject: Annotated[
        str, typer.Option("--subject", help="With all of these words in the subject.")
    ] = "",
    skill: Annotated[str, typer.Option("--skill", "--skills", help="With this skill.")] = "",
    domain: Annotated[str, typer.Option("--domain", help="Of this domain.")] = "",
    source: Annotated[str, typer.Option("--source", help="From this source.")] = "",
    parent: Annotated[str, typer.Option("--parent", help="Made by this task.")] = "",
    limit: Annotated[int, typer.Option("--limit", help="So many at most.")] = 200,
) -> int:
    """Tasks that are not over, with the reason why each is where it is."""
    from arc.text.tasks import render_list

    args = only_said({"states": states_of(state), "node": node, "priority": priority,
                      "subject": subject, "skill": skill, "domain": domain, "source": source,
                      "parent": parent.upper(), "limit": limit})  # fmt: skip
    return tell("tasks.list", "tasks.list", args, render_list)


@tasks.command("count")
def count_tasks(
    state: States = None,
) -> int:
    """How many tasks there are in these states, as a bare number."""
    from arc.text.tasks import render_count

    return tell("tasks.count", "tasks.count", only_said({"states": states_of(state)}), render_count)


@tasks.command("show")
def show_task(task: Annotated[str, typer.Argument(metavar="TASK")]) -> int:
    """One task with its whole life, moves included."""
    from arc.text.tasks import render_show

    return tell("tasks.show", "tasks.show", {"task": task}, render_show)


tasks.command("add", context_settings={"allow_extra_args": True})(add_task)
tasks.command("import")(import_tasks)


@tasks.command("set")
def set_task(
    task: Annotated[str, typer.Argument(metavar="TASK")],
    fields: Annotated[list[str] | None, typer.Argument(metavar="[FIELD=VALUE…]")] = None,
    priority: Priority = None,
    reason: Reason = "",
    dry_run: DryRun = False,
) -> int:
    """Change fields of a waiting task: -p 3 skills=a,b domain=research."""
    from arc.text.tasks import render_changed

    given = fields_of([*(fields or []), *([] if priority is None else [f"priority={priority}"])])
    if not given:
        raise WrongUse("set: nothing to set: give -p N or FIELD=VALUE")
    args: JsonObject = {"tasks": [task], "fields": given, "reason": reason, "dry_run": dry_run}
    return tell("tasks.set", "tasks.set", only_said(args), render_changed)


def _order(verb: str, parts: list[str], reason: str, *, dry_run: bool, **more: JsonValue) -> int:
    from arc.text.tasks import render_changed

    args: JsonObject = {"tasks": words(parts), "reason": reason, "dry_run": dry_run, **more}
    return tell(f"tasks.{verb}", f"tasks.{verb}", only_said(args), render_changed)


@tasks.command("cancel")
def cancel_tasks(
    task: Tasks, reason: Reason = "", yes: Yes = False, dry_run: DryRun = False
) -> int:
    """End waiting tasks; running ones are stopped first."""
    if not dry_run and len(task) > 1 and not sure(f"cancel {len(task)} tasks?", yes=yes):
        raise NeedsWord(f"cancel: {len(task)} tasks at once take --yes")
    return _order("cancel", task, reason, dry_run=dry_run)


@tasks.command("retry")
def retry_tasks(task: Tasks, reason: Reason = "", dry_run: DryRun = False) -> int:
    """Let ended tasks run again, their failures forgiven."""
    return _order("retry", task, reason, dry_run=dry_run)


@tasks.command("resolve")
def resolve_tasks(
    task: Tasks,
    outcome: Annotated[str, typer.Option("--as", help="done, failed, cancelled, ready.")] = "",
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Say what became of parked or dead tasks; `--as ready` lets them run again, in one place."""
    if outcome == "ready":
        return _settle(task, yes=yes, reason=reason, dry_run=dry_run)
    if outcome not in {"done", "failed", "cancelled"}:
        raise WrongUse("resolve: --as done, --as failed, --as cancelled or --as ready")
    return _order("resolve", task, reason, dry_run=dry_run, **{"as": outcome})


@tasks.command("move")
def move_tasks(
    task: Tasks,
    to: Annotated[str, typer.Option("--to", help="The node that is to have them.")] = "",
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Send waiting tasks to a node by hand; pinned ones take --yes."""
    from arc.text.tasks import render_moved

    if not to:
        raise WrongUse("move: where to? arc tasks move TASK --to NODE")
    args = only_said({"tasks": words(task), "to": to, "reason": reason, "yes": yes,
                      "dry_run": dry_run})  # fmt: skip
    return tell("tasks.move", "tasks.move", args, render_moved)


@doubts.callback()
def doubts_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_doubts() if context.invoked_subcommand is None else None


@doubts.command("list")
def list_doubts() -> int:
    """Every transfer that is not over, as each end tells it; and tasks lost with a queue."""
    from arc.text.tasks import render_doubts

    return tell("doubts.list", "doubts.list", {}, render_doubts)


@doubts.command("settle")
def settle_doubts(
    task: Annotated[list[str] | None, typer.Argument(metavar="[TASK…]")] = None,
    yes: Yes = False,
    reason: Reason = "",
    dry_run: DryRun = False,
) -> int:
    """End what can be ended; with tasks: decide where each lives, so that it may run again."""
    return _settle(task, yes=yes, reason=reason, dry_run=dry_run)


def _settle(task: list[str] | None, *, yes: bool, reason: str, dry_run: bool) -> int:
    from arc.text.tasks import render_settled

    agreed = yes or bool(task and not dry_run and sure("may they run again, once?", yes=yes))
    args = only_said({"tasks": words(task), "yes": agreed, "reason": reason, "dry_run": dry_run})
    return tell("doubts.settle", "doubts.settle", args, render_settled)
