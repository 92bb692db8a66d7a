"""Stands in for a node.toml that cannot be obeyed: its queue is read and relieved all the same."""

from __future__ import annotations

from typing import NamedTuple

from .config import NodeSettings, read_settings
from .errors import BadSettings
from .home import Home
from .strict import JsonObject
from .text import safe_text

_WAL_MARK, _MARK_AT = 2, 18  # of a database file: 2 means WAL, 1 a rollback journal

# What neither takes work in nor starts any, and leans on nothing that node.toml alone says.
STILL_ANSWERED = frozenset({
    "hello", "status", "list", "show", "log", "candidates", "doubts", "moved", "tiers", "dead",
    "events", "graphs", "graph", "escrow", "commit", "abort", "settled", "activate", "drop",
})  # fmt: skip


class Found(NamedTuple):
    """Settings to work by, and why they are not those of node.toml; "" when they are.

    `name` is None where only the queue knows it.
    """

    settings: NodeSettings
    name: str | None
    fault: str


def settings_or_stand_in(home: Home) -> Found:
    """What node.toml says; where that cannot be obeyed and there is a queue, what it needs.

    The journal stays the one that the file has: to change it takes somebody who asked for it.
    """
    try:
        settings = read_settings(home.config)
    except BadSettings as error:
        journal = _journal_of(home)
        if journal is None:
            raise
        return Found(NodeSettings(name="", journal=journal), None, str(error))
    return Found(settings, settings.name, "")


def _journal_of(home: Home) -> str | None:
    """None: there is no queue yet."""
    try:
        with home.database.open("rb") as file:
            header = file.read(_MARK_AT + 1)
    except FileNotFoundError:
        return None
    if len(header) <= _MARK_AT:
        return None
    return "wal" if header[_MARK_AT] == _WAL_MARK else "truncate"


def with_fault(report: JsonObject, fault: str) -> JsonObject:
    """The same, saying first of what waits for a person that nobody can read the settings."""
    needs = report["needs_you"] if isinstance(report["needs_you"], list) else []
    return {**report, "needs_you": [f"bad_settings: {safe_text(fault)}", *needs]}


def refuse_unless_answered(do: str, fault: str) -> None:
    """`BadSettings` for what leans on settings that nobody can read; nothing was done."""
    if fault and do not in STILL_ANSWERED:
        raise BadSettings(f"{fault}; until it is mended this queue is only read and relieved")
