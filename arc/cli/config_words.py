"""The commands `arc config …`: they read fleet.yaml themselves, so they need no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError
from arc.operations import Told
from arc.text.columns import inside, number, objects

from .answering import Render, say
from .around import here

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arc.config_check import Seen
    from arc.decisions.sounding import Sounds
    from arc.settings import FleetSettings

FINDINGS = 6
SEEN_S = 4.0
NOT_HEARD = "not heard lately, so domains.skills was not held against what nodes report"
NO_HUB = "no hub runs, so no node's skills and no tasks were looked at; arc doctor asks the nodes"
NOT_READ = "not read to the end, so no sign of a domain was held against the tasks there are"
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
    """What fleet.yaml may say and hardly means. Exit 2: it cannot be obeyed; 6: findings.

    A hub that runs is asked which skills its nodes reported last, and whether any task that they
    know begins, or sounds, as the domains say.
    """
    from arc.config_check import check_fleet
    from arc.findings import render_finding

    settings = _settings()
    seen, unsure = _seen(settings)
    found = check_fleet(settings, seen)
    listed: list[JsonValue] = [one.as_json() for one in found]
    data: JsonObject = {"file": str(settings.file), "findings": listed}
    counted = f"{len(found)} finding{'s' * (len(found) != 1)}" if found else "no findings"
    lines = [*(render_finding(one, "warning") for one in found), f"{settings.file}: {counted}"]
    told = Told(data, FINDINGS if found else 0, warnings=unsure)
    return say("config.check", told, _as_text(lines), here())


def _seen(settings: FleetSettings) -> tuple[Seen, tuple[str, ...]]:
    """What the hub that runs heard of the nodes; and a warning where something is not known."""
    from arc import door
    from arc.config_check import Seen, unheard
    from arc.decisions.sounding import signs_of

    signs = {kind: some for kind, some in signs_of(settings.domains).items() if some}
    if not signs and not unheard(settings, Seen()):
        return Seen(), ()  # there is nothing that a node could tell
    around, asked = here(), JsonObject({kind: [*some] for kind, some in signs.items()})
    try:
        fleet = door.fleet_of(around.fleet, around.environ)
        told = door.ask(fleet, "config.seen", asked, by=around.by, timeout_s=SEEN_S)
    except ArcError as error:
        return Seen(), (f"the hub could not be asked what its nodes say: {error}",)
    if told is None:
        return Seen(), (NO_HUB,)
    heard = {str(one["node"]): _texts(one, "skills") for one in objects(told.data, "nodes")}
    seen = Seen(heard, _sounds(inside(told.data, "sounds")))
    return seen, tuple(_unsure(unheard(settings, seen), _texts(told.data, "unread")))


def _texts(data: JsonObject, name: str) -> list[str]:
    said = data.get(name)
    return [*map(str, said)] if isinstance(said, list) else []


def _sounds(said: JsonObject) -> Sounds:
    from arc.decisions.sounding import Sounds

    missing = inside(said, "missing")
    return Sounds(int(number(said.get("tasks"))), {kind: _texts(missing, kind) for kind in missing})


def _unsure(silent: Sequence[str], unread: Sequence[str]) -> Iterator[str]:
    """A sentence of what is not known, where anything is."""
    if silent:
        yield f"{NOT_HEARD}: {', '.join(silent)}"
    if unread:
        yield f"{NOT_READ}: {', '.join(unread)}"


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
