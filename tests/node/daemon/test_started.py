"""What `agent-node start` and `stop` say of a daemon is so when they say it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import PATIENCE_S, ROOT, Bell, Node, is_gone

UNIT = "agent-node.service"


def under_systemd(node: Node, place: Path, script: str) -> None:
    """A unit for this home is enabled, and `systemctl` is this script."""
    units = place / "config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / UNIT).write_text(f"Environment=AGENT_NODE_HOME={node.home}\n")
    stand_in = place / "bin" / "systemctl"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n{script}\n")
    stand_in.chmod(0o755)
    node.env |= {"PATH": f"{stand_in.parent}:{os.environ['PATH']}",
                 "XDG_CONFIG_HOME": str(place / "config")}  # fmt: skip


def test_a_daemon_that_systemd_did_not_start_is_stopped_before_it_is_called_stopped(
    node: Node, tmp_path: Path
) -> None:
    """`systemctl stop` of a unit that is not active is content, and ends nobody."""
    under_systemd(node, tmp_path, "exit 0")
    daemon = node.start()
    said = node.cli("stop")
    assert said["data"]["stopped"] is True
    assert is_gone(daemon.pid, 0)


def test_what_a_stopped_node_tells_to_type_names_its_home(node: Node) -> None:
    """Seen to fail: typed as it stood, it started the node in ~/.agent-node."""
    node.start()
    ran = subprocess.run([*node.command, "stop"], cwd=ROOT, env=node.env, capture_output=True,
                         text=True, timeout=PATIENCE_S, check=True)  # fmt: skip
    typed = ran.stdout.strip().rpartition("start it with: ")[2]
    assert typed == f"AGENT_NODE_HOME={shlex.quote(str(node.home))} agent-node start"


def test_a_slip_in_node_toml_keeps_nobody_from_stopping_the_daemon(node: Node) -> None:
    """Seen to fail: exit 2 with the line of the slip, and the daemon ran on."""
    daemon = node.start()
    (node.home / "node.toml").write_text("name = 3.5\n")
    said = node.cli("stop")
    assert said["data"]["stopped"] is True
    (warning,) = said["warnings"]
    assert "node.toml:1" in warning
    assert "no daemon starts with it" in warning
    assert daemon.ended() == 0


def test_systemd_is_given_the_whole_grace_to_stop_a_daemon(
    make_node: MakeNode, tmp_path: Path, bell: Bell, gate: Bell
) -> None:
    """Run once with ten seconds for every systemctl: a node with work could not be stopped."""
    node = make_node(stop_grace_s=11)
    daemon = node.start()
    runs = f"grep -q 'State:.[SRD]' /proc/{daemon.pid}/status"
    under_systemd(node, tmp_path, f'[ "$3" != stop ] || {{ kill -TERM {daemon.pid};'
                  f" while {runs}; do sleep 0.1; done; }}")  # fmt: skip
    node.add(f"echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    try:
        assert node.cli("stop")["ok"]
        assert daemon.ended() == 0
    finally:
        gate.ring()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSTOP])
def test_a_daemon_that_leaves_or_hangs_is_no_daemon_that_runs_already(
    make_node: MakeNode, bell: Bell, gate: Bell, number: signal.Signals
) -> None:
    """It said `runs already` of a daemon that was on its way out, and then none ran."""
    node = make_node(stop_grace_s=60)
    daemon = node.start()
    node.add(f"echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    daemon.signal(number)
    if number == signal.SIGTERM:
        daemon.hear("stop_asked")
    try:
        said = node.cli("start", code=None)
        assert not said["ok"]
        assert f"pid {daemon.pid} is leaving, or hangs" in said["error"]["message"]
    finally:
        daemon.signal(signal.SIGCONT)
        gate.ring()


def test_a_daemon_that_is_about_to_leave_is_followed_by_another(node: Node, bell: Bell) -> None:
    daemon = node.start()
    daemon.signal(signal.SIGTERM)
    said = node.cli("start")
    assert (said["data"]["how"], said["data"]["pid"] == daemon.pid) == ("detached", False)
