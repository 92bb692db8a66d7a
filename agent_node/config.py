"""Reads node.toml into settings, and refuses what it does not know, with the line it stands on."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

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

    @property
    def starter(self) -> tuple[str, ...]:
        """The way its shims change user; agents with the same way share a zygote."""
        return ("as", self.run_as) if self.run_as else self.prefix


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


def render_new_toml(
    name: str,
    skills: tuple[str, ...] = (),
    slots: int = 1,
    run: tuple[str, ...] = (),
    run_as: str | None = None,
) -> str:
    """A new node's settings as a file for people: each key with its meaning and its default.

    Without a program to run, the agent stands there as a comment to be filled in.
    """
    default = NodeSettings(name=name)
    node = _NODE_TEXT.format(
        name=toml_text(name),
        queue_max=default.queue_max,
        output_cap=default.output_cap // MIB,
        disk_floor=default.disk_floor // GIB,
        default=default,
        run_as=f"run_as = {toml_text(run_as)}" if run_as else '# run_as = "arc-run"',
    )
    agent = _AGENT_TEXT.format(
        name=toml_text(name),
        run=toml_list(run or ("my-agent", "--print")),
        slots=slots,
        skills=toml_list(skills),
    )
    return node + (agent if run else "".join(_commented(agent)))


def _commented(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [line if line.startswith(("#", "\n")) else f"# {line}" for line in lines]


def toml_list(items: tuple[str, ...]) -> str:
    """The texts as a TOML list."""
    return f"[{', '.join(toml_text(item) for item in items)}]"


def toml_text(text: str) -> str:
    """The text as a TOML string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_NODE_TEXT = """\
# Settings of this node. An unknown key is an error that names its line.
# What stands in comments is the default. After a change: restart `agent-node run`;
# `agent-node doctor` reads this file and says what is wrong with it.

# How the fleet calls this node: a-z, 0-9 and -, at most 32 characters.
name = {name}

# Waiting tasks (READY and HELD) it takes at most.
# queue_max = {queue_max}

# With less free space than this it claims nothing. Bytes, or text such as "512MiB".
# disk_floor = "{disk_floor}GiB"

# What is kept of each output stream of an attempt: its head and its tail.
# output_cap = "{output_cap}MiB"

# Seconds between TERM and KILL when a task has to end.
# grace_s = {default.grace_s}

# Seconds that a stopping daemon waits for running tasks; after that they run on without it.
# stop_grace_s = {default.stop_grace_s}

# The shortest and the longest lease, in seconds, of a task that is being moved away.
# lease_min_s = {default.lease_min_s}
# lease_max_s = {default.lease_max_s}

# How SQLite keeps its promises: "wal", or "truncate" for who prefers a rollback journal.
# journal = "{default.journal}"

# The account that tasks run as, which can read neither the queue nor the keys. Without it they
# run as this node's own user. `agent-node doctor` says what root has to type for it once.
{run_as}

# Where optional Python packages of this node lie. Without it: standard library only.
# extras_path = "/opt/arc/extras"

# A program that runs tasks; one such table for each program.
"""

_AGENT_TEXT = """\
[[agent]]
name = {name}

# The command as a list; no shell reads it, and a task never adds to it.
run = {run}

# How many tasks it runs at the same time.
slots = {slots}

# What a task may need that this agent can do.
skills = {skills}

# The models it offers. Empty: the wish of a task is passed on as it is.
# models = []

# What it reads on stdin: "json" (the whole task), "body" (its text alone), or a text of yours:
# stdin = {{template = "Do this: {{subject}}\\n{{body}}"}}
# stdin = "json"

# The folder it starts in. Without it: the folder of the attempt.
# cwd = "/srv/work"

# Variables of the daemon that it may see, such as "ANTHROPIC_API_KEY".
# env = []

# An account of its own, where it should not be the one that the node's run_as names.
# run_as = "arc-run-2"

# Stands before its supervisor, such as ["nice", "-n", "10"]. To change the user, take run_as.
# prefix = []

# Seconds until a task is stopped that names no limit itself. Without it: no limit.
# max_s = 3600
"""
