"""Fills in, on the page for the night, what each word means: from the page that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from arc.explaining import all_pages

# The tables whose second column is written from elsewhere, by the heading they stand under.
HUB_CODES, NODE_CODES = "When a command of the hub fails", "When a command of a node fails"
NODE_STATES, TASK_STATES = "The state of a node", "The state of a task"
HEALTH = "What fleet-health tells"
TABLES = (NODE_STATES, TASK_STATES, HEALTH, HUB_CODES, NODE_CODES)
HEAD = "| it means | type |"
_CODE = re.compile(r"`([A-Za-z_-]+)`")
_NEXT = re.compile(r"(?<=[.])\s+(?=[A-Z`])")


def with_meanings(page: str, of_codes: Mapping[str, str]) -> str:
    """The page with the second cell of each row of these tables written anew.

    `of_codes`: what the errors of a node say of themselves, by code.
    """
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    for place in range(1, len(parts), 2):
        if parts[place] in TABLES:
            codes = of_codes if parts[place] == NODE_CODES else None
            parts[place + 1] = "\n".join(_line(one, codes) for one in parts[place + 1].split("\n"))
    return "".join(f"## {part}" if place % 2 else part for place, part in enumerate(parts))


def words_under(page: str, heading: str) -> list[str]:
    """Which words have a row in the table below this heading, in their order there."""
    below = re.split(r"^## .+$", page.partition(f"\n## {heading}\n")[2], maxsplit=1,
                     flags=re.MULTILINE)[0]  # fmt: skip
    return [word_of(line) for line in below.splitlines() if is_row(line)]


def is_row(line: str) -> bool:
    """A row that tells of a word, and no head of a table."""
    return line.startswith("| ") and bool(_CODE.search(line.split(" | ", maxsplit=1)[0]))


def word_of(row: str) -> str:
    """The word that a row is about: the last one in its first cell that stands as a word."""
    return str(_CODE.findall(row.split(" | ", maxsplit=1)[0])[-1])


def copied(rows: Iterable[str], table: str) -> str:
    """A table whose rows are those of the page for the night; what stands before them stays."""
    head = [line for line in table.splitlines() if not line.startswith("| `")]
    return "\n".join([*head, *rows])


def node_rows_of(page: str) -> Iterator[str]:
    """The rows of all that nodes answer: from the errors of a node to the end of the page."""
    last = page.partition(f"\n## {NODE_CODES}\n")[2]
    return (line for line in last.splitlines() if line.startswith("| `"))


def _line(line: str, of_codes: Mapping[str, str] | None) -> str:
    """A code of a node that no error has stands here alone, so its cell is left as it is."""
    if not is_row(line):
        return line
    first, said, last = re.split(r" \|(?: (.*))? \| ", line, maxsplit=1)
    word = word_of(line)
    told = meaning(word) if of_codes is None else of_codes.get(word, said or "")
    return f"{first} | {told} | {last}"


def meaning(word: str) -> str:
    """The first sentence of the page on a word, and the second where it says what was not done."""
    text = re.sub(r"^(A node says so|Health): ", "", " ".join(all_pages()[word].text.split()))
    first, *more = _NEXT.split(text)
    told = f"{first} {more[0]}" if more and more[0].startswith("Nothing") else first
    return told.rstrip(".").replace("|", "\\|")
