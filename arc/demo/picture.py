"""Draws the demo: in place where a terminal looks on, as plain lines everywhere else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

from agent_node.text import safe_text, table

from .sight import Sight

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

HAPPENED_MAX, HAPPENED_MIN = 40, 3
AROUND = 6  # lines of the picture beside nodes, what happened and what to try
HEAD = ("NODE", "STATE", "WAITING", "RUNNING", "DONE", "OWNS", "REACHED", "")
_STYLES = {"idle": "green", "working": "cyan", "unseen": "red", "stopped": "red",
           "no_agent": "red", "paused": "yellow", "draining": "yellow",
           "suspended": "yellow"}  # fmt: skip
_VERBS = {"stolen": "bold green", "routed": "cyan", "drained": "yellow", "retried": "magenta"}


class Picture(Protocol):
    """Where the demo shows itself."""

    def happened(self, seconds: float, text: str) -> None:
        """Something happened, so many seconds after the start."""

    def draw(self, sight: Sight, seconds: float, tries: tuple[str, ...]) -> None:
        """How things stand now."""

    def tell(self, text: str) -> None:
        """A line for people, above or below everything else."""

    def close(self) -> None:
        """Nothing changes any more; what is shown stays."""


class PlainPicture:
    """Lines, one for each thing that happened, and the table of nodes when it is first seen."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._drawn = self._tried = False

    def happened(self, seconds: float, text: str) -> None:
        self._say(f"{seconds:5.1f} s  {safe_text(text)}\n")

    def draw(self, sight: Sight, seconds: float, tries: tuple[str, ...]) -> None:
        if sight.nodes and not self._drawn:
            self._drawn = True
            self._say(f"{table(HEAD, rows_of(sight))}\n")
        if tries and sight.counts["stolen"] and not self._tried:
            self._tried = True
            self._say("\n".join(("try in another terminal:", *(f"  {one}" for one in tries), "")))

    def tell(self, text: str) -> None:
        self._say(f"{text}\n")

    def close(self) -> None:
        """Everything was said."""


def rows_of(sight: Sight) -> list[tuple[str, ...]]:
    """A row for each node, then the hub's own queue."""
    rows: list[tuple[str, ...]] = [
        (node.name, node.state, "?" if node.waiting is None else str(node.waiting),
         str(node.running), str(node.done), node.owns or "-", node.reached, node.reason)
        for node in sight.nodes
    ]  # fmt: skip
    inbox = "?" if sight.inbox is None else str(sight.inbox)
    return [*rows, ("inbox", "hub", inbox, "0", "0", "-", "the hub's own queue", "")]


class LivePicture:
    """The table changes in place, what happened last stands below it, then what to try."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._happened: deque[tuple[float, str]] = deque(maxlen=HAPPENED_MAX)
        self._console = console
        self._live: Live = Live(console=console, auto_refresh=False, vertical_overflow="crop",
                                redirect_stdout=False, redirect_stderr=False)  # fmt: skip
        self._live.start()

    def happened(self, seconds: float, text: str) -> None:
        self._happened.append((seconds, text))

    def draw(self, sight: Sight, seconds: float, tries: tuple[str, ...]) -> None:
        room = self._console.height - AROUND - len(sight.nodes) - len(tries)
        shown = list(self._happened)[-max(room, HAPPENED_MIN):]
        self._live.update(render(sight, seconds, shown, tries), refresh=True)

    def tell(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(text))

    def close(self) -> None:
        self._live.stop()


def render(
    sight: Sight, seconds: float, happened: list[tuple[float, str]], tries: tuple[str, ...]
) -> RenderableType:
    """The whole picture as rich draws it; nothing in it is read as markup."""
    from rich.console import Group
    from rich.text import Text

    done = f"{sight.done} of {len(sight.tasks)} done"
    head = Text(f"{seconds:5.1f} s   policy {sight.policy}   {done}   "
                f"{sight.counts['stolen']} stolen   {sight.counts['routed']} routed   "
                f"stranded {sight.stranded_s / 60:.1f} node-min",
                style="bold", no_wrap=True, overflow="ellipsis")  # fmt: skip
    lines = [_line(at, text) for at, text in happened]
    typed = [Text(f"  {safe_text(one)}", no_wrap=True, overflow="ellipsis") for one in tries]
    hint = [Text("try in another terminal, Ctrl-C ends the demo:", style="dim"), *typed]
    return Group(head, _table(sight), *lines, Text(""), *(hint if typed else ()))


def _table(sight: Sight) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for name in HEAD:
        drawn.add_column(name, justify="right" if name in HEAD[2:5] else "left")
    for row in rows_of(sight):
        cells = [Text(safe_text(cell)) for cell in row]
        cells[1].stylize(_STYLES.get(row[1], ""))
        drawn.add_row(*cells)
    return drawn


def _line(at: float, text: str) -> RenderableType:
    from rich.text import Text

    line = Text(f"{at:5.1f} s  ", style="dim", no_wrap=True, overflow="ellipsis")
    line.append(safe_text(text), style=_VERBS.get(text.partition(" ")[0], "none"))
    return line


def picture_on(
    stdout: TextIO, say: Callable[[str], None], *, live: bool, colour: bool
) -> Picture:
    """A live picture where a terminal can show one, else plain lines through `say`."""
    if not live:
        return PlainPicture(say)
    from rich.console import Console

    console = Console(file=stdout, no_color=not colour, highlight=False, markup=False)
    return PlainPicture(say) if console.is_dumb_terminal else LivePicture(console)
