"""The commands `arc tasks add` and `arc tasks import`."""

# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated

import typer

from agent_node.readiness import ON_FAILURE
from agent_node.strict import JsonObject, JsonValue
from arc.errors import WrongUse

from .answering import tell
from .around import here
from .drafting import (
    FILE_MAX,
    body_of,
    checked,
    read_input,
    references_in,
    tasks_in,
    validation_in,
)
from .options import DryRun, Priority, moment, one_word_of, only_said, seconds, words

Words = list[str] | None
After = Annotated[
    Words, typer.Option("--after", help="Waits for this task: UID, UID:skip or UID:run.")
]
Context = Annotated[
    Words, typer.Option("--context", help="Be given this: task:UID:output, artifact:SHA256.")
]
FallbackModel = Annotated[
    Words, typer.Option("--fallback-model", help="Where no wanted one is.")
]
Priority100 = Annotated[int | None, typer.Option("--priority-100", help="0 urgent … 100.")]
Validate = Annotated[str, typer.Option("--validate", help="What its output must be, as JSON.")]


def add_task(  # noqa: PLR0913, PLR0917 - one option for each thing that a task may say
    typed: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="[SUBJECT]")] = "",
    subject_named: Annotated[str, typer.Option("--subject", help="The same, named.")] = "",
    priority: Priority = None,
    priority_100: Priority100 = None,
    skill: Annotated[list[str] | None, typer.Option("--skill", "--skills", help="A tag.")] = None,
    need: Annotated[list[str] | None, typer.Option("--need", help="What it must have.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A word of your own.")] = None,
    domain: Annotated[str, typer.Option("--domain", help="Whose work it is.")] = "",
    body: Annotated[str, typer.Option("--body", help="The work itself.")] = "",
    body_file: Annotated[str, typer.Option("--body-file", help="From a file, or - .")] = "",
    to: Annotated[str, typer.Option("--to", help="Straight to this node.")] = "",
    key: Annotated[str, typer.Option("--key", help="Adding twice to one queue adds once.")] = "",
    ref: Annotated[str, typer.Option("--ref", help="Its id elsewhere.")] = "",
    parent: Annotated[str, typer.Option("--parent", help="The task that made it.")] = "",
    after: After = None,
    dag: Annotated[str, typer.Option("--dag", help="Belongs to this graph.")] = "",
    context: Context = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="It wants this one.")] = None,
    fallback_model: FallbackModel = None,
    max_cost: Annotated[str, typer.Option("--max-cost", help="USD that it may cost.")] = "",
    validate: Validate = "",
    boost: Annotated[str, typer.Option("--boost", help="Points more urgent a minute.")] = "",
    heat: Annotated[str, typer.Option("--heat", help="Points more urgent, or less: -5.")] = "",
    source: Annotated[str, typer.Option("--source", help="Who sends it.")] = "",
    not_before: Annotated[str, typer.Option("--not-before", help="A time, or 30m.")] = "",
    deadline: Annotated[str, typer.Option("--deadline", help="A time, or 2h.")] = "",
    expected: Annotated[str, typer.Option("--expected", help="How long it takes: 5m.")] = "",
    max_time: Annotated[str, typer.Option("--max", help="When it is stopped: 1h.")] = "",
    max_attempts: Annotated[int | None, typer.Option("--max-attempts", help="How often.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never moved by itself.")] = False,
    dry_run: DryRun = False,
) -> int:
    """One task for the hub's queue, from where it is routed; or straight to a node."""
    from arc.text.tasks import render_added

    _check_one_subject(typed.args, subject)
    _check_said({"--skill": skill, "--need": need, "--tag": tag, "--after": after,
                 "--model": model, "--fallback-model": fallback_model})  # fmt: skip
    task = only_said({
        "subject": subject or subject_named, "priority": priority, "skills": words(skill),
        "needs": words(need), "tags": words(tag), "domain": domain, "key": key, "ref": ref,
        "body": body_of(body, body_file), "parent": parent.upper(), "pinned": pinned,
        "max_attempts": max_attempts, "priority_100": priority_100,
        "depends_on": [edge_of(str(one)) for one in words(after)], "dag": dag.upper(),
        **_times(not_before, deadline, expected, max_time),
        "context_refs": references_in(context), "max_cost_usd": checked("max_cost_usd", max_cost),
        "models": words(model), "fallback_models": words(fallback_model),
        "validate": validation_in(validate), "boost_per_minute": checked("boost_per_minute", boost),
        "heat": checked("heat", heat),
        "source": source or here().by, "origin": source or here().by,
    })  # fmt: skip
    if not task.get("subject"):
        raise WrongUse('tasks add: a task needs a subject: arc tasks add "what to do"')
    return tell("tasks.add", "tasks.add", _adding([task], to, dry_run=dry_run), render_added)


def _check_one_subject(more: list[str], subject: str) -> None:
    """Return only when nothing stands behind it: a shell gives each word by itself."""
    if more:
        whole = shlex.quote(" ".join([subject, *more]))
        raise WrongUse(f"tasks add: the subject is one word for the shell, and {more[0]!r} is "
                       "another", hint=f"quote the subject: arc tasks add {whole}")  # fmt: skip


def _times(not_before: str, deadline: str, expected: str, max_time: str) -> JsonObject:
    """When it may run, and for how long; what was not said is not there."""
    given = (
        ("not_before", moment, "--not-before", not_before),
        ("deadline", moment, "--deadline", deadline),
        ("expected_s", seconds, "--expected", expected), ("max_s", seconds, "--max", max_time),
    )  # fmt: skip
    return {name: read(text, option) for name, read, option, text in given if text}


def _check_said(options: Mapping[str, list[str] | None]) -> None:
    """An option with nothing behind it is a slip, such as a variable of a shell that is unset:
    left out in silence, the task would wait for nobody, or run where it cannot.
    """
    for name, given in options.items():
        if any(not words([one]) for one in given or []):
            raise WrongUse(f"tasks add: {name}: nothing is behind it; nothing was added",
                           hint=f"name one, or leave {name} out")  # fmt: skip


def edge_of(text: str) -> JsonObject:
    """UID, or UID:HOW where HOW says what to do if that task ends badly."""
    uid, colon, how = text.partition(":")
    if colon and how not in ON_FAILURE:
        raise WrongUse(f"--after {text}: after the colon comes one of {', '.join(ON_FAILURE)}"
                       f"{one_word_of(how, ON_FAILURE)}")  # fmt: skip
    return {"uid": uid.upper(), **({"on_failure": how} if colon else {})}


def _adding(new: list[JsonObject], to: str, *, dry_run: bool) -> JsonObject:
    listed: list[JsonValue] = [*new]
    return {"tasks": listed, **only_said({"to": to, "dry_run": dry_run})}


def import_tasks(
    file: Annotated[str, typer.Argument(help="JSON lines; - is stdin.", metavar="FILE|-")],
    to: Annotated[str, typer.Option("--to", help="Straight to this node.")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="No field but a task's.")] = False,
    dry_run: DryRun = False,
) -> int:
    """A whole file of tasks or nothing of it; every bad line is named."""
    from arc.text.tasks import render_added

    new = tasks_in(read_input(file, FILE_MAX), file, by=here().by, strict=strict)
    return tell("tasks.import", "tasks.add", _adding(new, to, dry_run=dry_run), render_added)
