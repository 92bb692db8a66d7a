"""Keeps fences in a file of their own: a lost journal must not let a fenced machine come back."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from agent_node.clock import iso, parse_iso
from agent_node.errors import BadInput
from agent_node.plain_files import read_plain
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue, decode_object

from .durable import NotSynced, write_durably
from .errors import StateBroken
from .exhausted import no_fault_of_the_file

NAME = "fences.json"
BYTES_MAX = 4 * 1024 * 1024
FENCES_MAX = 10_000


class FenceFile:
    """Every fence that a person said, in one file that is replaced in one durable step.

    It lies beside the journal and is read once: the lease's holder alone writes it.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / NAME
        self._said = self._read()

    def has(self, node: str, incarnation: str) -> bool:
        """Whether this life of the node was declared over."""
        return (node, incarnation) in self._said

    def last_life(self, node: str) -> str | None:
        """The life of this node that was declared over last; None: none ever was."""
        lives = [(said[0], life) for (name, life), said in self._said.items() if name == node]
        return max(lives)[1] if lives else None

    def add(self, node: str, incarnation: str, *, at: datetime, by: str, reason: str) -> None:
        """On the disk before this returns; saying it twice is fine."""
        if self.has(node, incarnation):
            return
        said = {**self._said, (node, incarnation): (at, by, reason)}
        self._write(said)
        self._said = said

    @no_fault_of_the_file()
    def _read(self) -> dict[tuple[str, str], tuple[datetime, str, str]]:
        try:
            raw = read_plain(self._path, BYTES_MAX)
            entries = Fields(decode_object(raw, BYTES_MAX)).objects("fences", FENCES_MAX)
            return {
                (one.node("node"), one.text("incarnation", 64)): (
                    parse_iso(one.text("at", 40)), one.text_or("by", ""),
                    one.text_or("reason", "", 1000),
                )
                for one in entries
            }  # fmt: skip
        except FileNotFoundError:
            return {}
        except (OSError, BadInput, ValueError) as error:
            raise StateBroken(
                f"{self._path}: cannot be read: {error}; it says which machines are off for good",
                hint="put it back from a copy; without it a fenced machine may run its tasks again",
            ) from error

    def _write(self, said: dict[tuple[str, str], tuple[datetime, str, str]]) -> None:
        fences: list[JsonValue] = [
            {"node": node, "incarnation": life, "at": iso(at), "by": by, "reason": reason}
            for (node, life), (at, by, reason) in sorted(said.items())
        ]
        document: JsonObject = {"fences": fences}
        try:
            write_durably(self._path, json.dumps(document, indent=1), point="fences")
        except NotSynced as error:
            raise StateBroken(
                f"{self._path}: cannot be brought to the disk: {error.strerror}; the fence may"
                " stand, and nothing else was done",
                hint="look at this disk (df, dmesg), restart the hub, then say it again",
            ) from error
        except OSError as error:
            raise StateBroken(f"{self._path}: cannot be written: {error.strerror}; the fence does "
                              "not stand, and nothing was done") from error  # fmt: skip
