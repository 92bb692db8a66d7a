"""The hub gets a new key by the steps of docs/security.md, which are run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ssh.joining_desk import Operator, an_operator
from tests.ssh.lab import Lab
from tests.ssh.lab_node import LabNode
from tools.sources import ROOT

KEYS = "/home/agent/.ssh/authorized_keys"
STEPS = re.compile(r"<!-- rotate -->\n```sh\n(.*?)```", re.DOTALL)
STOLEN = re.compile(r"<!-- stolen -->\n```sh\n(.*?)```", re.DOTALL)
PAGE = ROOT / "docs" / "security.md"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH: this checkout's `arc`, and an ssh that knows the operator's own key."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def ssh_of(ada: Operator, node: LabNode, place: Path, tools: Path) -> None:
    """`ssh` as the operator types it, with a key of their own."""
    known, settings = place / "known", place / "ssh_config"
    known.write_text(f"{node.address} {node.host_key}\n")
    settings.write_text(f"IdentityFile {ada.home}/.ssh/id_ed25519\n")
    program(tools / "ssh", f'exec /usr/bin/ssh -F {settings} -o UserKnownHostsFile={known} "$@"')


def test_whoever_is_logged_in_with_a_stolen_key_is_put_out_at_once(
    lab: Lab, tmp_path: Path, tools: Path
) -> None:
    """By the step of the page, as it stands; the daemon and its tasks stay."""
    ada, node = an_operator(tmp_path, lab)
    ada.joined(node, "--run", "cat")
    ssh_of(ada, node, tmp_path, tools)
    hubs = ada.state / "keys" / "hub_ed25519"
    thief = subprocess.Popen(
        [str(tools / "ssh"), "-F", "none", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
         "-i", str(hubs), f"agent@{node.address}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert thief.stdin is not None
        assert thief.stdout is not None
        assert b'"agent-node"' in thief.stdout.readline()
        (step,) = STOLEN.findall(PAGE.read_text(encoding="utf-8"))
        ran = subprocess.run(
            ["bash", "-c", step.replace("iris.lan", node.address)], check=False, timeout=30,
            env={"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(ada.home), "USER": "ada"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 255, ran.stderr
        assert thief.wait(10) == 255
    finally:
        thief.kill()
        thief.communicate(timeout=10)
    assert ada.arc("nodes", "show", "iris", "--json").data["seen"]
    assert node.exec(["pgrep", "-f", "agent-node.* run"]).stdout


def test_the_steps_for_a_new_key_work_as_they_stand(lab: Lab, tmp_path: Path, tools: Path) -> None:
    """Before, between and after, the node answers; at the end the old key opens nothing."""
    ada, node = an_operator(tmp_path, lab)
    ada.joined(node, "--run", "cat")
    old, lines = ada.public, len(node.read(KEYS).splitlines())
    ssh_of(ada, node, tmp_path, tools)
    program(tools / "arc", f'PYTHONPATH={ROOT} exec {sys.executable} -m arc "$@"')
    (found,) = STEPS.findall(PAGE.read_text(encoding="utf-8"))
    script = found.replace("iris.lan", node.address)
    stolen = ada.state / "keys" / "hub_ed25519"
    copy = tmp_path / "stolen"
    copy.write_bytes(stolen.read_bytes())
    copy.chmod(0o600)

    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=ada.fleet.parent, check=False,
        env={"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(ada.home), "USER": "ada"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    assert '"node":"iris"' in ran.stdout.replace(" ", "")
    assert ada.public != old
    after = node.read(KEYS).decode()
    assert (old in after, ada.public in after) == (False, True)
    assert len(after.splitlines()) == lines
    assert sorted(path.name for path in stolen.parent.iterdir()) == [
        "hub_ed25519", "hub_ed25519.pub"]
    assert ada.arc("nodes", "show", "iris", "--json").data["seen"]
    tried = subprocess.run(
        [str(tools / "ssh"), "-n", "-F", "none", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
         "-i", str(copy), f"agent@{node.address}"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert tried.returncode == 255
    assert "Permission denied" in tried.stderr
