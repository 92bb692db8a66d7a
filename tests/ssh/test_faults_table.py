"""No fault of the catalogue without a test over sshd or a reason, and no test that is gone."""

from __future__ import annotations

import re

from tests.held import every_run
from tests.ssh.faults import FAULTS
from tools.sources import ROOT

PAGE = ROOT / "docs" / "ssh-tests.md"
ROWS = re.compile(r"^\| ([^|]+) \| ([^|]*`test_[^|]*|none; [^|]*) \|$", re.MULTILINE)


def test_every_fault_is_tried_over_sshd_or_says_why_not() -> None:
    """Seen to fail with the tests of a row over sshd taken out."""
    assert len(FAULTS) == 28
    assert len({row.what for row in FAULTS}) == len(FAULTS)
    assert [row.what for row in FAULTS if not row.over_sshd and not row.not_here] == []


def test_every_test_of_the_table_is_there_and_runs_each_time() -> None:
    """Seen to fail with a test renamed."""
    known = every_run()
    assert [test for row in FAULTS for test in row.tests if test not in known] == []


def test_the_page_tells_every_fault_with_its_tests_or_the_reason() -> None:
    rows = dict(ROWS.findall(PAGE.read_text(encoding="utf-8")))
    assert [*rows] == [row.what for row in FAULTS]
    for row in FAULTS:
        names = list(dict.fromkeys(test.partition("::")[2] for test in row.tests))
        assert re.findall(r"`(test_\w+)`", rows[row.what]) == names, row.what
        assert row.not_here in rows[row.what], row.what
