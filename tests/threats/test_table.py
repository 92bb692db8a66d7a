"""No threat without a test or a reason, no test in the table that is not there, none untold."""

from __future__ import annotations

import ast
import re

from tests.threats.table import THREATS
from tools.sources import ROOT

PAGE = ROOT / "docs" / "security.md"


def there() -> set[str]:
    """Every test of the tree as `file::name`."""
    found = set()
    for file in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def test_every_threat_has_a_test_or_a_reason() -> None:
    assert [threat.number for threat in THREATS] == list(range(1, 33))
    assert [threat.name for threat in THREATS if not threat.tests and not threat.not_here] == []


def test_every_test_of_the_table_is_there() -> None:
    """Seen to fail with a test renamed."""
    known = there()
    assert [f"{threat.name}: {test}" for threat in THREATS for test in threat.tests
            if test not in known] == []


def test_the_page_tells_every_threat_with_its_tests_or_the_reason() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (T\d+) \| (.*) \|$", page, re.MULTILINE))
    assert list(rows) == [threat.name for threat in THREATS]
    for threat in THREATS:
        assert rows[threat.name].startswith(f"{threat.what} | "), threat.name
        names = dict.fromkeys(test.partition("::")[2] for test in threat.tests)
        assert re.findall(r"`(test_\w+)`", rows[threat.name]) == list(names), threat.name
        assert threat.not_here in rows[threat.name]


def test_every_claim_of_the_page_names_its_threat_or_says_that_nothing_tests_it() -> None:
    """A claim is a line of a list, in the parts on what we do."""
    page = PAGE.read_text(encoding="utf-8")
    known = {threat.name for threat in THREATS}
    parts = re.findall(r"^## What we do(?! not).*?(?=^## )", page, re.DOTALL | re.MULTILINE)
    claims = [line for part in parts
              for line in re.findall(r"^- .*(?:\n  .*)*", part, re.MULTILINE)]  # fmt: skip
    assert len(claims) > 20
    for claim in claims:
        end = re.search(r"\((T\d+(?:, T\d+)*|not tested)\)$", claim)
        assert end, claim
        assert end[1] == "not tested" or set(end[1].split(", ")) <= known, claim
