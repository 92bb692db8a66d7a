"""Holds what the bench says of peers: their figure, or that they are not there, never a guess."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from bench import peer_dask, peer_rounds, peer_ssh
from bench.peer_rounds import NOT_INSTALLED, PeerRounds, answer_rounds


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (peer_ssh, peer_dask):
        monkeypatch.setattr(module, "is_there", lambda package: False)
    assert peer_ssh.ssh_peers(3, {}, Path("key")) == {
        "parallel-ssh": NOT_INSTALLED, "paramiko": NOT_INSTALLED,
    }  # fmt: skip
    assert peer_dask.dask("spread", "s", 3, workers=5) == {"dask": NOT_INSTALLED}


def test_a_peer_answers_a_round_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n\n"))
    took = iter([1.5, 2.5])
    answer_rounds(lambda: next(took))
    assert capsys.readouterr().out.split() == ["ready", "1.5", "2.5"]


def test_each_round_is_the_peers_own_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a_module(monkeypatch, tmp_path, "answer_rounds(lambda: told['took'])")
    with PeerRounds("peer_of_a_test", {"took": 7.25}) as peer:
        assert [peer.round(), peer.round()] == [7.25, 7.25]


def test_a_peer_that_dies_is_no_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a_module(monkeypatch, tmp_path, "raise SystemExit(3)")
    with pytest.raises(RuntimeError, match="a peer ended: 3"):
        PeerRounds("peer_of_a_test", {})


def a_module(monkeypatch: pytest.MonkeyPatch, place: Path, story: str) -> None:
    """`bench.peer_of_a_test`, in a package that has nothing else but what it leans on."""
    package = place / "bench"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "peer_rounds.py").symlink_to(peer_rounds.__file__)
    (package / "peer_of_a_test.py").write_text(
        "import json, sys\nfrom bench.peer_rounds import answer_rounds\n"
        f"told = json.loads(sys.argv[1])\n{story}\n"
    )
    monkeypatch.setattr(peer_rounds, "ROOT", place)
