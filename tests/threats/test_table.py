"""No threat without a test or a reason, no test in the table that is not there, none untold."""

from __future__ import annotations

import re

import pytest

from tests.held import every_run, names_in
from tests.threats.table import THREATS
from tools.sources import ROOT

PAGE = ROOT / "docs" / "security.md"


def test_every_threat_has_a_test_or_a_reason() -> None:
    assert [threat.number for threat in THREATS] == list(range(1, 33))
    assert [threat.name for threat in THREATS if not threat.tests and not threat.not_here] == []


def test_every_test_of_the_table_is_there_and_runs_each_time() -> None:
    """Seen to fail with a test renamed, and with one marked `soak`."""
    known = every_run()
    assert [f"{threat.name}: {test}" for threat in THREATS for test in threat.tests
            if test not in known] == []


@pytest.mark.parametrize("soaked", [
    "@pytest.mark.soak\ndef test_it(): pass\n",
    "@pytest.mark.soak()\nasync def test_it(): pass\n",
    "@pytest.mark.parametrize('n', [1])\n@pytest.mark.soak\ndef test_it(n): pass\n",
    "@pytest.mark.soak\nclass TestAll:\n    def test_it(self): pass\n",
    "class TestAll:\n    pytestmark = [pytest.mark.soak]\n    def test_it(self): pass\n",
    "pytestmark = [pytest.mark.asyncio, pytest.mark.soak]\ndef test_it(): pass\n",
])  # fmt: skip
def test_what_only_the_soak_runs_holds_nothing(soaked: str) -> None:
    assert names_in(f"{soaked}def a_helper(): pass\n".encode()) <= {"a_helper"}
    assert "test_it" in names_in(soaked.replace("soak", "asyncio").encode())


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
