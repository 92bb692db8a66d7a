"""Claims about the run of tests as an ordinary user: it is left out only where it cannot be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools import laboratory, ordinary
from tools.sources import ROOT


def test_who_is_not_root_has_run_them_already(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ordinary.main([]) == 0
    assert "run so already" in capsys.readouterr().out


def test_a_machine_without_a_python_for_that_user_says_so_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ordinary, "find_python", lambda: None)
    for name in ("CI", "TIERS_MUST_RUN"):
        monkeypatch.delenv(name, raising=False)
    assert ordinary.main([]) == 0
    assert "NOT RUN" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("TIERS_MUST_RUN", "ssh browser")])
def test_where_every_tier_must_run_it_is_a_failure_that_this_one_cannot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    """Seen to fail: it ended with 0, and all of CI was green without these tests."""
    for one in ("CI", "TIERS_MUST_RUN"):
        monkeypatch.delenv(one, raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ordinary, "find_python", lambda: None)
    assert ordinary.main([]) == 1
    assert "NOT RUN" in capsys.readouterr().err


def test_ci_says_that_every_tier_must_run() -> None:
    """What it exports is what the program looks at."""
    told = (ROOT / ".ci" / "run").read_text()
    before, _, after = told.partition("tools/ordinary.py ||")
    assert "export TIERS_MUST_RUN=" in before
    assert 'failed+=("tools/ordinary.py")' in after


def test_what_the_tests_need_is_taken_whole_and_nothing_else() -> None:
    taken = ordinary.with_requirements(["pytest"])
    assert {"pytest", "pluggy", "iniconfig", "packaging"} <= taken
    assert "mypy" not in taken


def test_that_user_gets_nothing_of_roots_and_the_tests_verdict_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[object] = []

    def run(words: list[str], **more: object) -> subprocess.CompletedProcess[bytes]:
        ran.extend([words, more["env"]])
        return subprocess.CompletedProcess(words, 3)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *given, **more: None)
    monkeypatch.setattr(ordinary, "find_python", lambda: Path("/usr/bin/python3"))
    monkeypatch.setattr(ordinary, "TAKEN", ("pyproject.toml",))
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("SECRET", "of root")
    assert ordinary.main(["tests/node"]) == 3
    words, env = ran
    assert isinstance(words, list)
    assert words[0] == "setpriv"
    assert words[-1] == "tests/node"
    assert isinstance(env, dict)
    assert "SECRET" not in env


def test_a_tree_of_cgroups_is_ours_when_one_can_be_made(tmp_path: Path) -> None:
    """Seen to fail while `make test` asked one place and the test another: an ordinary user, who
    may divide neither, was told that the skip was unlawful."""
    assert not laboratory._divides(tmp_path), "what is made there cannot be ended as a whole"
    assert not laboratory._divides(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []
