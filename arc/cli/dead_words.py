"""The commands `arc dead …`: tasks that no further attempt is made of, until a person decides."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

from typing import Annotated

import typer

from agent_node.strict import JsonObject
from arc.errors import NeedsWord, WrongUse
from arc.text.look import Look

from .answering import tell
from .around import here
from .drafting import body_of, fields_of
from .options import DryRun, Reason, Yes, moment, only_said, sure, words

CHANGE_S = 300.0
ATTEMPTS = 100  # that a node tells unasked
THE_LAST = -1
dead = typer.Typer(help="Dead letters: failed for good, until a person decides.",
                   invoke_without_command=True)  # fmt: skip
Some = Annotated[list[str] | None, typer.Argument(help="Beginnings or ends of uids.",
                                                  metavar="[TASK…]")]  # fmt: skip
Domain = Annotated[str, typer.Option("--domain", help="Of this domain.")]
Skill = Annotated[str, typer.Option("--skill", help="With this skill.")]
Kind = Annotated[str, typer.Option("--kind", help="That died of this: timeout, crash, …")]
OnNode = Annotated[str, typer.Option("--node", help="On this node.")]
Since = Annotated[str, typer.Option("--since", help="That died since then: a time, or 1d.")]
Poison = Annotated[bool, typer.Option("--poison", help="That failed wherever they were tried.")]
Unreviewed = Annotated[bool, typer.Option("--unreviewed", help="That nobody has looked at.")]
All = Annotated[bool, typer.Option("--all", help="Every one there is.")]


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(dead, name="dead")


def meant(**given: str | bool) -> JsonObject:
    """Which ones, as the operations take it."""
    since = str(given.pop("since", ""))
    return only_said({**given, "since": moment(since, "--since", past=True) if since else ""})


@dead.callback()
def dead_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_dead() if context.invoked_subcommand is None else None


@dead.command("list")
def list_dead(  # noqa: PLR0913, PLR0917 - one option for each thing to choose by
    domain: Domain = "", skill: Skill = "", kind: Kind = "", node: OnNode = "", since: Since = "",
    poison: Poison = False, unreviewed: Unreviewed = False,
    resolved: Annotated[bool, typer.Option(
        "--resolved", help="Also what was one, with who decided, when and why.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="So many at most.")] = 200,
) -> int:  # fmt: skip
    """Every dead letter: of what it died, after how many tries, and at what cost."""
    from arc.text.dead import render_dead

    args = meant(domain=domain, skill=skill, kind=kind, node=node, since=since, poison=poison,
                 unreviewed=unreviewed)  # fmt: skip
    return tell("dead.list", "dead.list",
                {**args, **only_said({"resolved": resolved}), "limit": limit}, render_dead)


@dead.command("show")
def show_dead(
    task: Annotated[str, typer.Argument(metavar="TASK")],
    attempts: Annotated[int, typer.Option("--attempts",
                                          help="So many of its attempts.")] = ATTEMPTS,
    after: Annotated[int, typer.Option(
        "--after", help="Those that followed this one; -1: the last.")] = THE_LAST,
) -> int:  # fmt: skip
    """One with its whole history: each attempt's node, agent, failure, time and cost."""
    from arc.text.dead import render_letter

    page: JsonObject = {} if attempts == ATTEMPTS else {"attempts": attempts}
    if after != THE_LAST:
        page["after"] = after
    return tell("dead.show", "dead.show", {"task": task, **page}, render_letter)


def _change(do: str, args: JsonObject) -> int:
    from arc.text.dead import render_decided

    return tell(f"dead.{do}", "dead.change", {"do": do, **args}, render_decided, wait_s=CHANGE_S)


def _several(
    do: str, task: list[str] | None, filters: JsonObject, reason: str, *, every: bool, yes: bool,
    dry_run: bool, to: str = "",
) -> int:  # fmt: skip
    """The same for all verbs that take several: named ones, or those that a filter names."""
    if task and (filters or every):
        raise WrongUse(f"dead {do}: either name them, or choose them by a filter")
    args = {**filters, **only_said({"tasks": words(task), "reason": reason, "dry_run": dry_run,
                                    "all": every, "to": to, "even_pinned": bool(to) and yes})}
    agreed = yes or dry_run or bool(task and len(task) == 1)
    if not agreed and here().asks_people and (task or reason):  # without one it is refused anyway
        shown = _says_yes(do, args)
        if shown is None:
            here().talk("nothing was changed\n")
            return NeedsWord.exit_code
        agreed = True
        if not task:
            args["shown"] = [*shown]
    if task and not agreed:
        raise NeedsWord(f"dead {do}: {len(task)} at once take --yes")
    return _change(do, {**args, **only_said({"yes": agreed})})


