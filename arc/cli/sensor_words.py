"""The commands `arc sensors …` and `arc skills …`: two doors to the same code."""
# ruff: noqa: FBT002 - a flag of typer is a bool with a default

from __future__ import annotations

from typing import Annotated

import typer

from agent_node.strict import JsonObject
from arc.errors import WrongUse
from arc.sensor import EVERY_SENSORS

from .answering import ANSWER_S, tell
from .around import here
from .options import DryRun, only_said

RUN_S = 900.0
sensors = typer.Typer(help="The hub's scheduled work.", invoke_without_command=True)
skills = typer.Typer(help="The sensors, each by words of its own.", invoke_without_command=True)

# The words of our own sensors. Those of another package's are asked of the hub.
VERBS = {
    "fleet-rebalance": ("status", "plan", "steal", "why", "show"),
    "fleet-router": ("status", "dry-run", "route"),
    "fleet-health": ("status", "check"),
    "fleet-graphs": ("status", "tell"),
    "fleet-notices": ("status", "run"),
    "fleet-schedules": ("status", "run"),
}
RUNS = frozenset({"steal", "route", "check", "tell", "run"})
MOVERS = ("fleet-rebalance", "fleet-router")


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(sensors, name="sensors")
    app.add_typer(skills, name="skills")


def whole_name(name: str) -> str:
    """A sensor's name; `router` is ours."""
    return f"fleet-{name}" if f"fleet-{name}" in VERBS else name


@sensors.callback()
def sensors_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_sensors() if context.invoked_subcommand is None else None


@sensors.command("list")
def list_sensors() -> int:
    """Every sensor: its last run, its next, and whether it is well."""
    from arc.text.sensors import render_sensors

    return tell("sensors.list", "sensors.list", {}, render_sensors)


@sensors.command("run")
def run_sensor(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    dry_run: DryRun = False,
) -> int:
    """Run one now; with `--dry-run` only its plan is shown."""
    from arc.text.sensors import render_run

    name = whole_name(name)
    if dry_run:
        return _dry(name)

    return tell("sensors.run", "sensors.run", {"sensor": name}, render_run, wait_s=RUN_S)


def _dry(name: str) -> int:
    from . import daily

    if name not in MOVERS:
        raise WrongUse(f"sensors run: {name} moves nothing, so it has no dry run",
                       hint=f"arc sensors run {name}")  # fmt: skip
    return daily.plan_of(name)


@sensors.command("history")
def sensor_history(
    name: Annotated[str, typer.Argument(metavar="[NAME]")] = "",
    limit: Annotated[int, typer.Option("--limit", help="So many at most.")] = 20,
) -> int:
    """The newest runs, of one sensor or of all."""
    from arc.text.sensors import render_runs

    args = only_said({"sensor": whole_name(name), "limit": limit})
    return tell("sensors.history", "sensors.history", args, render_runs)


@skills.callback()
def skills_alone(context: typer.Context) -> int | None:
    """Without a verb: the list."""
    return list_skills() if context.invoked_subcommand is None else None


@skills.command("list")
def list_skills() -> int:
    """Every sensor and its words."""
    from arc.text.sensors import render_skills

    return tell("skills.list", "sensors.list", {}, render_skills)


@skills.command("show")
def show_skill(
    name: Annotated[str, typer.Argument(metavar="[NAME]")] = "",
    named: Annotated[str, typer.Option("--name", help="The same, named.")] = "",
) -> int:
    """The words of one sensor."""
    from arc.text.sensors import render_skills

    if not (name or named):
        raise WrongUse("skills show: of which sensor? arc skills list names them")
    return tell("skills.show", "skills.show", {"sensor": whole_name(name or named)}, render_skills)


@skills.command("run")
def run_skill(
    name: Annotated[str, typer.Option("--name", help="The sensor.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="-- VERB …")] = None,
) -> int:
    """A sensor by its own words: fleet-rebalance -- status|plan|steal|why TASK|show RUN, …"""
    from . import daily

    name = whole_name(name)
    verb, rest = (words[0], words[1:]) if words else ("status", [])
    known = VERBS.get(name) or _declared(name)
    if not words:
        here().talk(f"{name} has the words {', '.join(known)}: arc skills run --name {name} -- "
                    f"{known[0]}\n")  # fmt: skip
    if verb not in known:
        raise WrongUse(f"skills run: {name} has no word {verb!r}; it has {', '.join(known)}",
                       hint=f"arc skills run --name {name} -- {known[0]}")  # fmt: skip
    if name not in VERBS and verb not in EVERY_SENSORS:
        return _answer(name, verb, rest)
    if verb == "plan":
        return daily.plan()
    if verb == "dry-run":
        return daily.plan_of(name)
    if verb == "why":
        return daily.why(_only(rest, "why", "TASK"))
    if verb == "show":
        return _show(_only(rest, "show", "RUN"))
    if verb in RUNS:
        return run_sensor(name)
    from arc.text.sensors import render_skill

    return tell("skills.run", "skills.status", {"sensor": name}, render_skill)


def _declared(name: str) -> tuple[str, ...]:
    """The words of another package's sensor: those that every one has, and its own."""
    from arc.text.columns import inside, objects

    told = here().ask(here(), "skills.show", {"sensor": name}, timeout_s=ANSWER_S)
    (one,) = objects(told.data, "sensors")
    return (*EVERY_SENSORS, *(verb for verb in inside(one, "verbs") if verb not in EVERY_SENSORS))


def _answer(name: str, verb: str, rest: list[str]) -> int:
    from arc.text.sensors import render_answer

    args: JsonObject = {"sensor": name, "verb": verb, "words": [*rest]}
    return tell("skills.run", "skills.answer", args, render_answer, wait_s=RUN_S)


def _only(rest: list[str], verb: str, what: str) -> str:
    if len(rest) != 1:
        raise WrongUse(f"skills run: {verb} takes one {what}")
    return rest[0]


def _show(number: str) -> int:
    from arc.text.sensors import render_run

    if not number.isdecimal() or int(number) < 1:
        raise WrongUse(f"skills run: {number!r} is no number of a run; see: arc sensors history")
    return tell("skills.run", "sensors.show", {"run": int(number)}, render_run)
