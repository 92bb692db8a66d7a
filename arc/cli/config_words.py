"""The commands `arc config …`: they read fleet.yaml themselves, so they need no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from agent_node.strict import JsonObject, JsonValue
from arc.operations import Told

from .answering import Render, say
from .around import here

if TYPE_CHECKING:
    from arc.settings import FleetSettings

FINDINGS = 6
config = typer.Typer(help="fleet.yaml: checked, shown, and its schema for editors.",
                     invoke_without_command=True)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.add_typer(config, name="config")


@config.callback()
def config_alone(context: typer.Context) -> int | None:
    """fleet.yaml: checked, shown, and its schema for editors. Without a verb: check."""
    return check_config() if context.invoked_subcommand is None else None


def _settings() -> FleetSettings:
    from arc.config import read_fleet
    from arc.door import fleet_of

    around = here()
    return read_fleet(fleet_of(around.fleet, around.environ))


@config.command("check")
def check_config() -> int:
    """What fleet.yaml may say and hardly means. Exit 2: it cannot be obeyed; 6: findings."""
    from arc.config_check import check_fleet
    from arc.findings import render_finding

    settings = _settings()
    found = check_fleet(settings)
    listed: list[JsonValue] = [one.as_json() for one in found]
    data: JsonObject = {"file": str(settings.file), "findings": listed}
    counted = f"{len(found)} finding{'s' * (len(found) != 1)}" if found else "no findings"
    lines = [*(render_finding(one, "warning") for one in found), f"{settings.file}: {counted}"]
    return say("config.check", Told(data, FINDINGS if found else 0), _as_text(lines), here())


@config.command("schema")
def config_schema() -> int:
    """The JSON schema of fleet.yaml, for editors."""
    import json

    from arc.config import fleet_schema

    schema = fleet_schema()
    lines = json.dumps(schema, indent=1, ensure_ascii=False).splitlines()
    return say("config.schema", Told(schema), _as_text(lines), here())


@config.command("show")
def show_config() -> int:
    """Every setting as it counts, the unsaid ones at their defaults; it reads back as the same."""
    from arc.config_settings import document_of
    from arc.text.config import render_config

    return say("config.show", Told(document_of(_settings())), render_config, here())


def _as_text(lines: list[str]) -> Render:
    """A renderer of what was made beside the data: findings show their lines of the file."""
    return lambda data, look: "\n".join(lines)
