"""A terminal that shows what was printed, and says what the text did to it beside being there."""

from __future__ import annotations

from unicodedata import category, normalize

import pyte
from wcwidth import wcwidth

COLUMNS = 400
TITLE = "the title that was there before"
BEFORE = "what stood here before"


class Shown(pyte.Screen):
    """A screen that also remembers whatever reached beyond it: titles, bells, answers, modes."""

    def __init__(self, rows: int) -> None:
        super().__init__(COLUMNS, rows)
        self.title = TITLE
        self.done: list[str] = []

    def bell(self, *args: object) -> None:
        self.done.append("rang")

    def write_process_input(self, data: str) -> None:
        self.done.append(f"typed {data!r}")

    def set_mode(self, *modes: int, **more: object) -> None:
        if modes != (pyte.modes.LNM,):
            self.done.append(f"set {modes}")
        super().set_mode(*modes, **more)


def harm_done(text: str, *, plain: bool = True) -> list[str]:
    """What printing this text did that no plain text does; empty: it was only shown.

    Two rows stand on the screen already; the text is printed below them, as a command would.
    `plain`: no colours of our own are in it, so that it has to be seen letter by letter.
    """
    rows = text.count("\n")
    wrapped = sum(max(0, len(line) - 1) // COLUMNS for line in text.split("\n"))
    screen = Shown(rows + 2 * wrapped + 8)
    stream = pyte.Stream(screen)
    screen.set_mode(pyte.modes.LNM)  # the tty's own ONLCR: a newline begins at the left
    stream.feed(f"{BEFORE} 1\n{BEFORE} 2\n")
    stream.feed(text)
    found = list(screen.done)
    if screen.title != TITLE:
        found.append(f"the title became {screen.title!r}")
    shown = [line.rstrip() for line in screen.display]
    if shown[:2] != [f"{BEFORE} 1", f"{BEFORE} 2"]:
        found.append("rows above were written over")
    if not rows + 2 <= screen.cursor.y <= rows + 2 + 2 * wrapped:
        found.append(f"the cursor is in row {screen.cursor.y}, {rows} lines below row 2")
    if screen.cursor.attrs != screen.default_char:
        found.append(f"what comes next looks like {screen.cursor.attrs}")
    printed = [line.rstrip() for line in text.split("\n")[:-1]]
    if plain and not wrapped and list(map(_seen, printed)) != list(map(_seen, shown[2:rows + 2])):
        found.append("what is shown is not what was printed")
    return found


def _seen(line: str) -> str:
    """What takes room on a screen; accents may be put together with their letter, or not."""
    return "".join(char for char in normalize("NFD", line)
                   if wcwidth(char) > 0 and category(char)[0] != "M")  # fmt: skip
