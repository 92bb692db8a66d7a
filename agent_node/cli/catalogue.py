"""The table of all commands: what each is for, and in which module it lives."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from agent_node.envelope import Answer

from .around import Around


class Runnable(NamedTuple):
    """How a command reads its words, and how it runs."""

    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Around], Answer]


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the table."""

    module: str
    group: str
    summary: str


GROUPS = ("Set up", "Run", "Look", "Work", "The whole node", "From inside a running task")

COMMANDS: dict[str, Command] = {
    "init": Command("setup", "Set up", "make the node's home and its node.toml"),
    "doctor": Command("checking", "Set up", "look for everything that could go wrong here"),
    "unit": Command("setup", "Set up", "print a systemd user unit for the daemon"),
    "version": Command("setup", "Set up", "print the version"),
    "run": Command("service", "Run", "the daemon: dispatch tasks, answer, report"),
    "start": Command("starting", "Run", "leave a daemon running behind you"),
    "stop": Command("starting", "Run", "end the daemon; running tasks go on"),
    "serve": Command("service", "Run", "answer a hub on stdin and stdout"),
    "status": Command("looking", "Look", "what the node is doing now"),
    "list": Command("looking", "Look", "tasks, in the order they came"),
    "show": Command("looking", "Look", "everything about one task"),
    "budget": Command("spending", "Look", "what may still be spent here"),
    "log": Command("reading", "Look", "what a task's program wrote"),
    "dag": Command("graphing", "Look", "graphs of tasks that wait for each other"),
    "add": Command("adding", "Work", "queue a task, or a file of them"),
    "set": Command("changing", "Work", "change fields of a waiting task"),
    "cancel": Command("changing", "Work", "end tasks that should not run"),
    "retry": Command("changing", "Work", "run tasks again that ended badly"),
    "resolve": Command("changing", "Work", "say what became of a task nobody can know about"),
    "release": Command("changing", "Work", "let a quarantined task run here again"),
    "pause": Command("steering", "The whole node", "start nothing new; what runs goes on"),
    "resume": Command("steering", "The whole node", "start work again"),
    "drain": Command("steering", "The whole node", "start nothing new and give waiting work away"),
    "heartbeat": Command("inside", "From inside a running task", "say that the task is alive"),
    "progress": Command("inside", "From inside a running task", "say how far the task is"),
    "spawn": Command("inside", "From inside a running task", "queue a task of this task's own"),
}


def overview() -> str:
    """The help text: every command that people use, by group."""
    lines = ["agent-node COMMAND [--json] …: one machine's queue of tasks and what runs them.", ""]
    for group in GROUPS:
        lines.append(f"{group}:")
        lines += [
            f"  {name:<10} {command.summary}"
            for name, command in COMMANDS.items()
            if command.group == group
        ]
        lines.append("")
    lines += [
        "agent-node help COMMAND shows its options; every command takes --json.",
        "The node's home is $AGENT_NODE_HOME, else ~/.agent-node.",
    ]
    return "\n".join(lines) + "\n"
