"""Writes the generated parts of the pages in docs/ from the code."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from arc.explaining import FOLDER, NODE_WORDS
from arc.log_lines import LINES
from tools import plot_priority
from tools.draw_states import render_states
from tools.night import copied, node_rows_of, with_meanings
from tools.rooms import ROOMS, Room
from tools.rule_table import render_rules
from tools.sources import PACKAGES, ROOT, sources

DOCS = ROOT / "docs"
MAP_START = """\
# Where everything is

`sensors` lean on `arc`, `arc` leans on `agent_node`, and nothing leans the other way.
Tests lie in `tests/`, chores around the project in `tools/`.
"""
STATES_START = """\
# The states of a task

Drawn from the table in `agent_node/task.py`.
"""
ERRORS_START = """\
# Every error of a node

The code is what `--json` and the wire carry, and what stands in `error[CODE]`. The exit code is
what the command ends with. An error's text says *who could not do what: why; what now*.
"""
RULES_START = """\
# Why work moves, and why it stays

Each rule is one function in `arc/decisions/`, named for what must be true. A task that stays has
one first rule that keeps it, and the counts of a run add up to what waits: `arc why TASK`,
`arc plan` and `arc skills run --name fleet-rebalance -- status` name these words. What to do about
one is told by `arc explain RULE`.

Of the places where a rule is asked, *stealing* is fleet-rebalance between two nodes, *routing* is
fleet-router out of the hub's own queue, *draining* empties a node that is to be empty, *retrying*
takes a task away from who has failed it, and *health* only tells. A node has rules of its own
beside them and the last word: they stand in [at-3am.md](at-3am.md).
"""

EVENTS_START = """\
# Events
"""


@dataclass(frozen=True)
class ErrorClass:
    """One class of the error tree, as its own source tells it."""

    code: str
    exit_code: int
    sentence: str
    path: str


def main() -> int:
    """Rewrites the pages between their marks, leaving what people wrote around them."""
    write_part(DOCS / "map.md", "modules", MAP_START, render_map())
    write_part(DOCS / "errors.md", "errors", ERRORS_START, render_errors())
    write_part(DOCS / "states.md", "states", STATES_START, render_states())
    write_part(DOCS / "rules.md", "rules", RULES_START, render_rules())
    write_part(DOCS / "events.md", "log lines", EVENTS_START, render_lines())
    plot_priority.main()
    write_night(DOCS / "at-3am.md", FOLDER / "errors.md")
    return 0


def render_map() -> str:
    """One line a module, its path and its own first sentence, room by room."""
    return "\n\n".join(render_room(room) for room in ROOMS)


def render_room(room: Room) -> str:
    """A heading, the sentence that holds for the whole room, and its modules."""
    lines = [f"| `{source.path}` | {source.sentence} |" for source in sources(*PACKAGES)
             if room.has(source.path)]
    head = ["| module | what it is for |", "|---|---|"]
    return "\n".join([f"## {room.name}", "", room.sentence, "", *head, *lines])


def render_lines() -> str:
    """One row a line of the hub's log: when it is written."""
    rows = [f"| `{name}` | {when} |" for name, when in LINES.items()]
    return "\n".join(["| line | when |", "|---|---|", *rows])


def render_errors() -> str:
    """One line a code: how the command ends, and what may have changed."""
    lines = [f"| `{error.code}` | {error.exit_code} | {error.sentence} |"
             for error in sorted(error_classes(), key=lambda error: error.code)]
    return "\n".join(["| code | exit | what it means |", "|---|---|---|", *lines])


def write_night(night: Path, pages: Path) -> None:
    """What each word of the page for the night means; and the copy that is installed with us."""
    text = with_meanings(night.read_text(encoding="utf-8"), error_meanings())
    night.write_text(text, encoding="utf-8")
    before, mark, table = pages.read_text(encoding="utf-8").partition(f"## {NODE_WORDS}\n")
    table = copied(node_rows_of(text), table)
    pages.write_text(f"{before}{mark}{table}\n", encoding="utf-8")


def error_meanings() -> dict[str, str]:
    """What each error of a node says of itself, by its code; two of one code say both."""
    said: dict[str, list[str]] = {}
    for error in error_classes():
        said.setdefault(error.code, []).append(error.sentence.rstrip("."))
    return {code: ". Or: ".join(dict.fromkeys(some)) for code, some in said.items()}


def error_classes() -> Iterator[ErrorClass]:
    """Every class with a code of its own; the exit code may come from a class above it."""
    trees = {node.name: (node, source.path) for source in sources("agent_node")
             for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)}
    for name, (node, path) in trees.items():
        code = constant(node, "code")
        if isinstance(code, str) and "NodeError" in ancestry(name, trees):
            exits = [constant(trees[above][0], "exit_code") for above in ancestry(name, trees)]
            exit_code = next(found for found in exits if isinstance(found, int))
            doc = (ast.get_docstring(node) or "").split("\n\n")[0]
            yield ErrorClass(code, exit_code, " ".join(doc.split()), path)


def hub_codes() -> set[str]:
    """Every `ARC-…` that stands as a whole word in the hub's code, whoever raises or writes it."""
    return {
        node.value for source in sources("arc", "sensors") for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and re.fullmatch("ARC(-[A-Z]+)+", node.value)
    }  # fmt: skip


def ancestry(name: str, trees: dict[str, tuple[ast.ClassDef, str]]) -> list[str]:
    """The class and those above it, nearest first, by name."""
    if name not in trees:
        return []
    above = [base.id for base in trees[name][0].bases if isinstance(base, ast.Name)]
    return [name, *(found for base in above for found in ancestry(base, trees))]


def constant(node: ast.ClassDef, name: str) -> str | int | None:
    """The literal that a class gives to `name`; None when it leaves that to others."""
    for step in node.body:
        targets = step.targets if isinstance(step, ast.Assign) else []
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if named and isinstance(step, ast.Assign) and isinstance(step.value, ast.Constant):
            return step.value.value if isinstance(step.value.value, str | int) else None
    return None


def write_part(page: Path, name: str, start: str, content: str) -> None:
    """Puts `content` between the page's marks; a page without marks gets them at its end."""
    first, last = f"<!-- {name}: generated by make docs -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8") if page.exists() else start
    if first not in text:
        text = f"{text.rstrip()}\n\n{first}\n{last}\n"
    before, after = text.split(first)[0], text.split(last)[1]
    page.write_text(f"{before}{first}\n{content}\n{last}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
