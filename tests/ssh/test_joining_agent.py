"""Lets machines join, and upgrades them, by keys that only an ssh-agent has; no file has them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hub.cli.desk import Ran
from tests.node.upgrading.programs import IMPATIENT, a_program
from tests.ssh.joining_desk import Operator, an_operator
from tests.ssh.lab import Lab
from tests.ssh.lab_node import Home, LabNode
from tests.ssh.test_joining import KEYS, answers

AGENT_S = 10.0


@contextmanager
def an_agent(folder: Path) -> Iterator[str]:
    """A real one, until the end of this block; the socket at which it is asked."""
    sock = folder / "agent.sock"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + AGENT_S
        while subprocess.run(["ssh-add", "-l"], env=asked_at(str(sock)), capture_output=True,
                             check=False).returncode == 2:  # fmt: skip
            assert time.monotonic() < until, "no agent answers"
            time.sleep(0.02)  # between two looks at what tells nobody when it listens
        yield str(sock)
    finally:
        agent.terminate()
        agent.wait(AGENT_S)


def asked_at(sock: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "SSH_AUTH_SOCK": sock}


def only_in_the_agent(ada: Operator, node: LabNode, sock: str) -> Path:
    """A new key of ada's lets her in, and no other: its public file, the only one there is."""
    for left in (ada.home / ".ssh").iterdir():
        left.unlink()
    key = ada.home / ".ssh" / "hers"
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-C", "ada", "-f", str(key)],
                   check=True)  # fmt: skip
    subprocess.run(["ssh-add", "-q", str(key)], env=asked_at(sock), check=True)
    key.unlink()
    public = key.with_suffix(".pub")
    node.write(KEYS, public.read_bytes(), mode=0o600, user="agent")
    return public


def upgraded(ada: Operator, place: Path, public: Path) -> Ran:
    """`arc nodes upgrade` of iris with a newer program, as `public` says whose it is."""
    path = place / "new.pyz"
    path.write_bytes(a_program("0.2.0", IMPATIENT).content)
    return ada.arc("nodes", "upgrade", "iris", "--file", str(path), "--yes", "--json",
                   "--key", str(public))  # fmt: skip


def test_a_key_that_only_an_agent_has_lets_a_machine_join_and_signs_its_upgrade(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: with `agent=None` in `own_login` the login is refused, as it is without an agent."""
    ada, node = an_operator(tmp_path, lab)
    with an_agent(tmp_path) as sock:
        public = only_in_the_agent(ada, node, sock)
        words = ("--run", "cat", "--operator-key", str(public))
        refused = ada.add(node, *words)
        assert refused.code == 4
        assert "(tried: no ssh agent, no key in ~/.ssh)" in refused.err
        monkeypatch.setenv("SSH_AUTH_SOCK", sock)  # ssh-keygen has it as a child of ours
        joined = ada.add(node, *words, "--json", SSH_AUTH_SOCK=sock)
        assert joined.code == 0, joined.err
        (login,) = [one["text"] for one in joined.data["steps"] if one["step"] == "login"]
        assert login.endswith("by your ssh agent, no key in ~/.ssh")
        assert answers(ada, node), "the hub itself needs no agent"

        ran = upgraded(ada, tmp_path, public)
        assert [one["outcome"] for one in ran.data["nodes"]] == ["upgraded"], (ran.out, ran.err)
    home = Home(node, "iris", "agent", "/home/agent/.agent-node")
    assert home.run("status")["version"] == "0.2.0"


def test_a_key_that_an_agent_has_no_longer_signs_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, node = an_operator(tmp_path, lab)
    with an_agent(tmp_path) as sock:
        public = only_in_the_agent(ada, node, sock)
        monkeypatch.setenv("SSH_AUTH_SOCK", sock)
        joined = ada.add(node, "--run", "cat", "--operator-key", str(public), SSH_AUTH_SOCK=sock)
        assert joined.code == 0, joined.err
        subprocess.run(["ssh-add", "-q", "-D"], env=asked_at(sock), check=True)
        ran = upgraded(ada, tmp_path, public)
    assert (ran.code, ran.envelope["error"]["code"]) == (4, "ARC-UPGRADE-SIGN")
    assert "ssh-keygen did not sign" in ran.envelope["error"]["message"]
    home = Home(node, "iris", "agent", "/home/agent/.agent-node")
    assert home.run("status")["version"] != "0.2.0"
