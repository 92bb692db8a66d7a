"""Guards of the evidence that a machine's other processes would otherwise hide from a test."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from agent_node import evidence
from agent_node.attempts import create_folder
from agent_node.evidence import Unprovable, judge_attempt
from agent_node.traces import Search
from agent_node.ulid import fresh_ulid

NONE = Search(frozenset(), frozenset())


def test_a_tree_lock_that_somebody_unseen_holds_is_enough_to_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when only processes that can be seen count; nothing else here is in doubt."""
    folder = create_folder(str(tmp_path), fresh_ulid(), 1)
    folder.add("tree.lock", b"")
    monkeypatch.setattr(evidence, "holders_of", lambda path: NONE)
    monkeypatch.setattr(evidence, "carrying_token", lambda token: NONE)
    holder = os.open(folder.tree_lock, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        judged = judge_attempt(folder, "token-that-nobody-carries")
    finally:
        os.close(holder)
    assert isinstance(judged, Unprovable)
    assert "tree.lock" in judged.why
