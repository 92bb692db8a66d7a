"""Finds the page on any word the hub uses: a key of fleet.yaml, a rule, or the code of an error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agent_node.text import safe_text

from .errors import WrongUse

FOLDER = Path(__file__).parent / "explanations"
NOTHING_TO_DO = "\N{EN DASH}"
NODE_WORDS = "node-codes"  # the section whose table explains what nodes answer
WORD_MAX = 80
_PRIORITY = re.compile(r"[pP]\d{1,2}")  # as a list shows it


@dataclass(frozen=True)
class Page:
    """What there is to say on one word, as Markdown."""

    word: str
    kind: str  # key, rule, error, node, topic
    text: str


def explain(word: str) -> Page:
    """The page on this word, in any spelling of its case; `WrongUse` suggests a known one.

    Keys are found by their whole path and, where only one key is called so, by their last part.
    """
    pages = all_pages()
    asked = word.strip().rstrip(":").replace("/", ".")
    joined = "priority" if _PRIORITY.fullmatch(asked) else asked.lower().replace(" ", "_")
    option = asked.lower().removeprefix("--").replace("-", "_").removesuffix("_usd")
    for known in (asked, asked.upper(), asked.lower(), f"ARC-{asked.upper()}", joined,
                  *_by_end(asked), option):  # fmt: skip
        if known in pages:
            return pages[known]
    shown = safe_text(asked, WORD_MAX)
    raise WrongUse(f"there is no page on {shown}{_suggested(asked)}",
                   hint="arc explain without a word lists them all")  # fmt: skip


def _by_end(word: str) -> list[str]:
    ends = [known for known, page in all_pages().items()
            if page.kind == "key" and known.split(".")[-1] == word.lower()]  # fmt: skip
    return ends if len(ends) == 1 else []


def _suggested(word: str) -> str:
    pages = all_pages()
    by_end = [known for known in pages if known.split(".")[-1] == word.lower()]
    folded = {known.split(".")[-1].lower(): known for known in reversed(pages)}
    folded |= {known.lower(): known for known in pages}
    close = difflib.get_close_matches(word.lower()[:WORD_MAX], list(folded), n=2, cutoff=0.6)
    found = by_end[:4] or [folded[name] for name in close]
    return f"; did you mean {' or '.join(found)}?" if found else ""


@lru_cache(maxsize=1)
def all_pages() -> dict[str, Page]:
    """Every page by its word; read once."""
    pages: dict[str, Page] = {}
    for file in sorted(FOLDER.glob("*.md")):
        for word, text in sections(file.read_text(encoding="utf-8")):
            pages[word] = Page(word, _kind(file.stem, word), text)
    nodes = pages.get(NODE_WORDS)
    for code, text in node_rows(nodes.text if nodes else ""):
        pages.setdefault(code, Page(code, "node", text))
    return pages


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Each `## word` of a file with what stands beneath it."""
    parts = re.split(r"^## +(\S+) *$", text, flags=re.MULTILINE)
    for word, body in zip(parts[1::2], parts[2::2], strict=True):
        yield word, body.strip()


def node_rows(table: str) -> Iterator[tuple[str, str]]:
    """Each code of the table of what nodes answer, with its meaning and what to do."""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        codes = re.findall(r"`([a-z_]+)`", cells[0]) if line.startswith("| `") else []
        said = " ".join(_told(re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", cell), n, len(cells))
                        for n, cell in enumerate(cells) if n and cell != NOTHING_TO_DO)  # fmt: skip
        yield from ((code, said) for code in codes)


def _told(cell: str, n: int, of: int) -> str:
    """A cell as a sentence; the last column of the table is what to do."""
    return f"What to do: {cell}." if n == of - 1 else f"A node says so: {cell}."


def _kind(file: str, word: str) -> str:
    if file == "keys":
        return "key"
    if file in {"errors", "words"}:
        return "error" if word.startswith("ARC-") else "topic"
    return "rule"