def _says_yes(do: str, args: JsonObject) -> list[str] | None:
    """To which a person who was shown each of them says so, for a yes is about no other; None:
    they do not. Where none fits nobody is asked.
    """
    from arc.text.columns import objects
    from arc.text.dead import render_asked_about

    around = here()
    told = around.ask(around, "dead.change", {"do": do, **args, "dry_run": True},
                      timeout_s=CHANGE_S)  # fmt: skip
    uids = [str(one["uid"]) for one in objects(told.data, "results")]  # a refused one says why
    shown = render_asked_about(told.data, Look(around.width, colour=False))
    if not shown:
        return uids
    around.talk(shown)
    return uids if sure(f"{do} all of these dead letters?", yes=False) else None


@dead.command("retry")
def retry_dead(  # noqa: PLR0913, PLR0917 - one option for each thing to choose by
    task: Some = None, domain: Domain = "", skill: Skill = "", kind: Kind = "", node: OnNode = "",
    since: Since = "", poison: Poison = False, unreviewed: Unreviewed = False, every: All = False,
    to: Annotated[str, typer.Option("--to", help="Move them to this node then.")] = "",
    reason: Reason = "", yes: Yes = False, dry_run: DryRun = False,
) -> int:  # fmt: skip
    """Let them run again, their failures forgiven; with --to on another node."""
    args = meant(domain=domain, skill=skill, kind=kind, node=node, since=since, poison=poison,
                 unreviewed=unreviewed)  # fmt: skip
    return _several("retry", task, args, reason, every=every, yes=yes, dry_run=dry_run, to=to)


@dead.command("cancel")
def cancel_dead(  # noqa: PLR0913, PLR0917 - one option for each thing to choose by
    task: Some = None, domain: Domain = "", skill: Skill = "", kind: Kind = "", node: OnNode = "",
    since: Since = "", poison: Poison = False, unreviewed: Unreviewed = False, every: All = False,
    reason: Reason = "", yes: Yes = False, dry_run: DryRun = False,
) -> int:  # fmt: skip
    """Nobody will do them any more; it takes a reason."""
    if not reason and not dry_run:
        raise NeedsWord("dead cancel: takes a --reason, which stays with the task")
    args = meant(domain=domain, skill=skill, kind=kind, node=node, since=since, poison=poison,
                 unreviewed=unreviewed)  # fmt: skip
    return _several("cancel", task, args, reason, every=every, yes=yes, dry_run=dry_run)


@dead.command("review")
def review_dead(  # noqa: PLR0913, PLR0917 - one option for each thing to choose by
    task: Some = None, domain: Domain = "", skill: Skill = "", kind: Kind = "", node: OnNode = "",
    since: Since = "", poison: Poison = False, unreviewed: Unreviewed = False, every: All = False,
    reason: Annotated[str, typer.Option("--note", "--reason", help="What you found.")] = "",
    yes: Yes = False, dry_run: DryRun = False,
) -> int:  # fmt: skip
    """Note that you looked at them; they stay dead."""
    args = meant(domain=domain, skill=skill, kind=kind, node=node, since=since, poison=poison,
                 unreviewed=unreviewed)  # fmt: skip
    return _several("review", task, args, reason, every=every, yes=yes, dry_run=dry_run)


@dead.command("edit")
def edit_dead(
    task: Annotated[str, typer.Argument(metavar="TASK")],
    fields: Annotated[list[str] | None, typer.Argument(metavar="[FIELD=VALUE…]")] = None,
    body_file: Annotated[str, typer.Option("--body-file", help="A new body; - is stdin.")] = "",
    reason: Reason = "",
    dry_run: DryRun = False,
) -> int:
    """Change fields of one and let it run again; with a new body, a new task takes its place."""
    args = only_said({"tasks": [task], "reason": reason, "dry_run": dry_run})
    if fields:
        if any(one.startswith("body=") for one in fields):
            raise WrongUse("dead edit: a new body comes from a file or from stdin",
                           hint="arc dead edit TASK --body-file FILE, or -")  # fmt: skip
        args["fields"] = fields_of(fields, "dead edit")
    if body_file:
        args["body"] = body_of("", body_file)
    return _change("edit", args)
