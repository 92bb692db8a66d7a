"""Says what fleet.yaml may hold of where work comes from, and of whom to tell."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from .config_kinds import Duration, File, Flag, Host, Label, Name, Port, Section, Times, says
from .config_words import parse_amount, parse_command, parse_mail, parse_url
from .decisions.schedules import parse_cron, parse_zone
from .decisions.watching import parse_when

_TEXT_SCHEMA = WithJsonSchema({"type": "string"})
Cron = Annotated[str, BeforeValidator(parse_cron), _TEXT_SCHEMA]
Zone = Annotated[str, BeforeValidator(parse_zone), _TEXT_SCHEMA]
When = Annotated[str, BeforeValidator(parse_when), _TEXT_SCHEMA]
Url = Annotated[str, BeforeValidator(parse_url), _TEXT_SCHEMA]
Mail = Annotated[str, BeforeValidator(parse_mail), _TEXT_SCHEMA]
_COMMAND_SCHEMA = WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1})
Command = Annotated[tuple[str, ...], BeforeValidator(parse_command), _COMMAND_SCHEMA]
Document = Annotated[dict[str, object], WithJsonSchema({"type": "object"})]
_AMOUNT_SCHEMA = WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]})
Amount = Annotated[str, BeforeValidator(parse_amount), _AMOUNT_SCHEMA]
Happening = Literal[
    "dead_letter", "parked", "node_silent", "failing", "graph_failed", "graph_not_followed",
    "over_budget",
]
HAPPENINGS: tuple[str, ...] = get_args(Happening)


class ScheduleSection(Section):
    """Work that is due at times."""

    cron: Cron = Field(description="When: minute, hour, day, month and weekday, as cron has them.")
    zone: Zone = says("UTC", "By which clock, such as Europe/Berlin.")
    task: Document | None = says(None, "The task: its fields as `arc tasks import` takes them.")
    graph: Document | None = says(None, "Instead of a task, a graph of them.")
    catch_up: Literal["one", "none"] = says(
        "one", "After a time without a hub: the newest time that passed, or none of them."
    )


class WatchFilesSection(Section):
    """Work that a changed file asks for."""

    path: File = Field(description="The file, or a pattern such as inbox/*.json.")
    task: Document = Field(description="The task for each file that is new or has changed.")


class WatchSection(Section):
    """Work that failures ask for."""

    when: When = Field(description="How many failures, as in: failing 40% of 5 in 1d.")
    domain: Name | None = says(None, "Only tasks of this domain.")
    node: Name | None = says(None, "Only what ended on this node.")
    task: Document = Field(description="The task that is added, once in the time that is watched.")


class WebhookSection(Section):
    """An address that is told by HTTP."""

    url: Url = Field(description="Where to post; https, or http.")
    secret_file: File | None = says(None, "A file (0600) with the secret that signs each message.")


class EmailSection(Section):
    """Somebody who is told by mail."""

    to: Mail = Field(description="Who gets it.")
    sender: Mail = Field(alias="from", description="Whom it is from.")
    host: Host = says("localhost", "The mail server.")
    port: Port = says(25, "Its port.")


class NotifySection(Section):
    """Who is told, of what, and how: by one of a command, a webhook and a mail."""

    on: tuple[Happening, ...] = says((), "Of what it is told; without it, of everything.")
    command: Command | None = says(None, "A program with its arguments; the notice is its stdin.")
    webhook: WebhookSection | None = says(None, "An address that gets it by HTTP.")
    email: EmailSection | None = says(None, "Somebody who gets it by mail.")
    at_most: Duration = says("10m", "What happens within so long comes as one notice.")
    attempts: Times = says(8, "How often one notice is tried.")


class HookSection(Section):
    """Work that a signed message from elsewhere asks for."""

    secret_file: File = Field(description="A file (0600) with the secret that its sender signs by.")
    task: Document = Field(description="The task; {a.b} in a text is a field of the message.")
    key: Label | None = says(None, "What makes two messages one, as {issue.id}; else the sender's.")
    per_minute: Times = says(60, "How many messages are taken in a minute.")


class WebSection(Section):
    """The page, as `arc web` and `arc up --web` serve it."""

    host: Host = says("127.0.0.1", "Where it listens; anywhere but here it wants a token.")
    port: Port = says(8420, "Its port.")
    socket: File | None = says(None, "A socket (0600) instead of host and port.")
    names: tuple[Host, ...] = says((), "More names under which it may be asked for.")
    actions: Flag = says(default=False, sentence="Whether people may act from the page.")
    token_file: File | None = says(None, "A file (0600) with a token that everybody has to show.")


class BudgetSection(Section):
    """What the whole fleet may spend."""

    per_day: Amount | None = says(None, "So many USD a day, UTC; without it there is no limit.")
    urgent_overdraft: Flag = says(default=False, sentence="Whether P1 to P4 may go on beyond it.")
    assume_usd: Amount | None = says(
        None, "What a task that names no `max_cost_usd` reserves when the hub gives it away;"
        " without it nothing.")
