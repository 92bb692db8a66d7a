"""Reads the project's own modules as text and trees, for fences and generated docs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agent_node", "arc", "sensors")


@dataclass(frozen=True)
class Source:
    """One module: its path below the project's root, its text, its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def sentence(self) -> str:
        """The first line of its docstring; empty when it has none."""
        return (ast.get_docstring(self.tree) or "").split("\n", 1)[0].strip()


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every module below the named folders of the project, in order of their paths."""
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return tuple(source_of(file) for file in sorted(files))


def source_of(file: Path) -> Source:
    """One file as a `Source`; a file that does not parse is nobody's module, and raises."""
    text = file.read_text(encoding="utf-8")
    return Source(file.relative_to(ROOT).as_posix(), text, ast.parse(text, str(file)))
