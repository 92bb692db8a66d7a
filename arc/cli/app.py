"""The table of all commands, as typer has it; each lives in the module of its group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from typer.core import TyperGroup

from agent_node import __version__

EPILOG = "Everywhere: --json prints one line of JSON, --fleet FILE names the fleet.yaml."

app = typer.Typer(
    name="arc",
    help="Watches a fleet of machines, gives waiting work to idle ones, and says why.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001 - typer hands it over by position
    if value:
        typer.echo(f"arc {__version__}")
        raise typer.Exit


@app.callback()
def overview(
    context: typer.Context,
    version: Annotated[  # noqa: FBT002 - typer's way to declare a flag
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Its version.")
    ] = False,
) -> None:
    """Watches a fleet of machines, gives waiting work to idle ones, and says why."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def command() -> TyperGroup:
    """The whole command line; the modules of the groups register themselves when loaded."""
    from . import daily, fleet_words, node_words, sensor_words, task_words

    for module in (daily, task_words, node_words, sensor_words, fleet_words):
        module.register(app)
    return typer.main.get_group(app)
