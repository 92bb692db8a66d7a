"""Knows which tests each run of `make test` runs, so that no table counts on one that it leaves."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tools.sources import ROOT

SOAK = "pytest.mark.soak"


@cache
def every_run() -> frozenset[str]:
    """Every test of the tree as `tests/file.py::name`, without those that only `make soak` runs."""
    tests = ROOT / "tests"
    return frozenset(
        f"{file.relative_to(ROOT)}::{name}"
        for file in tests.rglob("*.py") for name in names_in(file.read_bytes())
    )  # fmt: skip


def names_in(source: bytes) -> set[str]:
    """The functions of a module, of its classes too; those that are soaked, as a whole, are out."""
    return _names(ast.parse(source))


def _names(scope: ast.Module | ast.ClassDef) -> set[str]:
    if _marked(scope):
        return set()
    found = set[str]()
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            found |= set() if _is_soaked(node.decorator_list) else _names(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set() if _is_soaked(node.decorator_list) else {node.name}
    return found


def _marked(scope: ast.Module | ast.ClassDef) -> bool:
    """`pytestmark = …` marks all that is in it."""
    return any(
        SOAK in ast.unparse(node.value) and "pytestmark" in map(ast.unparse, node.targets)
        for node in scope.body if isinstance(node, ast.Assign)
    )  # fmt: skip


def _is_soaked(decorators: list[ast.expr]) -> bool:
    return any(ast.unparse(one).removesuffix("()") == SOAK for one in decorators)


def tests_of(text: str) -> tuple[str, ...]:
    """A line that ends in .py names a file below tests/; each other line is a test in it."""
    found, file = list[str](), ""
    for line in text.split():
        file = line if line.endswith(".py") else file
        found += [f"tests/{file}::{line}"] if file != line else []
    return tuple(found)


def folder_of(test: str) -> Path:
    """Where the file of such a name lies, below the root."""
    return Path(test.partition("::")[0]).parent
