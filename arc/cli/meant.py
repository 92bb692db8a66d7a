"""Knows which command is meant by a word that other programs have for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

HELP = "help"
NEAR = 0.7  # how alike two words are of which one is taken for the other
# What is typed out of habit: alone, or after the group that has one of these commands.
_FIRST = {
    HELP: HELP,
    "graph": "dag", "graphs": "dag", "dags": "dag", "job": "tasks", "jobs": "tasks",
    "queue": "tasks", "machine": "nodes", "machines": "nodes", "host": "nodes", "hosts": "nodes",
    "agents": "nodes", "ps": "status", "health": "status", "stop": "pause", "start": "up",
    "run": "up", "hub": "up", "serve": "up", "logs": "log", "history": "log", "events": "log",
    "check": "doctor", "rules": "explain", "settings": "config", "cron": "schedules",
    "page": "web", "money": "budget", "rebalance": "plan", "route": "plan",
    "ls": "tasks list", "list": "tasks list", "add": "tasks add", "show": "tasks show",
    "set": "tasks set", "cancel": "tasks cancel", "kill": "tasks cancel", "retry": "tasks retry",
    "move": "tasks move", "resolve": "tasks resolve", "import": "tasks import",
    "join": "nodes add", "trust": "nodes trust", "drain": "nodes drain", "fence": "nodes fence",
    "suspend": "nodes suspend", "upgrade": "nodes upgrade", "settle": "doubts settle",
    "submit": "dag submit",
}  # fmt: skip
_THEN = {
    "ls": ("list",), "all": ("list",), "get": ("show",), "info": ("show",), "view": ("show",),
    "inspect": ("show",), "status": ("show", "list"), "new": ("add", "submit"),
    "create": ("add", "submit"), "join": ("add",), "rm": ("cancel", "remove"),
    "delete": ("cancel", "remove"), "remove": ("cancel",), "kill": ("cancel",),
    "abort": ("cancel",), "stop": ("cancel", "pause"), "update": ("set", "edit"),
    "edit": ("set",), "change": ("set",), "mv": ("move",), "steal": ("move",), "rerun": ("retry",),
    "restart": ("retry",), "unsuspend": ("resume",), "unpause": ("resume",), "start": ("resume",),
    "log": ("logs",), "validate": ("check",), "lint": ("check",), "end": ("settle",),
}  # fmt: skip
_UNKNOWN = re.compile(r"No such command '([^']*)'\.")


def with_help(words: list[str], groups: Sequence[str]) -> list[str]:
    """`help` before a command, or behind a group, is `--help` behind it."""
    if words[:1] == [HELP]:
        return [*words[1:], "--help"]
    if len(words) > 1 and words[0] in groups and words[1] == HELP:
        return [words[0], *words[2:], "--help"]
    return words


def with_meant(said: str, asked: str, commands: Sequence[str]) -> str:
    """What typer says of an unknown command, with the one that is meant where that is known; what
    it guesses from the letters alone stays where no such habit is.
    """
    unknown = _UNKNOWN.match(said)
    if unknown is None:
        return said
    from difflib import get_close_matches  # which no command needs that is known

    habits = _FIRST if asked == "arc" else _habits_for(commands)
    word = unknown[1].lower()
    near = [word, *get_close_matches(word, habits, cutoff=NEAR)] if said == unknown[0] else [word]
    meant = next((habits[one] for one in near if one in habits), "")
    return f"{unknown[0]} Did you mean '{meant}'?" if meant else said


def _habits_for(commands: Sequence[str]) -> dict[str, str]:
    """Each habit with the one of these commands that it means."""
    meant = {word: next((one for one in means if one in commands), "")
             for word, means in _THEN.items() if word not in commands}  # fmt: skip
    return {word: one for word, one in meant.items() if one}
