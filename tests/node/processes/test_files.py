"""Claims about the attempt's folder, and about answers that nobody has to believe."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_node.answers import Answer, read_answer
from agent_node.attempts import (
    AttemptExists,
    AttemptFolder,
    attempt_folder,
    attempt_numbers,
    create_folder,
    list_attempts,
)
from agent_node.errors import BadInput
from agent_node.ulid import fresh_ulid
from agent_node.verdicts import read_verdict


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    return create_folder(str(tmp_path), fresh_ulid(), 1)


def answer(folder: AttemptFolder, content: bytes) -> Answer:
    Path(folder.answer).write_bytes(content)
    return read_answer(folder)


def test_an_attempt_number_is_used_once(tmp_path: Path, folder: AttemptFolder) -> None:
    with pytest.raises(AttemptExists):
        create_folder(str(tmp_path), folder.uid, 1)
    create_folder(str(tmp_path), folder.uid, 2)

    assert attempt_numbers(str(tmp_path), folder.uid) == (1, 2)
    assert sorted(list_attempts(str(tmp_path))) == [(folder.uid, 1), (folder.uid, 2)]


def test_strange_names_are_no_attempts_and_never_become_paths(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / fresh_ulid()).write_text("a file")
    (tmp_path / fresh_ulid() / "x").mkdir(parents=True)

    assert list(list_attempts(str(tmp_path))) == []
    for uid, n in (("../../etc", 1), (fresh_ulid(), 0), (fresh_ulid(), -1)):
        with pytest.raises(BadInput):
            attempt_folder(str(tmp_path), uid, n)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    uid, elsewhere = fresh_ulid(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / uid).symlink_to(elsewhere)

    with pytest.raises(OSError, match=uid):
        create_folder(str(tmp_path), uid, 1)
    assert list(elsewhere.iterdir()) == []


def test_no_answer_is_no_fault(folder: AttemptFolder) -> None:
    assert read_answer(folder) == Answer(given=False)


def test_a_whole_answer_is_read(folder: AttemptFolder) -> None:
    said = answer(folder, json.dumps({
        "output": {"pages": 3}, "cost_usd": "0.12", "tokens": {"input": 5, "output": 7},
        "artifacts": ["a.txt"], "model": "small",
        "error": {"kind": "rate_limit", "message": "slow down",
                  "retry_at": "2026-03-10T03:45:02Z"}}).encode())

    assert said.problem is None
    assert said.output == {"pages": 3}
    assert (said.cost_usd, said.tokens) == ("0.12", {"input": 5, "output": 7})
    assert said.artifacts == ("a.txt",)
    assert said.extra == {"model": "small"}
    assert said.error is not None
    assert (said.error.kind, said.error.message) == ("rate_limit", "slow down")
    assert said.error.retry_at is not None


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"", "JSON"), (b"[1]", "object"), (b'{"output":1,"output":2}', "twice"),
        (b'{"output":NaN}', "NaN"), (b'{"cost_usd":0.12}', "cost_usd"),
        (b'{"cost_usd":"-1"}', "cost_usd"), (b'{"cost_usd":"1e9"}', "cost_usd"),
        (b'{"tokens":{"input":true}}', "tokens/input"), (b'{"tokens":[]}', "tokens"),
        (b'{"artifacts":"a"}', "artifacts"), (b'{"error":"x"}', "error"),
        (b'{"error":{"message":"m"}}', "error/kind"), (b"\xff", "UTF-8"),
        (b'{"error":{"kind":"k","retry_at":"soon"}}', "retry_at"),
        (b'{"error":{"kind":"k","retry_at":"2026-03-10T03:45:02"}}', "retry_at"),
        (b'{"output":"' + b"x" * 70_000 + b'"}', "output"), (b'{"a":"\\u0000"}', "NUL"),
        (b"[" * 100_000, "deep"), (b" " * 300_000, "bytes"),
    ],
)
def test_a_bad_answer_is_a_problem_and_never_a_fault(
    folder: AttemptFolder, content: bytes, field: str
) -> None:
    said = answer(folder, content)

    assert said.problem is not None
    assert field in said.problem
    assert said.output is None


def test_an_answer_that_is_no_plain_file_is_not_touched(folder: AttemptFolder) -> None:
    def said() -> str:
        problem = read_answer(folder).problem
        os.unlink(folder.answer)
        return problem or ""

    os.symlink("/dev/zero", folder.answer)
    assert "link" in said()
    os.mkfifo(folder.answer)
    assert "plain file" in said()
    Path(folder.file("other")).write_text("{}")
    os.link(folder.file("other"), folder.answer)
    assert "plain file" in said()


@pytest.mark.parametrize("content", [b"", b'{"schema":"verdict/1","uid":', b"{}", b'"x"'])
def test_a_torn_verdict_is_none(folder: AttemptFolder, content: bytes) -> None:
    Path(folder.verdict).write_bytes(content)

    assert read_verdict(folder) is None


def test_a_verdict_on_another_attempt_is_none(folder: AttemptFolder) -> None:
    verdict = {
        "schema": "verdict/1", "uid": folder.uid, "n": 1, "kind": "exited", "exit_code": 0,
        "signal": None, "started_at": "2026-03-10T03:45:02.000Z",
        "ended_at": "2026-03-10T03:45:03.000Z", "duration_s": 1, "leftovers_killed": 0,
        "stdout": {"bytes": 0, "dropped": 0}, "stderr": {"bytes": 0, "dropped": 0},
        "survivors": 0, "because": "exit 0"}
    Path(folder.verdict).write_text(json.dumps(verdict))
    assert read_verdict(folder) is not None
    Path(folder.verdict).write_text(json.dumps({**verdict, "n": 2}))
    assert read_verdict(folder) is None
