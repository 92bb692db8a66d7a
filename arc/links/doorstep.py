"""Skips what a login shell prints, until the node's own program speaks."""

from __future__ import annotations

from agent_node.errors import BadInput
from agent_node.lines import Lines
from agent_node.text import safe_text
from arc.errors import AnswerUnreadable, ArcError, NoNodeProgram

from .answers import Greeting, last_trouble, last_words, parse_greeting, parse_trouble

GREETING = b'{"agent-node":'
TROUBLE = b'{"id":null,"ok":false,'  # what a node that cannot serve says in place of a greeting
NOISE_MAX = 4096  # bytes that a login shell may print before our program speaks
GREETING_MAX = 4096
NOTE_MAX = 200  # bytes of that noise that are kept for people
NOT_FOUND, NOT_EXECUTABLE = 127, 126
QUIET = "let the login scripts of that user print nothing where no terminal is (see ~/.bashrc)"
INSTALL = "install agent-node there, and name it in the forced command of the hub's key"


class Doorstep:
    """What stands before the greeting: counted, kept in part, and never more than 4 KiB."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._kept = bytearray()
        self._count = 0

    @property
    def noise(self) -> str:
        """What was printed before the greeting, safe and cut; empty: nothing."""
        if not self._count:
            return ""
        return f"{self._count} bytes: {safe_text(self._kept.decode('utf-8', 'replace').strip())}"

    def look(self, lines: Lines) -> Greeting | ArcError | None:
        """Who greets, or why nobody ever will; None: it has not been said yet."""
        while lines.waiting and self._count <= NOISE_MAX:
            line = lines.take()
            place = line.find(GREETING)
            if place >= 0:
                self._note(line[:place])
                return self._greeting(line[place:])
            place = line.find(TROUBLE)
            if place >= 0:
                return parse_trouble(self._node, line[place:])
            self._note(line + b"\n")
        if self._count + len(lines) > NOISE_MAX + GREETING_MAX:
            self._note(lines.rest())
        if self._count <= NOISE_MAX:
            return None
        return NoNodeProgram(
            self._node, f"prints text before agent-node speaks: {self.noise}", hint=QUIET
        )

    def nobody(self, why: str, stderr: bytes, exit_status: int | None) -> ArcError:
        """The stream ended before anybody greeted."""
        words = last_words(stderr) or last_words(bytes(self._kept))
        said = f"; last words: {words}" if words else ""
        if exit_status in (NOT_FOUND, NOT_EXECUTABLE):
            text = f"there is no agent-node to start (exit {exit_status}){said}"
            return NoNodeProgram(self._node, text, hint=INSTALL)
        if exit_status and (trouble := last_trouble(self._node, words)) is not None:
            return trouble
        return NoNodeProgram(self._node, f"agent-node ended before it greeted: {why}{said}")

    def _greeting(self, line: bytes) -> Greeting | ArcError:
        try:
            return parse_greeting(line)
        except BadInput as error:
            return AnswerUnreadable(self._node, f"its greeting cannot be read: {error}")

    def _note(self, noise: bytes) -> None:
        self._count += len(noise)
        self._kept += noise[: max(NOTE_MAX - len(self._kept), 0)]
