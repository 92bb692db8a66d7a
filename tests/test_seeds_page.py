"""Holds docs/seeds.md to the code: every row once, every module and every test that it names."""

from __future__ import annotations

import ast
import re

from tools.sources import ROOT, sources

FIRST, LAST = 98, 186
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| S(\d{3}) \| (.+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)


def test_every_row_is_there_once_and_in_its_order() -> None:
    """Seen to fail with a row taken out, and with one twice."""
    assert [int(row[0]) for row in ROWS] == list(range(FIRST, LAST + 1))


def test_every_test_that_is_named_is_there() -> None:
    """Seen to fail with a letter changed in a name, and in a file."""
    there = {f"{source.path.removeprefix('tests/')}::{node.name}"
             for source in sources("tests") for node in ast.walk(source.tree)
             if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}  # fmt: skip
    named = re.findall(r"`([^`\s]+::[^`\s]*)`", PAGE)
    assert sorted(set(named) - there - {"FILE::TEST"}) == []
    assert len(named) > LAST - FIRST


def test_every_module_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:agent_node|arc|sensors)/[^`:]+)`", PAGE))
    assert sorted(path for path in named if not (ROOT / path).is_file()) == []
    assert len(named) > 20


def test_every_row_is_held_by_a_test_and_has_a_place_or_says_why_not() -> None:
    lacking = [
        row[0]
        for row in ROWS
        if "::test_" not in row[3] or not ("`" in row[2] or row[2].startswith("not built"))
    ]
    assert lacking == []


def test_what_is_said_not_to_be_built_is_no_module_of_the_hub() -> None:
    """Seen to fail where the page still missed a webhook and a web page that had been built."""
    names = {part for source in sources("arc", "sensors")
             for part in source.path.removesuffix(".py").split("/")}  # fmt: skip
    known = names | {name.removesuffix("s") for name in names}
    missing = re.findall(r"^\| S(\d{3}) \| .*Not built: ([^|,;.]+)", PAGE, re.MULTILINE)
    assert [(row, sorted(known & set(re.findall(r"[a-z]+", what)))) for row, what in missing
            if known & set(re.findall(r"[a-z]+", what))] == []  # fmt: skip
    assert len(missing) > 2


def test_every_fault_has_a_test_that_would_catch_it() -> None:
    faults = PAGE.partition("would be caught here")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", faults, re.MULTILINE)
    assert [what for what, tests in rows[1:] if "::test_" not in tests and what != "---"] == []
    assert len(rows) > 20
