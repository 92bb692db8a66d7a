"""Writes a new node's settings as a file for people: each key with its meaning and default."""

from __future__ import annotations

import json

from .config import GIB, MIB, NodeSettings


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

# With less free space than this, or than 1 MiB, it claims nothing. Bytes, or text: "512MiB".
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

# What may be spent here a day (UTC), in USD. Without it: no limit.
# budget_usd = "25"

# Whether P1 to P4 go on when that is spent.
# urgent_overdraft = false

# What a task is taken to cost that names no max_cost_usd.
# assume_usd = "{default.assume_usd}"

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

# After 90 s without a heartbeat: "show" says so in the status; "fail" also ends the attempt, which
# is then tried again like a crash.
# on_stall = "show"

# A program that judges outputs: a task says {{"kind": "test-pass", "validator": "tests"}}. Exit 0
# passes, 1 to 123 fails; the output is on its stdin.
#   [validators.tests]
#   run = ["pytest", "-q"]
#   max_s = 600
"""
