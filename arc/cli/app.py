"""The table of all commands, as typer has it; each lives in the module of its group."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from agent_node import __version__
from agent_node.errors import BrokenRule

from . import front
from .plain_types import read_plainly

if TYPE_CHECKING:
    from typer._click import Command

EPILOG = "Everywhere: --json prints one line of JSON, --fleet FILE names the fleet.yaml."

HELP = [*front.ASKS_FOR_HELP]
WIDE = 120  # columns of help in a pipe

# Which module of this package has which of the first words, in the order of `arc --help`.
GROUPS: dict[str, tuple[str, ...]] = {
    "daily": ("status", "why", "plan"),
    "task_words": ("tasks", "doubts"),
    "dag_words": ("dag",),
    "node_words": ("nodes",),
    "sensor_words": ("sensors", "skills"),
    "fleet_words": ("init", "up", "pause", "resume", "log", "doctor", "explain"),
    "unit_words": ("unit",),
    "config_words": ("config",),
    "metric_words": ("metrics",),
    "schedule_words": ("schedules",),
    "dead_words": ("dead",),
    "notice_words": ("notify",),
    "budget_words": ("budget",),
    "demo_words": ("demo",),
    "simulate_words": ("simulate",),
    "web_words": ("web",),
    "webhook_words": ("webhooks",),
    "report_words": ("report",),
}


def command(
    words: Sequence[str] = (), *, width: int | None = None, as_front: bool = False
) -> Command:
    """The command line. Where `words` begin with a command, only its group is loaded: to read the
    options of all of them takes longer than most commands do. `as_front`: none is loaded, and each
    is but its name and summary. `width` None: no terminal reads the help, so it is not folded.
    """
    app = typer.Typer(
        name="arc",
        epilog=EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
        context_settings={"help_option_names": HELP, "terminal_width": width or WIDE},
    )
    app.callback(invoke_without_command=True)(overview)
    if as_front:
        for name, summary in front.SUMMARIES.items():
            app.command(name, help=summary)(_not_loaded)
    else:
        for module in _needed(words[0] if words else ""):
            import_module(f".{module}", __package__).register(app)
    whole = typer.main.get_command(app)
    read_plainly(whole, HELP)
    return whole


def _needed(first: str) -> tuple[str, ...]:
    """The one group that has this word, or all of them."""
    return next(((module,) for module, names in GROUPS.items() if first in names), tuple(GROUPS))


def _not_loaded() -> None:
    raise BrokenRule("the front page of the help runs no command")


def _version(value: bool) -> None:  # noqa: FBT001 - typer hands it over by position
    if value:
        typer.echo(f"arc {__version__}")
        raise typer.Exit


def overview(
    context: typer.Context,
    version: Annotated[  # noqa: FBT002 - typer's way to declare a flag
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Its version.")
    ] = False,
) -> None:
    """Watches a fleet of machines, gives waiting work to idle ones, and says why."""
    if context.invoked_subcommand is None:
        from arc.door import fleet_of

        from .around import here

        fleet_of(here().fleet, here().environ)  # without a fleet, what to do first is the answer
        typer.echo(context.get_help())
