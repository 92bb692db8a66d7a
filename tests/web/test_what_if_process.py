"""The process that plays history again: however it ends, the page says what now, the log why."""

from __future__ import annotations

import logging
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from arc.web.panels.what_if import LAST_WORDS_MAX, ReplayFailed, Replays
from tests.builders import START

SECRET = "a line of a traceback"


def ends_so(patch: pytest.MonkeyPatch, place: Path, code: str) -> None:
    """In place of Python a program that reads its question and then does this."""
    program = place / "ends"
    program.write_text(f"#!{sys.executable} -IS\nimport os, sys\nsys.stdin.read()\n{code}\n")
    program.chmod(0o700)
    patch.setattr(sys, "executable", str(program))


@pytest.mark.parametrize(("code", "how"), [
    ("sys.exit(3)", "ended with 3"),
    ("os.kill(os.getpid(), 9)", "was ended by signal 9"),
])  # fmt: skip
async def test_a_process_that_ends_without_an_answer_leaves_its_last_words_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    code: str, how: str,
) -> None:  # fmt: skip
    ends_so(monkeypatch, tmp_path, f"sys.stderr.write('x' * 100000 + '{SECRET}'); "
                                   f"sys.stderr.flush(); {code}")  # fmt: skip
    with caplog.at_level(logging.ERROR), pytest.raises(ReplayFailed, match=how) as failed:
        await Replays(tmp_path).ask(START + timedelta(days=2), {})
    assert "log" in failed.value.hint
    assert SECRET not in f"{failed.value}{failed.value.hint}"
    (record,) = caplog.records
    assert record.getMessage().endswith(SECRET)
    assert len(record.getMessage()) < LAST_WORDS_MAX + 100
