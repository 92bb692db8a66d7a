"""Reads node.toml into settings, and refuses what it does not know, with the line it stands on."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from .budget import Money
from .errors import BadSettings
from .plain_files import read_plain
from .toml_lines import lines_of
from .toml_table import Source, Table, shown

MIB = 1024 * 1024
GIB = 1024 * MIB
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
LABEL_MAX = 64  # characters of one skill, need, tag or model
SLOTS_MAX = 1000
JOURNALS = ("wal", "truncate")
STDIN_KINDS = ("json", "body")
ON_STALL = ("show", "fail")
VALIDATOR_STDIN = ("output", "json")
VALIDATOR_MAX_S = 3600

@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One program that runs tasks here, and how it is started."""

    name: str
    run: tuple[str, ...]
    cwd: str | None = None
    """None means: in the folder of the attempt."""
    stdin: str = "json"
    """`json`: the task as one object; `body`: its text alone; `template`: the text below."""
    template: str | None = None
    """What goes on stdin with `{subject}`, `{body}`, … filled in; None unless stdin is template."""
    env: tuple[str, ...] = ()
    slots: int = 1
    skills: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    run_as: str | None = None
    """The account that its tasks run as, its own or the node's; None: the node's own user."""
    max_s: int | None = None
    """The deadline of tasks that name none; None means no deadline."""
    on_stall: str = "show"
    """What follows 90 s without a heartbeat: `show` says so, `fail` also ends the attempt."""

    @property
    def starter(self) -> tuple[str, ...]:
        """The way its shims change user; agents with the same way share a zygote."""
        return ("as", self.run_as) if self.run_as else self.prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorSettings:
    """One program that judges outputs here; tasks name it, and never its command."""

    name: str
    run: tuple[str, ...]
    stdin: str = "output"
    """`output`: the output alone; `json`: an object with the `task` and its `output`."""
    max_s: int | None = None
    """None means the limit of its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Everything node.toml may say, with the values it has when it does not."""

    name: str
    queue_max: int = 10_000
    disk_floor: int = GIB
    extras_path: str | None = None
    """Where optional packages lie; None means that the node has no optional powers."""
    run_as: str | None = None
    """The account that tasks run as, where their agent names no other; None: the node's own."""
    journal: str = "wal"
    output_cap: int = 8 * MIB
    grace_s: int = 10
    stop_grace_s: int = 30
    lease_min_s: int = 10
    lease_max_s: int = 600
    agents: tuple[AgentSettings, ...] = ()
    validators: tuple[ValidatorSettings, ...] = ()
    budget_usd: str | None = None
    """What may be spent here a UTC day; None means no limit."""
    urgent_overdraft: bool = False
    """Whether P1 to P4 go on when that is spent."""
    assume_usd: str = "0"
    """What an attempt is taken to cost whose task has no `max_cost_usd`."""

    @property
    def money(self) -> Money:
        """The same as the store counts by."""
        return Money(self.budget_usd, self.urgent_overdraft, self.assume_usd)

    def agent(self, name: str) -> AgentSettings | None:
        """The agent of this name; None: node.toml has none, or none any more."""
        return next((agent for agent in self.agents if agent.name == name), None)

    def digest(self) -> str:
        """Two that say the same have the same, within one version of this program."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def disk_needed(self, disk_total: int | None) -> int:
        """What has to be free for anything to start: `disk_floor`, and never less than an attempt's
        own files may take; 0 for `disk_total` is a file system that does not say how large it is.
        """
        return self.disk_floor if disk_total == 0 else max(self.disk_floor, MIB)


def read_settings(path: Path) -> NodeSettings:
    """The settings in this file, or `BadSettings` with the file, the line and what to write."""
    try:
        text = read_plain(path, MIB, linked=True).decode("utf-8")
    except FileNotFoundError as error:
        missing = BadSettings(f"{path}: is not there, so this is no node yet")
        missing.hint = "agent-node init --name NAME"
        raise missing from error
    except OSError as error:
        raise BadSettings(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadSettings(f"{path}: is not UTF-8 at byte {error.start}") from error
    return parse_settings(text, source=str(path))


def parse_settings(text: str, *, source: str = "node.toml") -> NodeSettings:
    """The settings that this text says; `source` is what errors call it."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{source}: is not TOML: {error}") from error
    top = Table(found, (), Source(source, lines_of(text)))
    settings = _node(top)
    _check_together(settings, top)
    return settings


