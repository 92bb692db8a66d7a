"""Holds the rule that a test may be skipped only for what this machine really lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import all_tiers, tiers
from tools.laboratory import APART
from tools.sources import ROOT


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "CAPABILITIES", {"forge": lambda: False, "loom": lambda: True})


def test_a_skip_for_something_that_is_missing_stands() -> None:
    assert tiers.objection_to_skip("needs forge: there is none") is None


def test_a_tier_that_must_run_may_not_be_skipped_for_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """.ci/run sets up what tests/ssh needs. Without the check a runner without sshd is green."""
    monkeypatch.setattr(tiers, "MUST_RUN", frozenset({"ssh"}))
    told = tiers.Tiers()
    told.judge_skip("tests/node/test_x.py::test_y", "needs forge: there is none")
    assert told.tally.unlawful == []
    told.judge_skip("tests/ssh/test_x.py::test_y", "needs forge: there is none")
    assert "must run here" in told.tally.unlawful[0]


@pytest.mark.parametrize(("args", "apart", "expected"), [
    ((), False, [["pytest"]]),
    (("-x",), True, [["pytest", "-x", "--ignore=tests/ssh"], ["unshare", "-x", "tests/ssh"]]),
    (("tests/node",), True, [["pytest", "tests/node"]]),
    (("tests/ssh/test_lab.py",), True, [["unshare", "tests/ssh/test_lab.py"]]),
])  # fmt: skip
def test_who_is_not_root_runs_container_nodes_apart(
    args: tuple[str, ...], expected: list[list[str]], *, apart: bool
) -> None:
    short = [
        [word for word in run if word not in all_tiers.RUN[:2] + all_tiers.RUN[3:]
         and word not in APART[1:]]
        for run in all_tiers.runs(args, apart=apart)
    ]  # fmt: skip
    assert [[w for w in run if not (w == "pytest" and run[0] == "unshare")] for run in short] == (
        expected
    )


def test_a_skip_for_something_that_is_there_is_refused() -> None:
    said = tiers.objection_to_skip("needs loom: there is none")
    assert said is not None
    assert "this machine has loom" in said


@pytest.mark.parametrize("reason", ["flaky", "needs forge", "needs anvil: unknown", ""])
def test_a_skip_without_a_reason_that_can_be_checked_is_refused(reason: str) -> None:
    assert tiers.objection_to_skip(reason) is not None


@pytest.mark.parametrize(("nodeid", "tier"), [
    ("tests/node/cli/test_add.py::test_x[a/b]", "node"),
    ("tests/test_layers.py::test_x", "fences"),
])
def test_a_tier_is_the_folder_below_tests(nodeid: str, tier: str) -> None:
    assert tiers.tier_of(nodeid) == tier


def test_a_run_with_an_unlawful_skip_fails_and_names_it(tmp_path: Path) -> None:
    """Without the line that sets the exit status in tools/tiers.py this run passes."""
    (tmp_path / "test_lazy.py").write_text(
        "import pytest\n\ndef test_a():\n    pass\n\ndef test_b():\n    pytest.skip('later')\n"
    )
    run = [sys.executable, "-m", "pytest", "-p", "tools.tiers", "-c", "/dev/null",
           "--rootdir", str(tmp_path), "-p", "no:cacheprovider", str(tmp_path)]
    said = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "FAILED  test_lazy.py::test_b: skipped, but not in the form" in said.stdout
    assert "1 passed, 1 skipped" in said.stdout.splitlines()[-1]