def _node(top: Table) -> NodeSettings:
    top.only([*(field.name for field in fields(NodeSettings) if field.name != "agents"), "agent"])
    default = NodeSettings(name="")
    run_as = _account(top)
    return NodeSettings(
        name=top.name("name"),
        queue_max=top.count("queue_max", default.queue_max, low=1, high=10_000_000),
        disk_floor=top.size("disk_floor", default.disk_floor),
        extras_path=top.path("extras_path"),
        run_as=run_as,
        journal=top.choice("journal", JOURNALS, default.journal),
        output_cap=top.size("output_cap", default.output_cap, low=1024),
        grace_s=top.count("grace_s", default.grace_s, low=0, high=3600),
        stop_grace_s=top.count("stop_grace_s", default.stop_grace_s, low=0, high=86_400),
        lease_min_s=top.count("lease_min_s", default.lease_min_s, low=10, high=600),
        lease_max_s=top.count("lease_max_s", default.lease_max_s, low=10, high=600),
        agents=tuple(_agent(table, run_as) for table in top.tables("agent")),
        validators=tuple(_validator(table) for table in top.named_tables("validators")),
        budget_usd=top.money("budget_usd"),
        urgent_overdraft=top.flag("urgent_overdraft", default=default.urgent_overdraft),
        assume_usd=top.money("assume_usd") or default.assume_usd,
    )


def _agent(table: Table, run_as: str | None) -> AgentSettings:
    table.only(field.name for field in fields(AgentSettings) if field.name != "template")
    stdin, template = _stdin(table)
    run = table.texts("run", needed=True)
    if not run or not run[0]:
        table.wrong("run", 'needs at least the program: run = ["claude", "-p"]')
    prefix, own = table.texts("prefix"), _account(table)
    if prefix and (own or run_as):
        table.wrong("prefix", "and run_as both change the user: take run_as alone")
    return AgentSettings(
        name=table.name("name"),
        run=run,
        cwd=table.path("cwd"),
        stdin=stdin,
        template=template,
        env=table.texts("env", like=ENV_NAME),
        slots=table.count("slots", 1, low=1, high=SLOTS_MAX),
        skills=table.texts("skills", longest=LABEL_MAX),
        models=table.texts("models", longest=LABEL_MAX),
        prefix=prefix,
        run_as=own or run_as,
        max_s=table.count("max_s", 0, low=1, high=31_536_000) or None,
        on_stall=table.choice("on_stall", ON_STALL, "show"),
    )


def _validator(table: Table) -> ValidatorSettings:
    table.only(field.name for field in fields(ValidatorSettings) if field.name != "name")
    run = table.texts("run", needed=True)
    if not run or not run[0]:
        table.wrong("run", 'needs at least the program: run = ["pytest", "-q"]')
    return ValidatorSettings(
        name=str(table.place[-1]),
        run=run,
        stdin=table.choice("stdin", VALIDATOR_STDIN, "output"),
        max_s=table.count("max_s", 0, low=1, high=VALIDATOR_MAX_S) or None,
    )


def _account(table: Table) -> str | None:
    """The name of an account that may run tasks; whether it exists is seen when it is needed."""
    value = table.values.get("run_as")
    if value is None:
        return None
    if not isinstance(value, str) or not ACCOUNT.fullmatch(value):
        table.wrong("run_as", f'should be an account, such as "arc-run", not {shown(value)}')
    if value == "root":
        table.wrong("run_as", "should not be root, who may read and end everything of the node's")
    return value


def _stdin(table: Table) -> tuple[str, str | None]:
    value = table.values.get("stdin", "json")
    if isinstance(value, dict) and list(value) == ["template"]:
        template = value["template"]
        if isinstance(template, str):
            return "template", template
    if not isinstance(value, str) or value not in STDIN_KINDS:
        table.wrong("stdin", 'should be "json", "body" or {template = "…{subject}…{body}…"}')
    return value, None


def _check_together(settings: NodeSettings, top: Table) -> None:
    if settings.lease_min_s > settings.lease_max_s:
        top.wrong("lease_min_s", f"is above lease_max_s, which is {settings.lease_max_s}")
    seen: dict[str, int] = {}
    for index, agent in enumerate(settings.agents):
        if agent.name in seen:
            table = top.tables("agent")[index]
            table.wrong("name", f"{agent.name} is already agent[{seen[agent.name] + 1}]")
        seen[agent.name] = index
